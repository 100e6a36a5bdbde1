/*
 * lu.c - solving with a factored basis and replacing its columns.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lp/lu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem_bound.h"

#define MAX_UPDATES 100

/* Entries for each row that factors may have besides those of the matrix. */
#define MAX_FILL 32

/* And that the vectors of all updates may have. */
#define MAX_KEPT 64
#define MIN_PIVOT 1e-9

/*
 * T = I + d u', the identity and a product of two vectors by rows; `scale`
 * is 1 + u'd.  Both vectors lie in one list, d first.
 */
typedef struct update {
    size_t d;
    size_t u;
    size_t end;
    double scale;
} update;

struct ps_lu {
    ps_factors f;
    uint32_t *step;  /* of each place */
    double *work;    /* by rows, zero between calls */
    ps_entries kept; /* the vectors of the updates */
    update updates[MAX_UPDATES];
    size_t n_updates;
    ps_entries spike; /* L^-1 a, of the column to come */
    ps_entries unit;  /* U'^-1 e, of the place to go */
};

bool ps_factors_open(ps_factors *f, uint32_t n)
{
    *f = (ps_factors){.n = n};
    f->row = calloc(n, sizeof *f->row);
    f->place = calloc(n, sizeof *f->place);
    f->pivot = calloc(n, sizeof *f->pivot);
    f->l_start = calloc((size_t)n + 1, sizeof *f->l_start);
    f->u_start = calloc((size_t)n + 1, sizeof *f->u_start);
    f->v_start = calloc((size_t)n + 1, sizeof *f->v_start);
    f->rest = ps_elimination_open(n);
    return f->row != NULL && f->place != NULL && f->pivot != NULL &&
           f->l_start != NULL && f->u_start != NULL && f->v_start != NULL &&
           f->rest != NULL;
}

void ps_factors_free(ps_factors *f)
{
    free(f->row);
    free(f->place);
    free(f->pivot);
    free(f->l_start);
    free(f->u_start);
    free(f->v_start);
    ps_entries_free(&f->l);
    ps_entries_free(&f->u);
    ps_entries_free(&f->v);
    ps_elimination_free(f->rest);
}

ps_lu *ps_lu_open(uint32_t n)
{
    ps_lu *lu = calloc(1, sizeof *lu);

    if (lu == NULL)
        return NULL;
    lu->step = calloc(n, sizeof *lu->step);
    lu->work = calloc(n, sizeof *lu->work);
    if (ps_factors_open(&lu->f, n) && lu->step != NULL && lu->work != NULL)
        return lu;
    ps_lu_free(lu);
    return NULL;
}

void ps_lu_free(ps_lu *lu)
{
    if (lu == NULL)
        return;
    ps_factors_free(&lu->f);
    free(lu->step);
    free(lu->work);
    ps_entries_free(&lu->kept);
    ps_entries_free(&lu->spike);
    ps_entries_free(&lu->unit);
    free(lu);
}

static uint64_t max_factors(uint32_t n, uint64_t entries)
{
    return ps_mem_sum(entries, (uint64_t)MAX_FILL * n);
}

/* At least those of one update, of which both vectors may be dense. */
static uint64_t max_kept(uint32_t n)
{
    return (uint64_t)MAX_KEPT * n;
}

void ps_lu_limit(ps_lu *lu, size_t entries)
{
    lu->f.l.max = (size_t)max_factors(lu->f.n, entries);
    lu->f.u.max = lu->f.v.max = lu->f.l.max;
    lu->kept.max = (size_t)max_kept(lu->f.n);
    lu->spike.max = lu->unit.max = lu->f.n;
    ps_elimination_limit(lu->f.rest, entries);
}

