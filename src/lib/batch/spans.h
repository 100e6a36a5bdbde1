/*
 * spans.h - boundaries of packs in a view.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BATCH_SPANS_H
#define LIB_BATCH_SPANS_H

#include "packstream.h"

/* Number of sequences or slots that pack `p` of a view has. */
static inline uint32_t ps_spans_places(const ps_spans *spans, uint32_t p)
{
    return spans->view == PS_VIEW_STATIC ? spans->n_spans / spans->n_packs - 1
                                         : spans->n_seqs[p];
}

/* Number of spans that pack `p` has. */
static inline uint32_t ps_spans_of(const ps_spans *spans, uint32_t p)
{
    return ps_spans_places(spans, p) + (spans->view != PS_VIEW_RAGGED);
}

bool ps_is_view(ps_view view);

/* Returns PS_ERR_LIMIT: the pack has more sequences than the view has slots. */
ps_result ps_view_refuse(const ps_pack *pack, uint32_t places, ps_error *err);

/*
 * Appends a pack to a view: to its sums, and to the view's `cu` and `lengths`.
 * In PS_VIEW_STATIC the pack gets `places` slots, which must be enough.
 */
void ps_spans_add(ps_spans *spans, const ps_pack_info *info,
                  const ps_pack *pack, uint32_t places, int32_t *cu,
                  int32_t *lengths);

#endif
