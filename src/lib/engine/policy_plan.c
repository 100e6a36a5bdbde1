/*
 * policy_plan.c - policies that plan the whole window when it is full.
 *
 * The packs of a plan that are at least as full as its mean are emitted one
 * after the other.  Then the next plan is made, in which the remaining
 * sequences may fit better.  A sequence that has waited too long is emitted in
 * the pack to which the plan assigns it.
 *
 * Sequences that arrive while a plan is in use do not affect it.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "engine/policy.h"
#include "plan/plan.h"
#include "plan/window_plan.h"

#define SMALL_PART 8 /* a window with less than 1/8 of all arrivals is small */

typedef struct state {
    ps_policy_setup setup;
    ps_plan *plan;       /* NULL: none */
    uint64_t *left;      /* packs left, by strategy */
    size_t next;         /* earlier strategies have no pack full enough */
    uint64_t min_tokens; /* in a pack that is full enough, units */
} state;

/* The maximum over making, loading and using a plan. */
static uint64_t bytes_of(const ps_policy_setup *o)
{
    const ps_plan_size size = {
        .sequences = o->max_window,
        .lengths = o->max_lengths,
        .capacity = o->capacity,
        .depth = o->depth,
    };
    uint64_t made = ps_mem_max(ps_plan_window_bytes(&size, PS_EFFORT_LOW),
                               ps_plan_window_bytes(&size, PS_EFFORT_HIGH));
    uint64_t loaded = ps_mem_sum(
        ps_plan_bytes(o->max_window),
        ps_mem_array((uint64_t)o->capacity + 1, sizeof(uint64_t)));
    uint64_t left = ps_mem_array(o->max_window, sizeof(uint64_t));

    if (o->policy == PS_POLICY_SPFHP)
        made = ps_plan_decreasing_bytes(&size, PS_PLAN_SPFHP);
    else if (o->policy == PS_POLICY_NNLSHP)
        made = ps_mem_max(made,
                          ps_plan_window_bytes(&size, PS_EFFORT_MEDIUM));
    made = ps_mem_sum(made, ps_histogram_bytes(size.lengths));
    return ps_mem_sum(sizeof(state),
                      ps_mem_sum(left, ps_mem_max(made, loaded)));
}

static ps_result open_state(void **p, const ps_policy_setup *setup,
                            ps_error *err)
{
    state *s = calloc(1, sizeof *s);

    *p = s;
    if (s == NULL)
        return ps_fail_memory(err);
    s->setup = *setup;
    return PS_OK;
}

static void drop_plan(state *s)
{
    ps_plan_free(s->plan);
    free(s->left);
    s->plan = NULL;
    s->left = NULL;
}

static void free_state(void *p)
{
    drop_plan(p);
    free(p);
}

/* ---- The plan ---- */

/* Starts using a plan. */
static ps_result count_left(state *s, ps_error *err)
{
    size_t n = ps_plan_strategies(s->plan);

    s->left = calloc(n, sizeof *s->left);
    if (s->left == NULL)
        return ps_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        const uint32_t *lengths;
        uint32_t count;

        s->left[i] = ps_plan_strategy(s->plan, i, &lengths, &count);
    }
    s->next = 0;
    return PS_OK;
}

/*
 * Makes a plan for the window.  If everything is to be packed, all packs of the
 * plan are used.  For `auto` this is quick, since there can be many flushes.
 * The end of the input gets more effort if the window holds more than a small
 * part of all arrivals, because a few packs matter only then.
 */
static ps_result plan_window(state *s, uint64_t now, ps_emit_mode mode,
                             ps_error *err)
{
    const ps_policy_setup *setup = &s->setup;
    const ps_plan_options o = {.capacity = setup->capacity,
                               .depth = setup->depth,
                               .distribute = true,
                               .short_weight = PS_SHORT_WEIGHT,
                               .short_length = PS_SHORT_LENGTH};
    const ps_window *w = setup->window;
    const ps_effort effort =
        mode == PS_EMIT_FINISH && w->count > now / SMALL_PART
            ? PS_EFFORT_HIGH
        : setup->policy == PS_POLICY_NNLSHP ? PS_EFFORT_MEDIUM
                                            : PS_EFFORT_LOW;
    uint32_t length = ps_window_longest(w, setup->capacity);
    ps_histogram *h = NULL;
    ps_result r = ps_histogram_open(&h, err);

    for (; r == PS_OK && length > 0;
         length = ps_window_longest(w, length - 1))
        r = ps_histogram_add(h, length, w->queues[length].count, err);
    drop_plan(s);
    if (r == PS_OK)
        r = setup->policy == PS_POLICY_SPFHP
                ? ps_plan_make(&s->plan, h, PS_PLAN_SPFHP, &o, err)
                : ps_plan_window(&s->plan, h, effort, &o, err);
    ps_histogram_free(h);
    if (r == PS_OK)
        r = count_left(s, err);
    if (r != PS_OK) {
        drop_plan(s);
        return r;
    }
    s->min_tokens =
        mode == PS_EMIT_DUE ? w->tokens / ps_plan_packs(s->plan) : 0;
    return PS_OK;
}

