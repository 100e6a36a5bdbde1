/*
 * policy_plan.c - a plan for what the window holds, made when it is full.
 *
 * Of a plan those packs leave, one after the other, that are at least as
 * full as its mean; then the next plan is made, and what the other packs
 * would have held has a better chance.  What has waited too long leaves in
 * the pack that the plan has for it.
 *
 * Sequences may come while a plan is carried out: they do not disturb it.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "engine/policy.h"
#include "plan/close.h"
#include "plan/plan.h"

typedef struct state {
    ps_policy_setup is;
    ps_plan *plan;   /* NULL: none */
    uint64_t *left;  /* by strategy: how often it is still to be used */
    size_t next;     /* before it, none is left that is full enough */
    uint64_t enough; /* tokens that a pack must have to leave in its turn */
} state;

/*
 * As the policy says.  What closes `auto` is quick, as flushes may be many;
 * the end comes once, and is planned with more care.
 */
static ps_result make_plan(ps_plan **plan, ps_policy policy, ps_leave leave,
                           const ps_histogram *h, const ps_plan_options *o,
                           ps_error *err)
{
    if (policy == PS_POLICY_SPFHP)
        return ps_plan_make(plan, h, PS_PLAN_SPFHP, o, err);
    if (leave == PS_LEAVE_LAST)
        return ps_plan_end(plan, h, o, err);
    if (policy == PS_POLICY_NNLSHP)
        return ps_plan_window(plan, h, o, err);
    return ps_plan_close(plan, h, o, err);
}

static uint64_t planner_bytes(ps_policy policy, const ps_plan_size *size)
{
    uint64_t bytes = ps_mem_max(ps_plan_close_bytes(size),
                                ps_plan_end_bytes(size));

    if (policy == PS_POLICY_SPFHP)
        return ps_plan_spfhp_bytes(size);
    if (policy == PS_POLICY_NNLSHP)
        return ps_mem_max(bytes, ps_plan_window_bytes(size));
    return bytes;
}

/*
 * A plan in the making, that of a load, or what is left of one: a number for
 * each strategy.
 */
