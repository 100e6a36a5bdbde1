/*
 * balance.c - whether the window holds more or less of short, middle and
 * long sequences than the stream brings.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/balance.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "engine/dual_prices.h"

#define LAST_KNOT (PS_BALANCE_KNOTS - 1)
#define SHARE_ONE (INT64_C(1) << 30)

/*
 * The weight of a kind that is held twice as often as it comes, if it is a
 * large part of the stream.  It is little, as prices follow what is held, too;
 * but where pairs are chosen, or prices are linear, nothing else keeps the
 * mixture.
 */
#define STRENGTH (PS_SCORE_ONE / 64)
#define STRONG (PS_SCORE_ONE / 16)
#define MAX_WEIGHT (STRONG * 4)

/* A share counts as that much more, so that a rare kind is no great one. */
#define MIN_SHARE (SHARE_ONE / 10)

/* The stream's shares are those of its last windows, about so many. */
#define SHARE_WINDOWS 6

uint64_t ps_balance_bytes(uint32_t capacity)
{
    return ps_mem_array((uint64_t)capacity + 1, sizeof(uint16_t));
}

ps_result ps_balance_open(ps_balance *b, uint32_t capacity,
                          const ps_units *units, uint32_t window_size,
                          ps_error *err)
{
    memset(b, 0, sizeof *b);
    b->capacity = capacity;
    b->units = *units;
    b->window_size = window_size;
    b->place = calloc((size_t)capacity + 1, sizeof *b->place);
    return b->place == NULL ? ps_fail_memory(err) : PS_OK;
}

void ps_balance_close(ps_balance *b)
{
    free(b->place);
    b->place = NULL;
}

/* Finds the place of each length between the knots. */
static void place_lengths(ps_balance *b)
{
    uint32_t i = 0;

    for (uint32_t l = 1; l <= b->capacity; l++) {
        uint32_t u = ps_units_round(&b->units, l);
        uint32_t part = 0;

        while (i + 1 < LAST_KNOT && u > b->knot[i + 1])
            i++;
        if (u > b->knot[i])
            part = (uint32_t)((uint64_t)(u - b->knot[i]) * PS_BALANCE_WHOLE /
                              (b->knot[i + 1] - b->knot[i]));
        if (part > PS_BALANCE_WHOLE)
            part = PS_BALANCE_WHOLE;
        b->place[l] = (uint16_t)(i * 2 * PS_BALANCE_WHOLE + part);
    }
}

/* Puts the knots between the first and the last at quantiles. */
static void place_knots(ps_balance *b, const double *count)
{
    double total = 0;
    double sum = 0;
    uint32_t first = 0;
    uint32_t last = 0;
    uint32_t i = 1;

    for (uint32_t u = 1; u <= b->units.count; u++)
        total += count[u];
    for (uint32_t u = 1; u <= b->units.count; u++) {
        if (count[u] <= 0)
            continue;
        if (first == 0)
            first = u;
        last = u;
        sum += count[u];
        for (; i < LAST_KNOT && sum * LAST_KNOT >= total * i; i++)
            b->knot[i] = u;
    }
    b->knot[0] = first > 0 ? first - 1 : 0;
    b->knot[LAST_KNOT] = last;
    for (i = 1; i < PS_BALANCE_KNOTS; i++)
        if (b->knot[i] <= b->knot[i - 1])
            b->knot[i] = b->knot[i - 1] + 1;
}

void ps_balance_learn(ps_balance *b, const double *count)
{
    double share[PS_BALANCE_KNOTS] = {0};
    double total = 0;

    place_knots(b, count);
    place_lengths(b);
    for (uint32_t u = 1; u <= b->units.count; u++) {
        uint32_t part;
        uint32_t i = ps_balance_find(b, u * b->units.size, &part);

        share[i] += count[u] * (PS_BALANCE_WHOLE - part);
        share[i + 1] += count[u] * part;
        total += count[u] * PS_BALANCE_WHOLE;
    }
    for (uint32_t i = 0; i < PS_BALANCE_KNOTS; i++) {
        b->share[i] = total > 0 ? (int64_t)(share[i] / total * SHARE_ONE) : 0;
        b->held[i] = b->came[i] = 0;
    }
    b->came_all = 0;
}

