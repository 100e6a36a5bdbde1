/*
 * heuristics.c - the best of several fast plans: lpfhp, and greedy strategies
 * with different values for short sequences.
 *
 * SPDX-License-Identifier: MIT
 */

#include "base/mem_bound.h"
#include "lp/greedy_basis.h"
#include "plan/lp_input.h"
#include "plan/plan.h"

/* The greedy search counts sequences in double, which is exact up to this. */
#define EXACT_COUNTS (UINT64_C(1) << 53)

/* Maximum capacity in tokens.  More would take too much memory. */
#define MAX_CAPACITY (UINT32_C(1) << 18)

/* Value of a sequence besides its tokens: positive favours many per pack. */
static const double slots[] = {0.0, 0.02, -0.02};

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

/* The best plan so far exists beside the new one.  A list holds one pack. */
uint64_t ps_plan_quick_bytes(const ps_plan_size *size)
{
    uint64_t items = ps_mem_times(2, ps_mem_min(size->depth, size->lengths));
    uint32_t units = (uint32_t)ps_mem_min(size->capacity, MAX_CAPACITY);
    uint64_t plan = ps_plan_bytes(size->sequences);
    ps_mem greedy = {.bytes = plan, .counts = true};
    ps_entries list;

    ps_entries_init(&list, items, &greedy);
    greedy.bytes = ps_mem_sum(
        greedy.bytes, ps_mem_sum(ps_lp_input_bytes(size->lengths),
                                 ps_greedy_bytes(size->lengths, units)));
    return ps_mem_sum(
        plan, ps_mem_max(ps_plan_decreasing_bytes(size, PS_PLAN_LPFHP),
                         greedy.bytes));
}

ps_result ps_plan_quick(ps_plan **best, const ps_histogram *h,
                        const ps_plan_options *o, ps_error *err)
{
    ps_lp_input input;
    ps_plan *plan;
    ps_result r = ps_plan_open(&plan, err);

    if (r == PS_OK) {
        r = ps_plan_decreasing(plan, h, PS_PLAN_LPFHP, o, err);
        r = ps_plan_keep_better(best, plan, r);
    }
    if (r != PS_OK || ps_histogram_sequences(h) >= EXACT_COUNTS ||
        o->capacity > MAX_CAPACITY)
        return r;

    r = ps_lp_input_open(&input, h, o->capacity, o->depth, 1, true, err);
    if (r != PS_OK)
        return r;
    for (size_t i = 0; r == PS_OK && i < sizeof slots / sizeof slots[0];
         i++) {
        r = ps_plan_open(&plan, err);
        if (r != PS_OK)
            break;
        r = ps_greedy_strategies(&input.instance, slots[i], add_strategy,
                                 plan, err);
        r = ps_plan_keep_better(best, plan, r);
    }
    ps_lp_input_free(&input);
    return r;
}
