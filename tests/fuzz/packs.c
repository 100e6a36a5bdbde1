/*
 * packs.c - reads packs in every possible way; packs.h.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packs.h"

#include <stdlib.h>

/* Enough for any stream that fits a fuzzer's input. */
#define MAX_PACKS 4096

/* Bytes of the payload of a sequence, from its length and its lists. */
static uint64_t bytes_of(const ps_pack_info *info, const ps_sequence *s)
{
    return ps_payload_bytes(&info->schema, s->n_tok) +
           ps_payload_lists(&info->schema, s->n_tok, s->payload);
}

/* Each sequence of a pack has a valid position and can be extracted. */
static void take_apart(pack_yield *y, const ps_pack_info *info,
                       const ps_pack *pack)
{
    uint32_t end = 0;
    uint32_t left = pack->n_tok;

    must(pack->n_seq >= 1 && pack->n_seq <= ps_max_sequences(info));
    must(pack->n_tok >= 1 && pack->n_tok <= info->capacity);
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        ps_piece piece = ps_pack_piece(info, pack, i);
        size_t n = (size_t)ps_pack_payload_bytes(info, pack, i);
        unsigned char *payload = malloc(n);

        must(payload != NULL);
        must(piece.begin == end && piece.n_tok > 0);
        must(piece.n_tok <= left && piece.n_tok <= info->capacity - end);
        left -= piece.n_tok;
        end += (piece.n_tok + info->align - 1) / info->align * info->align;
        ps_pack_payload(info, pack, i, payload);
        y->hash += hash_bytes(piece.id, payload, n);
        free(payload);
    }
    must(left == 0 && end <= info->capacity);
}

static void count_pack(pack_yield *y, const ps_pack_info *info,
                       const ps_pack *pack)
{
    const size_t seq_bytes = (size_t)pack->n_seq * info->seq_bytes;
    ps_error err = no_error();
    uint64_t hash = hash_bytes(pack->index, pack->row, info->row_bytes);

    y->packs++;
    y->sequences += pack->n_seq;
    y->tokens += pack->n_tok;
    y->hash += hash_bytes(hash, pack->sequences, seq_bytes);
    take_apart(y, info, pack);
    y->faults += told(ps_pack_check(info, pack, &err), &err) != PS_OK;
}

pack_yield read_packs(void)
{
    pack_yield y = {.hash = 0};
    ps_error err = no_error();
    ps_pack_reader *r;
    ps_pack pack;

    y.result = told(ps_pack_reader_open(&r, FEED_FD, &err), &err);
    must((r != NULL) == (y.result == PS_OK));
    while (y.result == PS_OK) {
        y.result = told(ps_pack_reader_next(r, &pack, &err), &err);
        if (y.result == PS_OK)
            count_pack(&y, ps_pack_reader_stream(r), &pack);
    }
    if (r != NULL)
        y.totals = *ps_pack_reader_totals(r);
    if (y.result == PS_END)
        must(y.totals.packs == y.packs && y.totals.tokens == y.tokens &&
             y.totals.sequences == y.sequences &&
             ps_totals_balance(&y.totals));
    ps_pack_reader_free(r);
    return y;
}

ps_result unpack_packs(ps_order order, uint64_t *sequences)
{
    ps_error err = no_error();
    ps_pack_reader *r;
    ps_unpacker *u = NULL;
    ps_sequence s;
    uint64_t hash = 0;
    uint64_t next = 0;
    uint64_t streams = 1;
    ps_result result = told(ps_pack_reader_open(&r, FEED_FD, &err), &err);

    *sequences = 0;
    if (result == PS_OK)
        result = told(ps_unpacker_open(&u, r, order, &err), &err);
    while (result == PS_OK) {
        result = told(ps_unpacker_next(u, &s, &err), &err);
        if (result != PS_OK)
            break;
        hash = hash_bytes(hash, s.payload, s.payload_bytes);
        must(s.n_tok > 0);
        must(s.payload_bytes == bytes_of(ps_pack_reader_info(r), &s));
        /* Ids rise, except where another stream begins. */
        if (*sequences > 0 && s.id < next)
            streams++;
        next = s.id + 1;
        ++*sequences;
    }
    /* The most streams possible: each has a header and END. */
    must(order == PS_ORDER_PACK || streams == 1 ||
         streams <= ps_pack_reader_offset(r) / (PS_PACK_HEADER_BYTES + 256));
    ps_unpacker_free(u);
    ps_pack_reader_free(r);
    return result;
}

