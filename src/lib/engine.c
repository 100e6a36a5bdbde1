/*
 * engine.c - decides which sequences make a pack, and when it leaves.
 *
 * A pack leaves when the window is full: until then every sequence that
 * comes can only better the choice.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine.h"

#include <stdlib.h>

#include "error.h"

struct ps_engine {
    const ps_policy *policy;
    ps_window *window;
    uint32_t capacity;
    uint32_t depth;
    uint32_t *slots; /* of the last decision */
};

ps_result ps_engine_open(ps_engine **engine, const ps_policy *policy,
                         uint32_t capacity, uint32_t depth, uint32_t window,
                         ps_error *err)
{
    ps_engine *e = calloc(1, sizeof *e);
    ps_result r;

    *engine = NULL;
    if (e == NULL)
        return ps_fail_memory(err);
    e->policy = policy;
    e->capacity = capacity;
    e->depth = depth;
    e->slots = malloc(depth * sizeof *e->slots);
    r = e->slots == NULL
            ? ps_fail_memory(err)
            : ps_window_open(&e->window, window, capacity, err);
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
    ps_window_free(e->window);
    free(e->slots);
    free(e);
}

uint32_t ps_engine_admit(ps_engine *e, uint32_t length)
{
    return ps_window_admit(e->window, length);
}

uint32_t ps_engine_decide(ps_engine *e, bool flush, const uint32_t **slots)
{
    *slots = e->slots;
    if (!ps_window_full(e->window) &&
        !(flush && ps_window_count(e->window) > 0))
        return 0;
    return e->policy->choose(e->window, e->capacity, e->depth, e->slots);
}

uint32_t ps_engine_oldest(const ps_engine *e)
{
    return ps_window_oldest(e->window);
}

uint32_t ps_engine_length(const ps_engine *e, uint32_t slot)
{
    return ps_window_length(e->window, slot);
}
