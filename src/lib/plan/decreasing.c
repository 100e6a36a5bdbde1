/*
 * decreasing.c - first fit, best fit and worst fit on a histogram: ffd, bfd,
 * lpfhp and spfhp.
 *
 * SPDX-License-Identifier: MIT
 *
 * All four share one procedure.  Lengths are processed from longest to
 * shortest.  Equal packs form a group.  A step changes a whole group, or a part
 * split off from it.  The algorithms differ in the group they choose next.
 *
 * lpfhp, longest pack first, is bfd except for the choice among equally full
 * packs.  Without a depth limit both give equally many packs; with a limit the
 * numbers can differ.  spfhp is shortest pack first.
 *
 * ffd and bfd give the same packs as the textbook procedures on individual
 * sequences.  Adding several sequences of a length to a pack at once does not
 * change that: the pack that was first, or fullest, still is after taking a
 * sequence.  With spfhp, and with lpfhp without o->distribute, a pack takes one
 * at a time.  Packs opened by a length then take no second sequence of it,
 * since there are as many packs as sequences.
 *
 * Groups with equal space form a skew heap, topped by the group to choose
 * first.  It needs only two links per group, and costs no more than a stack
 * when the latest is always chosen first.  The contents of a pack are a linked
 * list of runs, last run first.  Groups split from each other share their
 * common runs.
 *
 * Time: O(log capacity) per step.  A step completes a length or extends a whole
 * group, so there are at most as many steps as lengths in the plan's
 * strategies.  Memory: 52 bytes per step, and 4 bytes per token of capacity, up
 * to 20 for first fit.
 */

#include <stdlib.h>

#include "base/bitset.h"
#include "base/error.h"
#include "base/mem_bound.h"
#include "plan/plan.h"

#define MIN_GROUPS 1024

/* Which of the open packs with enough space takes a sequence. */
typedef enum fit {
    FIT_FIRST,       /* the one opened first */
    FIT_BEST,        /* the fullest; ties go to the first opened */
    FIT_BEST_LATEST, /* the fullest; ties go to the last changed */
    FIT_WORST_LATEST /* the emptiest; ties go to the last changed */
} fit;

static const fit fits[] = {
    [PS_PLAN_FFD] = FIT_FIRST,
    [PS_PLAN_BFD] = FIT_BEST,
    [PS_PLAN_SPFHP] = FIT_WORST_LATEST,
    [PS_PLAN_LPFHP] = FIT_BEST_LATEST,
};

/* `times` sequences of one length, added after run `before`.  Run 0: empty. */
typedef struct run {
    uint32_t length; /* tokens */
    uint32_t times;  /* at least 1 */
    uint32_t before; /* index of the run before it */
} run;

/* Equal packs.  Group 0 represents packs not opened yet. */
typedef struct group {
    uint64_t count; /* packs; 0: removed */
    uint64_t order; /* the lowest is chosen first */
    uint32_t spare; /* unused tokens */
    uint32_t depth; /* number of sequences */
    uint32_t run;   /* last run */
    uint32_t left;  /* child in the heap; 0: none */
    uint32_t right;
} group;

typedef struct bins {
    ps_plan *plan;
    fit fit;
    bool latest; /* the group changed last precedes others */
    uint32_t capacity;
    uint32_t max; /* maximum number of sequences per pack */
    uint64_t next_order; /* order of the next new or changed group */
    uint32_t *tops;   /* [capacity + 1], top of the heap per space; 0: empty */
    ps_bitset used;   /* numbers of the spaces whose heap is not empty */
    uint32_t *firsts; /* FIT_FIRST: tournament tree over the tops */
    uint32_t leaves;  /* number of leaves of `firsts`, a power of two */
    group *groups;
    uint32_t n_groups;
    size_t groups_capacity;
    run *runs;
    uint32_t n_runs;
    size_t runs_capacity;
} bins;

/* ---- Choosing the next group ---- */

/*
 * Maps a space to a number such that the best space has the greatest number.
 * The function is its own inverse.
 */
static uint32_t number_of(const bins *s, uint32_t spare)
{
    return s->fit == FIT_WORST_LATEST ? spare : s->capacity - spare;
}

static uint32_t earlier(const bins *s, uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0)
        return a == 0 ? b : a;
    return s->groups[a].order < s->groups[b].order ? a : b;
}

/* Returns the group that takes a sequence of this length; 0: a new pack. */
static uint32_t find(const bins *s, uint32_t length)
{
    uint32_t limit = s->capacity;
    uint32_t number;

    if (s->fit == FIT_FIRST) {
        uint32_t at = s->leaves + length;
        uint32_t found = s->firsts[at];

        for (; at > 1; at /= 2)
            if (at % 2 == 0)
                found = earlier(s, found, s->firsts[at + 1]);
        return found;
    }
    if (s->fit != FIT_WORST_LATEST)
        limit = number_of(s, length);
    if (!ps_bitset_at_most(&s->used, limit, &number) ||
        number_of(s, number) < length)
        return 0;
    return s->tops[number_of(s, number)];
}

