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
#include "base/mem_bound.h"
#include "lp/column_gen.h"

#define MAX_ROWS 64 /* of a knapsack; more places count as any number */

static uint64_t row_bytes(uint32_t units)
{
    return ps_mem_array((uint64_t)units + 1, sizeof(double));
}

uint64_t ps_relaxation_bytes(uint32_t units)
{
    uint64_t bytes = ps_mem_times(3, row_bytes(units));

    return ps_mem_sum(bytes, ps_mem_array((uint64_t)units + 1,
                                          sizeof(uint32_t)));
}

uint64_t ps_relaxation_solve_bytes(uint32_t units, uint32_t depth)
{
    return ps_lp_bytes(units, units, depth, units);
}

bool ps_relaxation_open(ps_relaxation *x, uint32_t units, uint32_t depth)
{
    size_t n = (size_t)units + 1;

    *x = (ps_relaxation){.units = units, .depth = depth};
    x->length = calloc(n, sizeof *x->length);
    x->count = calloc(n, sizeof *x->count);
    x->row = calloc(2 * n, sizeof *x->row);
    return x->length != NULL && x->count != NULL && x->row != NULL;
}

void ps_relaxation_close(ps_relaxation *x)
{
    free(x->length);
    free(x->count);
    free(x->row);
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

/* And as many more as fit. */
static void add_any(double price, uint32_t length, double *row,
                    uint32_t units)
{
    for (uint32_t c = length; c <= units; c++) {
        double sum = price + row[c - length];

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
            add_any(solved[i], x->length[i], row, x->units);
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
 * Lowers the prices of lengths that nobody asks for to what the best company
 * leaves of a pack, or others of the length do.  Returns the additions.
 */
static double lower_unseen(const ps_relaxation *x, const double *solved,
                           uint32_t n, double *price)
{
    const double *company;
    double min = 0;
    uint32_t i = 0;

    if (n + (x->length[n - 1] < x->units) == x->units)
        return 0; /* all are asked for, but full ones */
    company = fill_knapsack(x, solved, n, x->depth - 1);
    for (uint32_t u = 1; u <= x->units; u++) {
        double max = fmin(1 - company[x->units - u], ps_equal_part(x, u));

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
