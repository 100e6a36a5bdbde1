/*
 * lu_factor.c - factor a sparse matrix into two triangular ones.
 *
 * SPDX-License-Identifier: MIT
 *
 * Gaussian elimination with Markowitz pivoting (1957): choose the pivot with
 * the least possible fill-in among entries that are not too small relative to
 * their column, searching a few of the shortest columns.  Bases of packing
 * problems are nearly triangular.  Columns and rows with a single remaining
 * entry come first and cause no fill-in.
 */

#include "lp/lu_factor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
#define MIN_PIVOT 1e-9     /* smaller pivots make the matrix singular */
#define RELATIVE_PIVOT 0.1   /* relative to the greatest in its column */
#define NEGLIGIBLE 1e-13     /* treated as cancelled to zero */
#define COLUMNS_SEARCHED 4

/*
 * Maximum number of entries per row, in addition to the entries of the matrix,
 * in a factor and in a pool.  Several times the maximum ever observed.
 */
#define MAX_FACTOR_FILL 32
#define MAX_POOL_FILL 96

void ps_factors_init(ps_factors *f, uint32_t n, uint64_t entries, ps_mem *mem)
{
    ps_elimination *a = &f->rest;
    ps_lines *const lines[] = {&a->rows, &a->columns};
    uint64_t in_factor = ps_mem_sum(entries, (uint64_t)MAX_FACTOR_FILL * n);
    uint64_t in_pool = ps_mem_sum(entries, (uint64_t)MAX_POOL_FILL * n);

    *f = (ps_factors){.n = n, .rest.n = n};
    f->row = ps_mem_alloc(mem, n, sizeof *f->row);
    f->place = ps_mem_alloc(mem, n, sizeof *f->place);
    f->pivot = ps_mem_alloc(mem, n, sizeof *f->pivot);
    f->l_start = ps_mem_alloc(mem, (uint64_t)n + 1, sizeof *f->l_start);
    f->u_start = ps_mem_alloc(mem, (uint64_t)n + 1, sizeof *f->u_start);
    f->v_start = ps_mem_alloc(mem, (uint64_t)n + 1, sizeof *f->v_start);
    ps_entries_init(&f->l, in_factor, mem);
    ps_entries_init(&f->u, in_factor, mem);
    ps_entries_init(&f->v, in_factor, mem);

    for (int k = 0; k < 2; k++) {
        lines[k]->start = ps_mem_alloc(mem, n, sizeof *lines[k]->start);
        lines[k]->n = ps_mem_alloc(mem, n, sizeof *lines[k]->n);
        lines[k]->capacity = ps_mem_alloc(mem, n, sizeof *lines[k]->capacity);
        ps_entries_init(&lines[k]->pool, in_pool, mem);
    }
    a->head = ps_mem_alloc(mem, (uint64_t)n + 1, sizeof *a->head);
    a->next = ps_mem_alloc(mem, n, sizeof *a->next);
    a->prev = ps_mem_alloc(mem, n, sizeof *a->prev);
    a->single = ps_mem_alloc(mem, n, sizeof *a->single);
    a->row_done = ps_mem_alloc(mem, n, sizeof *a->row_done);
    a->factor = ps_mem_alloc(mem, n, sizeof *a->factor);
}

void ps_factors_destroy(ps_factors *f)
{
    ps_elimination *a = &f->rest;
    ps_lines *const lines[] = {&a->rows, &a->columns};

    free(f->row);
    free(f->place);
    free(f->pivot);
    free(f->l_start);
    free(f->u_start);
    free(f->v_start);
    ps_entries_free(&f->l);
    ps_entries_free(&f->u);
    ps_entries_free(&f->v);

    for (int k = 0; k < 2; k++) {
        free(lines[k]->start);
        free(lines[k]->n);
        free(lines[k]->capacity);
        ps_entries_free(&lines[k]->pool);
    }
    free(a->head);
    free(a->next);
    free(a->prev);
    free(a->single);
    free(a->row_done);
    free(a->factor);
}