/* Updates the index after the top of a heap was replaced or changed. */
static void top_changed(bins *s, uint32_t spare)
{
    uint32_t at = s->leaves + spare;

    if (s->fit != FIT_FIRST) {
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

/* Merges two skew heaps from the top down. */
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

/* ---- Groups ---- */

/* Adds a group to the plan.  Its last run has the shortest length. */
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

/*
 * Splits the first `count` packs off the group on top of its heap.  The rest of
 * the group still precedes the next group.
 */
static uint32_t take_out(bins *s, uint32_t id, uint64_t count)
{
    group *g = &s->groups[id];

    if (count == g->count) {
        s->tops[g->spare] = merged(s, g->left, g->right);
        top_changed(s, g->spare);
        return id;
    }
    s->groups[s->n_groups] = *g;
    s->groups[s->n_groups].count = count;
    g->count -= count;
    if (!s->latest) {
        g->order += count;
        top_changed(s, g->spare);
    }
    return s->n_groups++;
}

/* Ensures space for another group and another run. */
static bool make_space(bins *s)
{
    void *grown = NULL;

    if (s->n_groups < UINT32_MAX / 2 && s->n_runs < UINT32_MAX / 2)
        grown = ps_array_grow(s->groups, &s->groups_capacity,
                              (size_t)s->n_groups + 1, MIN_GROUPS,
                              sizeof *s->groups);
    if (grown == NULL)
        return false;
    s->groups = grown;
    grown = ps_array_grow(s->runs, &s->runs_capacity, (size_t)s->n_runs + 1,
                          MIN_GROUPS, sizeof *s->runs);
    if (grown == NULL)
        return false;
    s->runs = grown;
    return true;
}

/* Adds `times` sequences of a length to each of `count` packs of a group. */
static ps_result extend(bins *s, uint32_t id, uint64_t count,
                        uint32_t length, uint32_t times, ps_error *err)
{
    group *g;

    if (!make_space(s))
        return ps_fail_memory(err);
    if (id == 0) { /* new packs */
        id = s->n_groups++;
        s->groups[id] = s->groups[0];
        s->groups[id].count = count;
        s->groups[id].order = s->next_order;
        if (!s->latest)
            s->next_order += count;
    } else {
        id = take_out(s, id, count);
    }
    g = &s->groups[id];
    s->runs[s->n_runs] =
        (run){.length = length, .times = times, .before = g->run};
    g->run = s->n_runs++;
    g->spare -= length * times;
    g->depth += times;
    if (s->latest)
        g->order = s->next_order--;
    if (g->spare == 0 || g->depth == s->max)
        return finish(s, g, err);

    g->left = 0;
    g->right = 0;
    s->tops[g->spare] = merged(s, s->tops[g->spare], id);
    top_changed(s, g->spare);
    return PS_OK;
}

/* ---- Packing ---- */

/* Allocates the index, zeroed. */
static void allocate(bins *s, ps_mem *mem)
{
    uint64_t spaces = (uint64_t)s->capacity + 1;

    s->tops = ps_mem_alloc(mem, spaces, sizeof *s->tops);
    if (s->fit != FIT_FIRST) {
        ps_bitset_init(&s->used, s->capacity, mem);
        return;
    }
    for (s->leaves = 1; s->leaves < spaces;)
        s->leaves *= 2;
    s->firsts = ps_mem_alloc(mem, 2 * (uint64_t)s->leaves,
                             sizeof *s->firsts);
}

/* Each sequence adds at most one run and one group. */
uint64_t ps_plan_decreasing_bytes(const ps_plan_size *size,
                                  ps_algorithm algorithm)
{
    uint64_t n = ps_mem_sum(size->sequences, 1);
    bins s = {.fit = fits[algorithm], .capacity = size->capacity};
    ps_mem mem = {.bytes = ps_plan_bytes(size->sequences), .counts = true};

    allocate(&s, &mem);
    return ps_mem_sum(
        mem.bytes, ps_mem_sum(ps_mem_growing(n, MIN_GROUPS, sizeof(group)),
                              ps_mem_growing(n, MIN_GROUPS, sizeof(run))));
}

ps_result ps_plan_decreasing(ps_plan *plan, const ps_histogram *h,
                             ps_algorithm algorithm, const ps_plan_options *o,
                             ps_error *err)
{
    /* Add as many sequences as fit before choosing the next pack. */
    bool repeat = algorithm == PS_PLAN_LPFHP ? o->distribute
                                             : algorithm != PS_PLAN_SPFHP;
    bins s = {.plan = plan,
              .fit = fits[algorithm],
              .capacity = o->capacity,
              .max = o->depth};
    ps_mem mem = {0};
    ps_result r = PS_OK;

    s.latest = s.fit == FIT_BEST_LATEST || s.fit == FIT_WORST_LATEST;
    allocate(&s, &mem);
    if (mem.failed || !make_space(&s)) {
        r = ps_fail_memory(err);
    } else {
        s.groups[s.n_groups++] =
            (group){.count = UINT64_MAX, .spare = s.capacity};
        s.runs[s.n_runs++] = (run){0};
        s.next_order = s.latest ? UINT64_MAX : 0;
    }

    for (size_t i = ps_histogram_size(h); r == PS_OK && i-- > 0;) {
        uint32_t length = ps_histogram_length(h, i);
        uint64_t n = ps_histogram_count(h, i);

        while (r == PS_OK && n > 0) {
            uint32_t id = find(&s, length);
            const group *g = &s.groups[id];
            uint64_t times = repeat ? g->spare / length : 1;
            uint64_t count;

            times = ps_mem_min(ps_mem_min(times, s.max - g->depth), n);
            count = ps_mem_min(g->count, n / times);
            r = extend(&s, id, count, length, (uint32_t)times, err);
            n -= count * times;
        }
    }
    for (uint32_t i = 1; r == PS_OK && i < s.n_groups; i++)
        if (s.groups[i].count > 0)
            r = finish(&s, &s.groups[i], err);
    ps_bitset_destroy(&s.used);
    free(s.tops);
    free(s.firsts);
    free(s.groups);
    free(s.runs);
    return r;
}
