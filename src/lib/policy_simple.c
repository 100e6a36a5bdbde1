/*
 * policy_simple.c - policies that need no memory but the window: what other
 * packers do, to compare with, and where order is all that counts.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>

#include "error.h"
#include "policy.h"

static ps_result open_copy(void **state, const ps_policy_setup *setup,
                           ps_error *err)
{
    ps_policy_setup *copy = malloc(sizeof *copy);

    *state = copy;
    if (copy == NULL)
        return ps_fail_memory(err);
    *copy = *setup;
    return PS_OK;
}

static void ignore(void *state, uint32_t length)
{
    (void)state;
    (void)length;
}

static bool never(void *state)
{
    (void)state;
    return false;
}

/* The length of the oldest sequence; 0 if there is none. */
static uint32_t oldest_length(const ps_window *w)
{
    uint32_t slot = ps_window_oldest(w);

    return slot == PS_NO_SLOT ? 0 : ps_window_length(w, slot);
}

/* ---- The oldest, then the longest that fits ---- */

static ps_result choose_bestfit(void *state, uint64_t now, bool flush,
                                uint32_t *slots, uint32_t *n, ps_error *err)
{
    const ps_policy_setup *s = state;
    uint32_t room = s->capacity;
    uint32_t length = oldest_length(s->window);

    (void)now;
    (void)flush;
    (void)err;
    *n = 0;
    while (length > 0) {
        slots[(*n)++] = ps_window_take(s->window, length);
        room -= length;
        length = *n < s->depth ? ps_window_longest(s->window, room) : 0;
    }
    return PS_OK;
}

const ps_policy_calls ps_policy_bestfit_calls = {
    .open = open_copy,
    .free = free,
    .admitted = ignore,
    .is_ready = never,
    .choose = choose_bestfit,
};

/* ---- As they come ---- */

/*
 * True if the pack that the oldest sequences make is closed: the next of
 * them does not fit, or nothing would.  What is held is then that pack and
 * at most one sequence more, so the sums tell.
 */
static bool is_closed(void *state)
{
    const ps_policy_setup *s = state;

    return ps_window_tokens(s->window) >= s->capacity ||
           ps_window_count(s->window) >= s->depth;
}

static ps_result choose_nextfit(void *state, uint64_t now, bool flush,
                                uint32_t *slots, uint32_t *n, ps_error *err)
{
    const ps_policy_setup *s = state;
    uint32_t room = s->capacity;
    uint32_t length = oldest_length(s->window);

    (void)now;
    (void)flush;
    (void)err;
    *n = 0;
    while (length > 0 && length <= room && *n < s->depth) {
        slots[(*n)++] = ps_window_take(s->window, length);
        room -= length;
        length = oldest_length(s->window);
    }
    return PS_OK;
}

const ps_policy_calls ps_policy_nextfit_calls = {
    .open = open_copy,
    .free = free,
    .admitted = ignore,
    .is_ready = is_closed,
    .choose = choose_nextfit,
};

/* The pieces are cut to fit, so the next one always does. */
const ps_policy_calls ps_policy_concat_calls = {
    .open = open_copy,
    .free = free,
    .admitted = ignore,
    .is_ready = is_closed,
    .choose = choose_nextfit,
};

/* ---- Each alone ---- */

static bool has_some(void *state)
{
    const ps_policy_setup *s = state;

    return ps_window_count(s->window) > 0;
}

static ps_result choose_one(void *state, uint64_t now, bool flush,
                            uint32_t *slots, uint32_t *n, ps_error *err)
{
    const ps_policy_setup *s = state;

    (void)now;
    (void)flush;
    (void)err;
    slots[0] = ps_window_take(s->window, oldest_length(s->window));
    *n = 1;
    return PS_OK;
}

const ps_policy_calls ps_policy_none_calls = {
    .open = open_copy,
    .free = free,
    .admitted = ignore,
    .is_ready = has_some,
    .choose = choose_one,
};
