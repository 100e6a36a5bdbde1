/*
 * engine.c - decide when packs are due, and have the policy choose them.
 *
 * A pack is due when the window is full, when a sequence has waited as long as
 * allowed, or when the policy says that waiting cannot improve it.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"

/* Size of a sequence in a state, without the budgets it uses. */
#define SEQUENCE_BYTES 12

/* A window with tokens for fewer packs offers too little choice. */
#define FEW_PACKS 8

/*
 * Upper bound on the number of distinct lengths in the window.  If the window
 * is limited by tokens, the sum of n distinct lengths, at least n (n + 1) / 2,
 * is limited, too.
 */
static uint32_t most_lengths(const ps_engine_options *o)
{
    const uint32_t most = o->window < o->capacity ? o->window : o->capacity;
    const double tokens = (double)o->enough + o->capacity;
    const double n = sqrt(2 * tokens) + 1;

    if (o->least == 0 || n >= most)
        return most;
    return n > o->least ? (uint32_t)n : o->least < most ? o->least : most;
}

/* With shuffling, the window may use half of the allowed delay. */
static ps_policy_setup setup_for(const ps_engine_options *o,
                                 ps_window *window)
{
    bool shuffled = o->order == PS_PACKS_SHUFFLED;
    ps_policy_setup setup = {
        .policy = o->policy,
        .window = window,
        .capacity = o->capacity,
        .depth = o->depth,
        .window_size = o->least == 0 ? o->window : o->least,
        .max_window = o->window,
        .max_lengths = most_lengths(o),
        .max_delay = shuffled ? (o->max_delay + 1) / 2 : o->max_delay,
        .in_order = o->order == PS_PACKS_BY_INPUT,
        .even_cost = o->even_cost,
        .learn_from = o->learn_from,
        .n_budgets = o->n_budgets,
        .by_topic = o->by_topic,
    };

    memcpy(setup.budgets, o->budgets, sizeof setup.budgets);
    return setup;
}

/* For the window, the pack being emitted, and packs that wait. */
uint32_t ps_engine_slots_for(const ps_engine_options *o)
{
    uint32_t slots = o->window + o->depth;

    return o->order == PS_PACKS_SHUFFLED
               ? slots + ps_shuffle_sequences(o->window, o->depth)
               : slots;
}

/* Numbers stored for each sequence. */
static uint32_t n_uses(const ps_engine_options *o)
{
    return o->n_budgets + o->by_topic;
}

static void allocate(ps_engine *e, const ps_engine_options *o, ps_mem *mem)
{
    uint32_t n_slots = ps_engine_slots_for(o);

    e->slots = ps_mem_alloc(mem, o->depth, sizeof *e->slots);
    if (n_uses(o) > 0)
        e->uses = ps_mem_alloc(mem, (uint64_t)n_slots * n_uses(o),
                               sizeof *e->uses);
    ps_window_init(&e->window, o->window, n_slots - o->window, o->capacity,
                   mem);
    if (o->order == PS_PACKS_SHUFFLED)
        e->shuffle = ps_shuffle_open(o->seed, o->window, n_slots, mem);
    if (o->least == 0)
        return;
    e->window.least = o->least;
    e->window.enough = o->enough;
    if (e->shuffle != NULL) {
        e->shuffle->least = o->least;
        e->shuffle->enough = o->enough;
    }
}

uint64_t ps_engine_bytes(const ps_engine_options *o)
{
    const ps_policy_setup setup = setup_for(o, NULL);
    ps_mem mem = {.bytes = sizeof(ps_engine), .counts = true};
    ps_engine e = {0};

    allocate(&e, o, &mem);
    return ps_mem_sum(mem.bytes,
                      ps_policy_calls_of(o->policy,
                                         o->n_budgets)->bytes(&setup));
}

