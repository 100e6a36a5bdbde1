/*
 * spans.h - views of packs: boundaries of their sequences.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BATCH_SPANS_H
#define LIB_BATCH_SPANS_H

#include "packstream.h"

/* Number of sequences, or slots in PS_VIEW_STATIC, of pack `p` of a view. */
static inline uint32_t ps_spans_places(const ps_spans *spans, uint32_t p)
{
    return spans->view == PS_VIEW_STATIC ? spans->n_spans / spans->n_packs - 1
                                         : spans->n_seqs[p];
}

/* Number of spans of pack `p`, including its ghost. */
static inline uint32_t ps_spans_of(const ps_spans *spans, uint32_t p)
{
    return ps_spans_places(spans, p) + (spans->view != PS_VIEW_RAGGED);
}

bool ps_is_view(ps_view view);

/* Reports PS_ERR_LIMIT: the pack has more sequences than the view has slots. */
ps_result ps_view_refuse(const ps_pack *pack, uint32_t places, ps_error *err);

/*
 * Appends a pack to a view: adds it to the sums in `spans`, and appends its
 * sequences to `cu` and `lengths`.  In PS_VIEW_STATIC the pack gets `places`
 * slots, which must be enough.
 */
void ps_spans_add(ps_spans *spans, const ps_pack_info *info,
                  const ps_pack *pack, uint32_t places, int32_t *cu,
                  int32_t *lengths);

#endif
