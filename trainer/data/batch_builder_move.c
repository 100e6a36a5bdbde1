/*
 * batch_builder_move.c - move packs from one builder to another.
 *
 * SPDX-License-Identifier: MIT
 */
#include "data/batch_builder_parts.h"

#include <inttypes.h>
#include <string.h>

#include "data/error.h"

/* The boundaries from the cursor on, which include those of dummy sequences. */
static const int32_t *boundaries_at(const tr_builder *f,
                                    const tr_builder_cursor *at)
{
    return f->cu + at->seq + at->pack;
}

tr_pack_size tr_builder_peek(const tr_builder *f, const tr_builder_cursor *at)
{
    const int32_t *const cu = boundaries_at(f, at);
    tr_pack_size pack = {.n_seq = f->n_seqs[at->pack]};

    for (uint32_t i = 0; i < pack.n_seq; i++) {
        const uint64_t n = (uint64_t)(cu[i + 1] - cu[i]);

        pack.squares += n * n;
    }
    pack.n_tok = (uint32_t)(cu[pack.n_seq] - cu[0]);
    return pack;
}

static int32_t *put_numbers(int32_t *to, const int32_t *from, uint32_t n)
{
    memcpy(to, from, n * sizeof *to);
    return to + n;
}

void tr_builder_get(const tr_builder *f, tr_builder_cursor *at, int32_t *to)
{
    const tr_pack_size pack = tr_builder_peek(f, at);
    const int32_t *const cu = boundaries_at(f, at);

    for (uint32_t i = 0; i < pack.n_seq; i++)
        *to++ = cu[i + 1] - cu[i];
    to = put_numbers(to, f->nsp_label + at->seq, pack.n_seq);
    to = put_numbers(to, f->token + cu[0], pack.n_tok);
    to = put_numbers(to, f->type + cu[0], pack.n_tok);
    (void)put_numbers(to, f->label + cu[0], pack.n_tok);
    at->pack++;
    at->seq += pack.n_seq;
}

ps_result tr_builder_reserve(tr_builder *f, uint32_t packs, ps_error *err)
{
    ps_result r = PS_OK;

    while (r == PS_OK && f->room < packs)
        r = tr_builder_grow(f, err);
    return r;
}

/* Appends the boundaries of a pack's sequences and of its dummy sequence. */
static bool move_spans(tr_builder *f, const tr_pack_size *pack,
                       const int32_t *lengths)
{
    ps_spans *const all = &f->spans;
    int32_t *const cu = f->cu + all->n_spans;
    const int64_t end = (int64_t)all->n_rows + pack->n_tok;

    cu[0] = (int32_t)all->n_rows;
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        if (lengths[i] < 1 || lengths[i] > end - cu[i])
            return false;
        cu[i + 1] = cu[i] + lengths[i];
    }
    cu[pack->n_seq + 1] = (int32_t)(all->n_rows + f->capacity);
    for (uint32_t i = 0; i <= pack->n_seq; i++)
        if (all->max_seqlen < (uint32_t)(cu[i + 1] - cu[i]))
            all->max_seqlen = (uint32_t)(cu[i + 1] - cu[i]);
    return cu[pack->n_seq] == end;
}

ps_result tr_builder_insert(tr_builder *f, uint32_t place,
                            const tr_pack_size *pack, const int32_t *numbers,
                            ps_error *err)
{
    ps_spans *const all = &f->spans;
    const int32_t *from = numbers + pack->n_seq;
    int32_t *const to[] = {f->token + all->n_rows, f->type + all->n_rows,
                           f->label + all->n_rows};

    if (pack->n_tok > f->capacity || !move_spans(f, pack, numbers))
        return tr_error(err, PS_ERR_CORRUPT,
                        "the lengths of pack %" PRIu32 " of a batch are wrong",
                        place);
    (void)put_numbers(f->nsp_label + all->n_seq, from, pack->n_seq);
    from += pack->n_seq;
    for (int i = 0; i < 3; i++, from += pack->n_tok)
        (void)put_numbers(to[i], from, pack->n_tok);
    tr_builder_pad(f, pack->n_tok);
    f->n_seqs[all->n_packs] = pack->n_seq;
    f->pack_row[all->n_packs] = place * f->capacity;
    all->n_packs++;
    all->n_seq += pack->n_seq;
    all->n_spans += pack->n_seq + 1;
    all->n_rows += f->capacity;
    return PS_OK;
}
