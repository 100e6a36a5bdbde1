/*
 * nnls.c - strategies by non-negative least squares.
 *
 * The published algorithm (Krell et al. 2021, section 3.1.2) lists every
 * strategy whose lengths fill a pack, takes them as the columns of A, the
 * histogram as b, and finds x >= 0 with the least |w (A x - b)|^2, where the
 * weight w is low for short lengths; it rounds x and repairs what is left.
 * Two things are changed here, for the sake of the result:
 *
 *  - A slot may hold a shorter sequence, so A x may give more slots of one
 *    length for those that a shorter one lacks.  A strategy that does not
 *    fill the pack is one that does, with a longer slot.
 *  - A pack has a price t: the least of 2 t sum(x) + |w r|^2 is sought, r
 *    being the sequences without a slot.  Without a price, a fit that needs
 *    many packs is as good as one that needs few.
 *
 * At the minimum w_i^2 r_i = t p_i: the residual of a length goes with its
 * price p_i, while no column is worth more than a pack and those in use are
 * worth just one.  These are the conditions for an optimum of the linear
 * relaxation, too, when b is reduced by r.  So the relaxation is solved for
 * b, which generates the columns by their prices and never lists them, and
 * its basis then answers for b - r.  That is the minimum as long as no
 * column is used less than zero times; t is 1, or less if this demands it.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan/nnls.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "plan/repack.h"
#include "plan/rounding.h"

/* Beyond these, lengths are rounded up to units. */
#define MAX_LENGTHS 4096
#define MAX_UNITS (UINT32_C(1) << 18)
#define MAX_UNITS_DEEP 2048 /* in the search for columns, from depth 4 on */

/* Less than this is lost by rounding anyway. */
#define GAP 0.25
#define MIN_YIELD 0.25

/* If the relaxation is not solved for a part of the work, and further off, */
#define FIRST_PART 0.3
#define POOL_GAP 1.0
/* columns come from a plan for so many sequences, and for each length: */
#define POOL_SEQUENCES 8192.0
#define POOL_EACH 8.0
#define POOL_WORK 1000.0 /* steps for each of these, */
#define POOL_PART 0.3    /* but no more than this part of the work */

/* Of a pool from so many lengths: a histogram, a plan, and its columns. */
static uint64_t pool_bytes(const ps_plan_size *size, uint32_t n)
{
    double wanted = fmax(POOL_SEQUENCES, POOL_EACH * n) + n;
    uint64_t max = ps_mem_min(size->sequences, (uint64_t)wanted);
    uint64_t columns = ps_mem_sum(
        ps_mem_array(max, sizeof(ps_column)),
        ps_mem_growing(max, 1, sizeof(double) + sizeof(uint32_t)));
    uint64_t made = ps_mem_max(
        ps_plan_repack_bytes(max, n),
        ps_mem_sum(columns, ps_mem_array(max, PS_MERGED_BYTES)));

    return ps_mem_sum(
        ps_histogram_bytes(n),
        ps_mem_sum(ps_plan_bytes(max), made));
}

uint64_t ps_plan_fit_bytes(const ps_plan_size *size)
{
    uint32_t n = size->lengths < MAX_LENGTHS ? size->lengths : MAX_LENGTHS;
    uint32_t units = size->capacity < MAX_UNITS ? size->capacity
                                                 : MAX_UNITS;
    uint64_t bytes = ps_lp_input_bytes(size->lengths);

    bytes = ps_mem_sum(
        bytes, ps_lp_bytes(n, units, size->depth, MAX_UNITS_DEEP));
    bytes = ps_mem_sum(bytes,
                       ps_round_bytes(n, size->lengths, size->depth));
    bytes = ps_mem_sum(bytes, pool_bytes(size, n));
    /* The residuals, what is used less, and what is used. */
    return ps_mem_sum(bytes, ps_mem_array(n, 3 * sizeof(double)));
}

/* The residuals that are best at these prices. */
static void find_residuals(const ps_lp_input *g, const ps_plan_options *o,
                           const double *price, double *residual)
{
    for (uint32_t i = 0; i < g->instance.n; i++) {
        uint64_t length = (uint64_t)g->instance.length[i] * g->unit;
        double w = length <= o->short_length ? o->short_weight : 1;
        double r = price[i] > 0 ? price[i] / (w * w) : 0;

        residual[i] = r < g->instance.count[i] ? r : g->instance.count[i];
    }
}

/*
 * How often each column is used, less what the residuals would have used; or
 * a part of that if it is more than there is.
 */
static void use_less(const ps_basis *b, const double *less, double *used)
{
    double part = 1;

    for (uint32_t j = 0; j < b->n; j++)
        if (less[j] * part > b->used[j])
            part = b->used[j] > 0 ? b->used[j] / less[j] : 0;
    for (uint32_t j = 0; j < b->n; j++)
        used[j] = b->used[j] - part * less[j];
}

static bool find_uses(const ps_lp_input *g, const ps_plan_options *o,
                      ps_basis *basis, double *used)
{
    double *residual = malloc(g->instance.n * sizeof *residual);
    double *less = malloc(g->instance.n * sizeof *less);
    bool ok = residual != NULL && less != NULL;

    if (ok) {
        find_residuals(g, o, basis->price, residual);
        ok = ps_basis_respond(basis, residual, less);
    }
    if (ok)
        use_less(basis, less, used);
    free(residual);
    free(less);
    return ok;
}

