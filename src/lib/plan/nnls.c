/*
 * nnls.c - strategies by non-negative least squares.
 *
 * SPDX-License-Identifier: MIT
 *
 * The published algorithm (Krell et al. 2021, section 3.1.2) lists every
 * strategy whose lengths fill a pack as a column of A, takes the histogram as
 * b, and finds x >= 0 that minimises |w (A x - b)|^2, where the weight w is low
 * for short lengths.  It rounds x and repairs the remainder.  This
 * implementation differs in two ways, for better results:
 *
 *  - A slot can hold a shorter sequence, so surplus slots of one length replace
 *    missing slots of a shorter one.  A strategy that does not fill the pack is
 *    equivalent to a full one with a longer slot.
 *  - A pack has a price t: minimise 2 t sum(x) + |w r|^2, where r counts the
 *    sequences without a slot, by length.  Without a price, a fit that needs
 *    many packs would be as good as a fit that needs few.
 *
 * At the minimum w_i^2 r_i = t p_i: the residual of a length is proportional to
 * its price p_i, no column is worth more than a pack, and columns in use are
 * worth exactly one.  These are also the optimality conditions of the LP
 * relaxation with b reduced by r.  So the relaxation is solved for b,
 * generating columns by price instead of listing them, and its basis is then
 * evaluated for b - r.  This is the minimum unless a repeat count becomes
 * negative.  t is 1, or less if a count would be negative at 1.
 */

#include "plan/nnls.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "lp/lengths.h"
#include "plan/repack.h"
#include "plan/rounding.h"

/* Above these limits lengths are rounded up to units. */
#define MAX_LENGTHS 4096
#define MAX_UNITS (UINT32_C(1) << 18)
#define MAX_UNITS_DEEP 2048 /* in pricing, from depth 4 on */

/* In packs.  Rounding loses more anyway. */
#define GAP 0.25
#define MIN_YIELD 0.25

/*
 * If the relaxation is at least POOL_GAP packs above its bound after FIRST_PART
 * of the work, it gets columns from a plan for fewer sequences: POOL_SEQUENCES,
 * or POOL_EACH per length if that is more.  The plan takes POOL_WORK steps per
 * sequence, but at most POOL_PART of the work.
 */
#define FIRST_PART 0.3
#define POOL_GAP 1.0
#define POOL_SEQUENCES 8192.0
#define POOL_EACH 8.0
#define POOL_WORK 1000.0
#define POOL_PART 0.3

/*
 * Memory for the relaxation, the rounding, and a pool, which consists of a
 * histogram, a plan and its columns.
 */
uint64_t ps_plan_fit_bytes(const ps_plan_size *size)
{
    uint32_t n = (uint32_t)ps_mem_min(size->lengths, MAX_LENGTHS);
    uint32_t units = (uint32_t)ps_mem_min(size->capacity, MAX_UNITS);
    double wanted = fmax(POOL_SEQUENCES, POOL_EACH * n) + n;
    uint64_t max = ps_mem_min(size->sequences, (uint64_t)wanted);
    uint64_t columns = ps_mem_sum(
        ps_mem_array(max, sizeof(ps_column)),
        ps_mem_growing(max, 1, sizeof(double) + sizeof(uint32_t)));
    uint64_t bytes = ps_mem_max(
        ps_plan_repack_bytes(max, n),
        ps_mem_sum(columns, ps_mem_array(max, PS_MERGED_BYTES)));

    bytes = ps_mem_sum(bytes, ps_histogram_bytes(n));
    bytes = ps_mem_sum(bytes, ps_plan_bytes(max));
    bytes = ps_mem_sum(bytes, ps_lp_input_bytes(size->lengths));
    bytes = ps_mem_sum(
        bytes, ps_lp_bytes(n, units, size->depth, MAX_UNITS_DEEP));
    bytes = ps_mem_sum(bytes,
                       ps_round_bytes(n, size->lengths, size->depth));
    return ps_mem_sum(bytes, ps_mem_array(n, 3 * sizeof(double)));
}

/* Rounds the solution of the relaxation or, if `weighted`, of the fit. */
static ps_result round_uses(ps_plan *plan, const ps_histogram *h,
                            const ps_lp_input *g, const ps_plan_options *o,
                            bool weighted, ps_basis *b, uint64_t *left,
                            ps_error *err)
{
    uint32_t n = g->instance.n;
    double part = 1;
    double *used, *less, *residual;
    ps_result r;

    if (!weighted)
        return ps_round(plan, h, g, b, b->used, left, err);
    used = calloc(n, 3 * sizeof *used);
    if (used == NULL)
        return ps_fail_memory(err);
    less = used + n;
    residual = less + n;

    /* Optimal residuals at these prices. */
    for (uint32_t i = 0; i < n; i++) {
        uint64_t length = (uint64_t)g->instance.length[i] * g->unit;
        double w = length <= o->short_length ? o->short_weight : 1;
        double best = b->price[i] > 0 ? b->price[i] / (w * w) : 0;

        residual[i] =
            best < g->instance.count[i] ? best : g->instance.count[i];
    }

    /*
     * Reduce each repeat count by its share of the residuals.  If a count would
     * become negative, reduce all counts by the same fraction of their shares.
     */
    if (ps_basis_respond(b, residual, less)) {
        for (uint32_t j = 0; j < n; j++)
            if (less[j] * part > b->used[j])
                part = b->used[j] > 0 ? b->used[j] / less[j] : 0;
        for (uint32_t j = 0; j < n; j++)
            used[j] = b->used[j] - part * less[j];
        r = ps_round(plan, h, g, b, used, left, err);
    } else {
        r = ps_fail_memory(err);
    }
    free(used);
    return r;
}

