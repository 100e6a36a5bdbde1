/*
 * reject_reasons.h - why a sequence is among the rejects: the values of their
 * channel `reason`.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef COMMON_REJECT_REASONS_H
#define COMMON_REJECT_REASONS_H

enum {
    REJECT_NONE = 0, /* it is no reject */
    REJECT_DROPPED = 1,
    REJECT_TRUNCATED = 2,
    REJECT_OUT_OF_VOCAB = 3
};

#endif
