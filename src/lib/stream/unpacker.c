/*
 * unpacker.c - restore the original records from packs.
 *
 * SPDX-License-Identifier: MIT
 *
 * In input order, a sequence is returned once all sequences with lower ids have
 * arrived, which the watermark of each pack indicates.  Early sequences are
 * kept in a heap.  The header's maximum displacement (see packstream(5),
 * "Words") limits their number, and the caller limits their size.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "format/pack.h"
#include "format/schema.h"
#include "stream/reorder.h"

struct ps_unpacker {
    ps_pack_reader *reader;
    const ps_pack_info *info;
    ps_order order;
    ps_shape shape;
    ps_payload_column columns[PS_MAX_FIELDS];
    uint32_t n_columns; /* number of `columns` */
    ps_pack pack;       /* pack order: current pack; input order: see
                           `deferred` */
    uint32_t next;      /* pack order: next sequence of `pack` */
    bool deferred;      /* `pack` is the first of the next stream, and is not
                           in the heap yet */
    bool ended;         /* the reader returned PS_END */
    uint64_t watermark; /* all sequences with lower ids have arrived */
    bool any_out;       /* a sequence of this stream was returned */
    uint64_t last_out;  /* id of the last sequence returned, if any */
    ps_reorder heap;
    uint64_t max_bytes; /* maximum size of the heap */
    unsigned char *out; /* payload of the last sequence returned; owned */
};

ps_result ps_unpacker_open(ps_unpacker **unpacker, ps_pack_reader *reader,
                           ps_order order, ps_error *err)
{
    ps_unpacker *u = calloc(1, sizeof *u);

    *unpacker = NULL;
    if (u == NULL)
        return ps_fail_memory(err);
    u->reader = reader;
    u->info = ps_pack_reader_info(reader);
    if (order != PS_ORDER_PACK && u->info->share && u->info->split) {
        free(u);
        return ps_fail(err, PS_ERR_UNSUPPORTED,
                       "the share of one rank, whose split sequences may "
                       "continue in other files: use the pack order");
    }
    u->order = order;
    u->max_bytes = PS_UNPACKER_BYTES;
    u->shape = ps_schema_shape(&u->info->schema);
    u->n_columns = ps_payload_columns(u->info, u->columns);
    *unpacker = u;
    return PS_OK;
}

void ps_unpacker_set_max_bytes(ps_unpacker *u, uint64_t bytes)
{
    u->max_bytes = bytes;
}

void ps_unpacker_free(ps_unpacker *u)
{
    if (u == NULL)
        return;
    ps_reorder_clear(&u->heap);
    free(u->out);
    free(u);
}

/* Copies sequence `i` of a pack to *copy. */
static ps_result copy_out(const ps_unpacker *u, const ps_pack *pack,
                          uint32_t i, ps_waiting *copy, ps_error *err)
{
    ps_piece piece = ps_pack_piece(u->info, pack, i);

    *copy = (ps_waiting){.id = piece.id,
                         .seq_off = piece.seq_off,
                         .seq_len = piece.seq_len,
                         .n_tok = piece.n_tok};
    copy->payload_bytes = (size_t)ps_pack_payload_bytes(u->info, pack, i);
    copy->payload = malloc(copy->payload_bytes);
    if (copy->payload == NULL)
        return ps_fail_memory(err);
    ps_pack_payload(u->info, pack, i, copy->payload);
    return PS_OK;
}

