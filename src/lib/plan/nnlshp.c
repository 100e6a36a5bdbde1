/*
 * nnlshp.c - non-negative least-squares histogram-packing, and its extension.
 *
 * SPDX-License-Identifier: MIT
 *
 * nnlshp fits once and uses the integer parts; the remainder is packed by the
 * best of several fast plans.  The published extension, ennlshp, allows padding
 * in strategies, which is always allowed here.  Instead, ennlshp fits the
 * remainder again as long as that yields whole packs, which takes more time and
 * gives fewer packs.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "lp/column_gen.h"
#include "plan/nnls.h"
#include "plan/repack.h"

#define MAX_FITS 16
#define REPAIR_WORK 1e8   /* steps in total: a few tenths of a second */
#define REPAIR_EACH 5000. /* steps per sequence, at most */
#define ROUNDING 1e-12    /* relative error of bounds */

/*
 * If a plan has more than NEAR times as many packs as the bound, packs that
 * lose more than LOSS at the prices are packed again: up to MAX_MENDED
 * sequences with MEND_WORK steps.
 */
#define NEAR 1.00002
#define LOSS 1e-3
#define MAX_MENDED 300000
#define MEND_WORK 3e8

/* With more lengths, trying a second depth takes too long. */
#define SHALLOW_LENGTHS 1024

/*
 * Memory for the new plan, the best one, the remainder and two sets of prices,
 * plus one of: a fit, a plan for the remainder, or all strategies while they
 * are merged.
 */
uint64_t ps_plan_nnlshp_bytes(const ps_plan_size *size)
{
    uint64_t fit = ps_mem_sum(
        ps_plan_fit_bytes(size),
        ps_mem_array(size->lengths, sizeof(uint64_t)));
    uint64_t repacked = ps_mem_sum(
        ps_mem_times(2, ps_plan_bytes(size->sequences)),
        ps_plan_repack_bytes(size->sequences, size->lengths));
    uint64_t repair = ps_mem_max(ps_plan_quick_bytes(size), repacked);
    uint64_t price = ps_mem_array(size->lengths, sizeof(double));
    uint64_t mend = ps_mem_sum(ps_plan_bytes(size->sequences), repair);
    uint64_t bytes = ps_mem_times(2, ps_plan_bytes(size->sequences));
    uint64_t merged = ps_mem_array(size->sequences, PS_MERGED_BYTES);

    bytes = ps_mem_sum(bytes, ps_histogram_bytes(size->lengths));
    bytes = ps_mem_sum(bytes, ps_mem_times(2, price));
    return ps_mem_sum(
        bytes, ps_mem_max(merged, ps_mem_max(fit, mend)));
}

/* Adds all strategies of one plan to another. */
static ps_result add_plan(ps_plan *plan, const ps_plan *more, ps_error *err)
{
    ps_result r = PS_OK;

    for (size_t i = 0; r == PS_OK && i < ps_plan_strategies(more); i++) {
        const uint32_t *lengths;
        uint32_t n;
        uint64_t count = ps_plan_strategy(more, i, &lengths, &n);

        r = ps_plan_add(plan, count, lengths, n, err);
    }
    return r;
}

/* The remainder of a fit as a histogram, with prices for its lengths. */
typedef struct rest {
    ps_histogram *h;
    double *price;    /* by length, packs */
    double min_packs; /* lower bound for the whole histogram */
} rest;

static void close_rest(rest *r)
{
    ps_histogram_free(r->h);
    free(r->price);
    *r = (rest){0};
}

/* Packs the remainder with the best fast plan, or by local search. */
static ps_result repair(ps_plan *plan, const rest *left,
                        const ps_plan_options *o, double work, ps_error *err)
{
    double n = (double)ps_histogram_sequences(left->h);
    ps_repack_options ro = {.capacity = o->capacity,
                            .depth = o->depth,
                            .price = left->price,
                            .min_packs = left->min_packs -
                                      (double)ps_plan_packs(plan),
                            .work = fmin(work, REPAIR_EACH * n)};
    ps_plan *best = NULL;
    ps_result r = ps_plan_quick(&best, left->h, o, err);

    if (r == PS_OK && (double)ps_plan_packs(best) > ro.min_packs)
        r = ps_plan_repack(&best, left->h, &ro, err);
    if (r == PS_OK)
        r = add_plan(plan, best, err);
    ps_plan_free(best);
    return r;
}

