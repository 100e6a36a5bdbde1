/*
 * engine.c - decides which sequences make a pack, and when it leaves.
 *
 * A pack leaves when the window is full, when a sequence has waited as long
 * as it may, or when the policy says that no waiting can better it.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/engine.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"

static const ps_policy_calls *calls_of(ps_policy policy)
{
    switch (policy) {
    case PS_POLICY_AUTO:
        return &ps_policy_auto_calls;
    case PS_POLICY_SPFHP:
    case PS_POLICY_NNLSHP:
        return &ps_policy_plan_calls;
    default:
        return &ps_policy_simple_calls;
    }
}

const char *ps_policy_name(ps_policy policy)
{
    static const char *const names[] = {
        [PS_POLICY_AUTO] = "auto",       [PS_POLICY_SPFHP] = "spfhp",
        [PS_POLICY_NNLSHP] = "nnlshp",   [PS_POLICY_BESTFIT] = "bestfit",
        [PS_POLICY_NEXTFIT] = "nextfit", [PS_POLICY_NONE] = "none",
        [PS_POLICY_CONCAT] = "concat",
    };

    if ((unsigned)policy >= sizeof names / sizeof names[0])
        return NULL;
    return names[policy];
}

/* What is shuffled may wait in the window for half of the time. */
static uint64_t longest_wait(const ps_engine_options *o)
{
    return o->order == PS_PACKS_SHUFFLED ? (o->max_delay + 1) / 2
                                         : o->max_delay;
}

static ps_policy_setup setup_for(const ps_engine_options *o,
                                 ps_window *window)
{
    return (ps_policy_setup){
        .policy = o->policy,
        .window = window,
        .capacity = o->capacity,
        .depth = o->depth,
        .window_size = o->window,
        .max_delay = longest_wait(o),
        .in_order = o->order == PS_PACKS_BY_INPUT,
        .even_cost = o->even_cost,
    };
}

/* Slots beyond the window, for what waits in packs. */
static uint32_t spare_slots(const ps_engine_options *o)
{
    return o->order == PS_PACKS_SHUFFLED
               ? o->depth + ps_shuffle_sequences(o->window, o->depth)
               : o->depth;
}

uint32_t ps_engine_slots_for(const ps_engine_options *o)
{
    return o->window + spare_slots(o);
}

uint64_t ps_engine_bytes(const ps_engine_options *o)
{
    const ps_policy_setup setup = setup_for(o, NULL);
    uint64_t bytes = ps_mem_array(o->depth, sizeof(uint32_t));

    bytes = ps_mem_sum(bytes, sizeof(ps_engine));
    bytes = ps_mem_sum(
        bytes, ps_window_bytes(o->window, spare_slots(o), o->capacity));
    if (o->order == PS_PACKS_SHUFFLED)
        bytes = ps_mem_sum(bytes,
                           ps_shuffle_bytes(ps_engine_slots_for(o)));
    return ps_mem_sum(bytes, calls_of(o->policy)->bytes(&setup));
}

static ps_result open_policy(ps_engine *e, const ps_engine_options *o,
                             ps_error *err)
{
    const ps_policy_setup setup = setup_for(o, e->window);

    e->calls = calls_of(o->policy);
    return e->calls->open(&e->state, &setup, err);
}

static ps_result open_parts(ps_engine *e, const ps_engine_options *o,
                            ps_error *err)
{
    ps_result r;

    e->n_slots = ps_engine_slots_for(o);
    e->max_delay = o->max_delay;
    e->max_wait = longest_wait(o);
    e->slots = malloc(o->depth * sizeof *e->slots);
    if (e->slots == NULL)
        return ps_fail_memory(err);
    r = ps_window_open(&e->window, o->window, spare_slots(o), o->capacity,
                       err);
    if (r == PS_OK && o->order == PS_PACKS_SHUFFLED)
        r = ps_shuffle_open(&e->shuffle, o->seed, o->window, e->n_slots,
                            err);
    return r == PS_OK ? open_policy(e, o, err) : r;
}

ps_result ps_engine_open(ps_engine **engine, const ps_engine_options *o,
                         ps_error *err)
{
    ps_engine *e = calloc(1, sizeof *e);
    ps_result r;

    *engine = NULL;
    if (e == NULL)
        return ps_fail_memory(err);
    r = open_parts(e, o, err);
    if (r != PS_OK) {
        ps_engine_free(e);
        return r;
    }
    *engine = e;
    return PS_OK;
}

void ps_engine_free(ps_engine *e)
{
    if (e == NULL)
        return;
    if (e->state != NULL)
        e->calls->free(e->state);
    ps_shuffle_free(e->shuffle);
    ps_window_free(e->window);
    free(e->slots);
    free(e);
}

uint32_t ps_engine_slots(const ps_engine *e)
{
    return e->n_slots;
}

/* How many records came after a time. */
static uint64_t age(const ps_engine *e, uint64_t time)
{
    return e->now > time ? e->now - time : 0;
}

/* Whether a slot holds a sequence that has waited for so long. */
static bool is_aged(const ps_engine *e, uint32_t slot, uint64_t max)
{
    return slot != PS_NO_SLOT &&
           age(e, ps_window_time(e->window, slot)) >= max;
}

/* True if a pack is to leave the window. */
static bool is_due(const ps_engine *e, ps_leave leave)
{
    uint32_t oldest = ps_window_oldest(e->window);

    if (oldest == PS_NO_SLOT)
        return false;
    return leave != PS_LEAVE_DUE || ps_window_full(e->window) ||
           is_aged(e, oldest, e->max_wait) || e->calls->is_ready(e->state);
}

