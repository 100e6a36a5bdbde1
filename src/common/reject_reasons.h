/*
 * reject_reasons.h - the two channels that packstream adds to rejected
 * sequences: source_id, the number of the sequence in the input, and reason,
 * the reason for its rejection.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef COMMON_REJECT_REASONS_H
#define COMMON_REJECT_REASONS_H

/*
 * The channels, as ps_channel initialisers.  They add REJECT_EXTRA_BYTES bytes
 * to the end of each payload: source_id (8 bytes), then reason, at offset
 * REJECT_AT_REASON.
 */
#define REJECT_CHANNELS                        \
    {"source_id", PS_U64, PS_PER_SEQUENCE, 0, 0}, \
    {"reason", PS_U8, PS_PER_SEQUENCE, 0, 0}
#define REJECT_EXTRA_BYTES 9
#define REJECT_AT_REASON 8

/* Values of the channel `reason`. */
enum {
    REJECT_NONE = 0, /* not rejected */
    REJECT_DROPPED = 1,
    REJECT_TRUNCATED = 2,
    REJECT_OUT_OF_VOCAB = 3
};

#endif
