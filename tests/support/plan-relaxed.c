/*
 * plan-relaxed.c - the linear relaxation of packing, solved naively.
 *
 * This solves the dual: prices of lengths that maximise the value of the
 * histogram, such that no column is worth more than one pack.  Prices of 0 are
 * feasible, so one phase is enough.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan-relaxed.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LENGTHS 16
#define ZERO 1e-9

/* A row: a basic variable as a function of the non-basic ones. */
typedef struct row {
    uint32_t name;
    double constant;
    double factor[MAX_LENGTHS];
} row;

/* Variables below n are prices, the others slacks of columns. */
typedef struct tableau {
    uint32_t n;
    uint32_t names[MAX_LENGTHS]; /* of the non-basic variables */
    row goal;
    row *rows;
    size_t n_rows;
    size_t room;
} tableau;

static void add_row(tableau *t, const uint32_t *times)
{
    row *r;

    if (t->n_rows == t->room) {
        t->room = t->room == 0 ? 1024 : 2 * t->room;
        t->rows = realloc(t->rows, t->room * sizeof *t->rows);
        assert_non_null(t->rows);
    }
    r = &t->rows[t->n_rows++];
    *r = (row){.name = t->n + (uint32_t)t->n_rows, .constant = 1};
    for (uint32_t i = 0; i < t->n; i++)
        r->factor[i] = -(double)times[i];
}

/* A row for every column, in odometer order. */
static void add_columns(tableau *t, const ps_histogram *h,
                        uint32_t capacity, uint32_t depth)
{
    uint32_t times[MAX_LENGTHS] = {0};
    uint32_t i = 0;

    while (i < t->n) {
        uint64_t sum = 0;
        uint32_t items = 0;

        times[i]++;
        for (uint32_t k = 0; k < t->n; k++) {
            sum += (uint64_t)times[k] * ps_histogram_length(h, k);
            items += times[k];
        }
        if (sum <= capacity && items <= depth) {
            add_row(t, times);
            i = 0;
        } else {
            times[i++] = 0;
        }
    }
}

/* Substitutes the expression `by` for variable k in another row. */
static void substitute(const tableau *t, row *r, const row *by, uint32_t k)
{
    double times = r->factor[k];

    r->factor[k] = 0;
    r->constant += times * by->constant;
    for (uint32_t i = 0; i < t->n; i++)
        r->factor[i] += times * by->factor[i];
}

/* Bland's rule: the first variable by name that improves the goal, or n. */
static uint32_t find_entering(const tableau *t)
{
    uint32_t entering = t->n;

    for (uint32_t i = 0; i < t->n; i++)
        if (t->goal.factor[i] > ZERO &&
            (entering == t->n || t->names[i] < t->names[entering]))
            entering = i;
    return entering;
}

static row *find_leaving(const tableau *t, uint32_t k)
{
    size_t leaving = t->n_rows;
    double min = 0;

    for (size_t i = 0; i < t->n_rows; i++) {
        const row *r = &t->rows[i];
        double ratio;

        if (r->factor[k] > -ZERO)
            continue;
        ratio = r->constant / -r->factor[k];
        if (leaving == t->n_rows || ratio < min - ZERO ||
            (ratio < min + ZERO && r->name < t->rows[leaving].name)) {
            min = ratio;
            leaving = i;
        }
    }
    assert_true(leaving < t->n_rows);
    return &t->rows[leaving];
}

static void exchange(tableau *t, row *r, uint32_t k)
{
    uint32_t name = t->names[k];
    double factor = r->factor[k];

    t->names[k] = r->name;
    r->name = name;
    r->constant /= -factor;
    for (uint32_t i = 0; i < t->n; i++)
        r->factor[i] /= -factor;
    r->factor[k] = 1 / factor;
    for (size_t i = 0; i < t->n_rows; i++)
        if (&t->rows[i] != r)
            substitute(t, &t->rows[i], r, k);
    substitute(t, &t->goal, r, k);
}

double relaxed_packs(const ps_histogram *h, uint32_t capacity,
                     uint32_t depth)
{
    tableau t = {.n = (uint32_t)ps_histogram_size(h)};
    uint32_t k;

    assert_true(t.n <= MAX_LENGTHS);
    for (uint32_t i = 0; i < t.n; i++) {
        t.names[i] = i;
        t.goal.factor[i] = (double)ps_histogram_count(h, i);
    }
    add_columns(&t, h, capacity, depth);
    while ((k = find_entering(&t)) < t.n)
        exchange(&t, find_leaving(&t, k), k);
    free(t.rows);
    return t.goal.constant;
}
