/*
 * greedy_basis.c - greedy strategies: a first basis for the relaxation, and
 * fast plans.
 *
 * SPDX-License-Identifier: MIT
 *
 * Each strategy starts with the longest remaining length, is filled up, and is
 * repeated until one of its lengths is used up.  This gives as many strategies
 * as lengths.  No strategy contains a length used up by an earlier one, so they
 * form a triangular basis.
 */

#include "lp/greedy_basis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "lp/lengths.h"

#define MAX_TRIES 4096 /* per pair, so that time is linear in n */
#define AT_ONCE 32     /* a length may take 1 / AT_ONCE of the depth */
#define STEPS_EACH 4   /* maximum number of steps per length */

/* Lengths are numbered from 1 here; 0 means none. */
typedef struct greedy {
    const ps_lp_instance *instance;
    bool whole;      /* count down sequences as they are added */
    double slot;     /* value of a sequence, packs */
    double token;    /* value of a token, packs */
    double *left;    /* [n], remaining sequences of each length */
    uint32_t *down;  /* of a used-up length: a lower one; otherwise itself */
    uint32_t *below; /* number of lengths below each step */
    unsigned shift;  /* a step is 1 << shift tokens */
    ps_entries *list;
} greedy;

static void allocate(greedy *g, uint32_t n, uint32_t steps, ps_mem *mem)
{
    g->left = ps_mem_alloc(mem, n, sizeof *g->left);
    g->down = ps_mem_alloc(mem, (uint64_t)n + 1, sizeof *g->down);
    g->below = ps_mem_alloc(mem, (uint64_t)steps + 2, sizeof *g->below);
}

uint64_t ps_greedy_bytes(uint32_t n, uint32_t capacity)
{
    uint64_t steps = ps_mem_min(capacity, (uint64_t)STEPS_EACH * n);
    ps_mem mem = {.counts = true};
    greedy g;

    allocate(&g, n, (uint32_t)steps, &mem);
    return mem.bytes;
}

static bool open_greedy(greedy *g, double slot)
{
    const ps_lp_instance *s = g->instance;
    ps_mem mem = {0};
    uint32_t i = 0;
    uint32_t steps;

    while (s->capacity >> g->shift > (uint64_t)STEPS_EACH * s->n)
        g->shift++;
    steps = s->capacity >> g->shift;
    allocate(g, s->n, steps, &mem);
    if (mem.failed)
        return false;

    g->slot = slot;
    g->token = (1 - slot * s->depth) / s->capacity;
    memcpy(g->left, s->count, s->n * sizeof *g->left);
    for (uint32_t k = 0; k <= s->n; k++)
        g->down[k] = k;
    for (uint32_t k = 0; k <= steps + 1; k++) {
        while (i < s->n && s->length[i] >> g->shift < k)
            i++;
        g->below[k] = i;
    }
    return true;
}

static void close_greedy(greedy *g)
{
    free(g->left);
    free(g->down);
    free(g->below);
}

/* Returns the longest remaining length that fits c tokens. */
static uint32_t longest(greedy *g, uint32_t c)
{
    const uint32_t *below = &g->below[c >> g->shift];

    return ps_left_up_to(g->down, ps_lengths_up_to(g->instance->length,
                                                   below[0], below[1], c));
}

static void use_up(greedy *g, uint32_t k)
{
    g->left[k - 1] = 0;
    g->down[k] = k - 1;
}

/* Adds `times` sequences of length k to the last column of the list. */
static bool add_items(greedy *g, ps_column *column, uint32_t k,
                      uint32_t times)
{
    if (g->whole) {
        g->left[k - 1] -= times;
        if (g->left[k - 1] <= 0)
            use_up(g, k);
    }
    return ps_column_add(g->list, column, k - 1, times);
}

/* Finds the one or two lengths with the greatest total value in c tokens. */
static void find_pair(greedy *g, uint32_t c, uint32_t *shorter,
                      uint32_t *longer)
{
    const uint32_t *length = g->instance->length;
    uint32_t tries = 0;
    double max;

    *shorter = 0;
    *longer = longest(g, c);
    if (*longer == 0)
        return;
    max = g->slot + g->token * length[*longer - 1];
    for (uint32_t k = longest(g, c / 2); k > 0 && tries < MAX_TRIES;
         k = ps_left_up_to(g->down, k - 1), tries++) {
        uint32_t other = longest(g, c - length[k - 1]);
        uint32_t sum;
        double worth;

        if (other == k && g->whole && g->left[k - 1] < 2)
            other = ps_left_up_to(g->down, k - 1);
        if (other == 0)
            break;
        sum = length[k - 1] + length[other - 1];
        worth = 2 * g->slot + g->token * sum;
        if (worth > max) {
            max = worth;
            *shorter = k;
            *longer = other;
        }
        if (sum == c)
            break;
    }
}

