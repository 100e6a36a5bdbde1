/*
 * view.c - packs with or without padding, and their fields as arrays.
 *
 * SPDX-License-Identifier: MIT
 */

#include "batch/spans.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "format/pack.h"

bool ps_is_view(ps_view view)
{
    return view == PS_VIEW_RAGGED || view == PS_VIEW_GHOST ||
           view == PS_VIEW_STATIC;
}

ps_result ps_view_refuse(const ps_pack *pack, uint32_t places, ps_error *err)
{
    return ps_fail(err, PS_ERR_LIMIT,
                   "pack %" PRIu64 " in the block at byte %" PRIu64 ": it has "
                   "%" PRIu32 " sequences, but the static view has room for "
                   "%" PRIu32 ", the depth in the first header: use another "
                   "view, or pack all parts with the same --depth",
                   pack->index, pack->offset, pack->n_seq, places);
}

void ps_spans_add(ps_spans *spans, const ps_pack_info *info,
                  const ps_pack *pack, uint32_t places, int32_t *cu,
                  int32_t *lengths)
{
    const bool is_static = spans->view == PS_VIEW_STATIC;
    const uint32_t n_places = is_static ? places : pack->n_seq;
    const uint32_t n = n_places + (spans->view != PS_VIEW_RAGGED);
    const uint32_t base = spans->n_rows;
    uint32_t end = 0;

    cu += spans->n_spans;
    if (spans->lengths != NULL)
        lengths += is_static ? spans->n_packs * places : spans->n_seq;
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const unsigned char *seq = ps_pack_sequence(info, pack, i);
        const uint32_t n_tok = ps_seq_n_tok(seq);

        cu[i] = (int32_t)(base + ps_seq_start(seq));
        if (spans->lengths != NULL)
            lengths[i] = (int32_t)n_tok;
        end = ps_seq_start(seq) + ps_aligned(n_tok, info->align);
    }
    cu[pack->n_seq] = (int32_t)(base + end);
    for (uint32_t i = pack->n_seq; i < n; i++)
        cu[i + 1] = (int32_t)(base + info->capacity);
    for (uint32_t i = pack->n_seq; spans->lengths != NULL && i < n_places; i++)
        lengths[i] = 0;

    for (uint32_t i = 0; i < n; i++)
        if ((uint32_t)(cu[i + 1] - cu[i]) > spans->max_seqlen)
            spans->max_seqlen = (uint32_t)(cu[i + 1] - cu[i]);
    spans->n_packs++;
    spans->n_seq += pack->n_seq;
    spans->n_spans += n;
    spans->n_rows = (uint32_t)cu[n];
}

ps_result ps_pack_view(const ps_pack_info *info, const ps_pack *pack,
                       ps_view view, int32_t *cu, int32_t *lengths,
                       ps_spans *spans, ps_error *err)
{
    const uint32_t places = ps_max_sequences(info);

    if (!ps_is_view(view))
        return ps_fail(err, PS_ERR_ARGUMENT, "unknown view %d",
                       (int)view);
    if (view == PS_VIEW_STATIC && pack->n_seq > places)
        return ps_view_refuse(pack, places, err);
    *spans = (ps_spans){.view = view,
                        .n_seqs = &pack->n_seq,
                        .cu = cu,
                        .lengths = info->align > 1 ? lengths : NULL};
    ps_spans_add(spans, info, pack, places, cu, lengths);
    return PS_OK;
}

/* ---------------------------------------------------------------------
 * Fields
 */

/* Converts `n` integers of up to 32 bits to int32. */
static void gather_i32(const unsigned char *from, ps_type type, size_t n,
                       int32_t *to)
{
    if (type == PS_U8)
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
    else if (type == PS_U16)
        for (size_t i = 0; i < n; i++)
            to[i] = load_u16(from + 2 * i);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = (int32_t)load_u32(from + 4 * i);
}

/* Converts `n` integers of any type to int64. */
static void gather_i64(const unsigned char *from, ps_type type, size_t n,
                       int64_t *to)
{
    if (type == PS_U8)
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
    else if (type == PS_U16)
        for (size_t i = 0; i < n; i++)
            to[i] = load_u16(from + 2 * i);
    else if (type == PS_U32)
        for (size_t i = 0; i < n; i++)
            to[i] = load_u32(from + 4 * i);
    else if (type == PS_I32)
        for (size_t i = 0; i < n; i++)
            to[i] = (int32_t)load_u32(from + 4 * i);
    else
        memcpy(to, from, n * sizeof *to);
}

/* Converts `n` values like ps_spans_gather; stores them from `at` on. */
static void gather(const unsigned char *from, ps_type stored, size_t n,
                   ps_type type, void *to, size_t at)
{
    const size_t bytes = ps_type_bytes(stored);

    if (type == PS_I32)
        gather_i32(from, stored, n, (int32_t *)to + at);
    else if (type == PS_I64)
        gather_i64(from, stored, n, (int64_t *)to + at);
    else
        memcpy((unsigned char *)to + at * bytes, from, n * bytes);
}

ps_result ps_spans_gather(const ps_spans *spans, const ps_pack_info *info,
                          const unsigned char *rows,
                          const unsigned char *sequences,
                          const ps_field *field, ps_type type, void *to,
                          ps_error *err)
{
    const ps_channel *c = &field->channel;
    const bool is_narrow = c->type == PS_U8 || c->type == PS_U16 ||
                           c->type == PS_U32 || c->type == PS_I32;
    const bool is_wide = c->type == PS_U64 || c->type == PS_I64;
    const size_t values = ps_channel_values(c);
    const unsigned char *seq = sequences;
    unsigned char fill[8];
    uint32_t first = 0; /* first span of the pack */
    size_t done = 0;    /* values written */

    if (type != PS_AS_STORED && !(type == PS_I32 && is_narrow) &&
        !(type == PS_I64 && (is_narrow || is_wide)))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "channel '%s' is %s and cannot be read as %s", c->name,
                       ps_type_name(c->type), ps_type_name(type));
    store_u64(fill, c->fill);
    for (uint32_t p = 0; p < spans->n_packs; p++) {
        const uint32_t places = ps_spans_places(spans, p);
        const uint32_t end = first + ps_spans_of(spans, p);
        const size_t n = values * (size_t)(spans->cu[end] - spans->cu[first]);

        first = end;
        if (c->kind == PS_PER_TOKEN) {
            gather(rows + (size_t)p * info->row_bytes + field->offset,
                   c->type, n, type, to, done);
            done += n;
            continue;
        }
        for (uint32_t i = 0; i < places; i++) {
            const bool is_used = i < spans->n_seqs[p];

            if (is_used)
                gather(seq + field->offset, c->type, values, type, to, done);
            for (size_t k = 0; !is_used && k < values; k++)
                gather(fill, c->type, 1, type, to, done + k);
            seq += is_used ? info->seq_bytes : 0;
            done += values;
        }
    }
    return PS_OK;
}
