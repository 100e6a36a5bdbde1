/*
 * lu_factor.c - a sparse matrix as the product of two triangular ones.
 *
 * Gaussian elimination in the order of Markowitz (1957): the next pivot is
 * the one that can cause the least fill-in, found among the entries of a few
 * shortest columns that are not small in their column.  Bases of packing
 * problems are nearly triangular: columns and rows with a single entry
 * left come first and cost nothing.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lp/lu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem_bound.h"

#define NONE UINT32_MAX
#define MIN_PIVOT 1e-9     /* a smaller one makes the matrix singular */
#define RELATIVE_PIVOT 0.1   /* of the greatest in its column */
#define NEGLIGIBLE 1e-13     /* taken for a sum that cancels out */
#define COLUMNS_SEARCHED 4

/*
 * Entries for each line that come to those of the matrix in a pool, at most:
 * a few times as many as were ever seen.
 */
#define MAX_FILL 96

/* Lines (rows or columns) of changing length in one pool. */
typedef struct lines {
    size_t *start;
    uint32_t *n;
    uint32_t *room;
    ps_entries pool;
} lines;

/* The part of the matrix that is not eliminated yet. */
struct ps_elimination {
    uint32_t n;
    lines rows; /* which columns; values are not kept there */
    lines columns;
    uint32_t *head; /* columns by length: doubly linked lists */
    uint32_t *next;
    uint32_t *prev;
    uint32_t *single; /* rows that may have one entry left */
    uint32_t n_single;
    uint32_t shortest; /* no column is shorter */
    bool *row_done;
    double *factor; /* by rows: of the pivot column, else 0 */
};

static bool add_entry(ps_entries *e, uint32_t index, double value)
{
    if (e->n == e->room && !ps_entries_reserve(e, 1))
        return false;
    e->index[e->n] = index;
    e->value[e->n] = value;
    e->n++;
    return true;
}

static bool open_lines(lines *l, uint32_t n)
{
    l->start = calloc(n, sizeof *l->start);
    l->n = calloc(n, sizeof *l->n);
    l->room = calloc(n, sizeof *l->room);
    return l->start != NULL && l->n != NULL && l->room != NULL;
}

static void free_lines(lines *l)
{
    free(l->start);
    free(l->n);
    free(l->room);
    ps_entries_free(&l->pool);
}

void ps_elimination_free(ps_elimination *a)
{
    if (a == NULL)
        return;
    free_lines(&a->rows);
    free_lines(&a->columns);
    free(a->head);
    free(a->next);
    free(a->prev);
    free(a->single);
    free(a->row_done);
    free(a->factor);
    free(a);
}

ps_elimination *ps_elimination_open(uint32_t n)
{
    ps_elimination *a = calloc(1, sizeof *a);
    bool ok;

    if (a == NULL)
        return NULL;
    a->n = n;
    ok = open_lines(&a->rows, n);
    ok = open_lines(&a->columns, n) && ok;
    a->head = malloc(((size_t)n + 1) * sizeof *a->head);
    a->next = malloc(n * sizeof *a->next);
    a->prev = malloc(n * sizeof *a->prev);
    a->single = malloc(n * sizeof *a->single);
    a->row_done = malloc(n * sizeof *a->row_done);
    a->factor = malloc(n * sizeof *a->factor);
    if (ok && a->head != NULL && a->next != NULL && a->prev != NULL &&
        a->single != NULL && a->row_done != NULL && a->factor != NULL)
        return a;
    ps_elimination_free(a);
    return NULL;
}

static uint64_t max_entries(uint32_t n, uint64_t entries)
{
    return ps_mem_sum(entries, (uint64_t)MAX_FILL * n);
}

void ps_elimination_limit(ps_elimination *a, size_t entries)
{
    a->rows.pool.max = (size_t)max_entries(a->n, entries);
    a->columns.pool.max = a->rows.pool.max;
}

bool ps_elimination_is_full(const ps_elimination *a)
{
    return a->rows.pool.full || a->columns.pool.full;
}

uint64_t ps_elimination_bytes(uint32_t n, uint64_t entries)
{
    const uint64_t each = 2 * (sizeof(size_t) + 2 * sizeof(uint32_t)) +
                          4 * sizeof(uint32_t) + sizeof(bool) +
                          sizeof(double);
    uint64_t pool = ps_entries_bytes(max_entries(n, entries));

    return ps_mem_sum(ps_mem_array((uint64_t)n + 1, each) +
                      sizeof(ps_elimination),
                      ps_mem_times(2, pool));
}