/* ---- Columns for a slow relaxation ---- */

/* Converts the distinct strategies of a plan to columns. */
static ps_result fill_pool(ps_lp_pool *pool, const ps_lp_instance *s,
                           ps_plan *plan, ps_error *err)
{
    ps_entries *list = &pool->list;
    ps_result r = ps_plan_merge(plan, err);

    if (r != PS_OK)
        return r;
    pool->n = ps_plan_strategies(plan);
    pool->column = calloc(pool->n, sizeof *pool->column);
    if (pool->column == NULL)
        return ps_fail_memory(err);
    for (size_t i = 0; i < pool->n; i++) {
        ps_column *c = &pool->column[i];
        const uint32_t *lengths;
        uint32_t n;

        (void)ps_plan_strategy(plan, i, &lengths, &n);
        c->first = list->n;
        for (uint32_t k = 0; k < n; k++) {
            if (k > 0 && lengths[k] == lengths[k - 1]) {
                list->value[list->n - 1] += 1;
                continue;
            }
            if (!ps_entries_add(list, ps_lengths_up_to(s->length, 0, s->n,
                                                       lengths[k]) - 1, 1))
                return ps_fail_memory(err);
            c->n++;
        }
    }
    return PS_OK;
}

/*
 * Builds a pool from a plan for a smaller, similar histogram, found by local
 * search.  Its columns are nearly optimal for the full histogram.  At least one
 * sequence of each length remains.
 */
static ps_result open_pool(ps_lp_pool *pool, const ps_lp_instance *s,
                           double sequences, const ps_lp *lp, double *work,
                           ps_error *err)
{
    double wanted = fmax(POOL_SEQUENCES, POOL_EACH * s->n);
    double factor = fmin(1, wanted / sequences);
    ps_repack_options ro = {.capacity = s->capacity,
                            .depth = s->depth,
                            .price = ps_lp_prices(lp),
                            .min_packs = factor * ps_lp_bound(lp),
                            .work = fmin(POOL_WORK * wanted,
                                         POOL_PART * *work)};
    ps_histogram *fewer = NULL;
    ps_plan *plan = NULL;
    ps_result r = ps_histogram_open(&fewer, err);

    *pool = (ps_lp_pool){0};
    *work -= ro.work;
    for (uint32_t i = 0; r == PS_OK && i < s->n; i++)
        r = ps_histogram_add(fewer, s->length[i],
                             (uint64_t)ceil(s->count[i] * factor), err);
    if (r == PS_OK)
        r = ps_plan_repack(&plan, fewer, &ro, err);
    if (r == PS_OK && plan != NULL)
        r = fill_pool(pool, s, plan, err);
    *work += ro.work;
    ps_plan_free(plan);
    ps_histogram_free(fewer);
    return r;
}

/* Solves the relaxation, with columns from a pool if that is slow. */
static ps_result relax(ps_lp **lp, const ps_lp_instance *s, double sequences,
                       double *work, ps_error *err)
{
    ps_lp_limits limits = {.work = *work * FIRST_PART,
                           .min_yield = MIN_YIELD,
                           .gap = GAP,
                           .max_units = MAX_UNITS_DEEP};
    ps_lp_pool pool;
    ps_result r = ps_lp_open(lp, s, &limits, err);

    if (r != PS_OK)
        return r;
    *work -= ps_lp_work(*lp);
    if (ps_basis_packs(ps_lp_basis(*lp)) - ps_lp_bound(*lp) < POOL_GAP)
        return PS_OK;
    r = open_pool(&pool, s, sequences, *lp, work, err);
    limits.work = *work;
    if (r == PS_OK && *work > 0) {
        *work += ps_lp_work(*lp);
        r = ps_lp_improve(*lp, &limits, &pool, err);
        *work -= ps_lp_work(*lp);
    }
    ps_entries_free(&pool.list);
    free(pool.column);
    if (r != PS_OK) {
        ps_lp_free(*lp);
        *lp = NULL;
    }
    return r;
}

ps_result ps_plan_fit(ps_plan *plan, const ps_histogram *h,
                      const ps_plan_options *o, bool weighted, double *work,
                      ps_fit_rest *rest, ps_error *err)
{
    double sequences = (double)ps_histogram_sequences(h);
    double tokens = (double)ps_histogram_tokens(h);
    uint32_t unit = ps_lp_input_unit(h, o->capacity, MAX_LENGTHS, MAX_UNITS);
    ps_lp_input input;
    ps_lp *lp;
    ps_result r = ps_lp_input_open(&input, h, o->capacity, o->depth, unit,
                                   true, err);

    if (r != PS_OK)
        return r;
    r = relax(&lp, &input.instance, sequences, work, err);
    if (r != PS_OK) {
        ps_lp_input_free(&input);
        return r;
    }

    rest->bound = fmax(tokens / o->capacity, sequences / o->depth);
    if (input.unit == 1)
        rest->bound = fmax(rest->bound, ps_lp_bound(lp));
    for (size_t i = 0; i < ps_histogram_size(h); i++) {
        rest->left[i] = ps_histogram_count(h, i);
        rest->price[i] = ps_lp_prices(lp)[input.place[i]];
    }
    r = round_uses(plan, h, &input, o, weighted, ps_lp_basis(lp), rest->left,
                   err);
    ps_lp_free(lp);
    ps_lp_input_free(&input);
    return r;
}
