/*
 * plan.c - a plan as a list of strategies: building it and looking at it.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"

#define FIRST_STRATEGIES 256
#define FIRST_LENGTHS 2048

/* No histogram has sequences for more packs. */
#define MAX_PACKS ((uint64_t)INT64_MAX)

typedef struct strategy {
    uint64_t count;
    size_t first; /* index of its lengths: they move when they grow */
    uint32_t n;
} strategy;

struct ps_plan {
    strategy *strategies;
    size_t n;
    size_t room;
    uint32_t *lengths; /* of all strategies */
    size_t n_lengths;
    size_t lengths_room;
    uint64_t packs;
    uint32_t max_depth;
};

uint64_t ps_plan_bytes(uint64_t sequences)
{
    uint64_t lengths =
        ps_mem_doubling(sequences, FIRST_LENGTHS, sizeof(uint32_t));
    uint64_t strategies =
        ps_mem_doubling(sequences, FIRST_STRATEGIES, sizeof(strategy));

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

/* The array with room for `needed` elements, or NULL. */
static void *with_room(void *array, size_t *room, size_t needed,
                       size_t min, size_t size)
{
    size_t wanted = *room == 0 ? min : *room;
    void *grown;

    if (needed <= *room)
        return array;
    while (wanted < needed) {
        if (wanted > SIZE_MAX / 2)
            return NULL;
        wanted *= 2;
    }
    if (wanted > SIZE_MAX / size)
        return NULL;
    grown = realloc(array, wanted * size);
    if (grown != NULL)
        *room = wanted;
    return grown;
}

static bool make_room(ps_plan *plan, uint32_t n)
{
    strategy *strategies;
    uint32_t *lengths;

    strategies = with_room(plan->strategies, &plan->room, plan->n + 1,
                           FIRST_STRATEGIES, sizeof *strategies);
    if (strategies == NULL)
        return false;
    plan->strategies = strategies;
    if (n > SIZE_MAX - plan->n_lengths)
        return false;
    lengths = with_room(plan->lengths, &plan->lengths_room,
                        plan->n_lengths + n, FIRST_LENGTHS, sizeof *lengths);
    if (lengths == NULL)
        return false;
    plan->lengths = lengths;
    return true;
}

ps_result ps_plan_reserve(ps_plan *plan, uint64_t count, uint32_t n,
                          uint32_t **lengths, ps_error *err)
{
    if (count > MAX_PACKS - plan->packs)
        return ps_fail(err, PS_ERR_LIMIT, "plan: more than 2^63 - 1 packs");
    if (!make_room(plan, n))
        return ps_fail_memory(err);
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

static bool is_ascending(const uint32_t *lengths, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (lengths[i - 1] > lengths[i])
            return false;
    return true;
}

ps_result ps_plan_add(ps_plan *plan, uint64_t count, const uint32_t *lengths,
                      uint32_t n, ps_error *err)
{
    uint32_t *to;
    ps_result r = ps_plan_reserve(plan, count, n, &to, err);

    if (r != PS_OK)
        return r;
    memcpy(to, lengths, n * sizeof *to);
    if (!is_ascending(to, n))
        qsort(to, n, sizeof *to, compare_lengths);
    return PS_OK;
}

void ps_plan_set_packs(ps_plan *plan, uint64_t packs)
{
    plan->packs = packs;
}

/* A strategy that can be compared without the plan at hand. */
typedef struct candidate {
    const uint32_t *lengths;
    uint64_t count;
    uint32_t n;
} candidate;

/* The longest lengths decide, the greater one comes first. */
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

static void put_back(ps_plan *plan, const candidate *sorted)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n; i++)
        if (i > 0 && compare_candidates(&sorted[i - 1], &sorted[i]) == 0)
            plan->strategies[n - 1].count += sorted[i].count;
        else
            plan->strategies[n++] = (strategy){
                .count = sorted[i].count,
                .first = (size_t)(sorted[i].lengths - plan->lengths),
                .n = sorted[i].n};
    plan->n = n;
}

ps_result ps_plan_merge(ps_plan *plan, ps_error *err)
{
    candidate *sorted;

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
    put_back(plan, sorted);
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
