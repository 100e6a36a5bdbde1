/*
 * rounding.c - convert strategies with fractional repeat counts to a plan.
 *
 * SPDX-License-Identifier: MIT
 *
 * A column states how many slots of each length its packs have.  All slots of
 * one length, over all columns, form a row.  Sequences are assigned to rows
 * longest first, in runs of equal length.  Then each column takes its share of
 * each row.  A new strategy starts whenever a run ends in one of its slots.
 */

#include "plan/rounding.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "lp/lengths.h"

#define ALMOST 1e-6 /* round up within this of an integer */

/* `count` sequences of one length. */
typedef struct run {
    uint32_t length; /* tokens */
    uint64_t count;  /* sequences */
} run;

/* A position in the runs: `taken` sequences of run `run` are used. */
typedef struct cursor {
    size_t run; /* index in rounding.runs */
    uint64_t taken;
} cursor;

typedef struct rounding {
    const ps_histogram *h;
    const ps_lp_input *input;
    const ps_basis *basis;
    uint64_t *times;  /* [n], repeat count of each column */
    uint64_t *slots;  /* [n], number of slots of each length, over all
                         columns */
    run *runs;        /* runs of a row are adjacent */
    size_t *end;      /* [n], end of each row's runs */
    cursor *at;       /* [n], unused part of each row */
    uint32_t *down;   /* by length: the next lower one if used up */
    cursor *taking;   /* [depth], position of each slot of the current column */
    size_t *stop;     /* [depth], end of each slot's row */
    uint32_t *lengths; /* [depth], lengths of one pack of the column */
} rounding;

/* Allocates for n lengths of the instance and `lengths` of the histogram. */
static void allocate(rounding *r, uint32_t n, size_t lengths, uint32_t depth,
                     ps_mem *mem)
{
    r->times = ps_mem_alloc(mem, n, sizeof *r->times);
    r->slots = ps_mem_alloc(mem, n, sizeof *r->slots);
    r->runs = ps_mem_alloc(mem, (uint64_t)n + lengths, sizeof *r->runs);
    r->end = ps_mem_alloc(mem, n, sizeof *r->end);
    r->at = ps_mem_alloc(mem, n, sizeof *r->at);
    r->down = ps_mem_alloc(mem, (uint64_t)lengths + 1, sizeof *r->down);
    r->taking = ps_mem_alloc(mem, depth, sizeof *r->taking);
    r->stop = ps_mem_alloc(mem, depth, sizeof *r->stop);
    r->lengths = ps_mem_alloc(mem, depth, sizeof *r->lengths);
}

uint64_t ps_round_bytes(uint32_t n, uint32_t lengths, uint32_t depth)
{
    ps_mem mem = {.counts = true};
    rounding r;

    allocate(&r, n, lengths, depth, &mem);
    return mem.bytes;
}

/*
 * Computes the repeat count of each column, and the number of slots of each
 * length.
 */
static void count_slots(rounding *r, const double *used)
{
    const ps_entries *e = &r->basis->list;

    for (uint32_t j = 0; j < r->basis->n; j++) {
        const ps_column *c = &r->basis->column[j];
        uint64_t times = 0;

        /* The integer part, limited to the possible number of sequences. */
        if (!c->slack && used[j] >= 1 - ALMOST)
            times = used[j] < 0x1p62 ? (uint64_t)(used[j] + ALMOST)
                                     : UINT64_C(1) << 62;
        r->times[j] = times;
        for (size_t k = c->first; times > 0 && k < c->first + c->n; k++)
            for (uint32_t m = 0; m < (uint32_t)e->value[k]; m++)
                r->slots[e->index[k]] =
                    ps_mem_sum(r->slots[e->index[k]], times);
    }
}

/*
 * Fills rows with the longest remaining sequences, rows of longer slots first.
 * A sequence too long for a row fits no later row either.
 */
static void fill_rows(rounding *r, uint64_t *left)
{
    uint32_t longest = (uint32_t)ps_histogram_size(r->h);
    size_t n = 0;

    for (uint32_t j = 0; j <= longest; j++)
        r->down[j] = j;
    for (uint32_t i = r->input->instance.n; i-- > 0;) {
        uint64_t wanted = r->slots[i];
        uint32_t k;

        while (longest > 0 && r->input->place[longest - 1] > i)
            longest--;
        r->at[i].run = n;
        k = longest;
        while (wanted > 0 && (k = ps_left_up_to(r->down, k)) > 0) {
            uint64_t count = ps_mem_min(left[k - 1], wanted);

            if (count > 0)
                r->runs[n++] = (run){ps_histogram_length(r->h, k - 1), count};
            wanted -= count;
            left[k - 1] -= count;
            if (left[k - 1] == 0)
                r->down[k] = k - 1;
        }
        r->end[i] = n;
    }
}

/* Advances a cursor by `by` sequences, up to run `stop`. */
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

/* Adds the packs of column j. */
static ps_result add_packs(rounding *r, uint32_t j, ps_plan *plan,
                           ps_error *err)
{
    const ps_entries *e = &r->basis->list;
    const ps_column *column = &r->basis->column[j];
    uint64_t times = r->times[j];
    ps_result result = PS_OK;
    uint32_t slots = 0;

    /* Give each slot its share of the row. */
    for (size_t k = column->first; k < column->first + column->n; k++)
        for (uint32_t m = 0; m < (uint32_t)e->value[k]; m++) {
            uint32_t i = e->index[k];

            r->taking[slots] = r->at[i];
            r->stop[slots++] = r->end[i];
            advance(r, &r->at[i], r->end[i], times);
        }

    /* Packs are equal until a run ends in one of the slots. */
    while (result == PS_OK && times > 0) {
        uint64_t equal = times;
        uint32_t n = 0;

        for (uint32_t k = 0; k < slots; k++) {
            const cursor *c = &r->taking[k];

            if (c->run == r->stop[k])
                continue;
            r->lengths[n++] = r->runs[c->run].length;
            equal = ps_mem_min(equal, r->runs[c->run].count - c->taken);
        }
        if (n == 0) /* the remaining packs would be empty */
            break;
        result = ps_plan_add(plan, equal, r->lengths, n, err);
        for (uint32_t k = 0; k < slots; k++)
            advance(r, &r->taking[k], r->stop[k], equal);
        times -= equal;
    }
    return result;
}

ps_result ps_round(ps_plan *plan, const ps_histogram *h,
                   const ps_lp_input *input, const ps_basis *basis,
                   const double *used, uint64_t *left, ps_error *err)
{
    rounding r = {.h = h, .input = input, .basis = basis};
    ps_result result = PS_OK;
    ps_mem mem = {0};

    allocate(&r, input->instance.n, ps_histogram_size(h),
             input->instance.depth, &mem);
    if (mem.failed) {
        result = ps_fail_memory(err);
    } else {
        count_slots(&r, used);
        fill_rows(&r, left);
    }
    for (uint32_t j = 0; result == PS_OK && j < basis->n; j++)
        if (r.times[j] > 0) /* slack columns have no packs */
            result = add_packs(&r, j, plan, err);
    free(r.times);
    free(r.slots);
    free(r.runs);
    free(r.end);
    free(r.at);
    free(r.down);
    free(r.taking);
    free(r.stop);
    free(r.lengths);
    return result;
}
