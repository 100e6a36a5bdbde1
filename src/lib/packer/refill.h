/*
 * refill.h - get the payloads back after a resume.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PACKER_REFILL_H
#define LIB_PACKER_REFILL_H

#include "packer/packer.h"

/*
 * Lists the sequences and pieces in some slots, one in each, in input order.
 * The caller frees the list.  NULL: out of memory.
 */
ps_held_piece *ps_refill_list(const ps_packer *p, const uint32_t *slots,
                              uint32_t n);

/* Hashes the payloads of the pieces listed.  PS_OK, PS_ERR_MEMORY. */
ps_result ps_refill_hash(const ps_packer *p, const ps_held_piece *pieces,
                         uint32_t n, uint64_t *hash, ps_error *err);

/*
 * Starts waiting for the payloads of these pieces, whose hash is given.  Takes
 * over the list.  PS_OK, PS_ERR_MEMORY.
 */
ps_result ps_refill_begin(ps_packer *p, ps_held_piece *pieces, uint32_t n,
                          uint64_t hash, ps_error *err);

/*
 * Processes a sequence that is put again or, with *is_new, for the first time.
 * PS_OK, PS_ERR_ARGUMENT, _CORRUPT (the sequence has changed), _MEMORY.
 */
ps_result ps_refill_put(ps_packer *p, const ps_sequence *sequence, bool *is_new,
                        ps_error *err);

/* True if earlier sequences must still be put again. */
bool ps_refill_waits(const ps_packer *p);
void ps_refill_free(ps_packer *p);

#endif