ps_result ps_engine_open(ps_engine **engine, const ps_engine_options *o,
                         ps_error *err)
{
    ps_engine *e = calloc(1, sizeof *e);
    ps_policy_setup setup;
    ps_mem mem = {0};
    ps_result r;

    *engine = NULL;
    if (e == NULL)
        return ps_fail_memory(err);
    setup = setup_for(o, &e->window);
    e->calls = ps_policy_calls_of(o->policy, o->n_budgets);
    e->n_budgets = o->n_budgets;
    e->n_uses = n_uses(o);
    for (uint32_t b = 0; b < o->n_budgets; b++)
        e->enough[b] = o->least == 0 ? UINT64_MAX
                                     : PS_BUDGET_PACKS * o->budgets[b];
    e->n_slots = ps_engine_slots_for(o);
    e->few_tokens = o->n_budgets > 0 ? 0 : (uint64_t)FEW_PACKS * o->capacity;
    e->max_delay = o->max_delay;
    e->max_wait = setup.max_delay;
    allocate(e, o, &mem);
    setup.uses = e->uses;
    r = mem.failed ? ps_fail_memory(err)
                   : e->calls->open(&e->policy, &setup, err);
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
    if (e->policy != NULL)
        e->calls->free(e->policy);
    ps_shuffle_free(e->shuffle);
    ps_window_destroy(&e->window);
    free(e->slots);
    free(e->uses);
    free(e);
}

/* The oldest is in the window or in a pack that waits. */
uint32_t ps_engine_oldest(const ps_engine *e)
{
    const ps_window_slot *slots = e->window.slots;
    uint32_t here = e->window.oldest;
    uint32_t there = e->shuffle == NULL ? PS_NO_SLOT
                                        : ps_shuffle_oldest(e->shuffle);

    if (here == PS_NO_SLOT || there == PS_NO_SLOT)
        return here == PS_NO_SLOT ? there : here;
    return slots[here].time < slots[there].time ? here : there;
}

/* What the sequence in a slot uses of each budget, or its topic. */
static uint64_t *uses_of(const ps_engine *e, uint32_t slot)
{
    return e->uses + (size_t)slot * e->n_uses;
}

/* ---- What is due ---- */

/* Number of records that arrived after the sequence in a slot. */
static uint64_t age(const ps_engine *e, uint32_t slot)
{
    uint64_t time = e->window.slots[slot].time;

    return e->now > time ? e->now - time : 0;
}

/* True if the sequences held use enough of a budget. */
static bool uses_enough(const ps_engine *e)
{
    for (uint32_t b = 0; b < e->n_budgets; b++)
        if (e->used[b] >= e->enough[b])
            return e->window.count >= e->window.least;
    return false;
}

static inline bool is_full(const ps_engine *e)
{
    return ps_window_is_full(&e->window) ||
           (e->n_budgets > 0 && uses_enough(e));
}

/* True if a pack must be chosen from the window. */
static bool has_due_pack(const ps_engine *e, ps_emit_mode mode)
{
    const ps_window *w = &e->window;

    if (w->oldest == PS_NO_SLOT)
        return false;
    return mode != PS_EMIT_DUE || is_full(e) ||
           age(e, w->oldest) >= e->max_wait ||
           (e->calls->is_ready != NULL && e->calls->is_ready(e->policy));
}

/* True if the oldest waiting pack must be emitted now. */
static bool has_due_shuffled(const ps_engine *e)
{
    uint32_t oldest = ps_shuffle_oldest(e->shuffle);

    return oldest != PS_NO_SLOT && age(e, oldest) >= e->max_delay;
}

/* Time at which a pack becomes due by delay alone. */
static uint64_t next_due(const ps_engine *e)
{
    uint64_t time;

    if (e->window.oldest == PS_NO_SLOT)
        return UINT64_MAX;
    time = e->window.slots[e->window.oldest].time;
    return time > UINT64_MAX - e->max_wait ? UINT64_MAX : time + e->max_wait;
}

static void keep_uses(ps_engine *e, uint32_t slot, const uint64_t *uses)
{
    memcpy(uses_of(e, slot), uses, e->n_uses * sizeof *uses);
    for (uint32_t b = 0; b < e->n_budgets; b++)
        e->used[b] += uses[b];
}

/* Keeps idle_until, unless this sequence makes a pack due. */
uint32_t ps_engine_admit_at(ps_engine *e, uint32_t length,
                            const uint64_t *uses, uint64_t time)
{
    const ps_policy_calls *calls = e->calls;
    uint32_t slot = ps_window_admit(&e->window, length, time);

    if (e->n_uses > 0)
        keep_uses(e, slot, uses);
    if (calls->admitted != NULL)
        calls->admitted(e->policy, length);
    if (is_full(e) ||
        (calls->is_ready != NULL && calls->is_ready(e->policy)))
        e->idle_until = 0;
    else if (e->idle_until == UINT64_MAX)
        e->idle_until = next_due(e); /* the window was empty */
    return slot;
}

/* ---- Emitting packs ---- */

