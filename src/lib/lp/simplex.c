/*
 * simplex.c - steps of the revised simplex method (Dantzig 1953).
 *
 * SPDX-License-Identifier: MIT
 */

#include "lp/simplex.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem_bound.h"

#define MIN_PIVOT 1e-8 /* a smaller one is taken for an error of rounding */
#define ENTRY_WORK 400.0 /* of factors that have more entries */
#define STEP_WORK 4.0    /* and of a step with those */
#define SPARSE 8.0       /* than so many for each row */
#define TIE 1e-10        /* relative difference of equal ratios */

/*
 * Those of the basis, one for each row that is tried, and slack ones; in
 * between a column may have one entry that it then loses.
 */
static uint64_t max_listed(uint32_t n, uint32_t entries)
{
    return ps_mem_times((uint64_t)2 * n + 1,
                        (uint64_t)entries + 2);
}

uint64_t ps_basis_bytes(uint32_t n, uint32_t entries)
{
    const uint64_t each = sizeof(ps_column) + 6 * sizeof(double) +
                          sizeof(size_t);
    uint64_t listed = ps_entries_bytes(max_listed(n, entries));
    uint64_t matrix = ps_mem_times(n, entries);
    uint64_t bytes = ps_mem_array((uint64_t)n + 1, each);

    bytes = ps_mem_sum(bytes, ps_mem_times(2, listed));
    bytes = ps_mem_sum(bytes, ps_entries_bytes(matrix));
    bytes = ps_mem_sum(bytes, ps_lu_bytes(n, matrix));
    /* While a list grows, what it was is there as well. */
    return ps_mem_sum(
        bytes, ps_mem_array(ps_mem_sum(max_listed(n, entries),
                                       ps_mem_times(100, n)),
                            sizeof(double)));
}

bool ps_basis_open(ps_basis *b, uint32_t n, uint32_t entries)
{
    uint64_t listed = max_listed(n, entries);
    uint64_t matrix = ps_mem_times(n, entries);

    if (listed > SIZE_MAX)
        return false;
    *b = (ps_basis){.n = n, .matrix.n = n};
    b->list.max = b->spare.max = (size_t)listed;
    b->matrix.entries.max = (size_t)matrix;
    b->column = calloc(n, sizeof *b->column);
    b->demand = calloc(n, sizeof *b->demand);
    b->price = calloc(n, sizeof *b->price);
    b->used = calloc(n, sizeof *b->used);
    b->change = calloc(n, sizeof *b->change);
    b->row = calloc(n, sizeof *b->row);
    b->work = calloc(n, sizeof *b->work);
    b->matrix.start = calloc((size_t)n + 1, sizeof *b->matrix.start);
    b->lu = ps_lu_open(n);
    if (b->lu != NULL)
        ps_lu_limit(b->lu, (size_t)matrix);
    return b->column != NULL && b->demand != NULL && b->price != NULL &&
           b->used != NULL && b->change != NULL && b->row != NULL &&
           b->work != NULL && b->matrix.start != NULL && b->lu != NULL;
}

void ps_basis_free(ps_basis *b)
{
    ps_entries_free(&b->list);
    ps_entries_free(&b->spare);
    ps_entries_free(&b->matrix.entries);
    free(b->matrix.start);
    free(b->column);
    free(b->demand);
    free(b->price);
    free(b->used);
    free(b->change);
    free(b->row);
    free(b->work);
    ps_lu_free(b->lu);
}

/* Copies a column to the end of another list. */
static bool copy(const ps_entries *from, const ps_column *c, ps_entries *to)
{
    if (!ps_entries_reserve(to, c->n))
        return false;
    memcpy(to->index + to->n, from->index + c->first,
           c->n * sizeof *to->index);
    memcpy(to->value + to->n, from->value + c->first,
           c->n * sizeof *to->value);
    to->n += c->n;
    return true;
}

bool ps_basis_respond(ps_basis *b, const double *demand, double *used)
{
    memcpy(b->work, demand, b->n * sizeof *b->work);
    return ps_lu_solve(b->lu, b->work, used, false);
}

static bool find_prices(ps_basis *b)
{
    for (uint32_t j = 0; j < b->n; j++)
        b->work[j] = b->column[j].slack ? 0 : 1;
    return ps_lu_solve_transposed(b->lu, b->work, b->price, false);
}