/*
 * Fills a pack whose longest sequence has length k: first with lengths close to
 * an even share of the space left, then with the most valuable pair.
 */
static bool build(greedy *g, uint32_t k, ps_column *column)
{
    const uint32_t *length = g->instance->length;
    uint32_t c = g->instance->capacity - length[k - 1];
    uint32_t depth = g->instance->depth - 1;
    uint32_t a = 0, b;

    *column = (ps_column){.first = g->list->n};
    if (!add_items(g, column, k, 1))
        return false;
    while (depth > 2) {
        uint32_t times = 1 + (depth - 2) / AT_ONCE;
        uint32_t fit;

        k = longest(g, c / depth);
        if (k == 0)
            k = longest(g, c);
        if (k == 0)
            break;
        /* Take one, or several if many will fit. */
        fit = c / length[k - 1];
        times = times < fit ? times : fit;
        if (g->whole && g->left[k - 1] < times)
            times = (uint32_t)g->left[k - 1];
        if (!add_items(g, column, k, times))
            return false;
        c -= times * length[k - 1];
        depth -= times;
    }
    b = depth == 0 ? 0 : longest(g, c);
    if (depth == 2)
        find_pair(g, c, &a, &b);
    return (a == 0 || add_items(g, column, a, 1)) &&
           (b == 0 || add_items(g, column, b, 1));
}

bool ps_greedy_basis(const ps_lp_instance *s, double slot, ps_entries *list,
                     ps_column *columns)
{
    greedy g = {.instance = s, .list = list};
    bool ok = open_greedy(&g, slot);

    for (uint32_t j = 0; ok && j < s->n; j++) {
        size_t scarce = list->n;
        double times;

        ok = build(&g, longest(&g, s->capacity), &columns[j]);
        if (!ok)
            break;
        /* Repeat the column until exactly one of its lengths is used up. */
        for (size_t k = scarce + 1; k < list->n; k++)
            if (g.left[list->index[k]] / list->value[k] <
                g.left[list->index[scarce]] / list->value[scarce])
                scarce = k;
        times = g.left[list->index[scarce]] / list->value[scarce];
        for (size_t k = columns[j].first; k < list->n; k++)
            g.left[list->index[k]] -= times * list->value[k];
        use_up(&g, list->index[scarce] + 1);
    }
    close_greedy(&g);
    return ok;
}

/* Insertion sort by index; there are few entries. */
static void sort(ps_entries *e)
{
    for (size_t k = 1; k < e->n; k++) {
        uint32_t index = e->index[k];
        double value = e->value[k];
        size_t at = k;

        for (; at > 0 && e->index[at - 1] > index; at--) {
            e->index[at] = e->index[at - 1];
            e->value[at] = e->value[at - 1];
        }
        e->index[at] = index;
        e->value[at] = value;
    }
}

ps_result ps_greedy_strategies(const ps_lp_instance *s, double slot,
                               ps_take_strategy *take, void *context,
                               ps_error *err)
{
    ps_entries list = {0};
    greedy g = {.instance = s, .whole = true, .list = &list};
    ps_result r = PS_OK;
    ps_column column;
    uint32_t first;

    if (!open_greedy(&g, slot))
        r = ps_fail_memory(err);
    while (r == PS_OK && (first = longest(&g, s->capacity)) > 0) {
        double more = HUGE_VAL;

        list.n = 0;
        if (!build(&g, first, &column)) {
            r = ps_fail_memory(err);
            break;
        }
        sort(&list);
        /* Already taken once.  Repeat it until a length is used up. */
        for (size_t k = 0; k < list.n; k++)
            more = fmin(more, floor(g.left[list.index[k]] / list.value[k]));
        for (size_t k = 0; k < list.n; k++) {
            uint32_t i = list.index[k];

            g.left[i] -= more * list.value[k];
            if (g.left[i] <= 0)
                use_up(&g, i + 1);
        }
        r = take(context, 1 + more, s, &list, err);
    }
    close_greedy(&g);
    ps_entries_free(&list);
    return r;
}
