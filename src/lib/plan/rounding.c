/*
 * rounding.c - from strategies with fractional repeats to a plan.
 *
 * A column says how many slots of which length its packs have.  All slots of
 * a length, over all columns, are one row of places; the sequences take
 * their places in it, longest first, in runs of equal ones.  Then each
 * column takes its share of each row, and wherever a run ends in one of them
 * a new strategy begins.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan/rounding.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"

#define ALMOST 1e-6 /* this near below a whole number is one */

/* So many sequences of one length of the histogram. */
typedef struct run {
    uint32_t length;
    uint64_t count;
} run;

/* A place in the runs: so many of the first one are taken. */
typedef struct cursor {
    size_t run;
    uint64_t taken;
} cursor;

typedef struct rounding {
    const ps_histogram *h;
    const ps_lp_input *lp_input;
    const ps_basis *basis;
    uint64_t *times;  /* of each column */
    uint64_t *slots;  /* of each length of the stock, in all columns */
    run *runs;        /* those of a row are neighbours */
    size_t *end;      /* of the runs of each row */
    cursor *at;       /* how far each row is given away */
    uint32_t *down;   /* of a length that is used up: one before it */
    cursor *taking;   /* of each slot of a pack of the column at hand */
    size_t *stop;     /* and the end of its row */
    uint32_t n_taking;
    uint32_t *lengths; /* of one of its packs */
} rounding;

static void free_rounding(rounding *r)
{
    free(r->times);
    free(r->slots);
    free(r->runs);
    free(r->end);
    free(r->at);
    free(r->down);
    free(r->taking);
    free(r->stop);
    free(r->lengths);
}

uint64_t ps_round_bytes(uint32_t n, uint32_t lengths, uint32_t depth)
{
    const uint64_t column = 2 * sizeof(uint64_t) + sizeof(run) +
                            sizeof(size_t) + sizeof(cursor);
    uint64_t rows = ps_mem_array(n, column);
    uint64_t all = ps_mem_array((uint64_t)lengths + 1,
                                sizeof(run) + sizeof(uint32_t));

    return ps_mem_sum(
        ps_mem_sum(rows, all),
        ps_mem_array(depth, sizeof(cursor) + sizeof(size_t) +
                     sizeof(uint32_t)));
}

static bool open_rounding(rounding *r)
{
    size_t n = r->lp_input->instance.n;
    size_t lengths = ps_histogram_size(r->h);
    size_t depth = r->lp_input->instance.depth;

    r->times = calloc(n, sizeof *r->times);
    r->slots = calloc(n, sizeof *r->slots);
    r->runs = calloc(n + lengths, sizeof *r->runs);
    r->end = calloc(n, sizeof *r->end);
    r->at = calloc(n, sizeof *r->at);
    r->down = calloc(lengths + 1, sizeof *r->down);
    r->taking = calloc(depth, sizeof *r->taking);
    r->stop = calloc(depth, sizeof *r->stop);
    r->lengths = calloc(depth, sizeof *r->lengths);
    return r->times != NULL && r->slots != NULL && r->runs != NULL &&
           r->end != NULL && r->at != NULL && r->down != NULL &&
           r->taking != NULL && r->stop != NULL && r->lengths != NULL;
}

/* The whole part of a count, as far as there can be sequences for it. */
static uint64_t whole_part(double used)
{
    if (!(used >= 1 - ALMOST))
        return 0;
    return used < 0x1p62 ? (uint64_t)(used + ALMOST) : UINT64_C(1) << 62;
}

