/*
 * bound_uses.c - lower bound on the number of packs that have several limits.
 *
 * SPDX-License-Identifier: MIT
 *
 * Each resource alone is the problem of bound.c, with uses as lengths.  The
 * bounds of several resources are joined by a threshold t, at most half the
 * limit of one resource.  Sequences that use more than the limit less t of it
 * are large.  No two large sequences share a pack, nor does a large sequence
 * with one that uses at least t.  So the large sequences, and the packs that
 * the others of at least t need for any one resource, add up.  With a threshold
 * of 0, no sequence is large, and the bound is that of a single resource.
 */

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "plan/plan.h"

/* A set of sequences, and their limits. */
typedef struct problem {
    const ps_uses *items; /* [n] */
    size_t n;
    const uint64_t *limits; /* [n_limits] */
    uint32_t n_limits;
    uint32_t depth;
} problem;

/* A threshold for one resource; zeros: no sequence is large. */
typedef struct threshold {
    uint32_t resource;
    uint64_t least; /* sequences that use less do not count */
    double packs;   /* bound by the sums of uses */
} threshold;

/* ---- One resource ---- */

static bool is_large(const problem *p, const threshold *t, const ps_uses *of)
{
    return of->uses[t->resource] > p->limits[t->resource] - t->least;
}

static bool is_other(const problem *p, const threshold *t, const ps_uses *of)
{
    return of->uses[t->resource] >= t->least && !is_large(p, t, of);
}

/*
 * Bounds the packs by the use of one resource by all sequences that are not
 * large.  Uses are rounded down to units, of which a pack has at most
 * PS_MAX_CAPACITY.  The sum is not rounded, except as a floating-point number.
 */
static ps_result bound_one(const problem *p, const threshold *t,
                           uint32_t resource, double *packs, ps_error *err)
{
    const uint64_t limit = p->limits[resource];
    const uint64_t unit = (limit - 1) / PS_MAX_CAPACITY + 1;
    ps_result r;
    double sum = 0;
    ps_histogram *h;

    r = ps_histogram_open(&h, err);
    for (size_t i = 0; r == PS_OK && i < p->n; i++) {
        const ps_uses *of = &p->items[i];
        const uint32_t units = (uint32_t)(of->uses[resource] / unit);

        if (!is_other(p, t, of))
            continue;
        sum += (double)of->count * (double)of->uses[resource];
        if (units > 0)
            r = ps_histogram_add(h, units, of->count, err);
    }
    if (r == PS_OK)
        r = ps_plan_bound(h, (uint32_t)(limit / unit), p->depth, packs, err);
    ps_histogram_free(h);
    sum *= 1 - 4 * DBL_EPSILON - DBL_EPSILON * (double)p->n;
    if (r == PS_OK)
        *packs = fmax(*packs, sum / (double)limit);
    return r;
}

/* ---- Thresholds ---- */

/* Sums over the sequences up to this one, in ascending order of one use. */
typedef struct prefix {
    uint64_t use;                  /* of the resource sorted by */
    double sums[PS_MAX_RESOURCES]; /* in packs */
    double count;                  /* sequences */
} prefix;

static int compare_prefixes(const void *a, const void *b)
{
    const prefix *x = a;
    const prefix *y = b;

    return (x->use > y->use) - (x->use < y->use);
}