/*
 * Finds the strategy to use next: one with the oldest sequence, or the next
 * that is full enough.  False if there is none.
 */
static bool find_strategy(state *s, bool with_oldest, size_t *strategy)
{
    const ps_window *w = s->setup.window;
    uint32_t oldest = w->slots[w->oldest].length;
    size_t n = s->plan == NULL ? 0 : ps_plan_strategies(s->plan);
    size_t i;

    for (i = with_oldest ? 0 : s->next; i < n; i++) {
        const uint32_t *lengths;
        uint32_t count;
        uint64_t tokens = 0;
        bool has_oldest = false;

        (void)ps_plan_strategy(s->plan, i, &lengths, &count);
        for (uint32_t k = 0; s->left[i] > 0 && k < count; k++) {
            tokens += lengths[k];
            has_oldest |= lengths[k] == oldest;
        }
        if (with_oldest ? has_oldest
                        : s->left[i] > 0 && tokens >= s->min_tokens)
            break;
    }
    if (!with_oldest)
        s->next = i;
    *strategy = i;
    return i < n;
}

static ps_result choose(void *p, uint64_t now, ps_emit_mode mode,
                        uint32_t *slots, uint32_t *n, ps_error *err)
{
    state *s = p;
    ps_window *w = s->setup.window;
    uint64_t time = w->slots[w->oldest].time;
    bool with_oldest = s->setup.in_order ||
                       (now > time && now - time >= s->setup.max_delay);
    const uint32_t *lengths;
    size_t strategy;

    if (!find_strategy(s, with_oldest, &strategy)) {
        ps_result r = plan_window(s, now, mode, err);

        if (r != PS_OK)
            return r;
        (void)find_strategy(s, with_oldest, &strategy); /* succeeds now */
    }
    s->left[strategy]--;
    (void)ps_plan_strategy(s->plan, strategy, &lengths, n);
    for (uint32_t i = 0; i < *n; i++)
        ps_policy_take(&s->setup, lengths[i], slots, i);
    return PS_OK;
}

/* ---- Saving and loading ---- */

static void save(const void *p, ps_saver *saver)
{
    const state *s = p;
    size_t n = s->plan == NULL ? 0 : ps_plan_strategies(s->plan);
    uint32_t left = 0;

    for (size_t i = 0; i < n; i++)
        left += s->left[i] > 0;
    ps_save_u64(saver, s->min_tokens);
    ps_save_u32(saver, left);
    for (size_t i = 0; i < n; i++) {
        const uint32_t *lengths;
        uint32_t count;

        if (s->left[i] == 0)
            continue;
        (void)ps_plan_strategy(s->plan, i, &lengths, &count);
        ps_save_u64(saver, s->left[i]);
        ps_save_u32(saver, count);
        for (uint32_t k = 0; k < count; k++)
            ps_save_u32(saver, lengths[k]);
    }
}

/* Used-up strategies were not saved, which makes no difference. */
static ps_result load(void *p, ps_restorer *restorer, ps_error *err)
{
    state *s = p;
    const ps_window *w = s->setup.window;
    uint64_t *used = NULL; /* sequences in the strategies, by length */
    uint32_t n;
    ps_result r = PS_OK;

    s->min_tokens = ps_load_u64(restorer);
    n = ps_load_count(restorer, w->count, 16);
    if (n > 0) {
        used = calloc((size_t)s->setup.capacity + 1, sizeof *used);
        r = used == NULL ? ps_fail_memory(err) : ps_plan_open(&s->plan, err);
    }
    for (uint32_t i = 0; i < n && r == PS_OK; i++) {
        uint64_t left = ps_load_u64(restorer);
        uint32_t count = ps_load_count(restorer, s->setup.depth, 4);
        uint32_t room = s->setup.capacity;
        uint32_t *lengths;

        /* After a failure the count is 0. */
        if (count == 0 || left == 0 || left > w->count) {
            restorer->failed = true;
            break;
        }
        r = ps_plan_reserve(s->plan, left, count, &lengths, err);
        for (uint32_t k = 0; k < count && r == PS_OK; k++) {
            lengths[k] = ps_load_within(restorer, 1, s->setup.capacity);
            used[lengths[k]] += left;
            if (lengths[k] > room || (k > 0 && lengths[k] < lengths[k - 1]) ||
                used[lengths[k]] > w->queues[lengths[k]].count)
                restorer->failed = true;
            room -= lengths[k];
        }
    }
    free(used);
    if (r == PS_OK && restorer->failed)
        r = ps_fail(err, PS_ERR_CORRUPT, "the plan in the state is invalid");
    return r == PS_OK && n > 0 ? count_left(s, err) : r;
}

const ps_policy_calls ps_policy_plan_calls = {
    .bytes = bytes_of,
    .open = open_state,
    .free = free_state,
    .choose = choose,
    .save = save,
    .load = load,
};
