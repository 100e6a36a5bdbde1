/*
 * open_bins.c - packs that are still open, shelved by the space left in them.
 *
 * Each shelf is a heap of groups, the one to be taken first on top: a skew
 * heap, because it needs no more than two links in each group, and because
 * it costs no more than a stack where the latest is always taken first.
 * What is in a pack is a list of runs, the last one first; groups that were
 * split from one another share the runs they have in common.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan/open_bins.h"

#include <stdlib.h>

#include "base/bitset.h"
#include "base/error.h"
#include "base/mem_bound.h"

#define FIRST_ROOM 1024

/* `times` sequences of a length, after those of `before`; 0 is no run. */
typedef struct run {
    uint32_t length;
    uint32_t times;
    uint32_t before;
} run;

/* Equal packs.  Group 0 stands for the packs that are not opened yet. */
typedef struct group {
    uint64_t count; /* 0: the group is gone */
    uint64_t order; /* the least is taken first */
    uint32_t spare; /* tokens */
    uint32_t depth; /* sequences */
    uint32_t run;   /* the last */
    uint32_t left;  /* in the heap; 0: none */
    uint32_t right;
} group;

typedef struct bins {
    ps_plan *plan;
    ps_fit fit;
    uint32_t capacity;
    uint32_t max; /* sequences in a pack */
    uint64_t next_order;
    uint32_t *tops;   /* the heap of each space; 0: empty */
    ps_bitset used;   /* spaces whose heap is not empty, as numbers */
    uint32_t *firsts; /* PS_FIT_FIRST: a tree of the first of the tops */
    uint32_t leaves;
    group *groups;
    uint32_t n_groups;
    uint32_t groups_room;
    run *runs;
    uint32_t n_runs;
    uint32_t runs_room;
} bins;

static bool takes_latest(const bins *s)
{
    return s->fit == PS_FIT_BEST_LATEST || s->fit == PS_FIT_WORST_LATEST;
}

/* ---------------------------------------------------------------------
 * Finding the group that comes next
 */

/* The best space is the one with the greatest number; its own inverse. */
static uint32_t number_of(const bins *s, uint32_t spare)
{
    return s->fit == PS_FIT_WORST_LATEST ? spare : s->capacity - spare;
}

static uint32_t earlier(const bins *s, uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0)
        return a == 0 ? b : a;
    return s->groups[a].order < s->groups[b].order ? a : b;
}

/* The first opened group with at least that space; 0 if there is none. */
static uint32_t find_first(const bins *s, uint32_t length)
{
    uint32_t at = s->leaves + length;
    uint32_t found = s->firsts[at];

    for (; at > 1; at /= 2)
        if (at % 2 == 0)
            found = earlier(s, found, s->firsts[at + 1]);
    return found;
}

/* The group that takes a sequence of that length; 0: a new pack does. */
static uint32_t find(const bins *s, uint32_t length)
{
    uint32_t limit = s->capacity;
    uint32_t number;

    if (s->fit == PS_FIT_FIRST)
        return find_first(s, length);
    if (s->fit != PS_FIT_WORST_LATEST)
        limit = number_of(s, length);
    if (!ps_bitset_at_most(&s->used, limit, &number) ||
        number_of(s, number) < length)
        return 0;
    return s->tops[number_of(s, number)];
}

/* To be called when the top of a heap is another one or has changed. */
static void top_changed(bins *s, uint32_t spare)
{
    uint32_t at = s->leaves + spare;

    if (s->fit != PS_FIT_FIRST) {
        if (s->tops[spare] != 0)
            ps_bitset_add(&s->used, number_of(s, spare));
        else
            ps_bitset_remove(&s->used, number_of(s, spare));
        return;
    }
    s->firsts[at] = s->tops[spare];
    for (; at > 1; at /= 2)
        s->firsts[at / 2] = earlier(s, s->firsts[at], s->firsts[at ^ 1]);
}

/* ---------------------------------------------------------------------
 * Heaps
 */

