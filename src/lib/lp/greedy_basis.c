/*
 * greedy_basis.c - strategies by greed: a first basis for the relaxation, and
 * quick plans.
 *
 * Always the longest length there is gets company, and the strategy is
 * repeated until one of its lengths is used up.  As a basis that makes as
 * many strategies as lengths, and each lacks the lengths that were used up
 * before it: the basis is triangular.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lp/greedy_basis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"

#define MAX_TRIES 4096 /* for a pair, so that time grows with n only */
#define AT_ONCE 32      /* part of a great depth that one length may take */
#define STEPS_EACH 4    /* at most, of the capacity, for each length */

/* Lengths are counted from 1 here, so that 0 can say: none. */
typedef struct greed {
    const ps_lp_instance *instance;
    bool whole;      /* sequences are taken one by one as they are added */
    double slot;     /* what a sequence is worth by itself */
    double token;    /* and each of its tokens */
    double *left;    /* how many there are of each length */
    uint32_t *down;  /* of a length used up: one before; else itself */
    uint32_t *below; /* by steps of the capacity: how many lengths are */
    unsigned shift;  /* a step is 1 << shift tokens */
    ps_entries *list;
} greed;

static void free_greed(greed *g)
{
    free(g->left);
    free(g->down);
    free(g->below);
}

uint64_t ps_start_bytes(uint32_t n, uint32_t capacity)
{
    uint64_t lengths =
        ps_mem_array((uint64_t)n + 1, sizeof(double) + sizeof(uint32_t));

    uint64_t steps = ps_mem_min(capacity, (uint64_t)STEPS_EACH * n);

    return ps_mem_sum(lengths,
                      ps_mem_array(steps + 2, sizeof(uint32_t)));
}

static bool open_greed(greed *g, double slot)
{
    const ps_lp_instance *s = g->instance;
    uint32_t i = 0;
    uint32_t steps;

    g->shift = 0;
    while (s->capacity >> g->shift > (uint64_t)STEPS_EACH * s->n)
        g->shift++;
    steps = (s->capacity >> g->shift) + 1;
    g->slot = slot;
    g->token = (1 - slot * s->depth) / s->capacity;
    g->left = malloc(s->n * sizeof *g->left);
    g->down = malloc(((size_t)s->n + 1) * sizeof *g->down);
    g->below = malloc(((size_t)steps + 1) * sizeof *g->below);
    if (g->left == NULL || g->down == NULL || g->below == NULL)
        return false;
    memcpy(g->left, s->count, s->n * sizeof *g->left);
    for (uint32_t k = 0; k <= s->n; k++)
        g->down[k] = k;
    for (uint32_t k = 0; k <= steps; k++) {
        while (i < s->n && s->length[i] >> g->shift < k)
            i++;
        g->below[k] = i;
    }
    return true;
}

/* The longest length left that is not above `k`. */
static uint32_t left_up_to(greed *g, uint32_t k)
{
    while (g->down[k] != k) {
        g->down[k] = g->down[g->down[k]];
        k = g->down[k];
    }
    return k;
}

/* The longest length left that fits c tokens. */
static uint32_t longest(greed *g, uint32_t c)
{
    const uint32_t *length = g->instance->length;
    uint32_t low = g->below[c >> g->shift];
    uint32_t high = g->below[(c >> g->shift) + 1];

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (length[middle] <= c)
            low = middle + 1;
        else
            high = middle;
    }
    return left_up_to(g, low);
}

static void use_up(greed *g, uint32_t k)
{
    g->left[k - 1] = 0;
    g->down[k] = k - 1;
}

/* Adds `times` of length k to the column that ends the list. */
static bool add_items(greed *g, ps_column *column, uint32_t k,
                      uint32_t times)
{
    ps_entries *e = g->list;

    if (g->whole) {
        g->left[k - 1] -= times;
        if (g->left[k - 1] <= 0)
            use_up(g, k);
    }
    for (size_t i = column->first; i < e->n; i++)
        if (e->index[i] == k - 1) {
            e->value[i] += times;
            return true;
        }
    if (!ps_entries_reserve(e, 1))
        return false;
    e->index[e->n] = k - 1;
    e->value[e->n++] = times;
    column->n++;
    return true;
}

