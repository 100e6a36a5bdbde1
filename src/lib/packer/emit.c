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

/* The elements of the lists in the payload of a whole sequence. */
static const unsigned char *lists_of(const ps_packer *p, uint32_t seq_len,
                                     const unsigned char *payload,
                                     size_t *bytes)
{
    const uint64_t all = ps_shape_all(&p->set.shape, seq_len, payload);
    const uint64_t lists_at = ps_shape_bytes(&p->set.shape, seq_len);

    *bytes = (size_t)(all - lists_at);
    return payload + lists_at;
}

uint64_t ps_packer_stored_lists(const ps_packer *p, ps_store_cursor cursor,
                                uint32_t n_tok)
{
    const ps_shape *shape = &p->set.shape;
    uint64_t bytes = 0;
    uint32_t done = 0; /* of the fixed bytes */

    for (uint32_t i = 0; i < shape->n_lists; i++) {
        const uint64_t before = i > 0 ? 0 : (uint64_t)shape->per_token * n_tok;
        unsigned char length[4];

        ps_store_skip(p->store, &cursor,
                      (size_t)(before + shape->lists[i].at - done));
        ps_store_read(p->store, &cursor, length, sizeof length);
        bytes += (uint64_t)load_u32(length) * shape->lists[i].bytes;
        done = shape->lists[i].at + 4;
    }
    return bytes;
}

