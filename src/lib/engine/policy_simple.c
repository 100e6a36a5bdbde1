/*
 * policy_simple.c - policies without a state: bestfit, nextfit, none and
 * concat.
 *
 * They are meant for comparison with other packers and for packing in input
 * order.
 * Each pack starts with the oldest sequence.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "engine/policy.h"

static uint64_t bytes_of(const ps_policy_setup *setup)
{
    return ps_mem_array(1, sizeof *setup);
}

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

static bool is_ready(const void *state)
{
    const ps_policy_setup *s = state;

    switch (s->policy) {
    case PS_POLICY_NONE:
        return s->window->count > 0;
    case PS_POLICY_NEXTFIT:
    case PS_POLICY_CONCAT:
        /*
         * The oldest sequences form the open pack.  It ends when it is full or
         * the next sequence does not fit.  The window holds no other sequences,
         * so its totals suffice.
         */
        return s->window->tokens >= s->capacity ||
               s->window->count >= s->depth;
    default:
        return false;
    }
}

static ps_result choose(void *state, uint64_t now, ps_emit_mode mode,
                        uint32_t *slots, uint32_t *n, ps_error *err)
{
    const ps_policy_setup *s = state;
    ps_window *w = s->window;
    uint32_t room = s->capacity;
    uint32_t length = w->slots[w->oldest].length;

    (void)now;
    (void)mode;
    (void)err;
    *n = 0;
    while (length > 0) {
        slots[(*n)++] = ps_window_take(w, length);
        room -= length;
        if (*n == s->depth || s->policy == PS_POLICY_NONE)
            break;
        if (s->policy == PS_POLICY_BESTFIT) {
            length = ps_window_longest(w, room);
        } else {
            /* With concat, pieces were cut to fit. */
            length = w->oldest == PS_NO_SLOT ? 0 : w->slots[w->oldest].length;
            length = length <= room ? length : 0;
        }
    }
    return PS_OK;
}

const ps_policy_calls ps_policy_simple_calls = {
    .bytes = bytes_of,
    .open = open_copy,
    .free = free,
    .is_ready = is_ready,
    .choose = choose,
};
