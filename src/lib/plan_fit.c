/*
 * plan_fit.c - strategies by non-negative least squares.
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

#include "plan_fit.h"

#include <stdlib.h>

#include "amount.h"
#include "error.h"
#include "plan_round.h"

/* Beyond these, lengths are rounded up to units. */
#define MOST_LENGTHS 4096
#define MOST_UNITS (UINT32_C(1) << 18)
#define MOST_UNITS_DEEP 2048 /* in the search for columns, from depth 4 on */

/* Less than this is lost by rounding anyway. */
#define GAP 0.25
#define LEAST_YIELD 0.25

uint64_t ps_plan_fit_bytes(const ps_plan_size *size)
{
    uint32_t n = size->lengths < MOST_LENGTHS ? size->lengths : MOST_LENGTHS;
    uint32_t units = size->capacity < MOST_UNITS ? size->capacity
                                                 : MOST_UNITS;
    uint64_t bytes = ps_goods_bytes(size->lengths);

    bytes = ps_amount_sum(
        bytes, ps_lp_bytes(n, units, size->depth, MOST_UNITS_DEEP));
    bytes = ps_amount_sum(bytes,
                          ps_round_bytes(n, size->lengths, size->depth));
    /* The residuals, what is used less, and what is used. */
    return ps_amount_sum(bytes, ps_amount_array(n, 3 * sizeof(double)));
}

/* The residuals that are best at these prices. */
static void find_residuals(const ps_goods *g, const ps_plan_options *o,
                           const double *price, double *residual)
{
    for (uint32_t i = 0; i < g->stock.n; i++) {
        uint64_t length = (uint64_t)g->stock.length[i] * g->unit;
        double w = length <= o->short_length ? o->short_weight : 1;
        double r = price[i] > 0 ? price[i] / (w * w) : 0;

        residual[i] = r < g->stock.count[i] ? r : g->stock.count[i];
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

static bool find_uses(const ps_goods *g, const ps_plan_options *o,
                      ps_basis *basis, double *used)
{
    double *residual = malloc(g->stock.n * sizeof *residual);
    double *less = malloc(g->stock.n * sizeof *less);
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
                            const ps_goods *g, const ps_plan_options *o,
                            bool weighted, ps_basis *basis, uint64_t *left,
                            ps_error *err)
{
    double *used;
    ps_result r;

    if (!weighted)
        return ps_round(plan, h, g, basis, basis->used, left, err);
    used = malloc(g->stock.n * sizeof *used);
    if (used != NULL && find_uses(g, o, basis, used))
        r = ps_round(plan, h, g, basis, used, left, err);
    else
        r = ps_fail_memory(err);
    free(used);
    return r;
}

/* All of the histogram, and what the relaxation says of it. */
static void fill_rest(const ps_histogram *h, const ps_plan_options *o,
                      const ps_goods *g, const ps_lp *lp, ps_fit_rest *rest)
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
    uint32_t unit = ps_goods_unit(h, o->capacity, MOST_LENGTHS, MOST_UNITS);
    ps_lp_limits limits = {.work = *work,
                           .least_yield = LEAST_YIELD,
                           .gap = GAP,
                           .most_units = MOST_UNITS_DEEP};
    ps_goods goods;
    ps_lp *lp;
    ps_result r = ps_goods_open(&goods, h, o->capacity, o->depth, unit, true,
                                err);

    if (r != PS_OK)
        return r;
    r = ps_lp_open(&lp, &goods.stock, &limits, err);
    if (r == PS_OK) {
        *work -= ps_lp_work(lp);
        fill_rest(h, o, &goods, lp, rest);
        r = round_uses(plan, h, &goods, o, weighted, ps_lp_basis(lp),
                       rest->left, err);
        ps_lp_free(lp);
    }
    ps_goods_free(&goods);
    return r;
}