bool ps_engine_is_due(const ps_engine *e)
{
    return is_due(e, PS_LEAVE_DUE) ||
           (e->shuffle != NULL &&
            (ps_shuffle_is_full(e->shuffle) ||
             is_aged(e, ps_shuffle_oldest(e->shuffle), e->max_delay)));
}

/* When a pack is due because of time alone, if none is due now. */
static uint64_t idle_until(const ps_engine *e)
{
    uint32_t oldest = ps_window_oldest(e->window);
    uint64_t time;

    if (oldest == PS_NO_SLOT)
        return UINT64_MAX;
    time = ps_window_time(e->window, oldest);
    return time > UINT64_MAX - e->max_wait ? UINT64_MAX : time + e->max_wait;
}

/*
 * Whether a pack is due need not be asked again until the time that was
 * worked out when none was, unless this sequence makes one due.
 */
uint32_t ps_engine_admit(ps_engine *e, uint32_t length)
{
    uint32_t slot = ps_window_admit(e->window, length, e->now);
    bool ready = e->calls->admitted(e->state, length);

    if (ready || ps_window_full(e->window))
        e->idle = 0;
    else if (e->idle == UINT64_MAX)
        e->idle = idle_until(e); /* none was held */
    return slot;
}

/* Takes note of the delays in a pack that leaves, and frees its slots. */
static void release(ps_engine *e, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t delay = age(e, ps_window_time(e->window, e->slots[i]));

        e->delay = delay > e->delay ? delay : e->delay;
        ps_window_release(e->window, e->slots[i]);
    }
}

uint32_t ps_engine_oldest_of(const ps_engine *e, const uint32_t *slots,
                             uint32_t n)
{
    uint32_t oldest = slots[0];

    for (uint32_t i = 1; i < n; i++)
        if (ps_window_time(e->window, slots[i]) <
            ps_window_time(e->window, oldest))
            oldest = slots[i];
    return oldest;
}

/* Decides on a pack, which then waits among those that are shuffled. */
static ps_result shuffle_in(ps_engine *e, ps_leave leave, ps_error *err)
{
    uint32_t n = 0;
    ps_result r =
        e->calls->choose(e->state, e->now, leave, e->slots, &n, err);

    if (r == PS_OK) {
        uint32_t oldest = ps_engine_oldest_of(e, e->slots, n);

        ps_shuffle_put(e->shuffle, e->slots, n, oldest,
                       ps_window_time(e->window, oldest));
    }
    return r;
}

/* The same by way of the packs that are shuffled. */
static ps_result decide_shuffled(ps_engine *e, ps_leave leave, uint32_t *n,
                                 ps_error *err)
{
    while (!ps_shuffle_is_full(e->shuffle) && is_due(e, leave)) {
        ps_result r = shuffle_in(e, leave, err);

        if (r != PS_OK)
            return r;
    }
    *n = 0;
    if (is_aged(e, ps_shuffle_oldest(e->shuffle), e->max_delay))
        *n = ps_shuffle_take(e->shuffle, true, e->slots);
    else if (ps_shuffle_is_full(e->shuffle) ||
             (leave != PS_LEAVE_DUE && ps_shuffle_count(e->shuffle) > 0))
        *n = ps_shuffle_take(e->shuffle, false, e->slots);
    return PS_OK;
}

ps_result ps_engine_decide(ps_engine *e, ps_leave leave,
                           const uint32_t **slots, uint32_t *n, ps_error *err)
{
    ps_result r = PS_OK;

    *slots = e->slots;
    *n = 0;
    if (e->shuffle != NULL)
        r = decide_shuffled(e, leave, n, err);
    else if (leave == PS_LEAVE_DUE && ps_engine_is_idle(e))
        return PS_OK;
    else if (is_due(e, leave))
        r = e->calls->choose(e->state, e->now, leave, e->slots, n, err);
    else
        e->idle = idle_until(e);
    if (r == PS_OK)
        release(e, *n);
    return r;
}

/* Of what is held one half is to wait in packs, so that they are mixed. */
static ps_result evict_shuffled(ps_engine *e, uint32_t *n, ps_error *err)
{
    while (!ps_shuffle_is_full(e->shuffle) &&
           ps_window_count(e->window) > ps_shuffle_count(e->shuffle)) {
        ps_result r = shuffle_in(e, PS_LEAVE_DUE, err);

        if (r != PS_OK)
            return r;
    }
    if (ps_shuffle_count(e->shuffle) > 0)
        *n = ps_shuffle_take(e->shuffle, false, e->slots);
    return PS_OK;
}

ps_result ps_engine_evict(ps_engine *e, const uint32_t **slots, uint32_t *n,
                          ps_error *err)
{
    ps_result r = PS_OK;

    *slots = e->slots;
    *n = 0;
    if (e->shuffle != NULL)
        r = evict_shuffled(e, n, err);
    else if (ps_window_count(e->window) > 0)
        r = e->calls->choose(e->state, e->now, PS_LEAVE_DUE, e->slots, n,
                             err);
    if (r == PS_OK)
        release(e, *n);
    return r;
}

uint64_t ps_engine_tokens(const ps_engine *e)
{
    return ps_window_tokens(e->window);
}

uint64_t ps_engine_delay(const ps_engine *e)
{
    return e->delay;
}

/* Of the window, or of the packs that wait. */
uint32_t ps_engine_oldest(const ps_engine *e)
{
    uint32_t here = ps_window_oldest(e->window);
    uint32_t there = e->shuffle == NULL ? PS_NO_SLOT
                                        : ps_shuffle_oldest(e->shuffle);

    if (here == PS_NO_SLOT || there == PS_NO_SLOT)
        return here == PS_NO_SLOT ? there : here;
    return ps_window_time(e->window, here) < ps_window_time(e->window, there)
               ? here
               : there;
}
