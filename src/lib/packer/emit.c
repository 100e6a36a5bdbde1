/*
 * emit.c - move sequences from the window to packs.
 *
 * SPDX-License-Identifier: MIT
 *
 * A payload kept in a reader's block is copied directly to its pack.  That is
 * the only copy made of it.
 */

#include <string.h>

#include "base/prefetch.h"
#include "format/totals.h"
#include "packer/emit.h"

/* The hardware prefetcher gets the rest of a payload. */
#define PREFETCH_BYTES 1024

/* ---- Payloads ---- */

/* Address of a column's values in the payload that contains a piece. */
static const unsigned char *column_of(const ps_packer *p,
                                      const ps_payload_column *column,
                                      const ps_held *h)
{
    uint64_t n_tok = h->seq_len;

    if (!column->per_token)
        return h->payload + p->set.shape.per_token * n_tok + column->before;
    return h->payload + column->before * n_tok +
           (uint64_t)h->seq_off * column->bytes;
}

static size_t column_bytes(const ps_payload_column *column, uint32_t n_tok)
{
    return (size_t)column->bytes * (column->per_token ? n_tok : 1);
}

ps_result ps_packer_store(ps_packer *p, uint32_t slot, ps_error *err)
{
    const uint32_t n_tok = ps_packer_length(p, slot);
    const ps_held *h = &p->held[slot];
    ps_result r = PS_OK;

    if (n_tok == h->seq_len)
        return ps_store_append(p->store, slot, h->payload,
                               ps_settings_payload_bytes(&p->set, n_tok), err);
    for (uint32_t l = 0; l < p->set.n_columns && r == PS_OK; l++)
        r = ps_store_append(p->store, slot, column_of(p, &p->set.columns[l], h),
                            column_bytes(&p->set.columns[l], n_tok), err);
    return r;
}

/*
 * Copies a column of the piece in a slot.  In the store, the cursor must be at
 * that column.
 */
static void copy_column(const ps_packer *p, uint32_t slot,
                        ps_store_cursor *cursor,
                        const ps_payload_column *column, uint32_t n_tok,
                        unsigned char *to)
{
    const ps_held *h = &p->held[slot];
    const size_t n = column_bytes(column, n_tok);

    if (h->block == NULL)
        ps_store_read(p->store, cursor, to, n);
    else
        memcpy(to, column_of(p, column, h), n);
}

void ps_packer_get(const ps_packer *p, uint32_t slot, uint32_t n_tok,
                   unsigned char *payload)
{
    ps_store_cursor cursor = ps_store_start(p->store, slot);

    for (uint32_t l = 0; l < p->set.n_columns; l++) {
        copy_column(p, slot, &cursor, &p->set.columns[l], n_tok, payload);
        payload += column_bytes(&p->set.columns[l], n_tok);
    }
}

/* ---- Packs ---- */

/* Prefetches the payloads of the next pack. */
static void prefetch(const ps_packer *p, const uint32_t *slots, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const ps_held *h = &p->held[slots[i]];
        const size_t tokens = (size_t)p->set.shape.token_bytes * h->seq_len;

        if (h->block == NULL)
            ps_store_prefetch(p->store, slots[i]);
        else
            ps_prefetch_bytes(h->payload, tokens < PREFETCH_BYTES
                                              ? tokens
                                              : PREFETCH_BYTES);
    }
}

/* Copies a piece to the end of a pack. */
static void copy_to_pack(const ps_packer *p, uint32_t slot, uint32_t n_tok,
                         const ps_pack_builder *pack)
{
    unsigned char *seq = ps_pack_next_sequence(pack);
    ps_store_cursor cursor = ps_store_start(p->store, slot);

    for (uint32_t l = 0; l < p->set.n_columns; l++) {
        const ps_payload_column *column = &p->set.columns[l];
        unsigned char *to = column->per_token
                                ? pack->row + (size_t)column->bytes *
                                                  pack->n_rows
                                : seq;

        copy_column(p, slot, &cursor, column, n_tok, to + column->offset);
    }
}

/* Moves a piece from its slot to a pack. */
static void move_to_pack(ps_packer *p, uint32_t slot, ps_pack_builder *pack)
{
    ps_held *h = &p->held[slot];
    const ps_piece piece = {.id = h->id,
                            .n_tok = ps_packer_length(p, slot),
                            .seq_off = h->seq_off,
                            .seq_len = h->seq_len};

    /* Fast path: most streams have no channels. */
    if (p->set.n_columns == 1 && h->block != NULL) {
        const size_t bytes = p->set.shape.token_bytes;

        memcpy(pack->row + bytes * pack->n_rows,
               h->payload + bytes * piece.seq_off, bytes * piece.n_tok);
    } else {
        copy_to_pack(p, slot, piece.n_tok, pack);
    }
    ps_pack_add(pack, &piece);
    if (h->block == NULL)
        ps_store_clear(p->store, slot);
    else
        ps_block_release(h->block);
    h->block = NULL;
    if (p->set.options.max_bytes != 0)
        p->bytes -= ps_settings_store_bytes(&p->set, piece.n_tok);
}

static ps_result emit_pack(ps_packer *p, const uint32_t *slots, uint32_t n,
                           ps_error *err)
{
    uint64_t lowest = UINT64_MAX;
    uint64_t newest = p->newest_out;
    ps_pack_builder pack;
    uint32_t oldest;
    ps_result r = ps_block_output_pack(&p->output, n, &pack, err);

    if (r != PS_OK)
        return r;
    prefetch(p, slots, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t id = p->held[slots[i]].id;

        lowest = id < lowest ? id : lowest;
        newest = id > newest ? id : newest;
        move_to_pack(p, slots[i], &pack);
    }
    /* Distance to the greatest id packed so far. */
    p->newest_out = newest;
    if (newest - lowest > p->totals.max_displacement)
        p->totals.max_displacement = newest - lowest;

    /* All ids below the oldest held have been packed. */
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

    while (r == PS_OK && n > 0) {
        const uint32_t *slots;

        r = ps_engine_decide(p->engine, mode, &slots, &n, err);
        if (r == PS_OK && n > 0)
            r = emit_pack(p, slots, n, err);
    }
    return r;
}

ps_result ps_packer_make_room(ps_packer *p, uint64_t bytes, ps_error *err)
{
    uint32_t n = 1;
    ps_result r = PS_OK;

    while (r == PS_OK && n > 0 && bytes > p->set.options.max_bytes - p->bytes) {
        const uint32_t *slots;

        r = ps_engine_evict(p->engine, &slots, &n, err);
        if (r == PS_OK && n > 0)
            r = emit_pack(p, slots, n, err);
    }
    if (r == PS_OK)
        p->bytes += bytes;
    return r;
}