/* Adds sequence `i` of a pack to the heap. */
static ps_result add_sequence(ps_unpacker *u, const ps_pack *pack,
                              uint32_t i, ps_error *err)
{
    const uint64_t behind = u->info->max_displacement;
    const uint64_t depth = ps_max_sequences(ps_pack_reader_stream(u->reader));
    /* Tokens that pieces of one sequence may have beyond the limit. */
    const uint64_t pieces =
        u->info->split ? PS_MAX_SEQUENCE_BYTES / u->shape.per_token : 0;
    const ps_piece piece = ps_pack_piece(u->info, pack, i);
    const uint64_t bytes = ps_pack_payload_bytes(u->info, pack, i) +
                           (u->heap.count + 1) * sizeof(ps_waiting);
    const char *fault = NULL;
    ps_waiting item;
    ps_result r;

    if (piece.id == UINT64_MAX)
        fault = "has the invalid id 2^64 - 1";
    else if (piece.id < u->watermark)
        fault = "is a duplicate, or too late for its watermark";
    if (fault != NULL)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "pack %" PRIu64 " in the block at byte %" PRIu64
                       ": sequence %" PRIu64 " %s",
                       pack->index, pack->offset, piece.id, fault);
    if (u->heap.tokens + piece.n_tok > behind * u->info->capacity + pieces ||
        u->heap.count >= behind * depth + pieces)
        return ps_fail(err, PS_ERR_LIMIT,
                       "pack %" PRIu64 " in the block at byte %" PRIu64 ": the "
                       "sequences are further out of order than the header's "
                       "max_displacement, %" PRIu32 ", allows",
                       pack->index, pack->offset, u->info->max_displacement);
    if (u->heap.bytes + bytes > u->max_bytes)
        return ps_fail(err, PS_ERR_LIMIT,
                       "pack %" PRIu64 " in the block at byte %" PRIu64 ": "
                       "restoring the order takes more than %" PRIu64 " bytes: "
                       "raise the limit (packcat -M), or use the pack order",
                       pack->index, pack->offset, u->max_bytes);

    r = copy_out(u, pack, i, &item, err);
    if (r == PS_OK) {
        r = ps_reorder_push(&u->heap, &item, err);
        if (r != PS_OK)
            free(item.payload);
    }
    return r;
}

/*
 * Reads one more pack.  At the end of a stream, all held sequences are returned
 * before the first pack of the next stream is added.
 */
static ps_result read_more(ps_unpacker *u, ps_error *err)
{
    const ps_pack *pack = &u->pack;
    const uint32_t stream = pack->stream;
    ps_result r = PS_OK;

    if (u->deferred) {
        u->deferred = false;
        u->watermark = 0;
        u->any_out = false;
    } else {
        r = ps_pack_reader_next(u->reader, &u->pack, err);
        if (r != PS_OK && r != PS_END)
            return r;
        if (r == PS_END || pack->stream != stream) {
            u->ended = r == PS_END;
            u->deferred = r == PS_OK;
            u->watermark = UINT64_MAX;
            return PS_OK;
        }
    }

    if (pack->watermark < u->watermark)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "pack %" PRIu64 " in the block at byte %" PRIu64
                       ": its watermark falls from %" PRIu64 " to %" PRIu64,
                       pack->index, pack->offset, u->watermark,
                       pack->watermark);
    for (uint32_t i = 0; i < pack->n_seq && r == PS_OK; i++)
        r = add_sequence(u, pack, i, err);
    u->watermark = pack->watermark;
    return r;
}

static ps_result bad_pieces(const ps_waiting *first, ps_error *err)
{
    return ps_fail(err, PS_ERR_CORRUPT,
                   "the pieces of sequence %" PRIu64 " do not add up to its "
                   "%" PRIu32 " tokens",
                   first->id, first->seq_len);
}

/*
 * Per-sequence values and lists of a payload, which follow its per-token
 * values.
 */
static unsigned char *values_of(const ps_unpacker *u, const ps_waiting *piece)
{
    return piece->payload + (uint64_t)u->shape.per_token * piece->n_tok;
}

static size_t values_bytes(const ps_unpacker *u, const ps_waiting *piece)
{
    return piece->payload_bytes -
           (size_t)u->shape.per_token * piece->n_tok;
}

/* Copies the columns of a piece to their positions in the whole payload. */
static void join_piece(const ps_unpacker *u, const ps_waiting *piece,
                       ps_waiting *whole)
{
    for (uint32_t l = 0; l < u->n_columns; l++) {
        const ps_payload_column *column = &u->columns[l];

        if (column->per_token)
            memcpy(whole->payload + (uint64_t)column->before * whole->n_tok +
                   (uint64_t)piece->seq_off * column->bytes,
                   piece->payload + (uint64_t)column->before * piece->n_tok,
                   (size_t)piece->n_tok * column->bytes);
    }
    memcpy(values_of(u, whole), values_of(u, piece), values_bytes(u, piece));
}

