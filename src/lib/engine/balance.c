/*
 * balance.c - keep the mixture of lengths in the window close to the stream's.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/balance.h"

#include <stdlib.h>
#include <string.h>

#include "engine/dual_prices.h"
#include "engine/tuning.h"

#define LAST_KNOT (PS_BALANCE_KNOTS - 1)
#define SHARE_ONE (INT64_C(1) << 30)

#define MAX_WEIGHT (PS_SCORE_ONE / 8)

void ps_balance_init(ps_length_balance *b, uint32_t units, uint32_t window_size,
                     ps_mem *mem)
{
    *b = (ps_length_balance){.units = units, .window_size = window_size};
    b->place = ps_mem_alloc(mem, (uint64_t)units + 1, sizeof *b->place);
    b->by_unit = ps_mem_alloc(mem, (uint64_t)units + 1, sizeof *b->by_unit);
}

void ps_balance_destroy(ps_length_balance *b)
{
    free(b->place);
    free(b->by_unit);
}

/* Sets `place` of each unit. */
static void place_units(ps_length_balance *b)
{
    uint32_t i = 0;

    for (uint32_t u = 1; u <= b->units; u++) {
        uint32_t part = 0;

        while (i + 1 < LAST_KNOT && u > b->knot[i + 1])
            i++;
        if (u > b->knot[i])
            part = (uint32_t)((uint64_t)(u - b->knot[i]) * PS_BALANCE_WHOLE /
                              (b->knot[i + 1] - b->knot[i]));
        if (part > PS_BALANCE_WHOLE)
            part = PS_BALANCE_WHOLE;
        b->place[u] = (uint16_t)(i * 2 * PS_BALANCE_WHOLE + part);
    }
}

static void count_window(ps_length_balance *b, const double *in_window)
{
    memset(b->in_window, 0, sizeof b->in_window);
    for (uint32_t u = 1; u <= b->units; u++) {
        uint32_t part;
        uint32_t i = ps_balance_find(b, u, &part);
        int64_t n = (int64_t)in_window[u];

        b->in_window[i] += n * (PS_BALANCE_WHOLE - part);
        b->in_window[i + 1] += n * part;
    }
}

void ps_balance_learn(ps_length_balance *b, uint32_t units, const double *count,
                      const double *in_window)
{
    double share[PS_BALANCE_KNOTS] = {0};
    double total = 0;
    double sum = 0;
    uint32_t first = 0;
    uint32_t last = 0;
    uint32_t knot = 1;

    b->units = units;
    /* All knots except the first and last are at quantiles. */
    for (uint32_t u = 1; u <= b->units; u++)
        total += count[u];
    for (uint32_t u = 1; u <= b->units; u++) {
        if (count[u] <= 0)
            continue;
        if (first == 0)
            first = u;
        last = u;
        sum += count[u];
        for (; knot < LAST_KNOT && sum * LAST_KNOT >= total * knot; knot++)
            b->knot[knot] = u;
    }
    b->knot[0] = first > 0 ? first - 1 : 0;
    b->knot[LAST_KNOT] = last;
    for (uint32_t i = 1; i < PS_BALANCE_KNOTS; i++)
        if (b->knot[i] <= b->knot[i - 1])
            b->knot[i] = b->knot[i - 1] + 1;

    /* Shares of the stream, and counts of the window. */
    place_units(b);
    count_window(b, in_window);
    for (uint32_t u = 1; u <= b->units; u++) {
        uint32_t part;
        uint32_t i = ps_balance_find(b, u, &part);

        share[i] += count[u] * (PS_BALANCE_WHOLE - part);
        share[i + 1] += count[u] * part;
    }
    total *= PS_BALANCE_WHOLE;
    for (uint32_t i = 0; i < PS_BALANCE_KNOTS; i++) {
        b->share[i] = total > 0 ? (int64_t)(share[i] / total * SHARE_ONE) : 0;
        b->arrived[i] = 0;
    }
    b->arrivals = 0;
}