/* Merges two heaps from the top down, swapping branches on the way. */
static uint32_t merged(bins *s, uint32_t a, uint32_t b)
{
    uint32_t top = 0;
    uint32_t *to = &top;

    while (a != 0 && b != 0) {
        uint32_t first = earlier(s, a, b);
        uint32_t other = first == a ? b : a;
        group *g = &s->groups[first];

        *to = first;
        to = &g->left;
        a = g->right;
        b = other;
        g->right = g->left;
    }
    *to = a == 0 ? b : a;
    return top;
}

static void push(bins *s, uint32_t id)
{
    group *g = &s->groups[id];

    g->left = 0;
    g->right = 0;
    s->tops[g->spare] = merged(s, s->tops[g->spare], id);
    top_changed(s, g->spare);
}

static void pop(bins *s, uint32_t spare)
{
    const group *g = &s->groups[s->tops[spare]];

    s->tops[spare] = merged(s, g->left, g->right);
    top_changed(s, spare);
}

/* ---------------------------------------------------------------------
 * Groups
 */

/* Hands a group to the plan.  The last run is the shortest length. */
static ps_result finish(bins *s, group *g, ps_error *err)
{
    uint32_t *to;
    ps_result r = ps_plan_reserve(s->plan, g->count, g->depth, &to, err);

    if (r != PS_OK)
        return r;
    for (uint32_t i = g->run; i != 0; i = s->runs[i].before)
        for (uint32_t n = s->runs[i].times; n > 0; n--)
            *to++ = s->runs[i].length;
    g->count = 0;
    return PS_OK;
}

static ps_result finish_all(bins *s, ps_error *err)
{
    ps_result r = PS_OK;

    for (uint32_t i = 1; r == PS_OK && i < s->n_groups; i++)
        if (s->groups[i].count > 0)
            r = finish(s, &s->groups[i], err);
    return r;
}

/* Opens `count` packs; the group is not in a heap yet. */
static uint32_t open_packs(bins *s, uint64_t count)
{
    group *g = &s->groups[s->n_groups];

    *g = s->groups[0];
    g->count = count;
    g->order = s->next_order;
    if (!takes_latest(s))
        s->next_order += count;
    return s->n_groups++;
}

/*
 * Takes the first `count` packs of the group on top of its heap out, as a
 * group of their own.  Those that stay are still before the next group.
 */
static uint32_t take_out(bins *s, uint32_t id, uint64_t count)
{
    group *g = &s->groups[id];

    if (count == g->count) {
        pop(s, g->spare);
        return id;
    }
    s->groups[s->n_groups] = *g;
    s->groups[s->n_groups].count = count;
    g->count -= count;
    if (!takes_latest(s)) {
        g->order += count;
        top_changed(s, g->spare);
    }
    return s->n_groups++;
}

static void *grown(void *array, uint32_t *room, size_t size)
{
    void *more = NULL;

    if (*room <= UINT32_MAX / 2 && *room <= SIZE_MAX / 2 / size)
        more = realloc(array, 2 * (size_t)*room * size);
    if (more != NULL)
        *room *= 2;
    return more;
}

/* Room for another group and another run. */
static bool make_room(bins *s)
{
    void *more;

    if (s->n_groups == s->groups_room) {
        more = grown(s->groups, &s->groups_room, sizeof *s->groups);
        if (more == NULL)
            return false;
        s->groups = more;
    }
    if (s->n_runs == s->runs_room) {
        more = grown(s->runs, &s->runs_room, sizeof *s->runs);
        if (more == NULL)
            return false;
        s->runs = more;
    }
    return true;
}

/* Adds `times` sequences of a length to each of `count` packs of a group. */
static ps_result extend(bins *s, uint32_t id, uint64_t count,
                        uint32_t length, uint32_t times, ps_error *err)
{
    group *g;

    if (!make_room(s))
        return ps_fail_memory(err);
    id = id == 0 ? open_packs(s, count) : take_out(s, id, count);
    g = &s->groups[id];
    s->runs[s->n_runs] =
        (run){.length = length, .times = times, .before = g->run};
    g->run = s->n_runs++;
    g->spare -= length * times;
    g->depth += times;
    if (takes_latest(s))
        g->order = s->next_order--;
    if (g->spare == 0 || g->depth == s->max)
        return finish(s, g, err);
    push(s, id);
    return PS_OK;
}

