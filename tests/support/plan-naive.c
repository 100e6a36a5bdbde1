/*
 * plan-naive.c - the packing algorithms in naive form, and histograms to plan
 * for.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan-naive.h"

#include <stdlib.h>
#include <string.h>

static uint32_t min(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

static void put(naive_group *g, uint32_t length, uint32_t times)
{
    g->spare -= length * times;
    while (times-- > 0)
        g->lengths[g->n++] = length;
}

static naive_group *open_group(naive_plan *p, uint32_t capacity,
                               uint64_t count)
{
    naive_group *g = &p->groups[p->n_groups++];

    assert_true(p->n_groups <= NAIVE_MAX);
    memset(g, 0, sizeof *g);
    g->count = count;
    g->spare = capacity;
    return g;
}

/* ------------------------------------------------- one sequence at a time */

static naive_group *fitting(naive_plan *p, uint32_t length, uint32_t depth,
                            bool best)
{
    naive_group *found = NULL;

    for (size_t i = 0; i < p->n_groups; i++) {
        naive_group *g = &p->groups[i];

        if (g->spare < length || g->n == depth)
            continue;
        if (found == NULL || (best && g->spare < found->spare))
            found = g;
    }
    return found;
}

void naive_decreasing(naive_plan *p, const ps_histogram *h,
                      uint32_t capacity, uint32_t depth, bool best)
{
    p->n_groups = 0;
    for (size_t i = ps_histogram_size(h); i-- > 0;) {
        uint32_t length = ps_histogram_length(h, i);

        for (uint64_t k = ps_histogram_count(h, i); k > 0; k--) {
            naive_group *g = fitting(p, length, depth, best);

            if (g == NULL)
                g = open_group(p, capacity, 1);
            put(g, length, 1);
        }
    }
}

/* --------------------------------------------------------- groups of packs */

/* The fullest or emptiest that fits; of equals, the last one changed. */
static naive_group *choose(naive_plan *p, uint32_t length, uint32_t depth,
                           bool longest)
{
    naive_group *found = NULL;

    for (size_t i = 0; i < p->n_groups; i++) {
        naive_group *g = &p->groups[i];

        if (g->spare < length || g->n == depth)
            continue;
        if (found == NULL ||
            (longest ? g->spare < found->spare : g->spare > found->spare) ||
            (g->spare == found->spare && g->changed > found->changed))
            found = g;
    }
    return found;
}

/* Splits `count` packs off a group that has more. */
static naive_group *split(naive_plan *p, naive_group *g, uint64_t count)
{
    naive_group *part;

    if (g->count == count)
        return g;
    part = open_group(p, 0, 0);
    *part = *g;
    part->count = count;
    g->count -= count;
    return part;
}

void naive_packs_first(naive_plan *p, const ps_histogram *h,
                       uint32_t capacity, uint32_t depth, bool longest,
                       bool repeat)
{
    p->n_groups = 0;
    p->clock = 0;
    for (size_t i = ps_histogram_size(h); i-- > 0;) {
        uint32_t length = ps_histogram_length(h, i);
        uint64_t n = ps_histogram_count(h, i);

        while (n > 0) {
            naive_group *g = choose(p, length, depth, longest);
            uint32_t spare = g == NULL ? capacity : g->spare;
            uint32_t free_depth = g == NULL ? depth : depth - g->n;
            uint32_t times = repeat ? min(spare / length, free_depth) : 1;
            uint64_t count;

            times = min(times, n);
            count = n / times;
            if (g == NULL)
                g = open_group(p, capacity, count);
            else if (count > g->count)
                count = g->count;
            g = split(p, g, count);
            put(g, length, times);
            g->changed = ++p->clock;
            n -= count * times;
        }
    }
}

/* ------------------------------------------------------------- comparison */

/* A pack in canonical form: ascending, followed by zeros. */
typedef struct form {
    uint32_t lengths[NAIVE_MAX];
} form;

typedef struct forms {
    size_t n;
    form of[NAIVE_MAX];
} forms;

static int compare_lengths(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;

    return (*x > *y) - (*x < *y);
}

static int compare_forms(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(form));
}

static void add_forms(forms *f, uint64_t count, const uint32_t *lengths,
                      uint32_t n)
{
    form one = {{0}};

    assert_true(n <= NAIVE_MAX);
    memcpy(one.lengths, lengths, n * sizeof *lengths);
    qsort(one.lengths, n, sizeof *one.lengths, compare_lengths);
    while (count-- > 0) {
        assert_true(f->n < NAIVE_MAX);
        f->of[f->n++] = one;
    }
}

void assert_same_packs(const ps_plan *plan, const naive_plan *naive)
{
    forms *a = must_alloc(sizeof *a);
    forms *b = must_alloc(sizeof *b);

    memset(a, 0, sizeof *a);
    memset(b, 0, sizeof *b);
    for (size_t i = 0; i < ps_plan_strategies(plan); i++) {
        const uint32_t *lengths;
        uint32_t n;
        uint64_t count = ps_plan_strategy(plan, i, &lengths, &n);

        add_forms(a, count, lengths, n);
    }
    for (size_t i = 0; i < naive->n_groups; i++)
        add_forms(b, naive->groups[i].count, naive->groups[i].lengths,
                  naive->groups[i].n);
    qsort(a->of, a->n, sizeof *a->of, compare_forms);
    qsort(b->of, b->n, sizeof *b->of, compare_forms);
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a, b, sizeof *a);
    free(a);
    free(b);
}

/* ------------------------------------------------------------- histograms */

ps_histogram *open_histogram(void)
{
    ps_histogram *h;
    ps_error err;

    assert_ok(ps_histogram_open(&h, &err), &err);
    return h;
}

void add_lengths(ps_histogram *h, uint32_t length, uint64_t count)
{
    ps_error err;

    assert_ok(ps_histogram_add(h, length, count, &err), &err);
}

ps_histogram *histogram_of(const char *text)
{
    ps_histogram *h = open_histogram();
    char *end;

    while (*text != '\0') {
        uint32_t length = (uint32_t)strtoul(text, &end, 10);

        assert_int_equal(*end, ':');
        add_lengths(h, length, strtoull(end + 1, &end, 10));
        text = *end == ' ' ? end + 1 : end;
    }
    return h;
}

ps_histogram *random_histogram(uint64_t *random, uint32_t lengths,
                               uint32_t longest, uint64_t max)
{
    ps_histogram *h = open_histogram();

    while (lengths-- > 0) {
        uint32_t length = 1 + random_below(random, longest);

        add_lengths(h, length, 1 + random_next(random) % max);
    }
    return h;
}

ps_plan_options plan_options(uint32_t capacity, uint32_t depth)
{
    return (ps_plan_options){.capacity = capacity,
                             .depth = depth,
                             .distribute = true,
                             .short_weight = PS_SHORT_WEIGHT,
                             .short_length = PS_SHORT_LENGTH,
                             .batch = 8};
}

uint64_t packs_of(const ps_histogram *h, ps_algorithm algorithm,
                  const ps_plan_options *o)
{
    ps_plan *plan;
    uint64_t packs;
    ps_error err;

    assert_ok(ps_plan_make(&plan, h, algorithm, o, &err), &err);
    assert_ok(ps_plan_check(plan, h, o, &err), &err);
    packs = ps_plan_packs(plan);
    ps_plan_free(plan);
    return packs;
}
