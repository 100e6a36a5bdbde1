/*
 * totals.h - maintain and check ps_totals.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_TOTALS_H
#define LIB_FORMAT_TOTALS_H

#include "packstream.h"

/* Adds one pack. */
void ps_totals_add_pack(ps_totals *totals, uint32_t n_seq, uint32_t n_tok,
                        uint32_t max_seqlen);

/* Adds the totals of another stream; false if a sum exceeds 64 bits. */
bool ps_totals_add(ps_totals *totals, const ps_totals *other);

/*
 * Encoding of totals and a digest in END (see packstream(5), "END record"),
 * marks and states: first the 64-bit numbers, then the 32-bit numbers.
 */
#define PS_TOTALS_BYTES 116

void ps_totals_encode(const ps_totals *totals, uint64_t digest,
                      unsigned char to[PS_TOTALS_BYTES]);
void ps_totals_decode(const unsigned char from[PS_TOTALS_BYTES],
                      ps_totals *totals, uint64_t *digest);

/*
 * Compares the totals in END with the totals of the packs.  PS_OK,
 * PS_ERR_CORRUPT.
 */
ps_result ps_totals_compare(const ps_totals *end, const ps_totals *seen,
                            ps_error *err);

/*
 * Checks that END accounts for all of the input and agrees with the known
 * counts of the header.  PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_totals_check(const ps_pack_info *info, const ps_totals *end,
                          ps_error *err);

#endif