/* ---------------------------------------------------------------------
 * Packing
 */

static uint64_t min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Finds places for `n` sequences of a length. */
static ps_result place(bins *s, uint32_t length, uint64_t n, bool repeat,
                       ps_error *err)
{
    ps_result r = PS_OK;

    while (r == PS_OK && n > 0) {
        uint32_t id = find(s, length);
        const group *g = &s->groups[id];
        uint64_t times = repeat ? g->spare / length : 1;
        uint64_t count;

        times = min(min(times, s->max - g->depth), n);
        count = min(g->count, n / times);
        r = extend(s, id, count, length, (uint32_t)times, err);
        n -= count * times;
    }
    return r;
}

/* Each sequence adds one run at most, and one group. */
uint64_t ps_open_bins_bytes(uint64_t sequences, uint32_t capacity, ps_fit fit)
{
    uint64_t n = ps_mem_sum(sequences, 1);
    uint64_t spaces = ps_mem_array((uint64_t)capacity + 1,
                                   sizeof(uint32_t));
    ps_mem mem = {.counts = true};
    ps_bitset used;

    /* The tree of PS_FIT_FIRST has four numbers for each space. */
    if (fit == PS_FIT_FIRST)
        spaces = ps_mem_times(5, spaces);
    else
        ps_bitset_init(&used, capacity, &mem);
    return ps_mem_sum(
        ps_mem_sum(spaces, mem.bytes),
        ps_mem_sum(ps_mem_growing(n, FIRST_ROOM, sizeof(group)),
                   ps_mem_growing(n, FIRST_ROOM, sizeof(run))));
}

/* What finds the next group; all of it is zero at first. */
static bool prepare_search(bins *s)
{
    size_t n = (size_t)s->capacity + 1;
    ps_mem mem = {0};

    s->tops = calloc(n, sizeof *s->tops);
    if (s->tops == NULL)
        return false;
    if (s->fit != PS_FIT_FIRST) {
        ps_bitset_init(&s->used, s->capacity, &mem);
        return !mem.failed;
    }
    for (s->leaves = 1; s->leaves < n;)
        s->leaves *= 2;
    s->firsts = calloc(2 * (size_t)s->leaves, sizeof *s->firsts);
    return s->firsts != NULL;
}

static bool prepare(bins *s)
{
    s->groups = malloc(FIRST_ROOM * sizeof *s->groups);
    s->runs = malloc(FIRST_ROOM * sizeof *s->runs);
    if (s->groups == NULL || s->runs == NULL || !prepare_search(s))
        return false;
    s->groups_room = FIRST_ROOM;
    s->runs_room = FIRST_ROOM;
    s->groups[0] =
        (group){.count = UINT64_MAX, .spare = s->capacity};
    s->runs[0] = (run){0};
    s->n_groups = 1;
    s->n_runs = 1;
    s->next_order = takes_latest(s) ? UINT64_MAX : 0;
    return true;
}

static void clear(bins *s)
{
    ps_bitset_destroy(&s->used);
    free(s->tops);
    free(s->firsts);
    free(s->groups);
    free(s->runs);
}

ps_result ps_open_bins_pack(ps_plan *plan, const ps_histogram *h,
                            const ps_plan_options *o, ps_fit fit, bool repeat,
                            ps_error *err)
{
    bins s = {.plan = plan,
               .fit = fit,
               .capacity = o->capacity,
               .max = o->depth};
    ps_result r = prepare(&s) ? PS_OK : ps_fail_memory(err);

    for (size_t i = ps_histogram_size(h); r == PS_OK && i-- > 0;)
        r = place(&s, ps_histogram_length(h, i), ps_histogram_count(h, i),
                  repeat, err);
    if (r == PS_OK)
        r = finish_all(&s, err);
    clear(&s);
    return r;
}