/* Has the policy choose a pack, and removes it from the window. */
static ps_result choose(ps_engine *e, ps_emit_mode mode, uint32_t *n,
                        ps_error *err)
{
    const ps_window *w = &e->window;
    ps_result r;

    if (mode == PS_EMIT_DUE && w->count == w->size &&
        w->tokens < e->few_tokens)
        e->scarce++;
    r = e->calls->choose(e->policy, e->now, mode, e->slots, n, err);
    for (uint32_t b = 0; r == PS_OK && b < e->n_budgets; b++)
        for (uint32_t i = 0; i < *n; i++)
            e->used[b] -= uses_of(e, e->slots[i])[b];
    return r;
}

/* Records the delays in a pack being emitted, and releases its slots. */
static void release(ps_engine *e, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t delay = age(e, e->slots[i]);

        e->delay = delay > e->delay ? delay : e->delay;
        ps_window_release(&e->window, e->slots[i]);
    }
}

static void put_shuffled(ps_engine *e, const uint32_t *slots, uint32_t n)
{
    const ps_window_slot *at = e->window.slots;
    uint32_t oldest = slots[0];
    uint64_t tokens = 0;

    for (uint32_t i = 0; i < n; i++) {
        tokens += at[slots[i]].length;
        if (at[slots[i]].time < at[oldest].time)
            oldest = slots[i];
    }
    ps_shuffle_put(e->shuffle, slots, n, tokens, oldest, at[oldest].time);
}

/* Chooses a pack, which then waits to be shuffled. */
static ps_result choose_shuffled(ps_engine *e, ps_emit_mode mode,
                                 ps_error *err)
{
    uint32_t n = 0;
    ps_result r = choose(e, mode, &n, err);

    if (r == PS_OK)
        put_shuffled(e, e->slots, n);
    return r;
}

ps_result ps_engine_decide(ps_engine *e, ps_emit_mode mode,
                           const uint32_t **slots, uint32_t *n, ps_error *err)
{
    ps_shuffle *s = e->shuffle;
    ps_result r = PS_OK;

    *slots = e->slots;
    *n = 0;
    if (s == NULL) {
        if (mode == PS_EMIT_DUE && ps_engine_is_idle(e))
            return PS_OK;
        if (has_due_pack(e, mode))
            r = choose(e, mode, n, err);
        else
            e->idle_until = next_due(e);
    } else {
        while (r == PS_OK && !ps_shuffle_is_full(s) && has_due_pack(e, mode))
            r = choose_shuffled(e, mode, err);
        if (r != PS_OK)
            return r;
        if (has_due_shuffled(e))
            *n = ps_shuffle_take(s, true, e->slots);
        else if (ps_shuffle_is_full(s) ||
                 (mode != PS_EMIT_DUE && s->sequences > 0))
            *n = ps_shuffle_take(s, false, e->slots);
    }
    if (r == PS_OK)
        release(e, *n);
    return r;
}

ps_result ps_engine_evict(ps_engine *e, const uint32_t **slots, uint32_t *n,
                          ps_error *err)
{
    ps_shuffle *s = e->shuffle;
    ps_result r = PS_OK;

    *slots = e->slots;
    *n = 0;
    if (e->window.tokens < e->few_tokens)
        e->evicted++;
    if (s == NULL) {
        if (e->window.count > 0)
            r = choose(e, PS_EMIT_DUE, n, err);
    } else {
        /* Keep half of the sequences in waiting packs, so that they mix. */
        while (r == PS_OK && !ps_shuffle_is_full(s) &&
               e->window.count > s->sequences)
            r = choose_shuffled(e, PS_EMIT_DUE, err);
        if (r == PS_OK && s->sequences > 0)
            *n = ps_shuffle_take(s, false, e->slots);
    }
    if (r == PS_OK)
        release(e, *n);
    return r;
}

/*
 * ---- Saving and loading ----
 *
 * A state has the time, length and uses of each sequence: first of those in
 * packs waiting to be shuffled, then of the window by age.  Slots are assigned
 * anew, since nothing depends on their numbers.
 */