/* Inserts column j into the list for its length. */
static void list_column(ps_elimination *a, uint32_t j)
{
    uint32_t length = a->columns.n[j];

    a->prev[j] = NONE;
    a->next[j] = a->head[length];
    if (a->head[length] != NONE)
        a->prev[a->head[length]] = j;
    a->head[length] = j;
    if (length < a->shortest)
        a->shortest = length;
}

/* Removes column j from its list.  Call it before the length changes. */
static void unlist_column(ps_elimination *a, uint32_t j)
{
    if (a->prev[j] == NONE)
        a->head[a->columns.n[j]] = a->next[j];
    else
        a->next[a->prev[j]] = a->next[j];
    if (a->next[j] != NONE)
        a->prev[a->next[j]] = a->prev[j];
}

/*
 * Adds an entry to line i.  A full line moves to the end of the pool, with
 * twice the space.
 */
static bool add_to_line(ps_lines *l, uint32_t i, uint32_t index, double value)
{
    uint32_t n = l->n[i];
    ps_entries *p = &l->pool;

    if (n == l->capacity[i]) {
        uint32_t capacity = 2 * n + 4;

        if (!ps_entries_reserve(p, capacity))
            return false;
        memcpy(p->index + p->n, p->index + l->start[i], n * sizeof *p->index);
        memcpy(p->value + p->n, p->value + l->start[i], n * sizeof *p->value);
        l->start[i] = p->n;
        l->capacity[i] = capacity;
        p->n += capacity;
    }
    p->index[l->start[i] + n] = index;
    p->value[l->start[i] + n] = value;
    l->n[i]++;
    return true;
}

/* Removes entry `k` of line i.  The last entry takes its place. */
static void cut_entry(ps_lines *l, uint32_t i, uint32_t k)
{
    size_t at = l->start[i] + k;
    size_t last = l->start[i] + --l->n[i];

    l->pool.index[at] = l->pool.index[last];
    l->pool.value[at] = l->pool.value[last];
}

/* Position of the entry with that index in line i.  It must exist. */
static uint32_t find_entry(const ps_lines *l, uint32_t i, uint32_t index)
{
    const uint32_t *in = l->pool.index + l->start[i];
    uint32_t k = 0;

    while (in[k] != index)
        k++;
    return k;
}

static void shorten_row(ps_elimination *a, uint32_t i, uint32_t j)
{
    cut_entry(&a->rows, i, find_entry(&a->rows, i, j));
    if (a->rows.n[i] == 1 && a->n_single < a->n)
        a->single[a->n_single++] = i;
}

/* Gives each line space for its n entries and empties it. */
static bool lay_out(ps_lines *l, uint32_t n)
{
    size_t total = 0;

    for (uint32_t i = 0; i < n; i++) {
        l->start[i] = total;
        l->capacity[i] = l->n[i];
        total += l->n[i];
        l->n[i] = 0;
    }
    l->pool.n = 0;
    l->pool.full = false;
    if (!ps_entries_reserve(&l->pool, total))
        return false;
    l->pool.n = total;
    return true;
}

