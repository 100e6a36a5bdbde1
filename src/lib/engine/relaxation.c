/*
 * relaxation.c - what each length is worth where a demand is to be packed.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/relaxation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "lp/column_gen.h"

#define MAX_ROWS 64 /* of a knapsack; more places count as any number */

void ps_relaxation_init(ps_relaxation *x, uint32_t units, uint32_t depth,
                        ps_mem *mem)
{
    uint64_t n = (uint64_t)units + 1;

    *x = (ps_relaxation){.units = units, .depth = depth};
    x->length = ps_mem_alloc(mem, n, sizeof *x->length);
    x->count = ps_mem_alloc(mem, n, sizeof *x->count);
    x->row = ps_mem_alloc(mem, 2 * n, sizeof *x->row);
}

void ps_relaxation_destroy(ps_relaxation *x)
{
    free(x->length);
    free(x->count);
    free(x->row);
}

uint64_t ps_relaxation_solve_bytes(uint32_t units, uint32_t depth)
{
    return ps_lp_bytes(units, units, depth, units);
}

/* One more of a length, by the room that is left beside it. */
static void add_one(double price, const double *restrict left,
                    double *restrict row, uint32_t rooms)
{
    for (uint32_t c = 0; c < rooms; c++) {
        double sum = price + left[c];

        row[c] = sum > row[c] ? sum : row[c];
    }
}

/*
 * The most that `places` sequences of `n` lengths can be worth in each room:
 * a knapsack.  With many places any number of them.
 */
static const double *fill_knapsack(const ps_relaxation *x,
                                   const double *solved, uint32_t n,
                                   uint32_t places)
{
    size_t size = (size_t)x->units + 1;
    double *row = x->row;

    memset(row, 0, size * sizeof *row);
    if (places > MAX_ROWS) {
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t c = x->length[i]; c <= x->units; c++) {
                double sum = solved[i] + row[c - x->length[i]];

                row[c] = sum > row[c] ? sum : row[c];
            }
        return row;
    }
    for (uint32_t k = 0; k < places; k++) {
        const double *before = row;

        row = before == x->row ? x->row + size : x->row;
        memcpy(row, before, size * sizeof *row);
        for (uint32_t i = 0; i < n; i++)
            add_one(solved[i], before, row + x->length[i],
                    x->units + 1 - x->length[i]);
    }
    return row;
}

/*
 * Lowers the prices of lengths that are not in the demand: none is above what
 * the best lengths of the demand leave of a pack, nor above its part of a
 * pack of its own length.  Returns the additions.
 */
static double lower_unseen(const ps_relaxation *x, const double *solved,
                           uint32_t n, double *price)
{
    const double *beside;
    double min = 0;
    uint32_t i = 0;

    if (n + (x->length[n - 1] < x->units) == x->units)
        return 0; /* all are in the demand, but full ones */
    beside = fill_knapsack(x, solved, n, x->depth - 1);
    for (uint32_t u = 1; u <= x->units; u++) {
        double max = fmin(1 - beside[x->units - u], ps_equal_part(x, u));

        if (i < n && x->length[i] == u)
            min = solved[i++];
        else if (price[u] > max)
            price[u] = max > min ? max : min;
    }
    return (double)x->units * n / 2 *
           (x->depth - 1 > MAX_ROWS ? 1 : x->depth - 1);
}

/* Spreads the prices of `n` lengths; between them they rise evenly. */
static void spread(const ps_relaxation *x, const double *solved, uint32_t n,
                   double *price)
{
    double before = 0;
    uint32_t from = 0;
    uint32_t u = 0;

    for (uint32_t i = 0; i <= n; i++) {
        uint32_t to = i < n ? x->length[i] : x->units;
        double after = i < n ? solved[i] : 1;

        for (; u <= to; u++) {
            double part = to > from ? (double)(u - from) / (to - from) : 1;

            price[u] = before + part * (after - before);
        }
        before = after;
        from = to;
    }
}

ps_result ps_relaxation_solve(ps_relaxation *x, const double *demand,
                              double gap, double *work, double *price,
                              ps_error *err)
{
    ps_lp_instance instance = {.length = x->length,
                               .count = x->count,
                               .capacity = x->units,
                               .depth = x->depth};
    const ps_lp_limits limits = {.work = *work,
                                 .gap = gap,
                                 .max_units = x->units};
    ps_lp *lp;
    ps_result r;

    for (uint32_t u = 1; u <= x->units; u++)
        if (demand[u] > 0) {
            x->length[instance.n] = u;
            x->count[instance.n++] = demand[u];
        }
    r = ps_lp_open(&lp, &instance, &limits, err);
    if (r != PS_OK)
        return r;
    spread(x, ps_lp_prices(lp), instance.n, price);
    *work = ps_lp_work(lp) +
            lower_unseen(x, ps_lp_prices(lp), instance.n, price);
    ps_lp_free(lp);
    return PS_OK;
}
