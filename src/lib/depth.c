/*
 * depth.c - how many sequences a pack should be allowed to hold.
 *
 * The optimum of the planner's linear relaxation tells which depths cannot
 * do.  Of the others a trial tells: an engine packs sequences that are drawn
 * from the histogram, always the same, until one is as good as without a
 * cap.
 *
 * SPDX-License-Identifier: MIT
 */

#include "depth.h"

#include <stdlib.h>

#include "amount.h"
#include "error.h"
#include "plan.h"
#include "random.h"

/* Two for each power of two up to the greatest depth. */
#define MOST_CANDIDATES 34

/*
 * How long a trial is, but where fuzzing has no time for that; a larger window
 * would only be kinder to a depth.
 */
#ifndef TRIAL_SEQUENCES
#define TRIAL_SEQUENCES 32768
#endif
#define TRIAL_WINDOW 2048

typedef struct trial {
    const ps_histogram *histogram;
    const ps_engine_options *options;
    uint64_t *up_to; /* sequences of a length of the histogram or before */
} trial;

static uint32_t list_candidates(uint32_t most,
                                uint32_t candidates[MOST_CANDIDATES])
{
    uint32_t n = 0;

    for (uint32_t power = 1; power < most; power *= 2) {
        candidates[n++] = power;
        if (power > 1 && power + power / 2 < most)
            candidates[n++] = power + power / 2;
    }
    candidates[n++] = most;
    return n;
}

/* Whether a depth may make do with `packs`; the least that it takes says. */
static ps_result is_possible(const trial *t, uint32_t depth, double packs,
                             bool *possible, ps_error *err)
{
    double sequences = (double)ps_histogram_sequences(t->histogram);
    double bound;
    ps_result r;

    /* Often there is nothing to solve. */
    *possible = false;
    if (sequences / depth > packs)
        return PS_OK;
    r = ps_plan_bound(t->histogram, t->options->capacity, depth, &bound,
                      err);
    *possible = r == PS_OK && bound <= packs;
    return r;
}

/* As many packs as the allowed loss leaves, from those of the best plan. */
static double allowed(const trial *t, double best)
{
    double full =
        (double)ps_histogram_tokens(t->histogram) / t->options->capacity;

    return full / (full / best - PS_DEPTH_LOSS);
}

/* The first candidate that may do: what it can reach grows with the depth. */
static ps_result first_possible(const trial *t, const uint32_t *candidates,
                                uint32_t n, uint32_t *first, ps_error *err)
{
    uint32_t high = n - 1;
    double packs;
    ps_result r = ps_plan_bound(t->histogram, t->options->capacity,
                                candidates[high], &packs, err);

    *first = 0;
    if (r != PS_OK)
        return r;
    packs = allowed(t, packs);
    while (*first < high && r == PS_OK) {
        uint32_t middle = (*first + high) / 2;
        bool possible;

        r = is_possible(t, candidates[middle], packs, &possible, err);
        if (possible)
            high = middle;
        else
            *first = middle + 1;
    }
    return r;
}

