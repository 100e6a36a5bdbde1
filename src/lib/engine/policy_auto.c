/*
 * policy_auto.c - policy auto: choose the pack with the greatest score.
 *
 * The score of a sequence (score.h) is the dual price of its length, plus small
 * terms for balance and age.  The pack with the greatest total score is
 * emitted: max-weight scheduling (Tassiulas and Ephremides 1992), with dual
 * prices of the LP relaxation in place of queue lengths.
 *
 * Several leaders, or first sequences, are tried: none, the oldest sequence,
 * and long sequences, which are hardest to place.  pack_builder.h completes a
 * pack for each leader, and the best pack is emitted.  If packs hold about two
 * sequences and best fit wastes nothing (shadow.h), best fit builds the pack.
 *
 * A sequence that has waited long enough leads the next pack.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "engine/pack_builder.h"
#include "engine/policy.h"
#include "engine/shadow.h"
#include "engine/tuning.h"

/* Bound on the absolute value of a pack's score. */
#define MAX_SCORE ((int64_t)2 * PS_SCORE_ONE * PS_MAX_DEPTH)

typedef struct state {
    ps_policy_setup setup;
    ps_dual_prices prices;
    ps_score score;
    ps_value value;
    ps_pack_builder builder;
    ps_shadow shadow;
    void *closing;      /* policy that packs everything held */
    uint64_t refreshed; /* time of the last refresh, records */
    int64_t mean_score; /* of recent packs, times TUNE_MEAN_PACKS */
    uint64_t packs;
    uint64_t cost;      /* sum of squared lengths over all packs */
    uint32_t *lengths;  /* memory for three packs */
} state;

static void allocate(state *s, const ps_policy_setup *o, ps_mem *mem)
{
    s->lengths = ps_mem_alloc(mem, (uint64_t)3 * o->depth,
                              sizeof *s->lengths);
    ps_dual_prices_init(&s->prices, o->capacity, o->depth, o->window_size,
                        mem);
    ps_score_init(&s->score, o->window, &s->prices, mem);
    ps_value_init(&s->value, s->prices.cuts.max_units, o->depth, mem);
    ps_shadow_init(&s->shadow, &s->prices, o->depth, mem);
}

/* Prices are never learned while the closing plan is being made. */
static uint64_t bytes_of(const ps_policy_setup *o)
{
    ps_mem mem = {.bytes = sizeof(state), .counts = true};
    state s;

    allocate(&s, o, &mem);
    return ps_mem_sum(
        mem.bytes,
        ps_mem_max(ps_dual_prices_learn_bytes(o->capacity, o->depth),
                   ps_policy_plan_calls.bytes(o)));
}

static void free_state(void *p)
{
    state *s = p;

    ps_dual_prices_destroy(&s->prices);
    ps_score_destroy(&s->score);
    ps_value_destroy(&s->value);
    ps_shadow_destroy(&s->shadow);
    if (s->closing != NULL)
        ps_policy_plan_calls.free(s->closing);
    free(s->lengths);
    free(s);
}

static ps_result open_state(void **p, const ps_policy_setup *setup,
                            ps_error *err)
{
    state *s = calloc(1, sizeof *s);
    ps_mem mem = {0};
    ps_result r;

    *p = NULL;
    if (s == NULL)
        return ps_fail_memory(err);
    allocate(s, setup, &mem);
    s->setup = *setup;
    s->setup.learn_from = NULL;
    s->mean_score = (int64_t)PS_SCORE_ONE * TUNE_MEAN_PACKS;
    s->builder = (ps_pack_builder){.window = setup->window,
                                   .score = &s->score,
                                   .value = &s->value,
                                   .search = ps_kernels_best()->search,
                                   .capacity = setup->capacity,
                                   .depth = setup->depth};
    r = mem.failed ? ps_fail_memory(err)
                   : ps_policy_plan_calls.open(&s->closing, setup, err);
    if (r != PS_OK) {
        free_state(s);
        return r;
    }
    if (setup->learn_from != NULL)
        ps_dual_prices_expect(&s->prices, setup->learn_from);
    *p = s;
    return PS_OK;
}

/* True if a sequence fills a pack by itself, so it need not wait. */
static bool has_full(const void *p)
{
    const state *s = p;

    return !s->setup.in_order &&
           s->setup.window->queues[s->setup.capacity].count > 0;
}

static void admitted(void *p, uint32_t length)
{
    state *s = p;

    ps_dual_prices_admit(&s->prices, length);
    ps_score_admit(&s->score, length);
    if (s->shadow.runs)
        ps_shadow_admit(&s->shadow, length);
}

/* ---- Scores and values ---- */

/*
 * True if the depth exceeds the number of sequences in a full pack by at least
 * `percent`.  Uses the smaller of the mean lengths of window and stream, in
 * 1/256 token, since a burst can fill the window with long sequences.
 */
