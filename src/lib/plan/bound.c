/*
 * bound.c - lower bound on the number of packs.
 *
 * SPDX-License-Identifier: MIT
 */

#include <math.h>

#include "base/error.h"
#include "plan/lp_input.h"
#include "plan/plan.h"

/*
 * Above these limits, lengths are rounded down to units.  The search also stops
 * at a work limit.  Both can weaken the bound, but it remains valid.
 */
#define MAX_LENGTHS 4096
#define MAX_UNITS (UINT32_C(1) << 18)
#define MAX_UNITS_DEEP 2048 /* from depth 4 on */

/* Allowance for the sum of all rounding errors, relative to the bound. */
#define ROUNDING 1e-12

/* Limits of the bounds by parts: number of parts, and lengths times parts. */
#define MAX_PARTS 64
#define PARTS_WORK (1 << 22)

/*
 * Bound by parts: the price rule of column_gen.c, but exact to the token.
 * Counts only the first `n` lengths.  Returns 0 if integers could overflow.
 */
static double packs_by_parts(const ps_histogram *h, size_t n,
                             uint32_t capacity, uint32_t k)
{
    uint64_t parts = 0; /* each worth 1 / k */
    uint64_t tokens = 0;

    if (ps_histogram_sequences(h) > UINT64_MAX / k)
        return 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t length = ps_histogram_length(h, i);
        uint64_t times = length * (k + 1);

        if (times % capacity == 0)
            tokens += ps_histogram_count(h, i) * length;
        else
            parts += ps_histogram_count(h, i) * (times / capacity);
    }
    return (double)parts / k + (double)tokens / capacity;
}

/*
 * A sequence that fits with no other needs its own pack.  For the rest, takes
 * the maximum of the bounds by tokens, by sequences, by LP prices, and by parts
 * (u(k) of Fekete and Schepers 2001).  Tries several k, including the number of
 * sequences of the most frequent length that fit in a pack.
 */
static ps_result bound_by_units(const ps_histogram *h, uint32_t capacity,
                                uint32_t depth, uint32_t unit,
                                const ps_lp_limits *limits, double *packs,
                                ps_error *err)
{
    double tokens = 0;
    double sequences = 0;
    ps_lp_input input;
    ps_lp *lp;
    ps_result r = ps_lp_input_open(&input, h, capacity, depth, unit, false,
                                   err);
    size_t n = ps_lp_input_pairable(h, capacity);
    size_t often = 0;

    for (size_t i = 0; i < n; i++) {
        double count = (double)ps_histogram_count(h, i);

        tokens += count * ps_histogram_length(h, i);
        sequences += count;
        if (ps_histogram_count(h, i) > ps_histogram_count(h, often))
            often = i;
    }
    *packs = fmax(tokens / capacity, sequences / depth);
    for (uint32_t k = 1; n > 0 && k <= MAX_PARTS && k * n <= PARTS_WORK; k++)
        *packs = fmax(*packs, packs_by_parts(h, n, capacity, k));
    if (n > 0) {
        uint32_t fit = capacity / ps_histogram_length(h, often);

        *packs = fmax(*packs, packs_by_parts(h, n, capacity, fit));
    }
    if (r != PS_OK)
        return r;
    if (input.instance.n > 0) {
        r = ps_lp_open(&lp, &input.instance, limits, err);
        if (r == PS_OK) {
            *packs = fmax(*packs, ps_lp_bound(lp));
            ps_lp_free(lp);
        }
    }
    *packs += (double)ps_histogram_sequences(h) - sequences;
    ps_lp_input_free(&input);
    return r;
}

ps_result ps_plan_bound(const ps_histogram *h, uint32_t capacity,
                        uint32_t depth, double *packs, ps_error *err)
{
    const ps_lp_limits limits = {
        .work = ps_lp_fair_work(ps_histogram_size(h)),
        .max_units = MAX_UNITS};
    size_t n = ps_histogram_size(h);
    uint32_t unit;
    ps_result r;
    bool deep;

    *packs = 0;
    if (capacity == 0 || capacity > PS_MAX_CAPACITY || depth == 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "bound: capacity or depth is out of range");
    if (n == 0)
        return PS_OK;
    if (ps_histogram_length(h, n - 1) > capacity)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "bound: a length exceeds the capacity");

    deep = depth > 3 && capacity / ps_histogram_length(h, 0) > 3;
    unit = ps_lp_input_unit(h, capacity, MAX_LENGTHS,
                            deep ? MAX_UNITS_DEEP : MAX_UNITS);
    r = bound_by_units(h, capacity, depth, unit, &limits, packs, err);
    *packs = r == PS_OK ? *packs * (1 - ROUNDING) : 0;
    return r;
}