/* A length, by the luck of the draw; there are below 2^32 sequences. */
static uint32_t draw(const trial *t, uint64_t *state)
{
    uint64_t number =
        ps_random_below(state, ps_histogram_sequences(t->histogram));
    size_t low = 0;
    size_t high = ps_histogram_size(t->histogram) - 1;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (number < t->up_to[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return ps_histogram_length(t->histogram, low);
}

/* Counts the packs that are due and the tokens in them. */
static ps_result count_due(ps_engine *e, uint64_t *packs, uint64_t *tokens,
                           ps_error *err)
{
    const uint32_t *slots;
    uint32_t n = 1;
    ps_result r = PS_OK;

    while (r == PS_OK && n > 0) {
        r = ps_engine_decide(e, PS_LEAVE_DUE, &slots, &n, err);
        if (r != PS_OK || n == 0)
            break;
        ++*packs;
        for (uint32_t i = 0; i < n; i++)
            *tokens += ps_engine_length(e, slots[i]);
    }
    return r;
}

static ps_result run_engine(const trial *t, ps_engine *e,
                            double *efficiency, ps_error *err)
{
    uint64_t state = 1;
    uint64_t packs = 0;
    uint64_t tokens = 0;
    ps_result r = PS_OK;

    for (uint32_t i = 0; i < TRIAL_SEQUENCES && r == PS_OK; i++) {
        ps_engine_tick(e);
        r = count_due(e, &packs, &tokens, err);
        if (r != PS_OK)
            return r;
        (void)ps_engine_admit(e, draw(t, &state));
        r = count_due(e, &packs, &tokens, err);
    }
    *efficiency = packs == 0 ? 0
                             : (double)tokens / ((double)packs *
                                                 t->options->capacity);
    return r;
}

static ps_engine_options trial_options(const ps_engine_options *options,
                                       uint32_t depth)
{
    ps_engine_options o = *options;

    o.depth = depth;
    o.order = PS_PACKS_BY_WINDOW;
    if (o.window > TRIAL_WINDOW)
        o.window = TRIAL_WINDOW;
    return o;
}

/* Small depths may be planned for with more effort. */
#define SMALL_DEPTH 3

uint64_t ps_depth_bytes(const ps_engine_options *o, uint32_t sequences)
{
    const ps_plan_size size = {
        .sequences = sequences,
        .lengths = sequences < o->capacity ? sequences : o->capacity,
        .capacity = o->capacity,
        .depth = o->depth,
    };
    const ps_engine_options deep = trial_options(o, o->depth);
    const ps_engine_options small = trial_options(
        o, o->depth < SMALL_DEPTH ? o->depth : SMALL_DEPTH);
    uint64_t most = ps_amount_most(ps_engine_bytes(&deep),
                                   ps_engine_bytes(&small));

    most = ps_amount_most(most, ps_plan_bound_bytes(&size));
    return ps_amount_sum(
        most, ps_amount_array(size.lengths, sizeof(uint64_t)));
}

/* How full the packs of an endless stream would be. */
static ps_result try_depth(const trial *t, uint32_t depth,
                           double *efficiency, ps_error *err)
{
    const ps_engine_options options = trial_options(t->options, depth);
    ps_engine *e;
    ps_result r;

    r = ps_engine_open(&e, &options, err);
    if (r == PS_OK)
        r = run_engine(t, e, efficiency, err);
    ps_engine_free(e);
    return r;
}

static ps_result choose(const trial *t, uint32_t *depth, ps_error *err)
{
    uint32_t candidates[MOST_CANDIDATES];
    uint32_t n = list_candidates(t->options->depth, candidates);
    uint32_t i;
    double best = 0;
    double reached = 0;
    ps_result r = first_possible(t, candidates, n, &i, err);

    if (r == PS_OK && i + 1 < n)
        r = try_depth(t, candidates[n - 1], &best, err);
    for (; i + 1 < n && r == PS_OK; i++) {
        r = try_depth(t, candidates[i], &reached, err);
        if (reached >= best - PS_DEPTH_LOSS)
            break;
    }
    *depth = candidates[i];
    return r;
}

ps_result ps_depth_choose(const ps_histogram *histogram,
                          const ps_engine_options *options, uint32_t *depth,
                          ps_error *err)
{
    size_t n = ps_histogram_size(histogram);
    uint64_t sequences = 0;
    trial t = {histogram, options, NULL};
    ps_result r;

    *depth = 1;
    if (n == 0)
        return PS_OK;
    t.up_to = calloc(n, sizeof *t.up_to);
    if (t.up_to == NULL)
        return ps_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        sequences += ps_histogram_count(histogram, i);
        t.up_to[i] = sequences;
    }
    r = choose(&t, depth, err);
    free(t.up_to);
    return r;
}