uint32_t ps_engine_save(const ps_engine *e, ps_saver *saver, uint32_t *slots)
{
    const ps_shuffle *s = e->shuffle;
    const ps_window_slot *at = e->window.slots;
    uint32_t packs = s == NULL ? 0 : s->n_packs;
    uint32_t n = 0;

    ps_save_u64(saver, e->now);
    ps_save_u64(saver, e->delay);
    if (s != NULL) {
        ps_save_u64(saver, s->random);
        ps_save_u32(saver, packs);
    }
    for (uint32_t i = 0; i <= packs; i++) {
        uint32_t end = n;

        if (i < packs) {
            end += ps_shuffle_slots(s, i, slots + n);
        } else {
            for (uint32_t slot = e->window.oldest; slot != PS_NO_SLOT;
                 slot = at[slot].younger)
                slots[end++] = slot;
        }
        ps_save_u32(saver, end - n);
        for (; n < end; n++) {
            ps_save_u64(saver, at[slots[n]].time);
            ps_save_u32(saver, at[slots[n]].length);
            for (uint32_t b = 0; b < e->n_uses; b++)
                ps_save_u64(saver, uses_of(e, slots[n])[b]);
        }
    }
    if (e->calls->save != NULL)
        e->calls->save(e->policy, saver);
    return n;
}

/*
 * Loads what a sequence uses of each budget, or its topic.  `left` is what a
 * waiting pack has left of the budgets; NULL: the sequence is in the window.
 */
static void load_uses(ps_engine *e, ps_restorer *restorer,
                      const ps_engine_options *o, uint64_t *left,
                      uint32_t slot)
{
    uint64_t *uses = uses_of(e, slot);

    for (uint32_t b = 0; b < n_uses(o); b++)
        uses[b] = ps_load_u64(restorer);
    for (uint32_t b = 0; b < o->n_budgets; b++) {
        if (uses[b] > (left == NULL ? o->budgets[b] : left[b]))
            restorer->failed = true;
        else if (left == NULL)
            e->used[b] += uses[b];
        else
            left[b] -= uses[b];
    }
}

/*
 * Loads the sequences of a waiting pack, or of the window, and returns their
 * number.
 */
static uint32_t load_sequences(ps_engine *e, ps_restorer *restorer,
                               const ps_engine_options *o, bool waits,
                               uint32_t *slots)
{
    const ps_window_slot *at = e->window.slots;
    uint32_t room = o->capacity;
    uint64_t left[PS_MAX_BUDGETS];
    uint32_t count = ps_load_count(restorer, waits ? o->depth : o->window,
                                   SEQUENCE_BYTES + 8 * n_uses(o));

    memcpy(left, o->budgets, sizeof left);
    if (waits && (count == 0 || ps_shuffle_is_full(e->shuffle)))
        restorer->failed = true;
    for (uint32_t k = 0; k < count && !restorer->failed; k++) {
        uint64_t time = ps_load_u64(restorer);
        uint32_t length = ps_load_within(restorer, 1, o->capacity);

        /* In the window, times increase. */
        if (time > e->now || (waits && length > room) ||
            (!waits && k > 0 && time <= at[slots[k - 1]].time))
            restorer->failed = true;
        slots[k] = ps_window_admit(&e->window, length, time);
        if (n_uses(o) > 0)
            load_uses(e, restorer, o, waits ? left : NULL, slots[k]);
        /* The window is still empty: remove the sequence again. */
        if (waits)
            (void)ps_window_take(&e->window, length);
        room -= length;
    }
    return count;
}

ps_result ps_engine_load(ps_engine *e, ps_restorer *restorer,
                         const ps_engine_options *o, uint32_t *slots,
                         uint32_t *n, ps_error *err)
{
    ps_shuffle *s = e->shuffle;
    uint32_t packs = 0;
    ps_result r = PS_OK;

    e->now = ps_load_u64(restorer);
    e->delay = ps_load_u64(restorer);
    e->idle_until = 0;
    *n = 0;
    if (s != NULL) {
        s->random = ps_load_u64(restorer);
        packs = ps_load_count(restorer, PS_SHUFFLE_MAX_PACKS,
                              4 + SEQUENCE_BYTES);
    }
    /* Waiting packs, then the window. */
    for (uint32_t i = 0; i <= packs && !restorer->failed; i++) {
        const uint32_t count =
            load_sequences(e, restorer, o, i < packs, slots);

        if (i < packs && !restorer->failed)
            put_shuffled(e, slots, count);
        slots += count;
        *n += count;
    }

    if (!restorer->failed && e->calls->load != NULL)
        r = e->calls->load(e->policy, restorer, err);
    if (r == PS_OK &&
        (restorer->failed || has_due_pack(e, PS_EMIT_DUE) ||
         (s != NULL && (ps_shuffle_is_full(s) || has_due_shuffled(e)))))
        r = ps_fail(err, PS_ERR_CORRUPT, "the window in the state is invalid");
    return r;
}