/* Loads the whole matrix. */
static bool load(ps_elimination *a, const ps_matrix *b)
{
    const ps_entries *e = &b->entries;
    bool ok;

    memset(a->rows.n, 0, a->n * sizeof *a->rows.n);
    memset(a->columns.n, 0, a->n * sizeof *a->columns.n);
    for (uint32_t j = 0; j < a->n; j++)
        for (size_t k = b->start[j]; k < b->start[j + 1]; k++) {
            a->columns.n[j]++;
            a->rows.n[e->index[k]]++;
        }
    ok = lay_out(&a->columns, a->n);
    ok = lay_out(&a->rows, a->n) && ok;
    for (uint32_t j = 0; j < a->n; j++)
        for (size_t k = b->start[j]; ok && k < b->start[j + 1]; k++)
            ok = add_to_line(&a->columns, j, e->index[k], e->value[k]) &&
                 add_to_line(&a->rows, e->index[k], j, 0);
    if (!ok)
        return false;

    memset(a->row_done, 0, a->n * sizeof *a->row_done);
    memset(a->factor, 0, a->n * sizeof *a->factor);
    for (uint32_t length = 0; length <= a->n; length++)
        a->head[length] = NONE;
    a->shortest = 1;
    a->n_single = 0;
    for (uint32_t i = a->n; i-- > 0;) {
        list_column(a, i);
        if (a->rows.n[i] == 1)
            a->single[a->n_single++] = i;
    }
    return true;
}

typedef struct pivot {
    uint32_t row;
    uint32_t column;
    double value;
} pivot;

/* Finds the best pivot of column j with a fill-in below *cost. */
static void search_column(const ps_elimination *a, uint32_t j, pivot *best,
                          uint64_t *cost)
{
    const ps_lines *c = &a->columns;
    const uint32_t *row = c->pool.index + c->start[j];
    const double *value = c->pool.value + c->start[j];
    double min = MIN_PIVOT / RELATIVE_PIVOT;

    for (uint32_t k = 0; k < c->n[j]; k++)
        min = fmax(min, fabs(value[k]));
    min *= RELATIVE_PIVOT;
    for (uint32_t k = 0; k < c->n[j]; k++) {
        uint64_t fill = (uint64_t)(c->n[j] - 1) * (a->rows.n[row[k]] - 1);

        if (fabs(value[k]) >= min && fill < *cost) {
            *cost = fill;
            *best = (pivot){row[k], j, value[k]};
        }
    }
}

/*
 * Finds the next pivot: columns with one entry first, then rows with one entry
 * if it is not too small, then by fill-in.  False if the matrix is singular.
 */
static bool find_pivot(ps_elimination *a, pivot *best)
{
    const ps_lines *c = &a->columns;
    uint64_t cost = UINT64_MAX;
    uint32_t searched = 0;

    while (a->shortest <= a->n && a->head[a->shortest] == NONE)
        a->shortest++;
    while (a->shortest > 1 && a->n_single > 0) {
        uint32_t i = a->single[--a->n_single];
        uint32_t j;

        if (a->row_done[i] || a->rows.n[i] != 1)
            continue;
        j = a->rows.pool.index[a->rows.start[i]];
        *best = (pivot){i, j,
                        c->pool.value[c->start[j] + find_entry(c, j, i)]};
        if (fabs(best->value) >= MIN_PIVOT)
            return true;
    }
    for (uint32_t length = a->shortest; length <= a->n; length++)
        for (uint32_t j = a->head[length]; j != NONE; j = a->next[j]) {
            search_column(a, j, best, &cost);
            if (cost != UINT64_MAX && ++searched == COLUMNS_SEARCHED)
                return true;
        }
    return cost != UINT64_MAX;
}

/* Subtracts `u` times the pivot column from column j. */
static bool subtract(ps_elimination *a, uint32_t j, double u,
                     const ps_factors *f, size_t l_from)
{
    ps_lines *c = &a->columns;

    for (uint32_t k = c->n[j]; k-- > 0;) {
        size_t at = c->start[j] + k;
        uint32_t i = c->pool.index[at];

        if (a->factor[i] == 0)
            continue;
        c->pool.value[at] -= u * a->factor[i];
        a->factor[i] = 0;
        if (fabs(c->pool.value[at]) < NEGLIGIBLE) {
            cut_entry(c, j, k);
            shorten_row(a, i, j);
        }
    }
    for (size_t k = l_from; k < f->l.n; k++) {
        uint32_t i = f->l.index[k];

        if (a->factor[i] != 0 && (!add_to_line(c, j, i, -u * f->l.value[k]) ||
                                  !add_to_line(&a->rows, i, j, 0)))
            return false;
        a->factor[i] = f->l.value[k];
    }
    return true;
}