static bool has_spare_depth(const state *s, uint32_t percent)
{
    const ps_window *w = s->setup.window;
    uint64_t mean = w->tokens * 256 / w->count;

    mean = mean < s->prices.mean ? mean : s->prices.mean;
    return mean * s->setup.depth * 100 >=
           (uint64_t)s->setup.capacity * 256 * (100 + percent);
}

/* False with even_cost, which needs several packs to choose from. */
static bool is_by_fit(const state *s)
{
    return s->shadow.fits && !s->setup.even_cost;
}

/* Counts the window again, in the units of the prices. */
static void recount(state *s)
{
    const ps_window *w = s->setup.window;
    uint32_t l = ps_window_longest(w, s->setup.capacity);

    for (; l > 0; l = ps_window_longest(w, l - 1))
        ps_dual_prices_recount(&s->prices, l, w->queues[l].count);
}

/* Number of sequences in a full window; more than usual if they are short. */
static uint32_t span(const state *s)
{
    uint32_t here = s->setup.window->count;

    return here > s->setup.window_size ? here : s->setup.window_size;
}

/* Refreshes prices, scores and values, unless that was done recently. */
static ps_result refresh(state *s, uint64_t now, ps_error *err)
{
    uint64_t interval = span(s) / TUNE_REFRESH;
    bool unlimited;
    ps_result r;

    if (s->prices.variation < TUNE_STEADY && interval < TUNE_STEADY_MAX)
        interval = 2 * interval < TUNE_STEADY_MAX ? 2 * interval
                                                  : TUNE_STEADY_MAX;
    interval = interval > TUNE_REFRESH_MIN ? interval : TUNE_REFRESH_MIN;
    if (s->prices.known && now - s->refreshed < interval)
        return PS_OK;

    s->refreshed = now;
    if (ps_dual_prices_coarsen(&s->prices)) {
        recount(s);
        ps_score_forget(&s->score);
        ps_shadow_stop(&s->shadow);
    }
    if (s->prices.arrivals >= s->prices.next || !s->prices.known) {
        r = ps_dual_prices_learn(&s->prices, err);
        if (r != PS_OK)
            return r;
        ps_score_learn(&s->score);
    }
    if (ps_dual_prices_follow(&s->prices))
        ps_shadow_judge(&s->shadow);
    unlimited = has_spare_depth(s, TUNE_UNLIMITED);
    ps_score_refresh(&s->score, now, span(s));
    if (is_by_fit(s))
        s->value.units = 0; /* best fit does not use it */
    else
        ps_value_refresh(&s->value, s->score.best, s->score.units.count,
                         unlimited);
    return PS_OK;
}

/* ---- Choosing a pack ---- */

/*
 * True if `p` is better than `than`.  With even_cost, if both packs are good,
 * the pack whose cost is nearer to the mean is better.
 */
static bool is_better(const state *s, const ps_candidate *p,
                      const ps_candidate *than, int64_t good)
{
    uint64_t mean;

    if (!s->setup.even_cost || p->score < good || than->score < good)
        return p->score > than->score;
    mean = s->packs == 0 ? 0 : s->cost / s->packs;
    return (p->cost > mean ? p->cost - mean : mean - p->cost) <
           (than->cost > mean ? than->cost - mean : mean - than->cost);
}

/*
 * Completes `start` with several leaders until one pack is good: without a
 * leader, with the oldest sequence, then with the longest that fit.  Sets *best
 * to the best pack.  On return, only the sequences of `start` are placed.
 */
static void try_leaders(state *s, const ps_candidate *start,
                        ps_candidate *best)
{
    const ps_window *w = s->setup.window;
    int64_t good = s->mean_score / TUNE_MEAN_PACKS - PS_SCORE_ONE / TUNE_GOOD;
    uint32_t *lengths = s->lengths + 2 * (size_t)s->setup.depth;
    uint32_t leader = 0;
    bool bulk = false;

    *best = (ps_candidate){.score = INT64_MIN,
                           .lengths = s->lengths + s->setup.depth};
    for (uint32_t i = 0; i < TUNE_LEADERS; i++) {
        ps_candidate p = *start;

        if (i == 1)
            leader = w->slots[w->oldest].length;
        else if (i > 1)
            leader = ps_window_longest(w, i == 2 ? start->room : leader - 1);
        if (i > 1 && leader == 0)
            return;
        if (i > 0 && (leader > start->room || start->places == 0 ||
                      (i == 1 && (bulk || start->n > 0)) ||
                      ps_score_left(&s->score, leader) == 0))
            continue;

        p.lengths = lengths;
        memcpy(lengths, start->lengths, start->n * sizeof *lengths);
        if (i > 0)
            ps_pack_place(&s->builder, &p, leader);
        bulk |= ps_pack_place_oldest(&s->builder, &p);
        ps_pack_fill(&s->builder, &p, good);
        for (uint32_t k = p.n; k > start->n; k--)
            ps_score_unplace(&s->score, p.lengths[k - 1]);
        if (is_better(s, &p, best, good)) {
            lengths = best->lengths;
            *best = p;
        }
        if (best->score >= good && !s->setup.even_cost && (i > 1 || !bulk))
            return;
    }
}

