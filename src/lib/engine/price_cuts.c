/*
 * price_cuts.c - dual prices that were optimal for some demand.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/price_cuts.h"
#include "engine/tuning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lp/column_gen.h"

/* Cuts that exist from the start. */
#define FIRST_CUTS 2

/*
 * Two cuts are the same if their values differ by at most this fraction of the
 * number of sequences, summed over all lengths.
 */
#define SAME_CUT 1e-6

/* Bound on the rounding error of a price. */
#define ROUNDING 1e-6

#define MAX_ROWS 64 /* of a knapsack; a larger depth counts as unlimited */

void ps_price_cuts_init(ps_price_cuts *c, uint32_t max_units, ps_mem *mem)
{
    uint64_t n = (uint64_t)max_units + 1;

    *c = (ps_price_cuts){.max_units = max_units,
                         .kernels = ps_kernels_best()};
    c->rows = ps_mem_alloc(mem, (TUNE_CUTS + 1) * n, sizeof *c->rows);
    c->used = ps_mem_alloc(mem, TUNE_CUTS, sizeof *c->used);
    c->length = ps_mem_alloc(mem, n, sizeof *c->length);
    c->count = ps_mem_alloc(mem, n, sizeof *c->count);
    c->knapsack = ps_mem_alloc(mem, 2 * n, sizeof *c->knapsack);
}

void ps_price_cuts_reset(ps_price_cuts *c, uint32_t units, uint32_t depth)
{
    c->units = units;
    c->depth = depth;
    c->n = FIRST_CUTS;
    c->new_row = ps_price_cut(c, TUNE_CUTS);
    for (uint32_t u = 1; u <= units; u++) {
        ps_price_cut(c, 0)[u] = (double)u / units;
        ps_price_cut(c, 1)[u] = 1.0 / depth;
    }
}

void ps_price_cuts_destroy(ps_price_cuts *c)
{
    free(c->rows);
    free(c->used);
    free(c->length);
    free(c->count);
    free(c->knapsack);
}

/* ---- Solving ---- */

/* Price of a length such that a pack of only this length is worth 1. */
static double equal_part(const ps_price_cuts *c, uint32_t u)
{
    uint32_t fit = c->units / u;

    return 1.0 / (fit < c->depth ? fit : c->depth);
}

/* Adds one more sequence of a length, for each remaining capacity. */
static void add_one(double price, const double *restrict left,
                    double *restrict row, uint32_t rooms)
{
    for (uint32_t r = 0; r < rooms; r++) {
        double sum = price + left[r];

        row[r] = sum > row[r] ? sum : row[r];
    }
}

/*
 * Maximum value of up to `places` sequences of the `n` lengths for each
 * capacity: a knapsack.  Many places count as unlimited.
 */
static const double *fill_knapsack(const ps_price_cuts *c,
                                   const double *solved, uint32_t n,
                                   uint32_t places)
{
    size_t size = (size_t)c->units + 1;
    double *row = c->knapsack;

    memset(row, 0, size * sizeof *row);
    if (places > MAX_ROWS) {
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t r = c->length[i]; r <= c->units; r++) {
                double sum = solved[i] + row[r - c->length[i]];

                row[r] = sum > row[r] ? sum : row[r];
            }
        return row;
    }
    for (uint32_t k = 0; k < places; k++) {
        const double *before = row;

        row = before == c->knapsack ? c->knapsack + size : c->knapsack;
        memcpy(row, before, size * sizeof *row);
        for (uint32_t i = 0; i < n; i++)
            add_one(solved[i], before, row + c->length[i],
                    c->units + 1 - c->length[i]);
    }
    return row;
}

/*
 * Lowers the price of each length that is not in the demand so that a pack is
 * worth at most 1 if the length is combined with lengths in the demand, or if
 * it is the only length.  Returns the additions done.
 */
static double lower_unseen(const ps_price_cuts *c, const double *solved,
                           uint32_t n, double *price)
{
    const double *beside;
    double min = 0;
    uint32_t i = 0;

    if (n + (c->length[n - 1] < c->units) == c->units)
        return 0; /* all lengths below the capacity are in the demand */
    beside = fill_knapsack(c, solved, n, c->depth - 1);
    for (uint32_t u = 1; u <= c->units; u++) {
        double max = fmin(1 - beside[c->units - u], equal_part(c, u));

        if (i < n && c->length[i] == u)
            min = solved[i++];
        else if (price[u] > max)
            price[u] = max > min ? max : min;
    }
    return (double)c->units * n / 2 *
           (c->depth - 1 > MAX_ROWS ? 1 : c->depth - 1);
}

