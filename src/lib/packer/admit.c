/*
 * admit.c - the way of a sequence into the window, and out of it in a pack.
 *
 * A payload that lies in a block of a reader stays there, and the block is
 * held, until it is copied into its pack: the only copy there is.  If it lies
 * elsewhere, or too many blocks are held already, it waits in the store.
 *
 * SPDX-License-Identifier: MIT
 */

#include <string.h>

#include "base/prefetch.h"
#include "format/totals.h"
#include "packer/packer.h"

/* Beyond that, the processor fetches the rest of a payload by itself. */
#define PREFETCH_BYTES 1024

/* ---- Payloads ---- */

/* The values of a column, in the payload that a part lies in. */
static const unsigned char *column_of(const ps_packer *p,
                                      const ps_payload_column *column,
                                      const ps_part *part)
{
    uint64_t n_tok = part->payload_tok;

    if (!column->per_token)
        return part->payload + p->shape.per_token * n_tok + column->before;
    return part->payload + column->before * n_tok +
           (uint64_t)part->first * column->bytes;
}

static size_t column_bytes(const ps_payload_column *column, uint32_t n_tok)
{
    return (size_t)column->bytes * (column->per_token ? n_tok : 1);
}

ps_result ps_packer_store(const ps_packer *p, ps_store *store, uint32_t slot,
                          uint32_t n_tok, const ps_part *part, ps_error *err)
{
    ps_result r = PS_OK;

    if (n_tok == part->payload_tok)
        return ps_store_append(store, slot, part->payload,
                               ps_packer_payload_bytes(p, n_tok), err);
    for (uint32_t l = 0; l < p->n_columns && r == PS_OK; l++)
        r = ps_store_append(store, slot, column_of(p, &p->columns[l], part),
                            column_bytes(&p->columns[l], n_tok), err);
    return r;
}

ps_result ps_packer_keep(ps_packer *p, uint32_t slot, uint32_t n_tok,
                         const ps_part *part, ps_error *err)
{
    ps_held *h = &p->held[slot];

    h->part = *part;
    if (part->block != NULL &&
        ps_pool_held(part->block->pool) <= p->max_blocks &&
        ps_block_has(part->block, part->payload,
                     ps_packer_payload_bytes(p, part->payload_tok))) {
        ps_block_hold(part->block);
        return PS_OK;
    }
    h->part.block = NULL;
    return ps_packer_store(p, p->store, slot, n_tok, part, err);
}

/* Where the store has what is kept for a slot, if it is not in a block. */
static ps_store_cursor stored(const ps_packer *p, uint32_t slot)
{
    return p->held[slot].part.block == NULL ? ps_store_start(p->store, slot)
                                            : (ps_store_cursor){0};
}

/* Copies the next column of what is kept for a slot. */
static void copy_column(const ps_packer *p, uint32_t slot,
                        ps_store_cursor *cursor,
                        const ps_payload_column *column, uint32_t n_tok,
                        unsigned char *to)
{
    const ps_part *part = &p->held[slot].part;
    size_t n = column_bytes(column, n_tok);

    if (part->block == NULL)
        ps_store_read(p->store, cursor, to, n);
    else
        memcpy(to, column_of(p, column, part), n);
}

void ps_packer_get(const ps_packer *p, uint32_t slot, uint32_t n_tok,
                   unsigned char *payload)
{
    ps_store_cursor cursor = stored(p, slot);

    for (uint32_t l = 0; l < p->n_columns; l++) {
        copy_column(p, slot, &cursor, &p->columns[l], n_tok, payload);
        payload += column_bytes(&p->columns[l], n_tok);
    }
}

/* Copies the payload into a pack, behind the sequences that it has. */
static void copy_to_pack(const ps_packer *p, uint32_t slot, uint32_t n_tok,
                         const ps_pack_builder *pack)
{
    unsigned char *seq = ps_pack_next_sequence(pack);
    ps_store_cursor cursor = stored(p, slot);

    for (uint32_t l = 0; l < p->n_columns; l++) {
        const ps_payload_column *column = &p->columns[l];
        unsigned char *to = column->per_token
                                ? pack->row + (size_t)column->bytes *
                                                  pack->n_rows
                                : seq;

        copy_column(p, slot, &cursor, column, n_tok, to + column->offset);
    }
}

/* ---- Out ---- */