ps_result ps_packer_store(ps_packer *p, const ps_held_piece *piece,
                          const unsigned char *payload, ps_error *err)
{
    const uint32_t n_tok = piece->n_tok;
    const unsigned char *lists;
    size_t bytes;
    ps_result r = PS_OK;

    if (n_tok == piece->seq_len)
        return ps_store_append(
            p->store, piece->slot, payload,
            (size_t)ps_shape_all(&p->set.shape, n_tok, payload), err);
    for (uint32_t l = 0; l < p->set.n_columns && r == PS_OK; l++)
        r = ps_store_append(p->store, piece->slot,
                            column_of(p, &p->set.columns[l], payload,
                                      piece->seq_off, piece->seq_len),
                            column_bytes(&p->set.columns[l], n_tok), err);
    lists = lists_of(p, piece->seq_len, payload, &bytes);
    return r == PS_OK && bytes > 0
               ? ps_store_append(p->store, piece->slot, lists, bytes, err)
               : r;
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

/*
 * Copies the elements of one or more lists, all if the cursor of the store is
 * after the columns.  *lists is the address of these elements if the payload is
 * in a block; it is advanced.
 */
static void copy_lists(const ps_packer *p, uint32_t slot,
                       ps_store_cursor *cursor, const unsigned char **lists,
                       size_t n, unsigned char *to)
{
    if (n == 0)
        return;
    if (p->held[slot].block == NULL) {
        ps_store_read(p->store, cursor, to, n);
        return;
    }
    memcpy(to, *lists, n);
    *lists += n;
}

size_t ps_packer_get(const ps_packer *p, const ps_held_piece *piece,
                     ps_store_cursor *cursor, unsigned char *payload)
{
    const ps_held *h = &p->held[piece->slot];
    const size_t fixed = ps_settings_payload_bytes(&p->set, piece->n_tok);
    const unsigned char *lists = NULL;
    unsigned char *to = payload;
    size_t bytes;

    for (uint32_t l = 0; l < p->set.n_columns; l++) {
        const ps_payload_column *column = &p->set.columns[l];

        copy_column(p, piece->slot, cursor, column, piece->n_tok, to);
        to += column_bytes(column, piece->n_tok);
    }
    if (h->block != NULL)
        lists = lists_of(p, h->seq_len, h->payload, &bytes);
    bytes = (size_t)ps_shape_all(&p->set.shape, piece->n_tok, payload) - fixed;
    copy_lists(p, piece->slot, cursor, &lists, bytes, to);
    return fixed + bytes;
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
 * Copies the lists of a piece, whose columns have been copied, to a pack.
 * Returns their size in bytes.
 */
static uint64_t add_lists(const ps_packer *p, uint32_t slot,
                          ps_store_cursor *cursor, ps_pack_builder *pack)
{
    const ps_held *h = &p->held[slot];
    const unsigned char *lists = NULL;
    uint64_t bytes = 0;
    size_t all;

    if (h->block != NULL)
        lists = lists_of(p, h->seq_len, h->payload, &all);
    for (uint32_t i = 0; i < p->set.shape.n_lists; i++) {
        uint32_t n;
        unsigned char *to = ps_pack_next_list(pack, i, &n);
        const size_t size = (size_t)n * p->set.shape.lists[i].bytes;

        copy_lists(p, slot, cursor, &lists, size, to);
        bytes += size;
    }
    return bytes;
}

/*
 * Copies the payload of a piece to the end of a pack, and adds the piece.  In
 * the store, the cursor must be at that payload.  Returns the size of its
 * lists in bytes.
 */
static inline uint64_t add_to_pack(const ps_packer *p, uint32_t slot,
                                   ps_store_cursor *cursor,
                                   const ps_piece *piece,
                                   ps_pack_builder *pack)
{
    uint64_t lists = 0;
    unsigned char *seq = ps_pack_next_sequence(pack);

    for (uint32_t l = 0; l < p->set.n_columns; l++) {
        const ps_payload_column *column = &p->set.columns[l];
        unsigned char *to = column->per_token
                                ? pack->row + (size_t)column->bytes *
                                                  pack->n_rows
                                : seq;

        copy_column(p, slot, cursor, column, piece->n_tok, to + column->offset);
    }
    if (p->set.shape.n_lists > 0)
        lists = add_lists(p, slot, cursor, pack);
    ps_pack_add(pack, piece);
    return lists;
}

/* Moves a piece from its slot to a pack. */
static void move_to_pack(ps_packer *p, uint32_t slot, ps_pack_builder *pack)
{
    ps_held *h = &p->held[slot];
    const ps_piece piece = {.id = h->id,
                            .n_tok = ps_packer_length(p, slot),
                            .seq_off = h->seq_off,
                            .seq_len = h->seq_len};
    uint64_t lists = 0;

    /* Fast path: most streams have no channels. */
    if (p->set.n_columns == 1 && h->block != NULL) {
        const size_t bytes = p->set.shape.token_bytes;

        memcpy(pack->row + bytes * pack->n_rows,
               h->payload + bytes * piece.seq_off, bytes * piece.n_tok);
        ps_pack_add(pack, &piece);
    } else {
        ps_store_cursor cursor = ps_store_start(p->store, slot);

        lists = add_to_pack(p, slot, &cursor, &piece, pack);
    }
    if (h->block == NULL)
        ps_store_clear(p->store, slot);
    else
        ps_block_release(h->block);
    h->block = NULL;
    if (p->set.options.max_bytes != 0)
        p->bytes -= ps_settings_store_bytes(&p->set, piece.n_tok, lists);
}

/* Moves the pieces of a group to a pack.  Returns the id of the last one. */
static uint64_t move_group(ps_packer *p, uint32_t slot, ps_pack_builder *pack)
{
    ps_store_cursor cursor = ps_store_start(p->store, slot);
    uint64_t bytes = 0;
    uint64_t lists;
    ps_held_piece piece = {0};

    for (uint32_t i = 0; i < p->held[slot].seq_off; i++) {
        ps_store_read(p->store, &cursor, &piece, sizeof piece);
        lists = add_to_pack(p, slot, &cursor,
                            &(ps_piece){.id = piece.id,
                                        .n_tok = piece.n_tok,
                                        .seq_off = piece.seq_off,
                                        .seq_len = piece.seq_len},
                            pack);
        bytes += ps_settings_piece_bytes(&p->set, piece.n_tok, lists);
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