/*
 * Fits a histogram once.  *to receives the remainder; *all, unless `all` is
 * NULL, receives the prices of all lengths and the bound.
 */
static ps_result fit(ps_plan *plan, const ps_histogram *h,
                     const ps_plan_options *o, bool weighted, double *work,
                     rest *to, rest *all, ps_error *err)
{
    size_t n = ps_histogram_size(h);
    double before = (double)ps_plan_packs(plan);
    ps_fit_rest left = {calloc(n, sizeof *left.left),
                        calloc(n, sizeof *left.price), 0};
    ps_result r = PS_OK;
    size_t k = 0;

    *to = (rest){.price = left.price};
    if (left.left == NULL || left.price == NULL)
        r = ps_fail_memory(err);
    if (r == PS_OK)
        r = ps_plan_fit(plan, h, o, weighted, work, &left, err);
    to->min_packs = before + ceil(left.bound * (1 - ROUNDING));
    if (r == PS_OK && all != NULL) {
        all->min_packs = to->min_packs;
        all->price = malloc(n * sizeof *all->price);
        if (all->price == NULL)
            r = ps_fail_memory(err);
        else
            memcpy(all->price, left.price, n * sizeof *all->price);
    }

    if (r == PS_OK)
        r = ps_histogram_open(&to->h, err);
    for (size_t i = 0; r == PS_OK && i < n; i++) {
        if (left.left[i] == 0)
            continue;
        to->price[k++] = left.price[i];
        r = ps_histogram_add(to->h, ps_histogram_length(h, i), left.left[i],
                             err);
    }
    free(left.left);
    return r;
}

/*
 * Fits the histogram and, if `refit`, the remainder again and again until that
 * has no effect, then packs the rest.  *all receives the prices of all lengths
 * and the bound.
 */
static ps_result fit_and_repair(ps_plan *plan, const ps_histogram *h,
                                const ps_plan_options *o, bool refit,
                                ps_fit_work work, rest *all, ps_error *err)
{
    rest left, next;
    ps_result r = fit(plan, h, o, !refit, &work.fit, &left, all, err);

    for (int k = 1; r == PS_OK && refit && k < MAX_FITS; k++) {
        if (ps_histogram_size(left.h) == 0)
            break;
        r = fit(plan, left.h, o, false, &work.fit, &next, NULL, err);
        refit = r == PS_OK && ps_histogram_sequences(next.h) <
                                  ps_histogram_sequences(left.h);
        next.min_packs = left.min_packs;
        close_rest(&left);
        left = next;
    }
    if (r == PS_OK && ps_histogram_size(left.h) > 0)
        r = repair(plan, &left, o, work.repair, err);
    close_rest(&left);
    return r;
}

ps_result ps_plan_fit_within(ps_plan **best, const ps_histogram *h,
                             const ps_plan_options *o, ps_fit_work work,
                             double *min_packs, ps_error *err)
{
    rest all = {0};
    ps_plan *plan;
    ps_result r = ps_plan_open(&plan, err);

    if (r == PS_OK)
        r = fit_and_repair(plan, h, o, true, work, &all, err);
    *min_packs = fmax(*min_packs, all.min_packs);
    close_rest(&all);
    return ps_plan_keep_better(best, plan, r);
}

/* ---- Repacking lossy packs ---- */

/*
 * Adds strategies that lose value at the prices to `lossy`, as long as there
 * are few enough for local search, and the others to `good`.
 */