uint32_t ps_packer_length(const ps_packer *p, uint32_t slot)
{
    const ps_held *h = &p->held[slot];
    uint32_t n = ps_engine_length(p->engine, slot) * p->info.align;
    uint32_t left = h->seq_len - h->seq_off;

    return n < left ? n : left;
}

static ps_result emit_pack(ps_packer *p, const uint32_t *slots, uint32_t n,
                           ps_error *err)
{
    ps_pack_builder pack;
    uint32_t oldest;
    ps_result r = ps_block_output_pack(&p->output, n, &pack, err);

    if (r != PS_OK)
        return r;
    for (uint32_t i = 0; i < n; i++) {
        const ps_part *part = &p->held[slots[i]].part;
        size_t tokens = p->shape.token_bytes * part->payload_tok;

        if (part->block == NULL)
            ps_store_prefetch(p->store, slots[i]);
        else
            ps_prefetch_bytes(part->payload, tokens < PREFETCH_BYTES
                                                 ? tokens
                                                 : PREFETCH_BYTES);
    }

    /* The sequences move from their slots to the pack. */
    for (uint32_t i = 0; i < n; i++) {
        ps_held *h = &p->held[slots[i]];
        const ps_piece piece = {.id = h->id,
                                .n_tok = ps_packer_length(p, slots[i]),
                                .seq_off = h->seq_off,
                                .seq_len = h->seq_len};

        copy_to_pack(p, slots[i], piece.n_tok, &pack);
        if (h->part.block == NULL)
            ps_store_clear(p->store, slots[i]);
        else
            ps_block_release(h->part.block);
        h->part.block = NULL;
        p->bytes -= ps_packer_store_bytes(p, piece.n_tok);
        ps_pack_add(&pack, &piece);
        if (h->id > p->newest_out)
            p->newest_out = h->id;
    }

    /* How far they fell behind the newest that has left. */
    for (uint32_t i = 0; i < n; i++) {
        uint64_t behind = p->newest_out - p->held[slots[i]].id;

        if (behind > p->totals.max_displacement)
            p->totals.max_displacement = behind;
    }

    /* All ids below that of the oldest held have left. */
    oldest = ps_engine_oldest(p->engine);
    ps_pack_end(&pack);
    ps_totals_add_pack(&p->totals, pack.n_seq, pack.n_tok, pack.max_seqlen);
    return ps_block_output_add(
        &p->output, &pack,
        oldest == PS_NO_SLOT ? p->next_id : p->held[oldest].id, err);
}

ps_result ps_packer_emit(ps_packer *p, ps_emit_mode mode, ps_error *err)
{
    ps_result r = PS_OK;
    uint32_t n = 1;

    /* After most sequences nothing is due. */
    if (mode == PS_EMIT_DUE && ps_engine_is_idle(p->engine))
        return PS_OK;
    while (r == PS_OK && n > 0) {
        const uint32_t *slots;

        r = ps_engine_decide(p->engine, mode, &slots, &n, err);
        if (r == PS_OK && n > 0)
            r = emit_pack(p, slots, n, err);
    }
    return r;
}

ps_result ps_packer_tick(ps_packer *p, ps_error *err)
{
    ps_engine_tick(p->engine);
    return ps_packer_emit(p, PS_EMIT_DUE, err);
}

/* ---- In ---- */

ps_result ps_packer_admit(ps_packer *p, const ps_arrival *a,
                          uint64_t next_id, ps_error *err)
{
    const uint64_t max = p->options.max_bytes;
    uint64_t bytes = ps_packer_store_bytes(p, a->n_tok);
    uint32_t n = 1;
    uint32_t slot;
    ps_result r = PS_OK;

    /* Packs leave until the bytes fit. */
    while (max != 0 && r == PS_OK && n > 0 && bytes > max - p->bytes) {
        const uint32_t *slots;

        r = ps_engine_evict(p->engine, &slots, &n, err);
        if (r == PS_OK && n > 0)
            r = emit_pack(p, slots, n, err);
    }
    if (r != PS_OK)
        return r;

    slot = ps_engine_admit(p->engine, ps_packer_units(p, a->n_tok));
    p->held[slot].id = a->id;
    p->held[slot].seq_off = a->seq_off;
    p->held[slot].seq_len = a->seq_len;
    p->bytes += bytes;
    p->next_id = next_id;
    r = ps_packer_keep(p, slot, a->n_tok, &a->part, err);
    return r == PS_OK ? ps_packer_emit(p, PS_EMIT_DUE, err) : r;
}
