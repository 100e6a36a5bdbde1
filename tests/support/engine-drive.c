/*
 * engine-drive.c - sends lengths through an engine, as the packer does, and
 * checks the packs.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine-drive.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

#define U64 "%" PRIu64

static bool fail(driver *d, const char *format, ...) PS_PRINTF(2, 3);

static bool fail(driver *d, const char *format, ...)
{
    char *to = d->figures.fault;
    size_t room = sizeof d->figures.fault;
    int n = snprintf(to, room, "record " U64 ": ", d->now);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(to + n, room - (size_t)n, format, args);
    va_end(args);
    return false;
}

/* FNV-1a, one number at a time. */
static void digest(driver *d, uint64_t number)
{
    d->figures.digest =
        (d->figures.digest ^ number) * UINT64_C(0x100000001b3);
}

static bool judge_sequence(driver *d, uint32_t slot, uint64_t *sum,
                           uint64_t *oldest)
{
    drive_held *h;

    if (slot >= d->engine->n_slots)
        return fail(d, "slot %" PRIu32 " does not exist", slot);
    h = &d->slots[slot];
    if (h->tick == 0)
        return fail(d, "nothing is in slot %" PRIu32, slot);
    if (ps_engine_length(d->engine, slot) != h->length)
        return fail(d, "slot %" PRIu32 " has another length", slot);
    if (d->now - h->tick > d->figures.delay)
        d->figures.delay = d->now - h->tick;
    if (h->number < *oldest)
        *oldest = h->number;
    *sum += h->length;
    d->waiting[h->tick]--;
    digest(d, h->tick);
    digest(d, h->length);
    *h = (drive_held){0};
    d->left++;
    return true;
}

static bool judge_pack(driver *d, const uint32_t *slots, uint32_t n)
{
    const ps_engine_options *o = d->options;
    uint64_t sum = 0;
    uint64_t oldest = UINT64_MAX;

    digest(d, d->now);
    digest(d, n);
    if (n > o->depth)
        return fail(d, "a pack of %" PRIu32 " sequences", n);
    for (uint32_t i = 0; i < n; i++)
        if (!judge_sequence(d, slots[i], &sum, &oldest))
            return false;
    if (sum > o->capacity)
        return fail(d, "a pack of " U64 " tokens", sum);
    if (o->order == PS_PACKS_BY_INPUT && oldest < d->last)
        return fail(d, "a pack from piece " U64 " on after one from " U64,
                    oldest, d->last);
    d->last = oldest;
    d->tokens -= sum;
    d->figures.packs++;
    return true;
}

/* Checks the oldest waiting piece and the delay that the engine reports. */
static bool judge_rest(driver *d)
{
    uint32_t slot = ps_engine_oldest(d->engine);
    uint64_t oldest = slot == PS_NO_SLOT ? UINT64_MAX : d->slots[slot].tick;

    while (d->oldest <= d->now && d->waiting[d->oldest] == 0)
        d->oldest++;
    if (oldest != (d->oldest > d->now ? UINT64_MAX : d->oldest))
        return fail(d, "the oldest is of " U64 ", not " U64, d->oldest,
                    oldest);
    if (d->figures.delay > d->options->max_delay)
        return fail(d, "a delay of " U64, d->figures.delay);
    if (d->engine->delay != d->figures.delay)
        return fail(d, "the delay is " U64 ", not " U64, d->figures.delay,
                    d->engine->delay);
    return true;
}

bool drive_packs(driver *d, ps_emit_mode mode)
{
    uint64_t before = d->figures.packs;
    const uint32_t *slots;
    uint32_t n = 1;
    ps_error err;

    while (n > 0) {
        if (ps_engine_decide(d->engine, mode, &slots, &n, &err) != PS_OK)
            return fail(d, "%s", err.text);
        if (n > 0 && !(judge_pack(d, slots, n) && judge_rest(d)))
            return false;
    }
    if (mode == PS_EMIT_DUE &&
        d->figures.packs - before > d->figures.burst)
        d->figures.burst = d->figures.packs - before;
    if (mode != PS_EMIT_DUE &&
        (d->tokens != 0 || d->engine->window.tokens != 0))
        return fail(d, "tokens are left after a flush");
    return judge_rest(d);
}

static bool admit(driver *d, uint32_t length)
{
    uint32_t slot = ps_engine_admit(d->engine, length, NULL);

    if (slot >= d->engine->n_slots)
        return fail(d, "slot %" PRIu32 " does not exist", slot);
    if (d->slots[slot].tick != 0)
        return fail(d, "slot %" PRIu32 " is taken", slot);
    if (ps_engine_length(d->engine, slot) != length)
        return fail(d, "slot %" PRIu32 " took another length", slot);
    d->slots[slot] = (drive_held){++d->admitted, d->now, length};
    d->waiting[d->now]++;
    if (d->oldest > d->now)
        d->oldest = d->now;
    d->tokens += length;
    return drive_packs(d, PS_EMIT_DUE);
}

bool drive_tick(driver *d)
{
    d->now++;
    ps_engine_tick(d->engine);
    return drive_packs(d, PS_EMIT_DUE);
}

bool drive_record(driver *d, uint32_t length)
{
    const ps_engine_options *o = d->options;
    uint32_t left = length;
    uint32_t room;

    if (!drive_tick(d))
        return false;
    if (o->policy != PS_POLICY_CONCAT)
        return admit(d, length);
    while (left > 0) {
        room = o->capacity - (uint32_t)d->engine->window.tokens;
        if (room == 0 || room > o->capacity)
            return fail(d, "a full pack does not leave");
        room = left < room ? left : room;
        left -= room;
        if (!admit(d, room))
            return false;
    }
    return true;
}

bool drive_open(driver *d, const ps_engine_options *options, size_t records)
{
    ps_error err;

    *d = (driver){.options = options, .oldest = 1};
    if (ps_engine_open(&d->engine, options, &err) != PS_OK)
        return fail(d, "%s", err.text);
    if (d->engine->n_slots < options->window)
        return fail(d, "fewer slots than the window has");
    d->slots = calloc(d->engine->n_slots, sizeof *d->slots);
    d->waiting = calloc(records + 1, sizeof *d->waiting);
    if (d->slots == NULL || d->waiting == NULL)
        return fail(d, "out of memory");
    return judge_rest(d);
}

void drive_close(driver *d)
{
    free(d->slots);
    free(d->waiting);
    ps_engine_free(d->engine);
}

bool drive(const ps_engine_options *options, const uint32_t *lengths,
           size_t n, size_t flush_every, drive_figures *figures)
{
    driver d;
    bool good = drive_open(&d, options, n);

    for (size_t i = 0; good && i < n; i++) {
        good = drive_record(&d, lengths[i]);
        if (good && flush_every != 0 && (i + 1) % flush_every == 0)
            good = drive_packs(&d, PS_EMIT_DRAIN);
    }
    good = good && drive_packs(&d, PS_EMIT_FINISH);
    *figures = d.figures;
    drive_close(&d);
    return good;
}