static ps_result sort_out(const ps_plan *plan, const ps_histogram *h,
                          const double *price, ps_plan *good,
                          ps_histogram *lossy, ps_error *err)
{
    ps_result r = PS_OK;

    for (size_t i = 0; r == PS_OK && i < ps_plan_strategies(plan); i++) {
        const uint32_t *lengths;
        uint32_t n;
        uint64_t count = ps_plan_strategy(plan, i, &lengths, &n);
        uint64_t space = MAX_MENDED - ps_histogram_sequences(lossy);
        double worth = 0;

        for (uint32_t k = 0; k < n; k++)
            worth += price[ps_histogram_find(h, lengths[k])];
        if (worth >= 1 - LOSS || count > space / n) {
            r = ps_plan_add(good, count, lengths, n, err);
            continue;
        }
        for (uint32_t k = 0; r == PS_OK && k < n; k++)
            r = ps_histogram_add(lossy, lengths[k], count, err);
    }
    return r;
}

/*
 * Packs the contents of lossy packs again, and replaces *best if the result is
 * better.
 */
static ps_result mend(ps_plan **best, const ps_histogram *h, const rest *all,
                      const ps_plan_options *o, ps_error *err)
{
    rest lossy = {.min_packs = all->min_packs};
    ps_plan *good = NULL;
    ps_result r = ps_plan_open(&good, err);

    if (r == PS_OK)
        r = ps_histogram_open(&lossy.h, err);
    if (r == PS_OK)
        r = sort_out(*best, h, all->price, good, lossy.h, err);
    if (r == PS_OK && ps_histogram_size(lossy.h) > 0) {
        lossy.price = calloc(ps_histogram_size(lossy.h),
                             sizeof *lossy.price);
        if (lossy.price == NULL)
            r = ps_fail_memory(err);
        for (size_t i = 0; r == PS_OK && i < ps_histogram_size(lossy.h); i++)
            lossy.price[i] = all->price[ps_histogram_find(
                h, ps_histogram_length(lossy.h, i))];
        if (r == PS_OK)
            r = repair(good, &lossy, o, MEND_WORK, err);
    }
    close_rest(&lossy);
    return ps_plan_keep_better(best, good, r);
}

/*
 * Replaces *best with the fitted plan or a fast one, if better.  A plan that is
 * not near the bound, *min_packs, has its lossy packs repacked first.
 */
static ps_result improve(ps_plan **best, const ps_histogram *h,
                         const ps_plan_options *o, bool refit,
                         double *min_packs, ps_error *err)
{
    const ps_fit_work work = {ps_lp_fair_work(ps_histogram_size(h)),
                              REPAIR_WORK};
    rest all = {0};
    ps_plan *plan;
    ps_result r = ps_plan_open(&plan, err);

    if (r != PS_OK)
        return r;
    r = fit_and_repair(plan, h, o, refit, work, &all, err);
    if (r == PS_OK)
        r = ps_plan_quick(&plan, h, o, err);
    if (r == PS_OK && (double)ps_plan_packs(plan) > NEAR * all.min_packs)
        r = mend(&plan, h, &all, o, err);
    *min_packs = all.min_packs;
    close_rest(&all);
    return ps_plan_keep_better(best, plan, r);
}

ps_result ps_plan_nnlshp(ps_plan *plan, const ps_histogram *h,
                         ps_algorithm algorithm, const ps_plan_options *o,
                         ps_error *err)
{
    bool refit = algorithm == PS_PLAN_ENNLSHP;
    ps_plan_options shallow = *o;
    ps_plan *best = NULL;
    double min_packs = 1, depth;
    ps_result r = improve(&best, h, o, refit, &min_packs, err);

    /*
     * A greater depth makes the search harder, so also try a small depth that
     * still has enough slots.  It does not depend on o->depth.
     */
    depth = floor((double)ps_histogram_sequences(h) / min_packs) + 2;
    if (r == PS_OK && (double)ps_plan_packs(best) > min_packs &&
        depth < o->depth && ps_histogram_size(h) <= SHALLOW_LENGTHS) {
        shallow.depth = (uint32_t)depth;
        r = improve(&best, h, &shallow, refit, &min_packs, err);
    }
    if (r == PS_OK)
        r = add_plan(plan, best, err);
    if (r == PS_OK)
        r = ps_plan_merge(plan, err);
    ps_plan_free(best);
    return r;
}