ps_result ps_price_cuts_solve(ps_price_cuts *c, const double *demand,
                              double gap, double *work, ps_error *err)
{
    ps_lp_instance instance = {.length = c->length,
                               .count = c->count,
                               .capacity = c->units,
                               .depth = c->depth};
    const ps_lp_limits limits = {.work = *work,
                                 .gap = gap,
                                 .max_units = c->units};
    double before = 0;
    uint32_t from = 0;
    uint32_t u;
    const double *solved;
    ps_lp *lp;
    ps_result r;

    for (u = 1; u <= c->units; u++)
        if (demand[u] > 0) {
            c->length[instance.n] = u;
            c->count[instance.n++] = demand[u];
        }
    r = ps_lp_open(&lp, &instance, &limits, err);
    if (r != PS_OK)
        return r;

    /* Interpolate the prices between the lengths in the demand. */
    solved = ps_lp_prices(lp);
    u = 0;
    for (uint32_t i = 0; i <= instance.n; i++) {
        uint32_t to = i < instance.n ? c->length[i] : c->units;
        double after = i < instance.n ? solved[i] : 1;

        for (; u <= to; u++) {
            double part = to > from ? (double)(u - from) / (to - from) : 1;

            c->new_row[u] = before + part * (after - before);
        }
        before = after;
        from = to;
    }
    *work = ps_lp_work(lp) +
            lower_unseen(c, solved, instance.n, c->new_row);
    ps_lp_free(lp);
    return PS_OK;
}

/* ---- The cuts ---- */

uint32_t ps_price_cuts_best(const ps_price_cuts *c, const double *demand)
{
    uint32_t best = 0;
    double max = 0;

    for (uint32_t i = 0; i < c->n; i++) {
        double value = ps_price_value(c, demand, ps_price_cut(c, i));

        if (value > max) {
            max = value;
            best = i;
        }
    }
    return best;
}

double ps_price_cuts_value(const ps_price_cuts *c, const double *demand)
{
    return ps_price_value(
        c, demand, ps_price_cut(c, ps_price_cuts_best(c, demand)));
}

void ps_price_cuts_keep(ps_price_cuts *c, const double *count, double total,
                        uint64_t now)
{
    const double *new = c->new_row;
    uint32_t place = FIRST_CUTS;

    for (uint32_t i = 0; i < c->n; i++) {
        const double *old = ps_price_cut(c, i);
        double off = 0;

        for (uint32_t u = 1; u <= c->units; u++)
            off += count[u] * fabs(new[u] - old[u]);
        if (off <= SAME_CUT * total)
            return;
        if (i > FIRST_CUTS && c->used[i] < c->used[place])
            place = i;
    }
    if (c->n < TUNE_CUTS)
        place = c->n++;
    c->used[place] = now;
    memcpy(ps_price_cut(c, place), new, ((size_t)c->units + 1) * sizeof *new);
}

void ps_price_cuts_mean(ps_price_cuts *c, const double *demand, double part,
                        uint64_t now, double *price)
{
    double weight[TUNE_CUTS];
    double max = 0;
    double sum = 0;

    for (uint32_t i = 0; i < c->n; i++) {
        weight[i] = ps_price_value(c, demand, ps_price_cut(c, i));
        max = fmax(max, weight[i]);
    }
    for (uint32_t i = 0; i < c->n; i++) {
        weight[i] = fmax(weight[i] - max * (1 - part), 0);
        sum += weight[i];
    }
    memset(price, 0, ((size_t)c->units + 1) * sizeof *price);
    for (uint32_t i = 0; i < c->n; i++) {
        if (weight[i] <= 0)
            continue;
        c->used[i] = now;
        c->kernels->add_times(weight[i] / sum, ps_price_cut(c, i) + 1,
                              price + 1, c->units);
    }
}

/* ---- Saving and loading ---- */

void ps_price_row_save(const ps_price_cuts *c, const double *row,
                       ps_saver *saver)
{
    for (uint32_t u = 1; u <= c->units; u++)
        ps_save_double(saver, row[u]);
}

/* Sets restorer->failed unless 0 <= number <= max, which excludes NaN. */
double ps_price_number_load(ps_restorer *restorer, double max)
{
    double number = ps_load_double(restorer);

    if (number >= 0 && number <= max)
        return number;
    restorer->failed = true;
    return 0;
}

void ps_price_row_load(const ps_price_cuts *c, double *row,
                       ps_restorer *restorer)
{
    for (uint32_t u = 1; u <= c->units; u++)
        row[u] = ps_price_number_load(restorer, equal_part(c, u) + ROUNDING);
}

void ps_price_cuts_save(const ps_price_cuts *c, ps_saver *saver)
{
    ps_save_u32(saver, c->n);
    for (uint32_t i = FIRST_CUTS; i < c->n; i++) {
        ps_save_u64(saver, c->used[i]);
        ps_price_row_save(c, ps_price_cut(c, i), saver);
    }
}

void ps_price_cuts_load(ps_price_cuts *c, ps_restorer *restorer)
{
    c->n = ps_load_within(restorer, FIRST_CUTS, TUNE_CUTS);
    for (uint32_t i = FIRST_CUTS; i < c->n; i++) {
        c->used[i] = ps_load_u64(restorer);
        ps_price_row_load(c, ps_price_cut(c, i), restorer);
    }
}
