/*
 * score.c - what each sequence on hand is worth to the next pack.
 *
 * Whole numbers, but for the prices that they are made of: these are sums and
 * products of doubles, which are rounded alike on every machine.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/score.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "engine/kernels.h"

/* The value function knows so many units of length at most, or fine ones. */
#define FEW_UNITS 256
#define MAX_UNITS 1024

/* What a sequence gains by waiting for as long as the window is large. */
#define AGED (PS_SCORE_ONE / 250)
#define MAX_AGE 8 /* windows */

/* The balance is learned when so many times as many came, or windows more. */
#define BALANCE_GROWTH 4
#define BALANCE_WINDOWS 64

#define FEW 32 /* scores that are read faster than skipped */

uint32_t ps_score_max_units(uint32_t capacity)
{
    return ps_units_of(capacity, MAX_UNITS).count;
}

static uint64_t table_bytes(uint32_t last)
{
    return ps_mem_array((uint64_t)last + 1 + PS_SEARCH_GROUP,
                        sizeof(int32_t));
}

/* Scores and reversed ones; those by unit; and what is placed. */
uint64_t ps_score_bytes(uint32_t capacity)
{
    uint64_t n = (uint64_t)capacity + 1;
    uint64_t bytes = ps_mem_sum(ps_mem_times(2, table_bytes(capacity)),
                                table_bytes(ps_score_max_units(capacity)));

    bytes = ps_mem_sum(bytes, ps_mem_array(n, sizeof(uint32_t)));
    bytes = ps_mem_sum(bytes, ps_balance_bytes(capacity));
    return ps_mem_sum(bytes, sizeof(ps_score));
}

/* Searches read a little before a table. */
static int32_t *open_table(uint32_t last)
{
    size_t n = (size_t)last + 1 + PS_SEARCH_GROUP;
    int32_t *table = malloc(n * sizeof *table);

    if (table == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        table[i] = PS_SCORE_NONE;
    return table + PS_SEARCH_GROUP;
}

static void free_table(int32_t *table)
{
    if (table != NULL)
        free(table - PS_SEARCH_GROUP);
}

static void set_units(ps_score *s, bool fine)
{
    s->is_fine = fine;
    s->units = ps_units_of(s->capacity, fine ? MAX_UNITS : FEW_UNITS);
    s->best = s->units.size == 1 ? s->score : s->by_unit;
}

ps_result ps_score_open(ps_score **score, const ps_window *window,
                        const ps_dual_prices *prices, ps_error *err)
{
    ps_score *s = calloc(1, sizeof *s);
    uint32_t capacity = prices->capacity;
    ps_result r;

    *score = s;
    if (s == NULL)
        return ps_fail_memory(err);
    s->window = window;
    s->prices = prices;
    s->capacity = capacity;
    s->max_age = (uint64_t)MAX_AGE * prices->window_size;
    s->step = ((uint64_t)AGED << 32) / prices->window_size;
    s->score = open_table(capacity);
    s->reversed = open_table(capacity);
    s->by_unit = open_table(ps_score_max_units(capacity));
    s->placed = calloc((size_t)capacity + 1, sizeof *s->placed);
    r = ps_balance_open(&s->balance, capacity, &prices->units,
                        prices->window_size, err);
    if (r != PS_OK || s->score == NULL ||
        s->reversed == NULL || s->by_unit == NULL || s->placed == NULL) {
        ps_score_free(s);
        *score = NULL;
        return ps_fail_memory(err);
    }
    set_units(s, false);
    return PS_OK;
}

void ps_score_free(ps_score *s)
{
    if (s == NULL)
        return;
    free_table(s->by_unit);
    free_table(s->score);
    free_table(s->reversed);
    free(s->placed);
    ps_balance_close(&s->balance);
    free(s);
}

/* The first and the last length that a unit stands for. */
static void unit_range(const ps_score *s, uint32_t unit, uint32_t *first,
                       uint32_t *last)
{
    uint32_t size = s->units.size;

    *first = unit == 1 ? 1 : unit * size - size / 2;
    *last = unit == s->units.count ? s->capacity
                                   : (unit + 1) * size - size / 2 - 1;
}

uint32_t ps_score_best_in(const ps_score *s, uint32_t unit)
{
    uint32_t first;
    uint32_t last;
    uint32_t best = 0;
    uint32_t l;

    if (s->units.size == 1)
        return ps_score_is_there(s->score[unit]) ? unit : 0;
    unit_range(s, unit, &first, &last);
    if (s->units.size <= FEW) {
        for (l = first; l <= last; l++)
            if (s->score[l] > s->score[best])
                best = l;
        return best;
    }
    for (l = ps_window_longest(s->window, last); l >= first && l > 0;
         l = ps_window_longest(s->window, l - 1))
        if (s->score[l] >= s->score[best])
            best = l;
    return ps_score_is_there(s->score[best]) ? best : 0;
}

void ps_score_search_unit(ps_score *s, uint32_t unit)
{
    uint32_t best = ps_score_best_in(s, unit);

    s->best[unit] = best > 0 ? s->score[best] : PS_SCORE_NONE;
}

static void hold_all(ps_score *s)
{
    uint32_t l = ps_window_longest(s->window, s->capacity - 1);

    for (; l > 0; l = ps_window_longest(s->window, l - 1))
        ps_balance_hold(&s->balance, l, ps_window_count_of(s->window, l));
}

/* While nothing is placed. */
static void score_all(ps_score *s)
{
    uint32_t l = ps_window_longest(s->window, s->capacity);

    for (uint32_t u = 1; s->best != s->score && u <= s->units.count; u++)
        s->best[u] = PS_SCORE_NONE;
    for (; l > 0; l = ps_window_longest(s->window, l - 1)) {
        int32_t score = ps_score_of(s, l);
        int32_t *best = &s->best[ps_units_round(&s->units, l)];

        s->score[l] = s->reversed[s->capacity - l] = score;
        if (score > *best)
            *best = score;
    }
}

void ps_score_learn(ps_score *s)
{
    uint64_t came = s->prices->came;
    uint64_t max = (uint64_t)BALANCE_WINDOWS * s->prices->window_size;

    if (s->learned > 0 && came < BALANCE_GROWTH * s->learned &&
        came - s->learned < max)
        return;
    s->learned = came;
    ps_balance_learn(&s->balance, s->prices->count);
    hold_all(s);
}

void ps_score_refresh(ps_score *s, uint64_t now, bool fine)
{
    set_units(s, fine);
    s->epoch = now;
    ps_balance_weigh(&s->balance, ps_window_count(s->window),
                     s->prices->pairs || s->prices->linear);
    score_all(s);
}

void ps_score_save(const ps_score *s, ps_saver *saver)
{
    ps_save_u64(saver, s->learned);
    ps_save_u64(saver, s->epoch);
    ps_save_u32(saver, s->is_fine);
    ps_balance_save(&s->balance, saver);
}

void ps_score_load(ps_score *s, ps_restorer *restorer)
{
    s->learned = ps_load_u64(restorer);
    s->epoch = ps_load_u64(restorer);
    set_units(s, ps_load_within(restorer, 0, 1) == 1);
    ps_balance_load(&s->balance, restorer);
    if (s->learned > s->prices->came)
        restorer->failed = true;
    hold_all(s);
    score_all(s);
}
