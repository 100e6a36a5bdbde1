/*
 * reject_reasons.h - what the rejects say besides the sequences themselves: in
 * two more channels, which sequence it was, and why it is among them.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef COMMON_REJECT_REASONS_H
#define COMMON_REJECT_REASONS_H

/* The channels, as ps_channel, and what they take behind a payload. */
#define REJECT_CHANNELS                        \
    {"source_id", PS_U64, PS_PER_SEQUENCE, 0}, \
    {"reason", PS_U8, PS_PER_SEQUENCE, 0}
#define REJECT_EXTRA_BYTES 9
#define REJECT_AT_REASON 8

/* The values of `reason`. */
enum {
    REJECT_NONE = 0, /* it is no reject */
    REJECT_DROPPED = 1,
    REJECT_TRUNCATED = 2,
    REJECT_OUT_OF_VOCAB = 3
};

#endif