/* What the factors have more than sparse ones. */
static double dense_entries(const ps_basis *b)
{
    return fmax(0, (double)ps_lu_entries(b->lu) - SPARSE * b->n);
}

ps_lu_result ps_basis_factor(ps_basis *b)
{
    ps_lu_result r;

    b->matrix.entries.n = 0;
    for (uint32_t j = 0; j < b->n; j++) {
        b->matrix.start[j] = b->matrix.entries.n;
        if (!copy(&b->list, &b->column[j], &b->matrix.entries))
            return PS_LU_MEMORY;
    }
    b->matrix.start[b->n] = b->matrix.entries.n;
    r = ps_lu_factor(b->lu, &b->matrix);
    if (r != PS_LU_OK)
        return r;
    if (!ps_basis_respond(b, b->demand, b->used) || !find_prices(b))
        return PS_LU_MEMORY;
    b->factor_work += ENTRY_WORK * dense_entries(b);
    return PS_LU_OK;
}

bool ps_basis_tidy(ps_basis *b)
{
    ps_entries old;

    b->spare.n = 0;
    for (uint32_t j = 0; j < b->n; j++) {
        size_t first = b->spare.n;

        if (!copy(&b->list, &b->column[j], &b->spare))
            return false;
        b->column[j].first = first;
    }
    old = b->list;
    b->list = b->spare;
    b->spare = old;
    return true;
}

double ps_basis_gain(const ps_basis *b, const ps_column *c)
{
    double gain = c->slack ? 0 : -1;

    for (size_t k = c->first; k < c->first + c->n; k++)
        gain += b->list.value[k] * b->price[b->list.index[k]];
    return gain;
}

double ps_basis_packs(const ps_basis *b)
{
    double packs = 0;

    for (uint32_t j = 0; j < b->n; j++)
        packs += b->column[j].slack ? 0 : b->used[j];
    return packs;
}

/*
 * The column of the basis that is used up first as another comes in; of
 * equal ones that with the greatest pivot.  n if there is none.
 */
static uint32_t find_leaving(const ps_basis *b, double *times)
{
    uint32_t leaving = b->n;

    *times = HUGE_VAL;
    for (uint32_t j = 0; j < b->n; j++) {
        double t;

        if (b->change[j] <= MIN_PIVOT)
            continue;
        t = b->used[j] > 0 ? b->used[j] / b->change[j] : 0;
        if (t < *times * (1 - TIE) ||
            (t <= *times && b->change[j] > b->change[leaving])) {
            *times = t;
            leaving = j;
        }
    }
    return leaving;
}

/* How the use of the basis changes when the column is used once. */
static bool find_change(ps_basis *b, const ps_column *c)
{
    memset(b->work, 0, b->n * sizeof *b->work);
    for (size_t k = c->first; k < c->first + c->n; k++)
        b->work[b->list.index[k]] = b->list.value[k];
    return ps_lu_solve(b->lu, b->work, b->change, true);
}

static bool find_row(ps_basis *b, uint32_t leaving)
{
    memset(b->work, 0, b->n * sizeof *b->work);
    b->work[leaving] = 1;
    return ps_lu_solve_transposed(b->lu, b->work, b->row, true);
}

ps_lu_result ps_basis_enter(ps_basis *b, const ps_column *column,
                            double gain)
{
    ps_lu_result r;
    uint32_t leaving;
    double times, rise;

    if (!find_change(b, column))
        return PS_LU_MEMORY;
    leaving = find_leaving(b, &times);
    if (leaving == b->n)
        return PS_LU_SINGULAR;
    if (!find_row(b, leaving))
        return PS_LU_MEMORY;
    rise = gain / b->change[leaving];
    for (uint32_t i = 0; i < b->n; i++) {
        b->price[i] -= rise * b->row[i];
        b->used[i] -= times * b->change[i];
    }
    b->used[leaving] = times;
    b->column[leaving] = *column;
    b->steps++;
    b->factor_work += STEP_WORK * dense_entries(b);
    r = ps_lu_replace(b->lu, leaving);
    if (r == PS_LU_SINGULAR || (r == PS_LU_OK && ps_lu_is_full(b->lu)))
        r = ps_basis_factor(b);
    return r;
}