pack_yield read_pack_file(const unsigned char *data, size_t n)
{
    pack_yield y = {.hash = 0};
    ps_error err = no_error();
    ps_pack_file *file;
    ps_pack pack;
    uint64_t i;

    y.result = told(ps_pack_file_open(&file, feed_file(data, n), &err), &err);
    must((file != NULL) == (y.result == PS_OK));
    if (file == NULL)
        return y;
    y.totals = *ps_pack_file_totals(file);
    must(ps_pack_file_streams(file) > 0);
    must(ps_pack_file_read(file, ps_pack_file_packs(file), &pack, &err) ==
         PS_ERR_ARGUMENT);
    y.result = PS_END;
    i = ps_pack_file_packs(file);
    for (uint64_t left = MAX_PACKS; i > 0 && left > 0; i--, left--) {
        ps_result head =
            told(ps_pack_file_head(file, i - 1, &pack, &err), &err);
        ps_result result =
            told(ps_pack_file_read(file, i - 1, &pack, &err), &err);

        must(head == PS_OK || result != PS_OK);
        if (result == PS_OK)
            count_pack(&y, ps_pack_file_info(file), &pack);
        else
            y.result = result;
    }
    for (uint64_t id = 0; id < MAX_PACKS; id += id / 2 + 1) {
        ps_location *locations;
        uint32_t n_found;

        (void)told(ps_pack_file_locate(file, 0, id, &locations, &n_found,
                                       &err), &err);
        must((locations == NULL) == (n_found == 0));
        for (uint32_t k = 0; k < n_found; k++)
            must(locations[k].piece.id == id);
        free(locations);
    }
    ps_pack_file_free(file);
    return y;
}

ps_result hand_on(const unsigned char *data, size_t n)
{
    static const ps_pack_writer_options plain = {0};
    ps_error err = no_error();
    ps_pack_file *file;
    ps_pack_writer *w = NULL;
    ps_pack_info info;
    ps_totals totals;
    ps_totals next;
    ps_pack pack;
    uint64_t packs = 0;
    ps_result r = told(ps_pack_file_open(&file, feed_file(data, n), &err),
                       &err);

    feed_clear();
    if (r == PS_OK)
        r = told(ps_pack_file_stream(file, 0, &info, &totals, &err), &err);
    if (r == PS_OK)
        r = told(ps_pack_writer_open(&w, FEED_FD, &info, &plain, &err), &err);
    for (uint32_t i = 0; r == PS_OK && i < ps_pack_file_streams(file); i++) {
        const bool last = i + 1 == ps_pack_file_streams(file);

        for (uint64_t k = 0; r == PS_OK && k < totals.packs; k++) {
            r = told(ps_pack_file_read(file, packs++, &pack, &err), &err);
            if (r == PS_OK)
                r = told(ps_pack_writer_put(w, &pack, &err), &err);
        }
        if (r == PS_OK && !last)
            r = told(ps_pack_file_stream(file, i + 1, &info, &next, &err),
                     &err);
        if (r == PS_OK)
            r = told(ps_pack_writer_end(w, &totals, last ? NULL : &info,
                                        &err),
                     &err);
        totals = next;
    }
    if (r == PS_OK)
        r = told(ps_pack_writer_finish(w, &err), &err);
    ps_pack_writer_free(w);
    ps_pack_file_free(file);
    return r;
}

bool is_same_yield(const pack_yield *a, const pack_yield *b)
{
    const ps_totals *t = &a->totals;
    const ps_totals *u = &b->totals;

    return a->packs == b->packs && a->sequences == b->sequences &&
           a->tokens == b->tokens && a->hash == b->hash &&
           t->packs == u->packs && t->sequences == u->sequences &&
           t->tokens == u->tokens &&
           t->input_sequences == u->input_sequences &&
           t->input_tokens == u->input_tokens &&
           t->rejected_sequences == u->rejected_sequences &&
           t->rejected_tokens == u->rejected_tokens &&
           t->truncated_sequences == u->truncated_sequences &&
           t->truncated_tokens == u->truncated_tokens &&
           t->split_sequences == u->split_sequences &&
           t->extra_pieces == u->extra_pieces &&
           t->max_displacement == u->max_displacement &&
           t->max_seqlen == u->max_seqlen && t->max_depth == u->max_depth &&
           t->min_fill == u->min_fill;
}
