/*
 * view.c - packs seen with or without their padding, and their fields as
 * arrays.
 *
 * The array `cu` of a record is made so that each view is a beginning of it.
 *
 * SPDX-License-Identifier: MIT
 */

#include "batch/spans.h"

#include <string.h>

#include "base/error.h"
#include "bytes.h"

bool ps_is_view(ps_view view)
{
    return view == PS_VIEW_RAGGED || view == PS_VIEW_GHOST ||
           view == PS_VIEW_STATIC;
}

uint32_t ps_longest_span(const int32_t *cu, uint32_t n)
{
    int32_t longest = 0;

    for (uint32_t s = 0; s < n; s++)
        if (cu[s + 1] - cu[s] > longest)
            longest = cu[s + 1] - cu[s];
    return (uint32_t)longest;
}

ps_result ps_pack_view(const ps_pack_info *info, const ps_pack *pack,
                       ps_view view, ps_spans *spans, ps_error *err)
{
    const unsigned char *at =
        pack->record + info->fields[PS_FIELD_CU].offset;
    const int32_t *cu = (const void *)at;
    const int32_t *lengths = NULL;
    const uint32_t one = 1;
    uint32_t n;

    if (!ps_is_view(view))
        return ps_fail(err, PS_ERR_ARGUMENT, "there is no view %d",
                       (int)view);
    if ((uintptr_t)at % _Alignof(int32_t) != 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the record does not lie at a multiple of 4 bytes");
    if (*(const unsigned char *)&one != 1)
        return ps_fail(err, PS_ERR_UNSUPPORTED,
                       "boundaries are little-endian, this machine is not");
    n = ps_view_spans(view, pack->n_seq, info->depth);
    if (info->seq_tok_field != 0)
        lengths = (const void *)(pack->record +
                                 info->fields[info->seq_tok_field].offset);
    *spans = (ps_spans){.view = view,
                        .n_packs = 1,
                        .n_seqs = &pack->n_seq,
                        .n_seq = pack->n_seq,
                        .n_spans = n,
                        .n_rows = (uint32_t)cu[n],
                        .max_seqlen = ps_longest_span(cu, n),
                        .cu = cu,
                        .lengths = lengths};
    return PS_OK;
}

/* ---------------------------------------------------------------------
 * Fields
 */

/* Fills an array of int32 with `n` integers of up to 32 bits. */
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

/* Fills an array of int64 with `n` integers of any type. */
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
    else if (n > 0)
        memcpy(to, from, n * sizeof *to);
}

ps_result ps_spans_gather(const ps_spans *spans, const ps_pack_info *info,
                          const unsigned char *records,
                          const ps_field *field, ps_type type, void *to,
                          ps_error *err)
{
    const ps_channel *c = &field->channel;
    const size_t bytes = ps_type_bytes(c->type);
    uint32_t first = 0; /* span of the pack */
    size_t done = 0;    /* elements */
    const bool is_narrow = c->type == PS_U8 || c->type == PS_U16 ||
                           c->type == PS_U32 || c->type == PS_I32;
    const bool is_wide = c->type == PS_U64 || c->type == PS_I64;

    if (type != PS_AS_STORED && !(type == PS_I32 && is_narrow) &&
        !(type == PS_I64 && (is_narrow || is_wide)))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "'%s' is %s, which is not gathered as %s", c->name,
                       ps_type_name(c->type), ps_type_name(type));
    if (c->kind != PS_PER_TOKEN && c->kind != PS_PER_SEQUENCE)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "'%s' has no elements for tokens or sequences",
                       c->name);
    for (uint32_t p = 0; p < spans->n_packs; p++) {
        const unsigned char *from =
            records + (size_t)p * info->record_bytes + field->offset;
        const uint32_t end = first + ps_spans_of(spans, p);
        const uint32_t n = c->kind == PS_PER_TOKEN
                               ? (uint32_t)(spans->cu[end] - spans->cu[first])
                               : ps_spans_places(spans, p);

        if (type == PS_I32)
            gather_i32(from, c->type, n, (int32_t *)to + done);
        else if (type == PS_I64)
            gather_i64(from, c->type, n, (int64_t *)to + done);
        else if (n > 0)
            memcpy((unsigned char *)to + done * bytes, from, n * bytes);
        first = end;
        done += n;
    }
    return PS_OK;
}
