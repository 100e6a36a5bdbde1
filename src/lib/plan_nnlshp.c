/*
 * plan_nnlshp.c - non-negative least-squares histogram-packing, and its
 * extension.
 *
 * nnlshp is one fit, of which the whole parts are taken; what they leave
 * goes to the best of some quick plans.  The published extension, ennlshp,
 * allows padding in strategies.  Here that is so from the beginning, and
 * what ennlshp adds is that it fits again what a fit leaves, for as long as
 * that gives whole packs: fewer packs, for more time.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>

#include "amount.h"
#include "error.h"
#include "plan_fit.h"
#include "plan_lp.h"

#define MOST_FITS 16

/* Of a strategy while ps_plan_merge puts them in order, twice. */
#define MERGED_BYTES 48

/*
 * The plan, the best one, beside which others are tried; and at the end all
 * strategies in order.
 */
uint64_t ps_plan_nnlshp_bytes(const ps_plan_size *size)
{
    uint64_t fit = ps_amount_sum(
        ps_plan_fit_bytes(size),
        ps_amount_array(size->lengths, sizeof(uint64_t)));
    uint64_t bytes = ps_amount_times(2, ps_plan_bytes(size->sequences));

    bytes = ps_amount_sum(bytes, ps_histogram_bytes(size->lengths));
    bytes = ps_amount_sum(bytes,
                          ps_amount_most(fit, ps_plan_quick_bytes(size)));
    return ps_amount_sum(bytes,
                         ps_amount_array(size->sequences, MERGED_BYTES));
}

/* Adds all strategies of a plan to another. */
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

/* Packs all of the histogram with the best of the quick plans. */
static ps_result repair(ps_plan *plan, const ps_histogram *h,
                        const ps_plan_options *o, ps_error *err)
{
    ps_plan *best = NULL;
    ps_result r = ps_plan_quick(&best, h, o, err);

    if (r == PS_OK)
        r = add_plan(plan, best, err);
    ps_plan_free(best);
    return r;
}

/* The histogram of what is left of another. */
static ps_result open_left(ps_histogram **to, const ps_histogram *h,
                           const uint64_t *left, ps_error *err)
{
    ps_result r = ps_histogram_open(to, err);

    for (size_t i = 0; r == PS_OK && i < ps_histogram_size(h); i++)
        if (left[i] > 0)
            r = ps_histogram_add(*to, ps_histogram_length(h, i), left[i],
                                 err);
    if (r != PS_OK) {
        ps_histogram_free(*to);
        *to = NULL;
    }
    return r;
}

/* One fit; *rest becomes the histogram of what it leaves. */
static ps_result fit(ps_plan *plan, const ps_histogram *h,
                     const ps_plan_options *o, bool weighted, double *work,
                     ps_histogram **rest, ps_error *err)
{
    size_t n = ps_histogram_size(h);
    uint64_t *left = calloc(n, sizeof *left);
    ps_result r;

    *rest = NULL;
    if (left == NULL)
        return ps_fail_memory(err);
    r = ps_plan_fit(plan, h, o, weighted, work, left, err);
    if (r == PS_OK)
        r = open_left(rest, h, left, err);
    free(left);
    return r;
}

/* Fits what a fit leaves in *rest, until that brings nothing. */
static ps_result fit_again(ps_plan *plan, ps_histogram **rest,
                           const ps_plan_options *o, double *work,
                           ps_error *err)
{
    ps_result r = PS_OK;
    bool some = true;

    for (int k = 1; k < MOST_FITS && some && r == PS_OK; k++) {
        ps_histogram *last = *rest;

        if (ps_histogram_size(last) == 0)
            break;
        r = fit(plan, last, o, false, work, rest, err);
        some = r == PS_OK && ps_histogram_sequences(*rest) <
                                 ps_histogram_sequences(last);
        ps_histogram_free(last);
    }
    return r;
}

static ps_result fit_and_repair(ps_plan *plan, const ps_histogram *h,
                                const ps_plan_options *o, bool again,
                                ps_error *err)
{
    double work = ps_lp_fair_work(ps_histogram_size(h));
    ps_histogram *rest;
    ps_result r = fit(plan, h, o, !again, &work, &rest, err);

    if (r == PS_OK && again)
        r = fit_again(plan, &rest, o, &work, err);
    if (r == PS_OK && ps_histogram_size(rest) > 0)
        r = repair(plan, rest, o, err);
    ps_histogram_free(rest);
    return r;
}

/* The plan by fitting, or a quick one should that have fewer packs. */
static ps_result make(ps_plan *plan, const ps_histogram *h,
                      const ps_plan_options *o, bool again, ps_error *err)
{
    ps_plan *best;
    ps_result r = ps_plan_open(&best, err);

    if (r != PS_OK)
        return r;
    r = fit_and_repair(best, h, o, again, err);
    if (r == PS_OK)
        r = ps_plan_quick(&best, h, o, err);
    if (r == PS_OK)
        r = add_plan(plan, best, err);
    if (r == PS_OK)
        r = ps_plan_merge(plan, err);
    ps_plan_free(best);
    return r;
}

ps_result ps_plan_nnlshp(ps_plan *plan, const ps_histogram *h,
                         const ps_plan_options *o, ps_error *err)
{
    return make(plan, h, o, false, err);
}

ps_result ps_plan_ennlshp(ps_plan *plan, const ps_histogram *h,
                          const ps_plan_options *o, ps_error *err)
{
    return make(plan, h, o, true, err);
}
