/*
 * emit.c - move sequences from the window to packs.
 *
 * SPDX-License-Identifier: MIT
 *
 * A payload kept in a reader's block is copied only once, directly to its pack.
 */

#include <string.h>

#include "base/prefetch.h"
#include "format/totals.h"
#include "packer/emit.h"

/* The hardware prefetcher fetches the rest of a payload. */
#define PREFETCH_BYTES 1024

/* ---- Payloads ---- */

/*
 * Address of a column's values for a piece that starts at token `off`, in the
 * payload of its sequence.
 */
static const unsigned char *column_of(const ps_packer *p,
                                      const ps_payload_column *column,
                                      const unsigned char *payload,
                                      uint32_t off, uint64_t seq_len)
{
    if (!column->per_token)
        return payload + p->set.shape.per_token * seq_len + column->before;
    return payload + column->before * seq_len + (uint64_t)off * column->bytes;
}

static size_t column_bytes(const ps_payload_column *column, uint32_t n_tok)
{
    return (size_t)column->bytes * (column->per_token ? n_tok : 1);
}

ps_result ps_packer_store(ps_packer *p, const ps_held_piece *piece,
                          const unsigned char *payload, ps_error *err)
{
    const uint32_t n_tok = piece->n_tok;
    ps_result r = PS_OK;

    if (n_tok == piece->seq_len)
        return ps_store_append(p->store, piece->slot, payload,
                               ps_settings_payload_bytes(&p->set, n_tok), err);
    for (uint32_t l = 0; l < p->set.n_columns && r == PS_OK; l++)
        r = ps_store_append(p->store, piece->slot,
                            column_of(p, &p->set.columns[l], payload,
                                      piece->seq_off, piece->seq_len),
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
        memcpy(to, column_of(p, column, h->payload, h->seq_off, h->seq_len), n);
}

void ps_packer_get(const ps_packer *p, const ps_held_piece *piece,
                   ps_store_cursor *cursor, unsigned char *payload)
{
    for (uint32_t l = 0; l < p->set.n_columns; l++) {
        const ps_payload_column *column = &p->set.columns[l];

        copy_column(p, piece->slot, cursor, column, piece->n_tok, payload);
        payload += column_bytes(column, piece->n_tok);
    }
}

ps_result ps_packer_report(const ps_packer *p, const ps_sequence *sequence,
                           bool truncated, ps_error *err)
{
    const ps_packer_options *o = &p->set.options;

    return o->rejects == NULL
               ? PS_OK
               : o->rejects(o->rejects_context, sequence, truncated, err);
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

/*
 * Copies the payload of a piece to the end of a pack, and adds the piece.  In
 * the store, the cursor must be at that payload.
 */
static void add_to_pack(const ps_packer *p, uint32_t slot,
                        ps_store_cursor *cursor, const ps_piece *piece,
                        ps_pack_builder *pack)
{
    unsigned char *seq = ps_pack_next_sequence(pack);

    for (uint32_t l = 0; l < p->set.n_columns; l++) {
        const ps_payload_column *column = &p->set.columns[l];
        unsigned char *to = column->per_token
                                ? pack->row + (size_t)column->bytes *
                                                  pack->n_rows
                                : seq;

        copy_column(p, slot, cursor, column, piece->n_tok, to + column->offset);
    }
    ps_pack_add(pack, piece);
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
        ps_pack_add(pack, &piece);
    } else {
        ps_store_cursor cursor = ps_store_start(p->store, slot);

        add_to_pack(p, slot, &cursor, &piece, pack);
    }
    if (h->block == NULL)
        ps_store_clear(p->store, slot);
    else
        ps_block_release(h->block);
    h->block = NULL;
    if (p->set.options.max_bytes != 0)
        p->bytes -= ps_settings_store_bytes(&p->set, piece.n_tok);
}

/* Moves the pieces of a group to a pack.  Returns the id of the last one. */
static uint64_t move_group(ps_packer *p, uint32_t slot, ps_pack_builder *pack)
{
    ps_store_cursor cursor = ps_store_start(p->store, slot);
    uint64_t bytes = 0;
    ps_held_piece piece = {0};

    for (uint32_t i = 0; i < p->held[slot].seq_off; i++) {
        ps_store_read(p->store, &cursor, &piece, sizeof piece);
        add_to_pack(p, slot, &cursor,
                    &(ps_piece){.id = piece.id,
                                .n_tok = piece.n_tok,
                                .seq_off = piece.seq_off,
                                .seq_len = piece.seq_len},
                    pack);
        bytes += ps_settings_piece_bytes(&p->set, piece.n_tok);
    }
    ps_store_clear(p->store, slot);
    if (p->set.options.max_bytes != 0)
        p->bytes -= round_up(bytes, PS_STORE_CHUNK_BYTES);
    return piece.id;
}

/* Number of sequences and pieces in some slots. */
static uint32_t pieces_in(const ps_packer *p, const uint32_t *slots, uint32_t n)
{
    uint32_t pieces = 0;

    if (p->set.by == NULL)
        return n;
    for (uint32_t i = 0; i < n; i++)
        pieces += p->held[slots[i]].seq_off;
    return pieces;
}

static ps_result emit_pack(ps_packer *p, const uint32_t *slots, uint32_t n,
                           ps_error *err)
{
    uint64_t lowest = UINT64_MAX;
    uint64_t newest = p->newest_out;
    ps_pack_builder pack;
    uint32_t oldest;
    ps_result r = ps_block_output_pack(&p->output, pieces_in(p, slots, n),
                                       &pack, err);

    if (r != PS_OK)
        return r;
    prefetch(p, slots, n);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t id = p->held[slots[i]].id; /* of the last sequence */

        lowest = id < lowest ? id : lowest;
        if (p->set.by != NULL)
            id = move_group(p, slots[i], &pack);
        else
            move_to_pack(p, slots[i], &pack);
        newest = id > newest ? id : newest;
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