/*
 * Sets *whole to the sequence to return for `first`.  This is `first` itself,
 * or the sequence of which `first` is the first piece; the other pieces are
 * then removed from the heap.
 */
static ps_result join_pieces(ps_unpacker *u, const ps_waiting *first,
                             ps_waiting *whole, ps_error *err)
{
    uint32_t joined = first->n_tok;

    *whole = *first;
    if (!u->info->split || first->n_tok == first->seq_len)
        return first->seq_off == 0 ? PS_OK : bad_pieces(first, err);
    /* Do not trust the length before enough tokens are in the heap. */
    if (first->seq_off != 0 || first->seq_len < first->n_tok ||
        first->seq_len - first->n_tok > u->heap.tokens)
        return bad_pieces(first, err);

    whole->n_tok = first->seq_len;
    whole->payload_bytes =
        (size_t)u->shape.per_token * whole->n_tok + values_bytes(u, first);
    whole->payload = malloc(whole->payload_bytes);
    if (whole->payload == NULL)
        return ps_fail_memory(err);
    join_piece(u, first, whole);
    while (joined < whole->n_tok) {
        const ps_waiting *top = ps_reorder_top(&u->heap);
        ps_waiting piece;

        if (top == NULL || top->id != first->id || top->seq_off != joined ||
            top->seq_len != first->seq_len ||
            top->n_tok > whole->n_tok - joined) {
            free(whole->payload);
            return bad_pieces(first, err);
        }
        if (values_bytes(u, top) != values_bytes(u, first) ||
            memcmp(values_of(u, top), values_of(u, first),
                   values_bytes(u, first)) != 0) {
            free(whole->payload);
            return ps_fail(err, PS_ERR_CORRUPT,
                           "the pieces of sequence %" PRIu64
                           " differ in a per-sequence channel",
                           first->id);
        }
        piece = ps_reorder_pop(&u->heap);
        join_piece(u, &piece, whole);
        joined += piece.n_tok;
        free(piece.payload);
    }
    return PS_OK;
}

static ps_result next_in_input_order(ps_unpacker *u, ps_waiting *whole,
                                     ps_error *err)
{
    const ps_waiting *top = ps_reorder_top(&u->heap);
    ps_waiting first;
    ps_result r;

    while (top == NULL || top->id >= u->watermark) {
        if (u->ended)
            return PS_END;
        r = read_more(u, err);
        if (r != PS_OK)
            return r;
        top = ps_reorder_top(&u->heap);
    }

    first = ps_reorder_pop(&u->heap);
    if (u->any_out && first.id == u->last_out)
        r = ps_fail(err, PS_ERR_CORRUPT,
                    "sequence %" PRIu64 " is stored twice", first.id);
    else
        r = join_pieces(u, &first, whole, err);
    if (r != PS_OK || whole->payload != first.payload)
        free(first.payload);
    if (r != PS_OK)
        return r;
    u->any_out = true;
    u->last_out = first.id;
    return PS_OK;
}

ps_result ps_unpacker_next(ps_unpacker *u, ps_sequence *sequence,
                           ps_error *err)
{
    ps_waiting item;
    ps_result r = PS_OK;

    if (u->order != PS_ORDER_PACK) {
        r = next_in_input_order(u, &item, err);
    } else {
        if (u->next == u->pack.n_seq) {
            u->next = u->pack.n_seq = 0;
            r = ps_pack_reader_next(u->reader, &u->pack, err);
        }
        if (r == PS_OK)
            r = copy_out(u, &u->pack, u->next++, &item, err);
    }
    if (r != PS_OK)
        return r;

    free(u->out);
    u->out = item.payload;
    *sequence = (ps_sequence){.id = item.id,
                              .n_tok = item.n_tok,
                              .payload = item.payload,
                              .payload_bytes = item.payload_bytes};
    return PS_OK;
}
