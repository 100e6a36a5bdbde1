/*
 * heuristics.c - the best of some quick plans.
 *
 * SPDX-License-Identifier: MIT
 */

#include "base/mem_bound.h"
#include "lp/greedy_basis.h"
#include "plan/lp_input.h"
#include "plan/nnls.h"
#include "plan/open_bins.h"

/* Greed counts in double: whole numbers up to here are exact. */
#define EXACT_COUNTS (UINT64_C(1) << 53)

/* With more tokens of capacity than these it would take too much memory. */
#define MAX_CAPACITY (UINT32_C(1) << 18)

/* What a sequence is worth by itself: as few, or as many in a pack. */
static const double slots[] = {0.0, 0.02, -0.02};

void ps_plan_keep_better(ps_plan **best, ps_plan *other)
{
    if (*best != NULL && ps_plan_packs(*best) <= ps_plan_packs(other)) {
        ps_plan_free(other);
        return;
    }
    ps_plan_free(*best);
    *best = other;
}

static ps_result try_lpfhp(ps_plan **best, const ps_histogram *h,
                           const ps_plan_options *o, ps_error *err)
{
    ps_plan *plan;
    ps_result r = ps_plan_open(&plan, err);

    if (r != PS_OK)
        return r;
    r = ps_plan_lpfhp(plan, h, o, err);
    if (r == PS_OK)
        ps_plan_keep_better(best, plan);
    else
        ps_plan_free(plan);
    return r;
}

static ps_result add_strategy(void *plan, double times,
                              const ps_lp_instance *instance,
                              const ps_entries *items, ps_error *err)
{
    uint32_t n = 0;
    uint32_t *to;
    ps_result r;

    for (size_t k = 0; k < items->n; k++)
        n += (uint32_t)items->value[k];
    r = ps_plan_reserve(plan, (uint64_t)times, n, &to, err);
    for (size_t k = 0; r == PS_OK && k < items->n; k++)
        for (uint32_t m = (uint32_t)items->value[k]; m > 0; m--)
            *to++ = instance->length[items->index[k]];
    return r;
}

static ps_result try_greed(ps_plan **best, const ps_lp_instance *instance,
                           double slot, ps_error *err)
{
    ps_plan *plan;
    ps_result r = ps_plan_open(&plan, err);

    if (r != PS_OK)
        return r;
    r = ps_greedy_strategies(instance, slot, add_strategy, plan, err);
    if (r == PS_OK)
        ps_plan_keep_better(best, plan);
    else
        ps_plan_free(plan);
    return r;
}

/* The best so far is there beside the next, of which a list is one pack. */
uint64_t ps_plan_quick_bytes(const ps_plan_size *size)
{
    ps_mem mem = {.counts = true};
    ps_entries list;
    uint32_t units = size->capacity < MAX_CAPACITY ? size->capacity
                                                    : MAX_CAPACITY;
    uint64_t bins = ps_open_bins_bytes(size->sequences, size->capacity,
                                       PS_FIT_BEST_LATEST);
    uint64_t greed = ps_mem_sum(ps_lp_input_bytes(size->lengths),
                                ps_greedy_bytes(size->lengths, units));

    ps_entries_init(
        &list, ps_mem_times(2, ps_mem_min(size->depth, size->lengths)), &mem);
    greed = ps_mem_sum(greed, mem.bytes);
    return ps_mem_sum(ps_mem_times(2, ps_plan_bytes(size->sequences)),
                      ps_mem_max(bins, greed));
}

ps_result ps_plan_quick(ps_plan **best, const ps_histogram *h,
                        const ps_plan_options *o, ps_error *err)
{
    ps_lp_input lp_input;
    ps_result r = try_lpfhp(best, h, o, err);

    if (r != PS_OK || ps_histogram_sequences(h) >= EXACT_COUNTS ||
        o->capacity > MAX_CAPACITY)
        return r;
    r = ps_lp_input_open(&lp_input, h, o->capacity, o->depth, 1, true, err);
    if (r != PS_OK)
        return r;
    for (size_t i = 0; r == PS_OK && i < sizeof slots / sizeof slots[0]; i++)
        r = try_greed(best, &lp_input.instance, slots[i], err);
    ps_lp_input_free(&lp_input);
    return r;
}
