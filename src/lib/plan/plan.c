/*
 * plan.c - a plan as a list of strategies: build, inspect and check it.
 *
 * SPDX-License-Identifier: MIT
 *
 * The lengths of all strategies are in one array, so that a plan with thousands
 * of strategies takes only a few allocations.
 */

#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"

#define MIN_STRATEGIES 256
#define MIN_LENGTHS 2048

/* A histogram cannot have enough sequences for more packs. */
#define MAX_PACKS ((uint64_t)INT64_MAX)

typedef struct strategy {
    uint64_t count; /* packs, at least 1 */
    size_t first;   /* an index, because the array can move */
    uint32_t n;     /* number of lengths */
} strategy;

struct ps_plan {
    strategy *strategies;
    size_t n;          /* strategies in use */
    size_t capacity;   /* strategies allocated */
    uint32_t *lengths; /* of all strategies */
    size_t n_lengths;
    size_t lengths_capacity;
    uint64_t packs; /* sum of the counts, unless overridden */
    uint32_t max_depth;
};

uint64_t ps_plan_bytes(uint64_t sequences)
{
    uint64_t lengths =
        ps_mem_doubling(sequences, MIN_LENGTHS, sizeof(uint32_t));
    uint64_t strategies =
        ps_mem_doubling(sequences, MIN_STRATEGIES, sizeof(strategy));

    return ps_mem_sum(sizeof(ps_plan), ps_mem_sum(lengths, strategies));
}

ps_result ps_plan_open(ps_plan **plan, ps_error *err)
{
    *plan = calloc(1, sizeof **plan);
    return *plan == NULL ? ps_fail_memory(err) : PS_OK;
}

void ps_plan_free(ps_plan *plan)
{
    if (plan == NULL)
        return;
    free(plan->strategies);
    free(plan->lengths);
    free(plan);
}

ps_result ps_plan_keep_better(ps_plan **best, ps_plan *made, ps_result r)
{
    if (r != PS_OK || (*best != NULL &&
                       ps_plan_packs(*best) <= ps_plan_packs(made))) {
        ps_plan_free(made);
        return r;
    }
    ps_plan_free(*best);
    *best = made;
    return PS_OK;
}

ps_result ps_plan_reserve(ps_plan *plan, uint64_t count, uint32_t n,
                          uint32_t **lengths, ps_error *err)
{
    void *grown;

    if (count > MAX_PACKS - plan->packs)
        return ps_fail(err, PS_ERR_LIMIT, "plan: more than 2^63 - 1 packs");
    grown = ps_array_grow(plan->strategies, &plan->capacity, plan->n + 1,
                          MIN_STRATEGIES, sizeof *plan->strategies);
    if (grown == NULL)
        return ps_fail_memory(err);
    plan->strategies = grown;
    if (n > SIZE_MAX - plan->n_lengths)
        return ps_fail_memory(err);
    grown = ps_array_grow(plan->lengths, &plan->lengths_capacity,
                          plan->n_lengths + n, MIN_LENGTHS,
                          sizeof *plan->lengths);
    if (grown == NULL)
        return ps_fail_memory(err);
    plan->lengths = grown;

    *lengths = plan->lengths + plan->n_lengths;
    plan->strategies[plan->n++] =
        (strategy){.count = count, .first = plan->n_lengths, .n = n};
    plan->n_lengths += n;
    plan->packs += count;
    if (n > plan->max_depth)
        plan->max_depth = n;
    return PS_OK;
}

static int compare_lengths(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;

    return (*x > *y) - (*x < *y);
}

ps_result ps_plan_add(ps_plan *plan, uint64_t count, const uint32_t *lengths,
                      uint32_t n, ps_error *err)
{
    uint32_t *to = NULL;
    uint32_t ascending = 1;
    ps_result r = ps_plan_reserve(plan, count, n, &to, err);

    if (r != PS_OK)
        return r;
    memcpy(to, lengths, n * sizeof *to);
    while (ascending < n && to[ascending - 1] <= to[ascending])
        ascending++;
    if (ascending < n)
        qsort(to, n, sizeof *to, compare_lengths);
    return PS_OK;
}

void ps_plan_set_packs(ps_plan *plan, uint64_t packs)
{
    plan->packs = packs;
}

/* A strategy that can be compared without the plan. */
typedef struct candidate {
    const uint32_t *lengths;
    uint64_t count;
    uint32_t n;
} candidate;

/* Orders by longest length, then the next, and so on, in descending order. */
static int compare_candidates(const void *a, const void *b)
{
    const candidate *x = a;
    const candidate *y = b;
    uint32_t i = x->n;
    uint32_t j = y->n;

    while (i > 0 && j > 0) {
        i--;
        j--;
        if (x->lengths[i] != y->lengths[j])
            return x->lengths[i] > y->lengths[j] ? -1 : 1;
    }
    return (j > 0) - (i > 0);
}

