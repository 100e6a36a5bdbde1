/*
 * rows.c - what algorithms make of a histogram, a row for each.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packplan/rows.h"

#include <math.h>
#include <time.h>

#include "cli/files.h"
#include "cli/message.h"

/* A bound is a sum of fractions: so much of it may be rounding. */
#define ROUNDING 1e-6

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* No plan leaves here unchecked. */
static int make_plan(ps_plan **plan, double *seconds, const conf *c,
                     const ps_histogram *h, ps_algorithm algorithm,
                     uint32_t depth)
{
    ps_plan_options o = c->options;
    ps_error err;
    double start = now();
    ps_result r;

    o.depth = depth;
    r = ps_plan_make(plan, h, algorithm, &o, &err);
    *seconds = now() - start;
    if (r == PS_OK) {
        r = ps_plan_check(*plan, h, &o, &err);
        if (r != PS_OK)
            ps_plan_free(*plan);
    }
    if (r == PS_OK)
        return STATUS_OK;
    (void)message_failure(algorithm_name(algorithm), &err);
    return STATUS_FAILURE;
}

static void fill_ratios(row *r, const conf *c, uint64_t sequences,
                        uint64_t tokens)
{
    double packs = (double)r->packs;

    r->efficiency = 0;
    r->factor = 0;
    if (r->packs > 0) {
        r->efficiency =
            (double)tokens / (packs * (double)c->options.capacity);
        r->factor = (double)sequences / packs;
    }
    r->speed_up = r->factor / (1 + r->overhead / 100);
}

static int make_row(row *r, const conf *c, const ps_histogram *h)
{
    ps_plan *plan;
    int status =
        make_plan(&plan, &r->seconds, c, h, r->algorithm, r->depth);

    if (status != STATUS_OK)
        return status;
    r->packs = ps_plan_packs(plan);
    r->strategies = ps_plan_strategies(plan);
    r->max_depth = ps_plan_max_depth(plan);
    ps_plan_free(plan);
    return STATUS_OK;
}

/* Rows that are not packs are bounded by nothing but their tokens. */
static double flat_bound(const conf *c, const ps_histogram *h,
                         ps_algorithm algorithm)
{
    if (algorithm == PS_PLAN_NONE)
        return (double)ps_histogram_sequences(h);
    return (double)ps_histogram_tokens(h) / (double)c->options.capacity;
}

/* What needs no depth; stands above all else. */
static int make_flat(rows *rs, const conf *c, const ps_histogram *h)
{
    int status = STATUS_OK;

    for (unsigned i = 0; status == STATUS_OK && i < ALGORITHMS; i++) {
        ps_algorithm a = algorithm_at(i);
        row *r = &rs->of[rs->n];

        if (!c->algorithms[i] || !algorithm_is_flat(a))
            continue;
        *r = (row){.algorithm = a, .depth = 1, .bound = -1};
        if (!c->no_bound)
            r->bound = flat_bound(c, h, a);
        status = make_row(r, c, h);
        rs->n++;
    }
    return status;
}

static int find_bound(double *bound, const conf *c, const ps_histogram *h,
                      uint32_t depth)
{
    ps_error err;

    *bound = c->no_bound ? -1 : 0;
    if (c->no_bound || ps_histogram_size(h) == 0 ||
        ps_plan_bound(h, c->options.capacity, depth, bound, &err) == PS_OK)
        return STATUS_OK;
    return message_failure("bound", &err);
}

/* A row for each algorithm at the `k`th depth. */
static int make_depth(rows *rs, const conf *c, const ps_histogram *h,
                      unsigned k)
{
    double bound = -1;
    int status = STATUS_OK;
    bool known = false;

    for (unsigned i = 0; status == STATUS_OK && i < ALGORITHMS; i++) {
        ps_algorithm a = algorithm_at(i);
        row *r = &rs->of[rs->n];

        if (!c->algorithms[i] || algorithm_is_flat(a))
            continue;
        if (!known)
            status = find_bound(&bound, c, h, c->depths[k]);
        known = true;
        *r = (row){.algorithm = a,
                   .depth = c->depths[k],
                   .bound = bound,
                   .overhead = conf_overhead(c, k)};
        if (status == STATUS_OK)
            status = make_row(r, c, h);
        rs->n++;
    }
    return status;
}

int rows_make(rows *rs, const conf *c, const ps_histogram *taken,
              uint64_t tokens)
{
    int status;

    rs->n = 0;
    status = make_flat(rs, c, taken);
    for (unsigned k = 0; status == STATUS_OK && k < c->n_depths; k++)
        status = make_depth(rs, c, taken, k);
    for (size_t i = 0; i < rs->n; i++)
        fill_ratios(&rs->of[i], c, ps_histogram_sequences(taken), tokens);
    return status;
}

int rows_plan(ps_plan **plan, const conf *c, const ps_histogram *h)
{
    double seconds;
    unsigned i = 0;

    while (!c->algorithms[i])
        i++;
    return make_plan(plan, &seconds, c, h, algorithm_at(i), c->depths[0]);
}

uint64_t row_bound_packs(const row *r)
{
    double packs = ceil(r->bound * (1 - 1e-15) - ROUNDING);

    return packs > 0 ? (uint64_t)packs : 0;
}