/*
 * Maximum delay in windows.  If the window can grow, max_delay is set for a
 * much larger window, so the limit is lower.
 */
static uint32_t max_windows(const state *s)
{
    return s->setup.max_window > s->setup.window_size
               ? TUNE_USUAL_DELAY
               : TUNE_URGENT_WINDOWS;
}

static void choose_pack(state *s, uint64_t now, ps_candidate *pack)
{
    const ps_window *w = s->setup.window;
    uint64_t time = w->slots[w->oldest].time;
    uint64_t max = (uint64_t)max_windows(s) * span(s);
    bool urgent = s->setup.in_order;
    ps_candidate start = {.room = s->setup.capacity,
                          .places = s->setup.depth,
                          .lengths = s->lengths};

    /* A longer wait does not improve packs and leaves bad ones for the end. */
    max = max < s->setup.max_delay ? max : s->setup.max_delay;
    urgent |= now > time && now - time >= max - max / TUNE_URGENT_PART;

    *pack = start;
    if (is_by_fit(s)) {
        ps_pack_fit(&s->builder, urgent, pack);
    } else {
        if (urgent)
            ps_pack_place(&s->builder, &start, w->slots[w->oldest].length);
        s->builder.ample_depth = has_spare_depth(s, TUNE_AMPLE);
        try_leaders(s, &start, pack);
        if (!urgent)
            s->mean_score += pack->score - s->mean_score / TUNE_MEAN_PACKS;
    }
    s->packs++;
    s->cost += pack->cost;
}

/* Chooses the best pack if one is due, otherwise one of the closing plan. */
static ps_result choose(void *policy, uint64_t now, ps_emit_mode mode,
                        uint32_t *slots, uint32_t *n, ps_error *err)
{
    state *s = policy;
    ps_candidate pack = {.n = 1, .lengths = s->lengths};
    ps_result r = PS_OK;

    if (mode != PS_EMIT_DUE) {
        r = ps_policy_plan_calls.choose(s->closing, now, mode, slots, n, err);
    } else {
        if (has_full(s)) {
            pack.lengths[0] = s->setup.capacity;
        } else {
            r = refresh(s, now, err);
            if (r != PS_OK)
                return r;
            choose_pack(s, now, &pack);
        }
        for (uint32_t i = 0; i < pack.n; i++) {
            s->score.placed[pack.lengths[i]] = 0;
            ps_policy_take(&s->setup, pack.lengths[i], slots, i);
        }
        *n = pack.n;
    }
    for (uint32_t i = 0; r == PS_OK && i < *n; i++) {
        uint32_t length = s->setup.window->slots[slots[i]].length;

        ps_dual_prices_take(&s->prices, length);
        ps_score_take(&s->score, length);
    }
    return r;
}

/* ---- Saving and loading ---- */

static void save(const void *policy, ps_saver *saver)
{
    const state *s = policy;

    ps_save_u64(saver, s->refreshed);
    ps_save_u64(saver, (uint64_t)s->mean_score);
    ps_save_u64(saver, s->packs);
    ps_save_u64(saver, s->cost);
    ps_dual_prices_save(&s->prices, saver);
    ps_score_save(&s->score, saver);
    ps_value_save(&s->value, saver);
    ps_shadow_save(&s->shadow, saver);
}

/* A state has no closing plan, since it is saved while no pack is due. */
static ps_result load(void *policy, ps_restorer *restorer, ps_error *err)
{
    state *s = policy;

    s->refreshed = ps_load_u64(restorer);
    s->mean_score = (int64_t)ps_load_u64(restorer);
    s->packs = ps_load_u64(restorer);
    s->cost = ps_load_u64(restorer);
    ps_dual_prices_load(&s->prices, restorer);
    recount(s);
    ps_score_load(&s->score, restorer);
    ps_value_load(&s->value, s->score.units.count, restorer);
    ps_shadow_load(&s->shadow, restorer);
    if (s->mean_score > MAX_SCORE * TUNE_MEAN_PACKS ||
        s->mean_score < -MAX_SCORE * TUNE_MEAN_PACKS)
        restorer->failed = true;
    return restorer->failed ? ps_fail(err, PS_ERR_CORRUPT,
                                      "the prices in the state are invalid")
                            : PS_OK;
}

const ps_policy_calls ps_policy_auto_calls = {
    .bytes = bytes_of,
    .open = open_state,
    .free = free_state,
    .admitted = admitted,
    .is_ready = has_full,
    .choose = choose,
    .save = save,
    .load = load,
};
