/*
 * view.c - a pack seen with or without its padding.
 *
 * The array `cu` of a record is made so that each view is a beginning of it.
 *
 * SPDX-License-Identifier: MIT
 */

#include "batch/spans.h"

#include "base/error.h"

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