/*
 * One elimination step: moves the pivot column, as factors, to L and the pivot
 * row to U, and subtracts their product from the rest.
 */
static bool eliminate(ps_elimination *a, const pivot *p, ps_factors *f,
                      uint32_t step)
{
    ps_lines *c = &a->columns;
    size_t from = f->l.n;

    f->row[step] = p->row;
    f->place[step] = p->column;
    f->pivot[step] = p->value;
    unlist_column(a, p->column);
    for (uint32_t k = 0; k < c->n[p->column]; k++) {
        size_t at = c->start[p->column] + k;
        uint32_t i = c->pool.index[at];

        if (i == p->row)
            continue;
        shorten_row(a, i, p->column);
        a->factor[i] = c->pool.value[at] / p->value;
        if (!ps_entries_add(&f->l, i, a->factor[i]))
            return false;
    }

    for (uint32_t k = 0; k < a->rows.n[p->row]; k++) {
        uint32_t j = a->rows.pool.index[a->rows.start[p->row] + k];
        uint32_t at;
        double u;

        if (j == p->column)
            continue;
        at = find_entry(c, j, p->row);
        u = c->pool.value[c->start[j] + at];
        unlist_column(a, j);
        cut_entry(c, j, at);
        if (!ps_entries_add(&f->u, j, u) || !subtract(a, j, u, f, from))
            return false;
        list_column(a, j);
    }
    a->row_done[p->row] = true;

    for (size_t k = from; k < f->l.n; k++)
        a->factor[f->l.index[k]] = 0;
    f->l_start[step + 1] = f->l.n;
    f->u_start[step + 1] = f->u.n;
    return true;
}

/* Computes V, which is U by columns, and `step`, the step of each place. */
static bool transpose(ps_factors *f, uint32_t *step)
{
    f->v.n = 0;
    if (!ps_entries_reserve(&f->v, f->u.n))
        return false;
    f->v.n = f->u.n;
    memset(f->v_start, 0, ((size_t)f->n + 1) * sizeof *f->v_start);
    for (uint32_t k = 0; k < f->n; k++)
        step[f->place[k]] = k;
    for (size_t e = 0; e < f->u.n; e++)
        f->v_start[step[f->u.index[e]] + 1]++;
    for (uint32_t k = 0; k < f->n; k++)
        f->v_start[k + 1] += f->v_start[k];
    for (uint32_t k = f->n; k-- > 0;)
        for (size_t e = f->u_start[k]; e < f->u_start[k + 1]; e++) {
            size_t to = --f->v_start[step[f->u.index[e]] + 1];

            f->v.index[to] = f->row[k];
            f->v.value[to] = f->u.value[e];
        }
    /* Each end has become the start of the next column. */
    memmove(f->v_start, f->v_start + 1, f->n * sizeof *f->v_start);
    f->v_start[f->n] = f->v.n;
    return true;
}

ps_lu_result ps_factor(ps_factors *f, const ps_matrix *b)
{
    ps_elimination *a = &f->rest;
    pivot p = {0, 0, 0};
    bool ok;

    f->l.n = 0;
    f->u.n = 0;
    f->l_start[0] = 0;
    f->u_start[0] = 0;
    ok = load(a, b);
    for (uint32_t step = 0; ok && step < f->n; step++) {
        if (!find_pivot(a, &p))
            return PS_LU_SINGULAR;
        ok = eliminate(a, &p, f, step);
    }
    if (ok && transpose(f, a->next))
        return PS_LU_OK;
    /* Out of memory, unless a list has reached its maximum. */
    return f->l.full || f->u.full || f->v.full || a->rows.pool.full ||
                   a->columns.pool.full
               ? PS_LU_SINGULAR
               : PS_LU_MEMORY;
}
