/*
 * lu.c - solve with a factored basis, and replace its columns.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lp/lu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of entries per row in the vectors of all updates. */
#define MAX_KEPT 64
#define MIN_PIVOT 1e-9

/* `kept` has space for at least one update, even if both vectors are dense. */
void ps_lu_init(ps_lu *lu, uint32_t n, uint64_t entries, ps_mem *mem)
{
    *lu = (ps_lu){0};
    ps_factors_init(&lu->f, n, entries, mem);
    lu->step = ps_mem_alloc(mem, n, sizeof *lu->step);
    lu->work = ps_mem_alloc(mem, n, sizeof *lu->work);
    ps_entries_init(&lu->kept, (uint64_t)MAX_KEPT * n, mem);
    ps_entries_init(&lu->spike, n, mem);
    ps_entries_init(&lu->unit, n, mem);
}

void ps_lu_destroy(ps_lu *lu)
{
    ps_factors_destroy(&lu->f);
    free(lu->step);
    free(lu->work);
    ps_entries_free(&lu->kept);
    ps_entries_free(&lu->spike);
    ps_entries_free(&lu->unit);
}

ps_lu_result ps_lu_factor(ps_lu *lu, const ps_matrix *b)
{
    ps_lu_result r = ps_factor(&lu->f, b);

    lu->n_updates = 0;
    lu->kept.n = 0;
    for (uint32_t k = 0; r == PS_LU_OK && k < lu->f.n; k++)
        lu->step[lu->f.place[k]] = k;
    return r;
}

bool ps_lu_is_full(const ps_lu *lu)
{
    return lu->n_updates == PS_LU_MAX_UPDATES ||
           lu->kept.n > 2 * (lu->f.l.n + lu->f.u.n + lu->f.n);
}

/* Sets `e` to the nonzero elements of a dense vector. */
static bool gather(ps_entries *e, const double *dense, uint32_t n)
{
    e->n = 0;
    if (!ps_entries_reserve(e, n))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (dense[i] != 0) {
            e->index[e->n] = i;
            e->value[e->n++] = dense[i];
        }
    return true;
}

/* Dot product of entries from to to - 1 with a dense vector. */
static double dot(const ps_entries *e, size_t from, size_t to,
                  const double *dense)
{
    double sum = 0;

    for (size_t k = from; k < to; k++)
        sum += e->value[k] * dense[e->index[k]];
    return sum;
}

/* Subtracts `t` times a range of entries from a dense vector. */
static void subtract(const ps_entries *e, size_t from, size_t to, double t,
                     double *dense)
{
    for (size_t k = from; k < to; k++)
        dense[e->index[k]] -= t * e->value[k];
}

bool ps_lu_solve(ps_lu *lu, double *v, double *x, bool keep)
{
    const ps_factors *f = &lu->f;

    for (uint32_t k = 0; k < f->n; k++)
        if (v[f->row[k]] != 0)
            subtract(&f->l, f->l_start[k], f->l_start[k + 1], v[f->row[k]],
                     v);
    for (size_t k = 0; k < lu->n_updates; k++) {
        const ps_lu_update *t = &lu->updates[k];
        double s = dot(&lu->kept, t->u, t->end, v) / t->scale;

        if (s != 0)
            subtract(&lu->kept, t->d, t->u, s, v);
    }
    if (keep && !gather(&lu->spike, v, f->n))
        return false;
    for (uint32_t k = f->n; k-- > 0;) {
        double s = v[f->row[k]];

        if (s != 0) {
            s /= f->pivot[k];
            subtract(&f->v, f->v_start[k], f->v_start[k + 1], s, v);
        }
        x[f->place[k]] = s;
    }
    return true;
}

bool ps_lu_solve_transposed(ps_lu *lu, double *c, double *y, bool keep)
{
    const ps_factors *f = &lu->f;

    for (uint32_t k = 0; k < f->n; k++) {
        double s = c[f->place[k]];

        if (s != 0) {
            s /= f->pivot[k];
            subtract(&f->u, f->u_start[k], f->u_start[k + 1], s, c);
        }
        y[f->row[k]] = s;
    }
    if (keep && !gather(&lu->unit, y, f->n))
        return false;
    for (size_t k = lu->n_updates; k-- > 0;) {
        const ps_lu_update *t = &lu->updates[k];
        double s = dot(&lu->kept, t->d, t->u, y) / t->scale;

        if (s != 0)
            subtract(&lu->kept, t->u, t->end, s, y);
    }
    for (uint32_t k = f->n; k-- > 0;)
        y[f->row[k]] -= dot(&f->l, f->l_start[k], f->l_start[k + 1], y);
    return true;
}

ps_lu_result ps_lu_replace(ps_lu *lu, uint32_t place)
{
    const ps_factors *f = &lu->f;
    ps_lu_update *t = &lu->updates[lu->n_updates];
    uint32_t k = lu->step[place];
    bool ok;

    if (lu->n_updates == PS_LU_MAX_UPDATES)
        return PS_LU_SINGULAR; /* the caller factors again */

    /* d is the spike minus the column of U that it replaces. */
    for (size_t i = 0; i < lu->spike.n; i++)
        lu->work[lu->spike.index[i]] = lu->spike.value[i];
    subtract(&f->v, f->v_start[k], f->v_start[k + 1], 1, lu->work);
    lu->work[f->row[k]] -= f->pivot[k];
    ok = gather(&lu->spike, lu->work, f->n);
    if (ok)
        t->scale = 1 + dot(&lu->unit, 0, lu->unit.n, lu->work);
    memset(lu->work, 0, f->n * sizeof *lu->work);
    if (!ok)
        return PS_LU_MEMORY;

    if (!ps_entries_reserve(&lu->kept, lu->spike.n + lu->unit.n))
        return lu->kept.full ? PS_LU_SINGULAR : PS_LU_MEMORY;
    if (fabs(t->scale) < MIN_PIVOT)
        return PS_LU_SINGULAR;
    t->d = lu->kept.n;
    (void)ps_entries_append(&lu->kept, &lu->spike, 0, lu->spike.n);
    t->u = lu->kept.n;
    (void)ps_entries_append(&lu->kept, &lu->unit, 0, lu->unit.n);
    t->end = lu->kept.n;
    lu->n_updates++;
    return PS_LU_OK;
}