static uint64_t bytes_of(const ps_policy_setup *is)
{
    const ps_plan_size size = {
        .sequences = is->window_size,
        .lengths = is->window_size < is->capacity ? is->window_size
                                                  : is->capacity,
        .capacity = is->capacity,
        .depth = is->depth,
    };
    uint64_t made = ps_mem_sum(planner_bytes(is->policy, &size),
                               ps_histogram_bytes(size.lengths));
    uint64_t loaded = ps_mem_sum(
        ps_plan_bytes(is->window_size),
        ps_mem_array((uint64_t)is->capacity + 1, sizeof(uint64_t)));
    uint64_t left = ps_mem_array(is->window_size, sizeof(uint64_t));

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
    s->is = *setup;
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

static bool never(void *p)
{
    (void)p;
    return false;
}

static bool never_when_admitted(void *p, uint32_t length)
{
    (void)length;
    return never(p);
}

static ps_result open_histogram(const ps_window *w, uint32_t capacity,
                                ps_histogram **h, ps_error *err)
{
    uint32_t length = ps_window_longest(w, capacity);
    ps_result r = ps_histogram_open(h, err);

    for (; r == PS_OK && length > 0;
         length = ps_window_longest(w, length - 1))
        r = ps_histogram_add(*h, length, ps_window_count_of(w, length), err);
    return r;
}

/* All of a plan is still to be used. */
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

static ps_result plan_window(state *s, ps_leave leave, ps_error *err)
{
    const ps_plan_options o = {.capacity = s->is.capacity,
                               .depth = s->is.depth,
                               .distribute = true,
                               .short_weight = PS_SHORT_WEIGHT,
                               .short_length = PS_SHORT_LENGTH};
    ps_histogram *h = NULL;
    ps_result r = open_histogram(s->is.window, s->is.capacity, &h, err);

    drop_plan(s);
    if (r == PS_OK)
        r = make_plan(&s->plan, s->is.policy, leave, h, &o, err);
    ps_histogram_free(h);
    if (r != PS_OK)
        return r;
    return count_left(s, err);
}

static uint64_t tokens_of(const uint32_t *lengths, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += lengths[i];
    return sum;
}

/* Makes a plan for what is held; when all is to leave, every pack will do. */
static ps_result start_plan(state *s, ps_leave leave, ps_error *err)
{
    ps_result r = plan_window(s, leave, err);

    if (r != PS_OK) {
        drop_plan(s);
        return r;
    }
    s->enough = leave != PS_LEAVE_DUE
                    ? 0
                    : ps_window_tokens(s->is.window) /
                          ps_plan_packs(s->plan);
    return PS_OK;
}

/* The next strategy that is full enough; false if none is left. */
static bool find_next(state *s, size_t *strategy)
{
    if (s->plan == NULL)
        return false;
    for (; s->next < ps_plan_strategies(s->plan); s->next++) {
        const uint32_t *lengths;
        uint32_t n;

        (void)ps_plan_strategy(s->plan, s->next, &lengths, &n);
        if (s->left[s->next] > 0 && tokens_of(lengths, n) >= s->enough) {
            *strategy = s->next;
            return true;
        }
    }
    return false;
}

/* A strategy with the length; false if none is left. */
static bool find_with(const state *s, uint32_t length, size_t *strategy)
{
    for (size_t i = 0; s->plan != NULL && i < ps_plan_strategies(s->plan);
         i++) {
        const uint32_t *lengths;
        uint32_t n;

        (void)ps_plan_strategy(s->plan, i, &lengths, &n);
        for (uint32_t k = 0; s->left[i] > 0 && k < n; k++)
            if (lengths[k] == length) {
                *strategy = i;
                return true;
            }
    }
    return false;
}

/* Finds what leaves next, the oldest or whatever is full enough. */
static bool find(state *s, bool the_oldest, size_t *strategy)
{
    uint32_t oldest = ps_window_oldest(s->is.window);

    if (the_oldest)
        return find_with(s, ps_window_length(s->is.window, oldest),
                         strategy);
    return find_next(s, strategy);
}

static bool must_be_oldest(const state *s, uint64_t now)
{
    uint32_t oldest = ps_window_oldest(s->is.window);
    uint64_t time = ps_window_time(s->is.window, oldest);

    return s->is.in_order ||
           (now > time && now - time >= s->is.max_delay);
}

static ps_result choose(void *p, uint64_t now, ps_leave leave,
                        uint32_t *slots, uint32_t *n, ps_error *err)
{
    state *s = p;
    bool the_oldest = must_be_oldest(s, now);
    const uint32_t *lengths;
    size_t strategy = 0;

    if (!find(s, the_oldest, &strategy)) {
        ps_result r = start_plan(s, leave, err);

        if (r != PS_OK)
            return r;
        (void)find(s, the_oldest, &strategy); /* a new plan has it */
    }
    s->left[strategy]--;
    (void)ps_plan_strategy(s->plan, strategy, &lengths, n);
    for (uint32_t i = 0; i < *n; i++)
        slots[i] = ps_window_take(s->is.window, lengths[i]);
    return PS_OK;
}

/* ---- Saved and loaded ---- */

static ps_result not_planned(ps_error *err)
{
    return ps_fail(err, PS_ERR_CORRUPT, "the plan in it makes no sense");
}

static void save(const void *p, ps_saver *saver)
{
    const state *s = p;
    size_t n = s->plan == NULL ? 0 : ps_plan_strategies(s->plan);
    uint32_t left = 0;

    for (size_t i = 0; i < n; i++)
        left += s->left[i] > 0;
    ps_save_u64(saver, s->enough);
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

/*
 * One strategy, which must fit in a pack, and its lengths be there: `used` of
 * each length are so already.
 */
static ps_result load_strategy(state *s, ps_restorer *restorer, uint64_t *used,
                               ps_error *err)
{
    uint64_t left = ps_load_u64(restorer);
    uint32_t n = ps_load_count(restorer, s->is.depth, 4);
    uint32_t room = s->is.capacity;
    uint32_t *lengths;
    ps_result r;

    if (restorer->failed || n == 0 || left == 0 ||
        left > ps_window_count(s->is.window))
        return not_planned(err);
    r = ps_plan_reserve(s->plan, left, n, &lengths, err);
    for (uint32_t k = 0; k < n && r == PS_OK; k++) {
        lengths[k] = ps_load_within(restorer, 1, s->is.capacity);
        used[lengths[k]] += left;
        if (restorer->failed || lengths[k] > room ||
            (k > 0 && lengths[k] < lengths[k - 1]) ||
            used[lengths[k]] > ps_window_count_of(s->is.window, lengths[k]))
            return not_planned(err);
        room -= lengths[k];
    }
    return r;
}

static ps_result load_plan(state *s, ps_restorer *restorer, uint32_t n,
                           ps_error *err)
{
    uint64_t *used = calloc((size_t)s->is.capacity + 1, sizeof *used);
    ps_result r = used == NULL ? ps_fail_memory(err)
                               : ps_plan_open(&s->plan, err);

    for (uint32_t i = 0; i < n && r == PS_OK; i++)
        r = load_strategy(s, restorer, used, err);
    free(used);
    return r == PS_OK ? count_left(s, err) : r;
}

/* Those used up are left out; it makes no difference. */
static ps_result load(void *p, ps_restorer *restorer, ps_error *err)
{
    state *s = p;
    uint32_t n;

    s->enough = ps_load_u64(restorer);
    n = ps_load_count(restorer, ps_window_count(s->is.window), 16);
    if (restorer->failed)
        return not_planned(err);
    return n == 0 ? PS_OK : load_plan(s, restorer, n, err);
}

const ps_policy_calls ps_policy_plan_calls = {
    .bytes = bytes_of,
    .open = open_state,
    .free = free_state,
    .is_ready = never,
    .admitted = never_when_admitted,
    .choose = choose,
    .save = save,
    .load = load,
};