/* Makes all lines empty and all lists, too. */
static void clear(ps_elimination *a)
{
    for (uint32_t i = 0; i <= a->n; i++)
        a->head[i] = NONE;
    memset(a->rows.n, 0, a->n * sizeof *a->rows.n);
    memset(a->columns.n, 0, a->n * sizeof *a->columns.n);
    memset(a->row_done, 0, a->n * sizeof *a->row_done);
    memset(a->factor, 0, a->n * sizeof *a->factor);
    a->rows.pool.n = 0;
    a->columns.pool.n = 0;
    a->rows.pool.full = a->columns.pool.full = false;
    a->n_single = 0;
    a->shortest = 1;
}

/* Lists column j by its length. */
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

/* Before its length changes. */
static void unlist_column(ps_elimination *a, uint32_t j)
{
    if (a->prev[j] == NONE)
        a->head[a->columns.n[j]] = a->next[j];
    else
        a->next[a->prev[j]] = a->next[j];
    if (a->next[j] != NONE)
        a->prev[a->next[j]] = a->prev[j];
}

/* Moves a line that is full to the end of the pool, with twice the room. */
static bool move_line(lines *l, uint32_t i)
{
    uint32_t n = l->n[i];
    uint32_t room = 2 * n + 4;
    ps_entries *p = &l->pool;

    if (!ps_entries_reserve(p, room))
        return false;
    memcpy(p->index + p->n, p->index + l->start[i], n * sizeof *p->index);
    memcpy(p->value + p->n, p->value + l->start[i], n * sizeof *p->value);
    l->start[i] = p->n;
    l->room[i] = room;
    p->n += room;
    return true;
}

static bool add_to_line(lines *l, uint32_t i, uint32_t index, double value)
{
    size_t at;

    if (l->n[i] == l->room[i] && !move_line(l, i))
        return false;
    at = l->start[i] + l->n[i]++;
    l->pool.index[at] = index;
    l->pool.value[at] = value;
    return true;
}

/* Takes entry `k` of line i out; the last one fills the gap. */
static void cut_entry(lines *l, uint32_t i, uint32_t k)
{
    size_t at = l->start[i] + k;
    size_t last = l->start[i] + --l->n[i];

    l->pool.index[at] = l->pool.index[last];
    l->pool.value[at] = l->pool.value[last];
}

/* Which entry of line i has that index; there is one. */
static uint32_t find_entry(const lines *l, uint32_t i, uint32_t index)
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

/* Gives each line the room that its entries need, one behind the other. */
static bool lay_out(lines *l, uint32_t n)
{
    size_t total = 0;

    for (uint32_t i = 0; i < n; i++) {
        l->start[i] = total;
        l->room[i] = l->n[i];
        total += l->n[i];
        l->n[i] = 0;
    }
    if (!ps_entries_reserve(&l->pool, total))
        return false;
    l->pool.n = total;
    return true;
}

