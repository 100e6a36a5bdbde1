/*
 * simplex.c - steps of the revised simplex method (Dantzig 1953).
 *
 * SPDX-License-Identifier: MIT
 */

#include "lp/simplex.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIN_PIVOT 1e-8 /* smaller pivots count as rounding errors */
#define ENTRY_WORK 400.0 /* additions per excess entry, to factor */
#define STEP_WORK 4.0    /* and per step */
#define SPARSE 8.0       /* entries per row that are not excess */
#define TIE 1e-10        /* relative difference of equal ratios */

void ps_basis_init(ps_basis *b, uint32_t n, uint32_t entries, ps_mem *mem)
{
    /*
     * The list contains the columns of the basis, as many candidates, and
     * slacks.  A column can temporarily have one entry more.
     */
    uint64_t listed = ps_mem_times((uint64_t)2 * n + 1, (uint64_t)entries + 2);
    uint64_t in_basis = ps_mem_times(n, entries);
    uint64_t moving = ps_mem_sum(listed, ps_mem_times(100, n));

    *b = (ps_basis){.n = n, .matrix.n = n};
    b->column = ps_mem_alloc(mem, n, sizeof *b->column);
    b->demand = ps_mem_alloc(mem, n, sizeof *b->demand);
    b->price = ps_mem_alloc(mem, n, sizeof *b->price);
    b->used = ps_mem_alloc(mem, n, sizeof *b->used);
    b->change = ps_mem_alloc(mem, n, sizeof *b->change);
    b->row = ps_mem_alloc(mem, n, sizeof *b->row);
    b->work = ps_mem_alloc(mem, n, sizeof *b->work);
    b->matrix.start = ps_mem_alloc(mem, (uint64_t)n + 1,
                                   sizeof *b->matrix.start);
    ps_entries_init(&b->matrix.entries, in_basis, mem);
    ps_entries_init(&b->list, listed, mem);
    ps_entries_init(&b->spare, listed, mem);
    ps_lu_init(&b->lu, n, in_basis, mem);
    /* While a list grows, the old one still exists. */
    mem->bytes = ps_mem_sum(mem->bytes, ps_mem_array(moving, sizeof(double)));
}

void ps_basis_destroy(ps_basis *b)
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
    ps_lu_destroy(&b->lu);
}

bool ps_basis_respond(ps_basis *b, const double *demand, double *used)
{
    memcpy(b->work, demand, b->n * sizeof *b->work);
    return ps_lu_solve(&b->lu, b->work, used, false);
}

/* Number of entries in the factors beyond SPARSE per row. */
static double dense_entries(const ps_basis *b)
{
    return fmax(0, (double)(b->lu.f.l.n + b->lu.f.u.n) - SPARSE * b->n);
}

ps_lu_result ps_basis_factor(ps_basis *b)
{
    ps_entries *e = &b->matrix.entries;
    ps_lu_result r;

    e->n = 0;
    for (uint32_t j = 0; j < b->n; j++) {
        b->matrix.start[j] = e->n;
        if (!ps_entries_append(e, &b->list, b->column[j].first,
                               b->column[j].n))
            return PS_LU_MEMORY;
    }
    b->matrix.start[b->n] = e->n;
    r = ps_lu_factor(&b->lu, &b->matrix);
    if (r != PS_LU_OK)
        return r;

    if (!ps_basis_respond(b, b->demand, b->used))
        return PS_LU_MEMORY;
    for (uint32_t j = 0; j < b->n; j++)
        b->work[j] = b->column[j].slack ? 0 : 1;
    if (!ps_lu_solve_transposed(&b->lu, b->work, b->price, false))
        return PS_LU_MEMORY;
    b->factor_work += ENTRY_WORK * dense_entries(b);
    return PS_LU_OK;
}

bool ps_basis_tidy(ps_basis *b)
{
    ps_entries old = b->list;
    ps_entries *to = &b->spare;

    to->n = 0;
    if (!ps_entries_reserve(to, old.n))
        return false;
    for (uint32_t j = 0; j < b->n; j++) {
        ps_column *c = &b->column[j];
        size_t from = c->first;

        c->first = to->n;
        for (uint32_t k = 0; k < c->n; k++) {
            to->index[to->n] = old.index[from + k];
            to->value[to->n++] = old.value[from + k];
        }
    }
    b->list = b->spare;
    b->spare = old;
    return true;
}

double ps_basis_gain(const ps_basis *b, const ps_entries *list,
                     const ps_column *c)
{
    double gain = c->slack ? 0 : -1;

    for (size_t k = c->first; k < c->first + c->n; k++)
        gain += list->value[k] * b->price[list->index[k]];
    return gain;
}

double ps_basis_packs(const ps_basis *b)
{
    double packs = 0;

    for (uint32_t j = 0; j < b->n; j++)
        packs += b->column[j].slack ? 0 : b->used[j];
    return packs;
}

ps_lu_result ps_basis_enter(ps_basis *b, const ps_column *column,
                            double gain)
{
    ps_lu_result r;
    uint32_t leaving = b->n;
    double times = HUGE_VAL;
    double rise;

    /* Change in `used` for each use of the entering column. */
    memset(b->work, 0, b->n * sizeof *b->work);
    for (size_t k = column->first; k < column->first + column->n; k++)
        b->work[b->list.index[k]] = b->list.value[k];
    if (!ps_lu_solve(&b->lu, b->work, b->change, true))
        return PS_LU_MEMORY;

    /*
     * Ratio test: the column that reaches zero first leaves.  Among ties choose
     * the greatest pivot.
     */
    for (uint32_t j = 0; j < b->n; j++) {
        double t;

        if (b->change[j] <= MIN_PIVOT)
            continue;
        t = b->used[j] > 0 ? b->used[j] / b->change[j] : 0;
        if (t < times * (1 - TIE) ||
            (t <= times && b->change[j] > b->change[leaving])) {
            times = t;
            leaving = j;
        }
    }
    if (leaving == b->n)
        return PS_LU_SINGULAR;

    /* Change of the prices: a row of the inverse. */
    memset(b->work, 0, b->n * sizeof *b->work);
    b->work[leaving] = 1;
    if (!ps_lu_solve_transposed(&b->lu, b->work, b->row, true))
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
    r = ps_lu_replace(&b->lu, leaving);
    if (r == PS_LU_SINGULAR || (r == PS_LU_OK && ps_lu_is_full(&b->lu)))
        r = ps_basis_factor(b);
    return r;
}
