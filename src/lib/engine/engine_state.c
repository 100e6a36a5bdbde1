/*
 * engine_state.c - an engine saved between two records, and loaded.
 *
 * Of each sequence its time and length are saved: first of those in packs
 * that wait to be shuffled, then of the window by age.  Slots are given anew,
 * since nothing depends on their numbers.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>

#include "base/error.h"
#include "engine/engine.h"

#define SEQUENCE_BYTES 12

/* ---- Saved ---- */

static void save_sequence(const ps_engine *e, ps_saver *saver, uint32_t slot)
{
    ps_save_u64(saver, ps_window_time(e->window, slot));
    ps_save_u32(saver, ps_window_length(e->window, slot));
}

static uint32_t save_shuffled(const ps_engine *e, ps_saver *saver,
                              uint32_t *slots)
{
    uint32_t packs = ps_shuffle_packs(e->shuffle);
    uint32_t n = 0;

    ps_shuffle_save(e->shuffle, saver);
    ps_save_u32(saver, packs);
    for (uint32_t i = 0; i < packs; i++) {
        uint32_t of_pack = ps_shuffle_pack(e->shuffle, i, slots + n);

        ps_save_u32(saver, of_pack);
        for (uint32_t k = 0; k < of_pack; k++)
            save_sequence(e, saver, slots[n + k]);
        n += of_pack;
    }
    return n;
}

static uint32_t save_window(const ps_engine *e, ps_saver *saver,
                            uint32_t *slots)
{
    uint32_t n = 0;

    ps_save_u32(saver, ps_window_count(e->window));
    for (uint32_t s = ps_window_oldest(e->window); s != PS_NO_SLOT;
         s = ps_window_younger(e->window, s)) {
        save_sequence(e, saver, s);
        slots[n++] = s;
    }
    return n;
}

uint32_t ps_engine_save(const ps_engine *e, ps_saver *saver, uint32_t *slots)
{
    uint32_t n = 0;

    ps_save_u64(saver, e->now);
    ps_save_u64(saver, e->delay);
    if (e->shuffle != NULL)
        n = save_shuffled(e, saver, slots);
    n += save_window(e, saver, slots + n);
    if (e->calls->save != NULL)
        e->calls->save(e->state, saver);
    return n;
}

/* ---- Loaded ---- */

static ps_result makes_no_sense(ps_error *err)
{
    return ps_fail(err, PS_ERR_CORRUPT, "the window in it makes no sense");
}

/* One sequence, which is then the youngest of the window. */
static uint32_t load_sequence(const ps_engine *e, ps_restorer *restorer,
                              uint32_t capacity)
{
    uint64_t time = ps_load_u64(restorer);
    uint32_t length = ps_load_within(restorer, 1, capacity);

    if (time > e->now)
        restorer->failed = true;
    return ps_window_admit(e->window, length, time);
}

/*
 * One pack.  The window is empty, so what is admitted to it can be taken out
 * again at once.
 */
static ps_result load_pack(ps_engine *e, ps_restorer *restorer,
                           const ps_engine_options *o, uint32_t *slots,
                           uint32_t *n, ps_error *err)
{
    uint32_t room = o->capacity;
    uint32_t oldest;

    *n = ps_load_count(restorer, o->depth, SEQUENCE_BYTES);
    if (*n == 0 || ps_shuffle_is_full(e->shuffle))
        return makes_no_sense(err);
    for (uint32_t k = 0; k < *n; k++) {
        uint32_t length;

        slots[k] = load_sequence(e, restorer, o->capacity);
        length = ps_window_length(e->window, slots[k]);
        (void)ps_window_take(e->window, length);
        if (restorer->failed || length > room)
            return makes_no_sense(err);
        room -= length;
    }
    oldest = ps_engine_oldest_of(e, slots, *n);
    ps_shuffle_put(e->shuffle, slots, *n, oldest,
                   ps_window_time(e->window, oldest));
    return PS_OK;
}

static ps_result load_shuffled(ps_engine *e, ps_restorer *restorer,
                               const ps_engine_options *o, uint32_t *slots,
                               uint32_t *n, ps_error *err)
{
    uint32_t packs;
    ps_result r = PS_OK;

    ps_shuffle_load(e->shuffle, restorer);
    packs = ps_load_count(restorer, o->window, 4 + SEQUENCE_BYTES);
    for (uint32_t i = 0; i < packs && r == PS_OK; i++) {
        uint32_t of_pack;

        r = load_pack(e, restorer, o, slots + *n, &of_pack, err);
        *n += of_pack;
    }
    return r;
}

/* Each came after the one before it. */
static ps_result load_window(ps_engine *e, ps_restorer *restorer,
                             const ps_engine_options *o, uint32_t *slots,
                             uint32_t *n, ps_error *err)
{
    uint32_t count = ps_load_count(restorer, o->window, SEQUENCE_BYTES);

    for (uint32_t i = 0; i < count; i++) {
        slots[*n] = load_sequence(e, restorer, o->capacity);
        if (restorer->failed ||
            (i > 0 && ps_window_time(e->window, slots[*n]) <=
                          ps_window_time(e->window, slots[*n - 1])))
            return makes_no_sense(err);
        ++*n;
    }
    return restorer->failed ? makes_no_sense(err) : PS_OK;
}

ps_result ps_engine_load(ps_engine *e, ps_restorer *restorer,
                         const ps_engine_options *o, uint32_t *slots,
                         uint32_t *n, ps_error *err)
{
    ps_result r = PS_OK;

    *n = 0;
    e->now = ps_load_u64(restorer);
    e->delay = ps_load_u64(restorer);
    e->idle = 0;
    if (e->shuffle != NULL)
        r = load_shuffled(e, restorer, o, slots, n, err);
    if (r == PS_OK)
        r = load_window(e, restorer, o, slots, n, err);
    if (r == PS_OK && e->calls->load != NULL)
        r = e->calls->load(e->state, restorer, err);
    if (r == PS_OK && (restorer->failed || ps_engine_is_due(e)))
        r = makes_no_sense(err);
    return r;
}