/* Interpolates the weights between knots. */
static void weigh_units(ps_length_balance *b)
{
    for (uint32_t u = 1; u <= b->units; u++) {
        uint32_t part;
        uint32_t i = ps_balance_find(b, u, &part);
        int64_t step = b->weight[i + 1] - b->weight[i];

        b->by_unit[u] =
            b->weight[i] + (int32_t)(step * part / PS_BALANCE_WHOLE);
    }
}

void ps_balance_weigh(ps_length_balance *b, uint32_t sequences, bool strong)
{
    int64_t strength = PS_SCORE_ONE / (strong ? TUNE_BALANCE_STRONG
                                              : TUNE_BALANCE);
    int64_t memory = (int64_t)TUNE_SHARE_WINDOWS * b->window_size;
    int64_t all = b->arrivals;

    /* Move the shares towards the shares of recent arrivals. */
    for (uint32_t i = 0; all > 0 && i < PS_BALANCE_KNOTS; i++) {
        int64_t late = b->arrived[i] * (SHARE_ONE / PS_BALANCE_WHOLE) / all;
        int64_t step = late - b->share[i];

        b->share[i] += all < memory ? step * all / memory : step;
        b->arrived[i] = 0;
    }
    b->arrivals = 0;

    for (uint32_t i = 0; i < PS_BALANCE_KNOTS; i++) {
        int64_t here = sequences == 0
                           ? b->share[i]
                           : b->in_window[i] *
                                 (SHARE_ONE / PS_BALANCE_WHOLE) / sequences;
        int64_t weight = strength * (here - b->share[i]) /
                         (b->share[i] + SHARE_ONE / TUNE_MIN_SHARE);

        b->weight[i] = (int32_t)(weight < MAX_WEIGHT ? weight : MAX_WEIGHT);
    }
    weigh_units(b);
}

/* ---- Saving and loading ---- */

void ps_balance_save(const ps_length_balance *b, ps_saver *saver)
{
    ps_save_u64(saver, (uint64_t)b->arrivals);
    ps_save_u32(saver, b->knot[LAST_KNOT] > 0);
    for (uint32_t i = 0; i < PS_BALANCE_KNOTS; i++) {
        ps_save_u32(saver, b->knot[i]);
        ps_save_u64(saver, (uint64_t)b->arrived[i]);
        ps_save_u64(saver, (uint64_t)b->share[i]);
        ps_save_u32(saver, (uint32_t)b->weight[i]);
    }
}

void ps_balance_load(ps_length_balance *b, uint32_t units,
                     const double *in_window, ps_restorer *restorer)
{
    uint64_t all = ps_load_u64(restorer);
    uint32_t known = ps_load_within(restorer, 0, 1);
    uint32_t min = 0;

    b->units = units;
    b->arrivals = (int64_t)(all & UINT32_MAX);
    for (uint32_t i = 0; i < PS_BALANCE_KNOTS; i++) {
        uint32_t max = b->units + PS_BALANCE_KNOTS;
        uint64_t arrived;
        uint64_t share;

        b->knot[i] = ps_load_within(restorer, min, max);
        min = b->knot[i] + known;
        arrived = ps_load_u64(restorer);
        share = ps_load_u64(restorer);
        b->weight[i] = (int32_t)ps_load_u32(restorer);
        if (all > UINT32_MAX || arrived > all * PS_BALANCE_WHOLE ||
            share > (uint64_t)SHARE_ONE ||
            b->weight[i] > MAX_WEIGHT ||
            b->weight[i] < -MAX_WEIGHT)
            restorer->failed = true;
        b->arrived[i] = (int64_t)arrived;
        b->share[i] = (int64_t)share;
    }
    if (restorer->failed)
        memset(b->weight, 0, sizeof b->weight);
    else if (known)
        place_units(b);
    weigh_units(b);
    count_window(b, in_window);
}
