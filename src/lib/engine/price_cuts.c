/*
 * price_cuts.c - prices that were the best ones for some demand.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/price_cuts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How many cuts are kept; the first two are there from the start. */
#define MAX_CUTS 18
#define FIRST_CUTS 2

/*
 * Cuts are the same if the packs by which they differ, summed over the
 * counts, are at most this part of the sequences.
 */
#define SAME_CUT 1e-6

/* What errors of rounding may add to a price. */
#define ROUNDING 1e-6

void ps_price_cuts_init(ps_price_cuts *c, uint32_t units, uint32_t depth,
                        ps_mem *mem)
{
    uint64_t numbers = (MAX_CUTS + 1) * ((uint64_t)units + 1);

    *c = (ps_price_cuts){.units = units,
                         .n = FIRST_CUTS,
                         .kernels = ps_kernels_best()};
    c->rows = ps_mem_alloc(mem, numbers, sizeof *c->rows);
    c->used = ps_mem_alloc(mem, MAX_CUTS, sizeof *c->used);
    if (c->rows == NULL)
        return;
    c->new_row = ps_price_cut(c, MAX_CUTS);
    for (uint32_t u = 1; u <= units; u++) {
        ps_price_cut(c, 0)[u] = (double)u / units;
        ps_price_cut(c, 1)[u] = 1.0 / depth;
    }
}

void ps_price_cuts_destroy(ps_price_cuts *c)
{
    free(c->rows);
    free(c->used);
}

double ps_price_cuts_value(const ps_price_cuts *c, const double *demand)
{
    double max = 0;

    for (uint32_t i = 0; i < c->n; i++)
        max = fmax(max, ps_price_value(c, demand, ps_price_cut(c, i)));
    return max;
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
    if (c->n < MAX_CUTS)
        place = c->n++;
    c->used[place] = now;
    memcpy(ps_price_cut(c, place), new, ((size_t)c->units + 1) * sizeof *new);
}

void ps_price_cuts_mean(ps_price_cuts *c, const double *demand, double part,
                        uint64_t now, double *price)
{
    double weight[MAX_CUTS];
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

/* ---- Saved and loaded ---- */

void ps_price_row_save(const double *row, uint32_t units, ps_saver *saver)
{
    for (uint32_t u = 1; u <= units; u++)
        ps_save_double(saver, row[u]);
}

/* Comparisons with NaN are false. */
double ps_price_number_load(ps_restorer *restorer, double max)
{
    double number = ps_load_double(restorer);

    if (number >= 0 && number <= max)
        return number;
    restorer->failed = true;
    return 0;
}

void ps_price_row_load(double *row, const ps_relaxation *relaxation,
                       ps_restorer *restorer)
{
    for (uint32_t u = 1; u <= relaxation->units; u++)
        row[u] = ps_price_number_load(restorer,
                                      ps_equal_part(relaxation, u) + ROUNDING);
}

void ps_price_cuts_save(const ps_price_cuts *c, ps_saver *saver)
{
    ps_save_u32(saver, c->n);
    for (uint32_t i = FIRST_CUTS; i < c->n; i++) {
        ps_save_u64(saver, c->used[i]);
        ps_price_row_save(ps_price_cut(c, i), c->units, saver);
    }
}

void ps_price_cuts_load(ps_price_cuts *c, const ps_relaxation *relaxation,
                        ps_restorer *restorer)
{
    c->n = ps_load_within(restorer, FIRST_CUTS, MAX_CUTS);
    for (uint32_t i = FIRST_CUTS; i < c->n; i++) {
        c->used[i] = ps_load_u64(restorer);
        ps_price_row_load(ps_price_cut(c, i), relaxation, restorer);
    }
}
