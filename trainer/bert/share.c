/*
 * share.c - which packs of a batch a rank learns from.
 *
 * SPDX-License-Identifier: MIT
 */
#include "share.h"

#include <stdlib.h>

#include "fail.h"

struct share {
    uint32_t ranks;
    ps_cost cost;
    uint32_t each; /* packs of a rank that there is room for */
    ps_deal *deal;
    uint64_t *costs; /* of ranks * each packs */
    uint32_t *dealt;
};

share *share_open(uint32_t ranks, uint32_t hidden)
{
    share *s = calloc(1, sizeof *s);

    if (s != NULL) {
        s->ranks = ranks;
        s->cost = ps_cost_attention(hidden);
    }
    return s;
}

static void free_deal(share *s)
{
    ps_deal_free(s->deal);
    free(s->costs);
    free(s->dealt);
    s->deal = NULL;
    s->costs = NULL;
    s->dealt = NULL;
    s->each = 0;
}

void share_free(share *s)
{
    if (s != NULL)
        free_deal(s);
    free(s);
}

static ps_result make_room(share *s, uint32_t each, ps_error *err)
{
    ps_result r;

    if (each == s->each)
        return PS_OK;
    free_deal(s);
    r = ps_deal_open(&s->deal, s->ranks, each, err);
    if (r != PS_OK)
        return r;
    s->costs = calloc((size_t)s->ranks * each, sizeof *s->costs);
    s->dealt = calloc((size_t)s->ranks * each, sizeof *s->dealt);
    if (s->costs == NULL || s->dealt == NULL)
        return fail(err, PS_ERR_MEMORY, "no memory for a deal");
    s->each = each;
    return PS_OK;
}

/*
 * Padding is computed as a span, too, so each pack has as many tokens.  That
 * of a full pack has no rows, and begins where the pack ends.
 */
static void add_costs(const share *s, const bert_batch *batch)
{
    for (uint32_t i = 0; i < s->ranks * s->each; i++)
        s->costs[i] = i < batch->n_packs
                          ? s->cost.tokens * (uint64_t)batch->capacity
                          : 0;
    for (uint32_t i = 0; i < batch->n_spans; i++) {
        const uint64_t n = (uint64_t)(batch->cu[i + 1] - batch->cu[i]);

        if (n > 0)
            s->costs[(uint32_t)batch->cu[i] / batch->capacity] +=
                s->cost.squares * n * n;
    }
}

/* Where it does not come out even, some of a rank's packs are of no cost. */
ps_result share_deal(share *s, const bert_batch *batch,
                     const uint32_t **ranks, ps_error *err)
{
    const uint32_t n = batch->n_packs;
    ps_result r = make_room(s, n / s->ranks + (n % s->ranks > 0), err);

    if (r != PS_OK)
        return r;
    add_costs(s, batch);
    *ranks = s->dealt;
    return ps_deal_make(s->deal, s->costs, s->dealt, err);
}