void ps_balance_hold(ps_balance *b, uint32_t length, uint32_t sequences)
{
    uint32_t part;
    uint32_t i = ps_balance_find(b, length, &part);

    b->held[i] += (int64_t)sequences * (PS_BALANCE_WHOLE - part);
    b->held[i + 1] += (int64_t)sequences * part;
}

/* Moves the shares towards those of what came of late. */
static void follow(ps_balance *b)
{
    int64_t memory = (int64_t)SHARE_WINDOWS * b->window_size;
    int64_t all = b->came_all;

    if (all == 0)
        return;
    for (uint32_t i = 0; i < PS_BALANCE_KNOTS; i++) {
        int64_t late = b->came[i] * (SHARE_ONE / PS_BALANCE_WHOLE) / all;
        int64_t step = late - b->share[i];

        b->share[i] += all < memory ? step * all / memory : step;
        b->came[i] = 0;
    }
    b->came_all = 0;
}

void ps_balance_weigh(ps_balance *b, uint32_t sequences, bool strong)
{
    int64_t strength = strong ? STRONG : STRENGTH;

    follow(b);
    for (uint32_t i = 0; i < PS_BALANCE_KNOTS; i++) {
        int64_t held = sequences == 0
                           ? b->share[i]
                           : b->held[i] * (SHARE_ONE / PS_BALANCE_WHOLE) /
                                 sequences;
        int64_t weight = strength * (held - b->share[i]) /
                         (b->share[i] + MIN_SHARE);

        b->weight[i] = (int32_t)(weight < MAX_WEIGHT ? weight
                                                     : MAX_WEIGHT);
    }
}

/* ---- Saved and loaded ---- */

void ps_balance_save(const ps_balance *b, ps_saver *saver)
{
    ps_save_u64(saver, (uint64_t)b->came_all);
    ps_save_u32(saver, b->knot[LAST_KNOT] > 0);
    for (uint32_t i = 0; i < PS_BALANCE_KNOTS; i++) {
        ps_save_u32(saver, b->knot[i]);
        ps_save_u64(saver, (uint64_t)b->came[i]);
        ps_save_u64(saver, (uint64_t)b->share[i]);
        ps_save_u32(saver, (uint32_t)b->weight[i]);
    }
}

void ps_balance_load(ps_balance *b, ps_restorer *restorer)
{
    uint64_t all = ps_load_u64(restorer);
    uint32_t known = ps_load_within(restorer, 0, 1);
    uint32_t min = 0;

    b->came_all = (int64_t)(all & UINT32_MAX);
    for (uint32_t i = 0; i < PS_BALANCE_KNOTS; i++) {
        uint32_t max = b->capacity + PS_BALANCE_KNOTS;
        uint64_t came;
        uint64_t share;

        b->knot[i] = ps_load_within(restorer, min, max);
        min = b->knot[i] + known;
        came = ps_load_u64(restorer);
        share = ps_load_u64(restorer);
        b->weight[i] = (int32_t)ps_load_u32(restorer);
        if (all > UINT32_MAX || came > all * PS_BALANCE_WHOLE ||
            share > (uint64_t)SHARE_ONE ||
            b->weight[i] > MAX_WEIGHT ||
            b->weight[i] < -STRONG * 2)
            restorer->failed = true;
        b->came[i] = (int64_t)came;
        b->share[i] = (int64_t)share;
        b->held[i] = 0;
    }
    if (restorer->failed)
        memset(b->weight, 0, sizeof b->weight);
    else if (known)
        place_lengths(b);
}