/* Number of the `n` sorted items that use less than `use`. */
static size_t count_below(const prefix *sorted, size_t n, uint64_t use)
{
    size_t low = 0;

    while (low < n) {
        const size_t middle = low + (n - low) / 2;

        if (sorted[middle].use < use)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* Fills in the prefixes of one resource; element 0 has no sequences. */
static void sum_prefixes(const problem *p, uint32_t resource, prefix *sorted)
{
    memset(&sorted[0], 0, sizeof sorted[0]);
    for (size_t i = 0; i < p->n; i++) {
        prefix *to = &sorted[i + 1];

        to->use = p->items[i].uses[resource];
        to->count = (double)p->items[i].count;
        for (uint32_t k = 0; k < p->n_limits; k++)
            to->sums[k] = to->count * (double)p->items[i].uses[k] /
                          (double)p->limits[k];
    }
    qsort(sorted + 1, p->n, sizeof *sorted, compare_prefixes);
    for (size_t i = 1; i <= p->n; i++) {
        sorted[i].count += sorted[i - 1].count;
        for (uint32_t k = 0; k < p->n_limits; k++)
            sorted[i].sums[k] += sorted[i - 1].sums[k];
    }
}

/* Replaces *best with the best threshold for one resource, if it is better. */
static void try_thresholds(const problem *p, uint32_t resource,
                           const prefix *sorted, threshold *best)
{
    const uint64_t limit = p->limits[resource];

    for (size_t i = 1; i <= p->n && sorted[i].use <= limit / 2; i++) {
        const uint64_t least = sorted[i].use;
        const prefix *below;
        const prefix *others;
        double packs = 0;

        if (i > 1 && least == sorted[i - 1].use)
            continue;
        below = &sorted[i - 1];
        others = &sorted[count_below(sorted + 1, p->n, limit - least + 1)];
        for (uint32_t k = 0; k < p->n_limits; k++)
            packs = fmax(packs, others->sums[k] - below->sums[k]);
        packs += sorted[p->n].count - others->count;
        if (packs > best->packs)
            *best = (threshold){resource, least, packs};
    }
}

static ps_result find_threshold(const problem *p, threshold *best,
                                ps_error *err)
{
    prefix *sorted = p->n < SIZE_MAX / sizeof *sorted - 1
                         ? malloc((p->n + 1) * sizeof *sorted)
                         : NULL;

    *best = (threshold){0};
    if (sorted == NULL)
        return ps_fail_memory(err);
    for (uint32_t k = 0; k < p->n_limits; k++) {
        sum_prefixes(p, k, sorted);
        try_thresholds(p, k, sorted, best);
    }
    free(sorted);
    return PS_OK;
}

/* Bounds the packs with a threshold, by each resource. */
static ps_result bound_all(const problem *p, const threshold *t,
                           double *packs, ps_error *err)
{
    double large = 0;
    double most = 0;

    for (size_t i = 0; i < p->n; i++)
        if (is_large(p, t, &p->items[i]))
            large += (double)p->items[i].count;
    for (uint32_t k = 0; k < p->n_limits; k++) {
        double bound;
        const ps_result r = bound_one(p, t, k, &bound, err);

        if (r != PS_OK)
            return r;
        most = fmax(most, bound);
    }
    *packs = fmax(*packs, large + most);
    return PS_OK;
}

/* ---- All resources ---- */

static ps_result check(const problem *p, ps_error *err)
{
    bool is_right = p->n_limits > 0 && p->n_limits <= PS_MAX_RESOURCES &&
                    p->depth > 0;

    for (uint32_t k = 0; is_right && k < p->n_limits; k++)
        is_right = p->limits[k] > 0 && p->limits[k] <= PS_MAX_BUDGET;
    if (!is_right)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "bound: limits or depth are out of range");
    for (size_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; k < p->n_limits; k++)
            if (p->items[i].uses[k] > p->limits[k] || p->items[i].count == 0)
                return ps_fail(err, PS_ERR_ARGUMENT,
                               "bound: a use exceeds its limit, or a count is "
                               "0");
    return PS_OK;
}

ps_result ps_plan_bound_uses(const ps_uses *items, size_t n,
                             const uint64_t *limits, uint32_t n_limits,
                             uint32_t depth, double *alone, double *packs,
                             ps_error *err)
{
    const problem p = {items, n, limits, n_limits, depth};
    const threshold none = {0};
    double sequences = 0;
    threshold best;
    ps_result r = check(&p, err);

    *packs = 0;
    if (r != PS_OK)
        return r;
    for (size_t i = 0; i < n; i++)
        sequences += (double)items[i].count;
    *packs = sequences / depth;
    for (uint32_t k = 0; r == PS_OK && k < n_limits; k++) {
        r = bound_one(&p, &none, k, &alone[k], err);
        if (r == PS_OK)
            *packs = fmax(*packs, alone[k]);
    }
    if (r == PS_OK)
        r = find_threshold(&p, &best, err);
    if (r == PS_OK && best.least > 0)
        r = bound_all(&p, &best, packs, err);
    return r;
}