ps_result ps_plan_merge(ps_plan *plan, ps_error *err)
{
    candidate *sorted;
    size_t n = 0;

    if (plan->n == 0)
        return PS_OK;
    if (plan->n > SIZE_MAX / sizeof *sorted)
        return ps_fail_memory(err);
    sorted = malloc(plan->n * sizeof *sorted);
    if (sorted == NULL)
        return ps_fail_memory(err);
    for (size_t i = 0; i < plan->n; i++)
        sorted[i] = (candidate){
            .lengths = plan->lengths + plan->strategies[i].first,
            .count = plan->strategies[i].count,
            .n = plan->strategies[i].n};
    qsort(sorted, plan->n, sizeof *sorted, compare_candidates);
    for (size_t i = 0; i < plan->n; i++)
        if (i > 0 && compare_candidates(&sorted[i - 1], &sorted[i]) == 0)
            plan->strategies[n - 1].count += sorted[i].count;
        else
            plan->strategies[n++] = (strategy){
                .count = sorted[i].count,
                .first = (size_t)(sorted[i].lengths - plan->lengths),
                .n = sorted[i].n};
    plan->n = n;
    free(sorted);
    return PS_OK;
}

size_t ps_plan_strategies(const ps_plan *plan)
{
    return plan->n;
}

uint64_t ps_plan_strategy(const ps_plan *plan, size_t i,
                          const uint32_t **lengths, uint32_t *n)
{
    const strategy *s = &plan->strategies[i];

    *lengths = plan->lengths + s->first;
    *n = s->n;
    return s->count;
}

uint64_t ps_plan_packs(const ps_plan *plan)
{
    return plan->packs;
}

uint32_t ps_plan_max_depth(const ps_plan *plan)
{
    return plan->max_depth;
}

/* ---- Checking ---- */

/* Checks a strategy and deducts its sequences from `left`. */
static ps_result check_strategy(const ps_plan *plan, const strategy *s,
                                const ps_plan_options *o,
                                const ps_histogram *h, uint64_t *left,
                                ps_error *err)
{
    const uint32_t *lengths = plan->lengths + s->first;
    const uint32_t n = s->n;
    uint64_t sum = 0;
    uint32_t end;

    if (n == 0)
        return ps_fail(err, PS_ERR_CORRUPT, "plan: a pack is empty");
    if (n > o->depth)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "plan: a pack has %" PRIu32 " sequences", n);
    for (uint32_t i = 0; i < n; i++) {
        sum += lengths[i];
        if (i > 0 && lengths[i - 1] > lengths[i])
            return ps_fail(err, PS_ERR_CORRUPT,
                           "plan: the lengths of a pack are out of order");
    }
    if (sum > o->capacity)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "plan: a pack has %" PRIu64 " tokens", sum);

    for (uint32_t at = 0; at < n; at = end) {
        size_t i = ps_histogram_find(h, lengths[at]);

        for (end = at + 1; end < n && lengths[end] == lengths[at];)
            end++;
        if (i == ps_histogram_size(h) ||
            ps_histogram_length(h, i) != lengths[at])
            return ps_fail(err, PS_ERR_CORRUPT,
                           "plan: uses length %" PRIu32
                           ", which no sequence has", lengths[at]);
        if (s->count > left[i] / (end - at))
            return ps_fail(err, PS_ERR_CORRUPT,
                           "plan: uses more sequences of length %" PRIu32
                           " than there are", lengths[at]);
        left[i] -= s->count * (end - at);
    }
    return PS_OK;
}

ps_result ps_plan_check(const ps_plan *plan, const ps_histogram *h,
                        const ps_plan_options *o, ps_error *err)
{
    size_t n = ps_histogram_size(h);
    ps_mem mem = {0};
    uint64_t *left = ps_mem_alloc(&mem, n, sizeof *left);
    ps_result r = left == NULL ? ps_fail_memory(err) : PS_OK;

    for (size_t i = 0; r == PS_OK && i < n; i++)
        left[i] = ps_histogram_count(h, i);
    for (size_t i = 0; r == PS_OK && i < plan->n; i++)
        r = check_strategy(plan, &plan->strategies[i], o, h, left, err);
    for (size_t i = 0; r == PS_OK && i < n; i++)
        if (left[i] > 0)
            r = ps_fail(err, PS_ERR_CORRUPT,
                        "plan: %" PRIu64
                        " sequences of length %" PRIu32 " have no pack",
                        left[i], ps_histogram_length(h, i));
    free(left);
    return r;
}
