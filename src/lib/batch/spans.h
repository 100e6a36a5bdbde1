/*
 * spans.h - boundaries of packs, as views have them.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BATCH_SPANS_H
#define LIB_BATCH_SPANS_H

#include "packstream.h"

/* How many spans a pack of `n_seq` sequences has in a view. */
static inline uint32_t ps_view_spans(ps_view view, uint32_t n_seq,
                                     uint32_t depth)
{
    if (view == PS_VIEW_RAGGED)
        return n_seq;
    return view == PS_VIEW_GHOST ? n_seq + 1 : depth + 1;
}

/* How many spans pack `p` of a view has. */
static inline uint32_t ps_spans_of(const ps_spans *spans, uint32_t p)
{
    if (spans->view == PS_VIEW_STATIC)
        return spans->n_spans / spans->n_packs;
    return ps_view_spans(spans->view, spans->n_seqs[p], 0);
}

/* How many places for sequences pack `p` has. */
static inline uint32_t ps_spans_places(const ps_spans *spans, uint32_t p)
{
    uint32_t n = ps_spans_of(spans, p);

    return spans->view == PS_VIEW_STATIC ? n - 1 : spans->n_seqs[p];
}

bool ps_is_view(ps_view view);

/* Rows of the longest of `n` spans. */
uint32_t ps_longest_span(const int32_t *cu, uint32_t n);

#endif