/* The sum, or the greatest number. */
static uint64_t add_up_to_max(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void count_slots(rounding *r, const double *used)
{
    const ps_entries *e = &r->basis->list;

    for (uint32_t j = 0; j < r->basis->n; j++) {
        const ps_column *c = &r->basis->column[j];

        r->times[j] = c->slack ? 0 : whole_part(used[j]);
        for (size_t k = c->first; r->times[j] > 0 && k < c->first + c->n;
             k++)
            for (uint32_t m = 0; m < (uint32_t)e->value[k]; m++)
                r->slots[e->index[k]] =
                    add_up_to_max(r->slots[e->index[k]], r->times[j]);
    }
}

/* The longest length left that is not above `k`, counted from 1; or 0. */
static uint32_t left_up_to(uint32_t *down, uint32_t k)
{
    while (down[k] != k) {
        down[k] = down[down[k]];
        k = down[k];
    }
    return k;
}

/* Fills the row of slots of stock length i from the lengths up to `k`. */
static size_t fill_row(rounding *r, uint32_t i, uint32_t k, uint64_t *left,
                       size_t n)
{
    uint64_t wanted = r->slots[i];

    r->at[i].run = n;
    while (wanted > 0 && (k = left_up_to(r->down, k)) > 0) {
        uint64_t count = left[k - 1] < wanted ? left[k - 1] : wanted;

        if (count > 0)
            r->runs[n++] = (run){ps_histogram_length(r->h, k - 1), count};
        wanted -= count;
        left[k - 1] -= count;
        if (left[k - 1] == 0)
            r->down[k] = k - 1;
    }
    r->end[i] = n;
    return n;
}

/* Longest slots first; so none is wanted later by a sequence passed over. */
static void fill_rows(rounding *r, uint64_t *left)
{
    uint32_t k = (uint32_t)ps_histogram_size(r->h);
    size_t n = 0;

    for (uint32_t j = 0; j <= k; j++)
        r->down[j] = j;
    for (uint32_t i = r->lp_input->instance.n; i-- > 0;) {
        while (k > 0 && r->lp_input->place[k - 1] > i)
            k--;
        n = fill_row(r, i, k, left, n);
    }
}

/* Moves a cursor on by as many sequences, over runs, up to `stop`. */
static void advance(const rounding *r, cursor *c, size_t stop, uint64_t by)
{
    while (c->run < stop && by > 0) {
        uint64_t rest = r->runs[c->run].count - c->taken;

        if (by < rest) {
            c->taken += by;
            return;
        }
        by -= rest;
        c->run++;
        c->taken = 0;
    }
}

/* Gives each slot of the column its share of its row. */
static void share(rounding *r, uint32_t j)
{
    const ps_entries *e = &r->basis->list;
    const ps_column *c = &r->basis->column[j];

    r->n_taking = 0;
    for (size_t k = c->first; k < c->first + c->n; k++)
        for (uint32_t m = 0; m < (uint32_t)e->value[k]; m++) {
            uint32_t i = e->index[k];

            r->taking[r->n_taking] = r->at[i];
            r->stop[r->n_taking++] = r->end[i];
            advance(r, &r->at[i], r->end[i], r->times[j]);
        }
}

/*
 * Takes a sequence from the row of each slot that has one left; the number
 * of packs, at most `max`, until in one of them a run ends.
 */
static uint64_t take_stretch(rounding *r, uint64_t max, uint32_t *n)
{
    *n = 0;
    for (uint32_t k = 0; k < r->n_taking; k++) {
        const cursor *c = &r->taking[k];
        uint64_t rest;

        if (c->run == r->stop[k])
            continue;
        r->lengths[(*n)++] = r->runs[c->run].length;
        rest = r->runs[c->run].count - c->taken;
        max = rest < max ? rest : max;
    }
    return max;
}

static ps_result add_packs(rounding *r, uint32_t j, ps_plan *plan,
                           ps_error *err)
{
    uint64_t times = r->times[j];

    share(r, j);
    while (times > 0) {
        uint32_t n;
        uint64_t stretch = take_stretch(r, times, &n);
        ps_result result;

        if (n == 0) /* the rest of the packs would be empty */
            break;
        result = ps_plan_add(plan, stretch, r->lengths, n, err);
        if (result != PS_OK)
            return result;
        for (uint32_t k = 0; k < r->n_taking; k++)
            advance(r, &r->taking[k], r->stop[k], stretch);
        times -= stretch;
    }
    return PS_OK;
}

ps_result ps_round(ps_plan *plan, const ps_histogram *h,
                   const ps_lp_input *lp_input, const ps_basis *basis,
                   const double *used, uint64_t *left, ps_error *err)
{
    rounding r = {.h = h, .lp_input = lp_input, .basis = basis};
    ps_result result = PS_OK;

    if (open_rounding(&r)) {
        count_slots(&r, used);
        fill_rows(&r, left);
        for (uint32_t j = 0; result == PS_OK && j < basis->n; j++)
            if (r.times[j] > 0) /* a slack column has no packs */
                result = add_packs(&r, j, plan, err);
    } else {
        result = ps_fail_memory(err);
    }
    free_rounding(&r);
    return result;
}
