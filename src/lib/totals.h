/*
 * totals.h - keeping ps_totals.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_TOTALS_H
#define LIB_TOTALS_H

#include "packstream.h"

/* Counts one pack. */
void ps_totals_add_pack(ps_totals *totals, uint32_t n_seq, uint32_t n_tok,
                        uint32_t max_seqlen);

/* Adds the totals of another stream; false if a sum exceeds 64 bits. */
bool ps_totals_add(ps_totals *totals, const ps_totals *other);

#endif
