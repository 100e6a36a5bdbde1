/*
 * group.h - keep consecutive sequences of a group together.
 *
 * SPDX-License-Identifier: MIT
 *
 * A group is a run of sequences with the same value in a per-sequence channel.
 * The group is collected in the store, outside the window, until a sequence
 * with another value arrives.  Then the group is admitted as one item, whose
 * length is the sum of the lengths of its sequences, each rounded up to the
 * alignment.
 */

#ifndef LIB_PACKER_GROUP_H
#define LIB_PACKER_GROUP_H

#include "base/serial.h"
#include "packer/packer.h"

/*
 * Adds a sequence that has been counted.  If its group does not fit a pack, the
 * sequence and the rest of the group are dropped, truncated or split, depending
 * on the options.
 * Results as ps_packer_put.
 */
ps_result ps_group_put(ps_packer *p, const ps_sequence *sequence,
                       ps_error *err);

/*
 * Ends the open group and admits it to the window.  `next_id` is the lowest id
 * that can follow.  PS_OK, PS_ERR_MEMORY, PS_ERR_IO.
 */
ps_result ps_group_close(ps_packer *p, uint64_t next_id, ps_error *err);

/*
 * Counts a record, and ends a group that may not wait longer.  Results as
 * ps_group_close.
 */
ps_result ps_group_tick(ps_packer *p, uint64_t next_id, ps_error *err);

/* ---- Saving and resuming ---- */

/*
 * Appends a piece and its payload to its slot; `payload` is the payload of the
 * whole sequence.  PS_OK, PS_ERR_MEMORY.
 */
ps_result ps_group_store(ps_packer *p, const ps_held_piece *piece,
                         const unsigned char *payload, ps_error *err);

/*
 * Lists the pieces of the groups in these slots of the engine and of the open
 * group, in input order.  The caller frees the list.  NULL: out of memory.
 */
ps_held_piece *ps_group_list(const ps_packer *p, const uint32_t *slots,
                             uint32_t n, uint32_t *n_pieces);

/* Saves the open group and the pieces listed. */
void ps_group_save(const ps_packer *p, ps_saver *saver,
                   const ps_held_piece *pieces, uint32_t n);

/*
 * Loads the open group and the pieces, after the engine, and returns the list
 * of pieces, which the caller frees.  Sets restorer->failed if the data are
 * invalid.  NULL: out of memory.
 */
ps_held_piece *ps_group_load(ps_packer *p, ps_restorer *restorer,
                             const uint32_t *slots, uint32_t n,
                             uint32_t *n_pieces);

#endif