uint64_t ps_lu_bytes(uint32_t n, uint64_t entries)
{
    const uint64_t each = sizeof(uint32_t) + sizeof(double) +
                          2 * sizeof(uint32_t) + sizeof(double) +
                          3 * sizeof(size_t);
    uint64_t bytes = ps_mem_array((uint64_t)n + 1, each);

    bytes = ps_mem_sum(bytes, sizeof(ps_lu));
    bytes = ps_mem_sum(
        bytes, ps_mem_times(
                   3, ps_entries_bytes(max_factors(n, entries))));
    bytes = ps_mem_sum(bytes, ps_entries_bytes(max_kept(n)));
    bytes = ps_mem_sum(bytes, ps_mem_times(2, ps_entries_bytes(n)));
    return ps_mem_sum(bytes, ps_elimination_bytes(n, entries));
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

size_t ps_lu_entries(const ps_lu *lu)
{
    return lu->f.l.n + lu->f.u.n;
}

size_t ps_lu_updates(const ps_lu *lu)
{
    return lu->n_updates;
}

bool ps_lu_is_full(const ps_lu *lu)
{
    return lu->n_updates == MAX_UPDATES ||
           lu->kept.n > 2 * (lu->f.l.n + lu->f.u.n + lu->f.n);
}

/* Sets `e` to what is not zero in the dense vector. */
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

/* The product of the entries from `from` up to `to` and a dense vector. */
static double dot(const ps_entries *e, size_t from, size_t to,
                  const double *dense)
{
    double sum = 0;

    for (size_t k = from; k < to; k++)
        sum += e->value[k] * dense[e->index[k]];
    return sum;
}

/* Subtracts them, `t` times, from it. */
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
        const update *t = &lu->updates[k];
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
        const update *t = &lu->updates[k];
        double s = dot(&lu->kept, t->d, t->u, y) / t->scale;

        if (s != 0)
            subtract(&lu->kept, t->u, t->end, s, y);
    }
    for (uint32_t k = f->n; k-- > 0;)
        y[f->row[k]] -= dot(&f->l, f->l_start[k], f->l_start[k + 1], y);
    return true;
}

static void append(ps_entries *to, const ps_entries *from)
{
    memcpy(to->index + to->n, from->index, from->n * sizeof *to->index);
    memcpy(to->value + to->n, from->value, from->n * sizeof *to->value);
    to->n += from->n;
}

/* Turns the spike into d: less the column of U that it replaces. */
static bool subtract_column(ps_lu *lu, uint32_t place)
{
    const ps_factors *f = &lu->f;
    uint32_t k = lu->step[place];
    bool ok;

    for (size_t i = 0; i < lu->spike.n; i++)
        lu->work[lu->spike.index[i]] = lu->spike.value[i];
    subtract(&f->v, f->v_start[k], f->v_start[k + 1], 1, lu->work);
    lu->work[f->row[k]] -= f->pivot[k];
    ok = gather(&lu->spike, lu->work, f->n);
    memset(lu->work, 0, f->n * sizeof *lu->work);
    return ok;
}

ps_lu_result ps_lu_replace(ps_lu *lu, uint32_t place)
{
    update *t = &lu->updates[lu->n_updates];

    if (lu->n_updates == MAX_UPDATES)
        return PS_LU_SINGULAR; /* as good as: to be factored anew */
    if (!subtract_column(lu, place))
        return PS_LU_MEMORY;
    if (!ps_entries_reserve(&lu->kept, lu->spike.n + lu->unit.n))
        return lu->kept.full ? PS_LU_SINGULAR : PS_LU_MEMORY;
    for (size_t i = 0; i < lu->spike.n; i++)
        lu->work[lu->spike.index[i]] = lu->spike.value[i];
    t->scale = 1 + dot(&lu->unit, 0, lu->unit.n, lu->work);
    memset(lu->work, 0, lu->f.n * sizeof *lu->work);
    if (fabs(t->scale) < MIN_PIVOT)
        return PS_LU_SINGULAR;
    t->d = lu->kept.n;
    append(&lu->kept, &lu->spike);
    t->u = lu->kept.n;
    append(&lu->kept, &lu->unit);
    t->end = lu->kept.n;
    lu->n_updates++;
    return PS_LU_OK;
}