/* Rounds what the relaxation, or the fit, says. */
static ps_result round_uses(ps_plan *plan, const ps_histogram *h,
                            const ps_lp_input *g, const ps_plan_options *o,
                            bool weighted, ps_basis *basis, uint64_t *left,
                            ps_error *err)
{
    double *used;
    ps_result r;

    if (!weighted)
        return ps_round(plan, h, g, basis, basis->used, left, err);
    used = malloc(g->instance.n * sizeof *used);
    if (used != NULL && find_uses(g, o, basis, used))
        r = ps_round(plan, h, g, basis, used, left, err);
    else
        r = ps_fail_memory(err);
    free(used);
    return r;
}

/* ---- Columns for a relaxation that is slow ---- */

/* The stock as a histogram, but fewer of each length: one at least. */
static ps_result shrink(ps_histogram **to, const ps_lp_instance *s,
                        double factor,
                        ps_error *err)
{
    ps_result r = ps_histogram_open(to, err);

    for (uint32_t i = 0; r == PS_OK && i < s->n; i++)
        r = ps_histogram_add(*to, s->length[i],
                             (uint64_t)ceil(s->count[i] * factor), err);
    return r;
}

/* The place of a length of the stock. */
static uint32_t find_place(const ps_lp_instance *s, uint32_t length)
{
    uint32_t low = 0;
    uint32_t high = s->n - 1;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (s->length[middle] < length)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A strategy's lengths, ascending, as a column of the pool. */
static bool add_column(ps_lp_pool *pool, const ps_lp_instance *s,
                       const uint32_t *lengths, uint32_t n)
{
    ps_entries *list = &pool->list;
    ps_column *c = &pool->column[pool->n++];

    *c = (ps_column){.first = list->n};
    if (!ps_entries_reserve(list, n))
        return false;
    for (uint32_t k = 0; k < n; k++) {
        if (k > 0 && lengths[k] == lengths[k - 1]) {
            list->value[list->n - 1] += 1;
            continue;
        }
        list->index[list->n] = find_place(s, lengths[k]);
        list->value[list->n++] = 1;
        c->n++;
    }
    return true;
}

/* The strategies of a plan, each once. */
static ps_result fill_pool(ps_lp_pool *pool, const ps_lp_instance *s,
                           ps_plan *plan, ps_error *err)
{
    ps_result r = ps_plan_merge(plan, err);
    size_t n = ps_plan_strategies(plan);

    if (r != PS_OK)
        return r;
    pool->column = calloc(n, sizeof *pool->column);
    if (pool->column == NULL)
        return ps_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        const uint32_t *lengths;
        uint32_t size;

        (void)ps_plan_strategy(plan, i, &lengths, &size);
        if (!add_column(pool, s, lengths, size))
            return ps_fail_memory(err);
    }
    return PS_OK;
}

static void free_pool(ps_lp_pool *pool)
{
    ps_entries_free(&pool->list);
    free(pool->column);
}

/*
 * A plan for a smaller histogram of the same kind, found by trial, has
 * columns that are nearly right for all of it.
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
                            .enough = factor * ps_lp_bound(lp),
                            .work = fmin(POOL_WORK * wanted,
                                         POOL_PART * *work)};
    ps_histogram *fewer = NULL;
    ps_plan *plan = NULL;
    ps_result r = shrink(&fewer, s, factor, err);

    *pool = (ps_lp_pool){0};
    *work -= ro.work;
    if (r == PS_OK)
        r = ps_plan_repack(&plan, fewer, &ro, err);
    if (r == PS_OK && plan != NULL)
        r = fill_pool(pool, s, plan, err);
    *work += ro.work;
    ps_plan_free(plan);
    ps_histogram_free(fewer);
    return r;
}

/* Solves the relaxation; if that is slow, with columns from a pool. */
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
    free_pool(&pool);
    if (r != PS_OK) {
        ps_lp_free(*lp);
        *lp = NULL;
    }
    return r;
}

/* All of the histogram, and what the relaxation says of it. */
static void fill_rest(const ps_histogram *h, const ps_plan_options *o,
                      const ps_lp_input *g, const ps_lp *lp, ps_fit_rest *rest)
{
    double tokens = (double)ps_histogram_tokens(h) / o->capacity;
    double sequences = (double)ps_histogram_sequences(h) / o->depth;

    rest->bound = tokens > sequences ? tokens : sequences;
    if (g->unit == 1 && ps_lp_bound(lp) > rest->bound)
        rest->bound = ps_lp_bound(lp);
    for (size_t i = 0; i < ps_histogram_size(h); i++) {
        rest->left[i] = ps_histogram_count(h, i);
        rest->price[i] = ps_lp_prices(lp)[g->place[i]];
    }
}

ps_result ps_plan_fit(ps_plan *plan, const ps_histogram *h,
                      const ps_plan_options *o, bool weighted, double *work,
                      ps_fit_rest *rest, ps_error *err)
{
    uint32_t unit = ps_lp_input_unit(h, o->capacity, MAX_LENGTHS, MAX_UNITS);
    ps_lp_input lp_input;
    ps_lp *lp;
    ps_result r = ps_lp_input_open(&lp_input, h, o->capacity, o->depth, unit,
                                   true,
                                   err);

    if (r != PS_OK)
        return r;
    r = relax(&lp, &lp_input.instance, (double)ps_histogram_sequences(h), work,
              err);
    if (r == PS_OK) {
        fill_rest(h, o, &lp_input, lp, rest);
        r = round_uses(plan, h, &lp_input, o, weighted, ps_lp_basis(lp),
                       rest->left, err);
        ps_lp_free(lp);
    }
    ps_lp_input_free(&lp_input);
    return r;
}
