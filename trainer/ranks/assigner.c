/*
 * assigner.c - assign the packs of a batch to ranks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ranks/assigner.h"

#include <stdlib.h>
#include <string.h>

#include "data/error.h"

struct tr_assigner {
    uint32_t ranks;
    ps_cost cost;
    bool pads; /* padding costs as much as a sequence */
    uint32_t each; /* capacity, in packs per rank */
    ps_deal *deal;
    uint64_t *costs; /* [ranks * each] */
    uint32_t *dealt;
};

tr_assigner *tr_assigner_open(const tr_loader_options *options)
{
    tr_assigner *s = calloc(1, sizeof *s);

    if (s != NULL) {
        s->ranks = options->ranks;
        s->cost = ps_cost_attention(options->hidden);
        s->pads = options->pads;
    }
    return s;
}

static void free_deal(tr_assigner *s)
{
    ps_deal_free(s->deal);
    free(s->costs);
    free(s->dealt);
    s->deal = NULL;
    s->costs = NULL;
    s->dealt = NULL;
    s->each = 0;
}

void tr_assigner_free(tr_assigner *s)
{
    if (s != NULL)
        free_deal(s);
    free(s);
}

static ps_result make_room(tr_assigner *s, uint32_t each, ps_error *err)
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
        return tr_error(err, PS_ERR_MEMORY, "no memory for an assignment");
    s->each = each;
    return PS_OK;
}

static uint64_t span_cost(const tr_assigner *s, uint64_t tokens,
                          uint64_t squares)
{
    return s->cost.tokens * tokens + s->cost.squares * squares;
}

/* A dummy sequence has segment 0.  It is empty if the pack is full. */
static void add_costs(const tr_assigner *s, const tr_batch *batch)
{
    memset(s->costs, 0, (size_t)s->ranks * s->each * sizeof *s->costs);
    for (uint32_t i = 0; i < batch->n_spans; i++) {
        const uint32_t row = (uint32_t)batch->cu[i];
        const uint32_t n = (uint32_t)(batch->cu[i + 1]) - row;

        if (n > 0 && (s->pads || batch->segment[row] != 0))
            s->costs[row / batch->capacity] +=
                span_cost(s, n, (uint64_t)n * n);
    }
}

/* Adds packs of cost 0, so that every rank gets the same number of packs. */
ps_result tr_assigner_assign(tr_assigner *s, const tr_batch *batch,
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

uint64_t tr_assigner_cost(const tr_assigner *s, uint32_t capacity,
                          uint32_t n_tok, uint64_t squares)
{
    const uint64_t padding = s->pads ? capacity - n_tok : 0;

    return span_cost(s, n_tok + padding, squares + padding * padding);
}

ps_result tr_assigner_assign_costs(tr_assigner *s, const uint64_t *costs,
                                   uint32_t n, const uint32_t **ranks,
                                   ps_error *err)
{
    ps_result r = make_room(s, n / s->ranks + (n % s->ranks > 0), err);

    if (r != PS_OK)
        return r;
    for (uint32_t i = 0; i < s->ranks * s->each; i++)
        s->costs[i] = i < n ? costs[i] : 0;
    *ranks = s->dealt;
    return ps_deal_make(s->deal, s->costs, s->dealt, err);
}
