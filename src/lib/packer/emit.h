/*
 * emit.h - build packs, and keep the payloads for them.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PACKER_EMIT_H
#define LIB_PACKER_EMIT_H

#include "packer/packer.h"

/*
 * Length in tokens of the piece in a slot.  The engine stores this length
 * rounded up to units.  Only the last piece of a sequence can end inside a
 * unit.
 */
static inline uint32_t ps_packer_length(const ps_packer *p, uint32_t slot)
{
    const ps_held *h = &p->held[slot];
    const uint32_t n = ps_engine_length(p->engine, slot) * p->set.info.align;
    const uint32_t left = h->seq_len - h->seq_off;

    return n < left ? n : left;
}

/* Emits packs according to `mode`. */
ps_result ps_packer_emit(ps_packer *p, ps_emit_mode mode, ps_error *err);

/* With max_bytes: emits packs until `bytes` more bytes fit; counts them. */
ps_result ps_packer_make_room(ps_packer *p, uint64_t bytes, ps_error *err);

/* Reports a dropped or truncated sequence to the caller's hook. */
ps_result ps_packer_report(const ps_packer *p, const ps_sequence *sequence,
                           bool truncated, ps_error *err);

/* Emits the packs that are due.  After most sequences, no pack is due. */
static inline ps_result ps_packer_emit_due(ps_packer *p, ps_error *err)
{
    return ps_engine_is_idle(p->engine) ? PS_OK
                                        : ps_packer_emit(p, PS_EMIT_DUE, err);
}

/* Counts an input record, and emits packs that are due because of it. */
static inline ps_result ps_packer_tick(ps_packer *p, ps_error *err)
{
    ps_engine_tick(p->engine);
    return ps_packer_emit_due(p, err);
}

/*
 * Appends a piece of a sequence to a slot of the store.  `payload` is the
 * payload of the whole sequence.  PS_OK, PS_ERR_MEMORY.
 */
ps_result ps_packer_store(ps_packer *p, const ps_held_piece *piece,
                          const unsigned char *payload, ps_error *err);

/*
 * Keeps the payload of the piece in a slot.  The payload stays in the reader's
 * block if that block may be held; otherwise it is copied to the store.  PS_OK,
 * PS_ERR_MEMORY.
 */
static inline ps_result ps_packer_keep(ps_packer *p, uint32_t slot,
                                       const ps_sequence *s, ps_error *err)
{
    ps_held *h = &p->held[slot];
    const bool stays = s->block != NULL && s->payload == s->lent &&
                       ps_pool_held(s->block->pool) <= p->max_blocks &&
                       ps_block_has(s->block, s->payload, s->payload_bytes);

    h->payload = s->payload;
    h->block = stays ? s->block : NULL;
    if (!stays)
        return ps_packer_store(p, &(ps_held_piece){
                                      .seq_off = h->seq_off,
                                      .seq_len = h->seq_len,
                                      .n_tok = ps_packer_length(p, slot),
                                      .slot = slot}, s->payload, err);
    ps_block_hold(s->block);
    return PS_OK;
}

/*
 * Copies the payload kept for a piece, column by column and then the lists: at
 * most ps_settings_max_payload bytes.  In the store, the cursor must be at that
 * payload.  Returns its size.
 */
size_t ps_packer_get(const ps_packer *p, const ps_held_piece *piece,
                     ps_store_cursor *cursor, unsigned char *payload);

/*
 * Bytes of the elements of all lists in a payload of `n_tok` tokens, which
 * starts at the cursor.
 */
uint64_t ps_packer_stored_lists(const ps_packer *p, ps_store_cursor cursor,
                                uint32_t n_tok);

#endif