static bool load(ps_elimination *a, const ps_matrix *b)
{
    const ps_entries *e = &b->entries;

    for (uint32_t j = 0; j < a->n; j++)
        for (size_t k = b->start[j]; k < b->start[j + 1]; k++) {
            a->columns.n[j]++;
            a->rows.n[e->index[k]]++;
        }
    if (!lay_out(&a->columns, a->n) || !lay_out(&a->rows, a->n))
        return false;
    for (uint32_t j = 0; j < a->n; j++)
        for (size_t k = b->start[j]; k < b->start[j + 1]; k++)
            if (!add_to_line(&a->columns, j, e->index[k], e->value[k]) ||
                !add_to_line(&a->rows, e->index[k], j, 0))
                return false;
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

/* The best pivot of column j, if it beats `cost`. */
static void search_column(const ps_elimination *a, uint32_t j, pivot *best,
                          uint64_t *cost)
{
    const lines *c = &a->columns;
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

/* A row with one entry, if that is not too small. */
static bool find_single(ps_elimination *a, pivot *best)
{
    while (a->n_single > 0) {
        uint32_t i = a->single[--a->n_single];
        uint32_t j, k;

        if (a->row_done[i] || a->rows.n[i] != 1)
            continue;
        j = a->rows.pool.index[a->rows.start[i]];
        k = find_entry(&a->columns, j, i);
        *best = (pivot){i, j, a->columns.pool.value[a->columns.start[j] + k]};
        if (fabs(best->value) >= MIN_PIVOT)
            return true;
    }
    return false;
}

static bool find_pivot(ps_elimination *a, pivot *best)
{
    uint64_t cost = UINT64_MAX;
    uint32_t searched = 0;

    while (a->shortest <= a->n && a->head[a->shortest] == NONE)
        a->shortest++;
    if (a->shortest > 1 && find_single(a, best))
        return true;
    for (uint32_t length = a->shortest; length <= a->n; length++)
        for (uint32_t j = a->head[length]; j != NONE; j = a->next[j]) {
            search_column(a, j, best, &cost);
            if (cost != UINT64_MAX && ++searched == COLUMNS_SEARCHED)
                return true;
        }
    return cost != UINT64_MAX;
}

/* Takes the pivot column out; its factors stay, and go to L. */
static bool take_column(ps_elimination *a, const pivot *p, ps_factors *f)
{
    const lines *c = &a->columns;

    unlist_column(a, p->column);
    for (uint32_t k = 0; k < c->n[p->column]; k++) {
        uint32_t i = c->pool.index[c->start[p->column] + k];
        double t = c->pool.value[c->start[p->column] + k] / p->value;

        if (i == p->row)
            continue;
        shorten_row(a, i, p->column);
        a->factor[i] = t;
        if (!add_entry(&f->l, i, t))
            return false;
    }
    return true;
}

/* Subtracts `u` times the pivot column from column j. */
static bool subtract(ps_elimination *a, uint32_t j, double u,
                     const ps_factors *f, size_t l_from)
{
    lines *c = &a->columns;

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

/* Takes the pivot row out of all other columns; its entries go to U. */
static bool take_row(ps_elimination *a, const pivot *p, ps_factors *f,
                     size_t l_from)
{
    for (uint32_t k = 0; k < a->rows.n[p->row]; k++) {
        uint32_t j = a->rows.pool.index[a->rows.start[p->row] + k];
        uint32_t at;
        double u;

        if (j == p->column)
            continue;
        at = find_entry(&a->columns, j, p->row);
        u = a->columns.pool.value[a->columns.start[j] + at];
        unlist_column(a, j);
        cut_entry(&a->columns, j, at);
        if (!add_entry(&f->u, j, u) || !subtract(a, j, u, f, l_from))
            return false;
        list_column(a, j);
    }
    a->row_done[p->row] = true;
    return true;
}

static bool eliminate(ps_elimination *a, const pivot *p, ps_factors *f,
                      uint32_t step)
{
    size_t from = f->l.n;

    f->row[step] = p->row;
    f->place[step] = p->column;
    f->pivot[step] = p->value;
    if (!take_column(a, p, f) || !take_row(a, p, f, from))
        return false;
    for (size_t k = from; k < f->l.n; k++)
        a->factor[f->l.index[k]] = 0;
    f->l_start[step + 1] = f->l.n;
    f->u_start[step + 1] = f->u.n;
    return true;
}

/* U by columns, from U by rows; `step` says when a place had its pivot. */
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
    /* Each end has become the beginning: of the next column. */
    memmove(f->v_start, f->v_start + 1, f->n * sizeof *f->v_start);
    f->v_start[f->n] = f->v.n;
    return true;
}

static ps_lu_result run(ps_elimination *a, ps_factors *f)
{
    pivot p = {0, 0, 0};

    for (uint32_t step = 0; step < f->n; step++) {
        if (!find_pivot(a, &p))
            return PS_LU_SINGULAR;
        if (!eliminate(a, &p, f, step))
            return PS_LU_MEMORY;
    }
    return transpose(f, a->next) ? PS_LU_OK : PS_LU_MEMORY;
}

/* Whether what there may be of entries was not enough. */
static bool is_full(const ps_factors *f)
{
    return f->l.full || f->u.full || f->v.full ||
           ps_elimination_is_full(f->rest);
}

ps_lu_result ps_factor(ps_factors *f, const ps_matrix *b)
{
    ps_lu_result r;

    f->l.n = 0;
    f->u.n = 0;
    f->l_start[0] = 0;
    f->u_start[0] = 0;
    clear(f->rest);
    r = load(f->rest, b) ? run(f->rest, f) : PS_LU_MEMORY;
    return r == PS_LU_MEMORY && is_full(f) ? PS_LU_SINGULAR : r;
}