/* The two lengths that are worth most in c tokens, or one, or none. */
static void find_pair(greed *g, uint32_t c, uint32_t *shorter,
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
         k = left_up_to(g, k - 1), tries++) {
        uint32_t other = longest(g, c - length[k - 1]);
        uint32_t sum;
        double worth;

        if (other == k && g->whole && g->left[k - 1] < 2)
            other = left_up_to(g, k - 1);
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

/* A length for an even share of the space; 0 if there is none for it. */
static uint32_t find_share(greed *g, uint32_t c, uint32_t depth)
{
    uint32_t k = longest(g, c / depth);

    return k > 0 ? k : longest(g, c);
}

/* How much of length k to take at once: one, but more when many will fit. */
static uint32_t at_once(const greed *g, uint32_t c, uint32_t depth,
                        uint32_t k)
{
    uint32_t times = 1 + (depth - 2) / AT_ONCE;
    uint32_t fit = c / g->instance->length[k - 1];

    times = times < fit ? times : fit;
    if (g->whole && g->left[k - 1] < times)
        times = (uint32_t)g->left[k - 1];
    return times;
}

/*
 * Beside the longest length, k: even shares of the space, and in the end the
 * pair that is worth most.
 */
static bool build(greed *g, uint32_t k, ps_column *column)
{
    const uint32_t *length = g->instance->length;
    uint32_t c = g->instance->capacity - length[k - 1];
    uint32_t depth = g->instance->depth - 1;
    uint32_t a = 0, b;

    *column = (ps_column){.first = g->list->n};
    if (!add_items(g, column, k, 1))
        return false;
    while (depth > 2 && (k = find_share(g, c, depth)) > 0) {
        uint32_t times = at_once(g, c, depth, k);

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

/* The entry that is used up first when the column is repeated. */
static size_t find_scarce(const greed *g, const ps_column *column)
{
    const ps_entries *e = g->list;
    size_t scarce = column->first;

    for (size_t k = scarce + 1; k < e->n; k++)
        if (g->left[e->index[k]] / e->value[k] <
            g->left[e->index[scarce]] / e->value[scarce])
            scarce = k;
    return scarce;
}

/* Repeats the column until a length of it is used up, exactly one. */
static void repeat(greed *g, const ps_column *column)
{
    const ps_entries *e = g->list;
    size_t scarce = find_scarce(g, column);
    double times = g->left[e->index[scarce]] / e->value[scarce];

    for (size_t k = column->first; k < e->n; k++)
        g->left[e->index[k]] -= times * e->value[k];
    use_up(g, e->index[scarce] + 1);
}

bool ps_start(const ps_lp_instance *s, double slot, ps_entries *list,
              ps_column *columns)
{
    greed g = {.instance = s, .list = list};
    bool ok = open_greed(&g, slot);

    for (uint32_t j = 0; ok && j < s->n; j++) {
        ok = build(&g, longest(&g, s->capacity), &columns[j]);
        if (ok)
            repeat(&g, &columns[j]);
    }
    free_greed(&g);
    return ok;
}

/* Uses the strategy up that the list is; returns how often that is. */
static double repeat_whole(greed *g)
{
    const ps_entries *e = g->list;
    double times = HUGE_VAL;

    for (size_t k = 0; k < e->n; k++)
        times = fmin(times, floor(g->left[e->index[k]] / e->value[k]));
    for (size_t k = 0; k < e->n; k++) {
        uint32_t i = e->index[k];

        g->left[i] -= times * e->value[k];
        if (g->left[i] <= 0)
            use_up(g, i + 1);
    }
    return 1 + times;
}

/* Puts the entries of the column that ends the list in ascending order. */
static void sort(ps_entries *e, size_t first)
{
    for (size_t k = first + 1; k < e->n; k++) {
        uint32_t index = e->index[k];
        double value = e->value[k];
        size_t at = k;

        for (; at > first && e->index[at - 1] > index; at--) {
            e->index[at] = e->index[at - 1];
            e->value[at] = e->value[at - 1];
        }
        e->index[at] = index;
        e->value[at] = value;
    }
}

ps_result ps_greed(const ps_lp_instance *s, double slot, ps_take_strategy *take,
                   void *context, ps_error *err)
{
    ps_entries list = {0};
    greed g = {.instance = s, .whole = true, .list = &list};
    ps_result r = PS_OK;
    ps_column column;
    uint32_t k;

    if (!open_greed(&g, slot))
        r = ps_fail_memory(err);
    while (r == PS_OK && (k = longest(&g, s->capacity)) > 0) {
        list.n = 0;
        if (!build(&g, k, &column)) {
            r = ps_fail_memory(err);
        } else {
            sort(&list, 0);
            r = take(context, repeat_whole(&g), s, &list, err);
        }
    }
    free_greed(&g);
    ps_entries_free(&list);
    return r;
}
