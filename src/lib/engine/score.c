/*
 * score.c - value of each length in the window to the next pack.
 *
 * Scores are integers.  They are derived from prices, which are sums and
 * products of doubles and round in the same way on every machine.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/score.h"

#include <stdlib.h>

#include "engine/kernels.h"
#include "engine/tuning.h"

#define FEW 32 /* up to this many scores are faster to read than to skip */

/* Searches read up to PS_SEARCH_GROUP elements before a table. */
static int32_t *open_table(uint32_t last, ps_mem *mem)
{
    uint64_t n = (uint64_t)last + 1 + PS_SEARCH_GROUP;
    int32_t *table = ps_mem_alloc(mem, n, sizeof *table);

    if (table == NULL)
        return NULL;
    for (uint64_t i = 0; i < n; i++)
        table[i] = PS_SCORE_NONE;
    return table + PS_SEARCH_GROUP;
}

/* Adopts the units of the prices. */
static void set_units(ps_score *s)
{
    s->units = s->prices->units;
    s->best = s->units.size == 1 ? s->score : s->by_unit;
}

static void set_span(ps_score *s, uint32_t span)
{
    s->span = span;
    s->max_age = (uint64_t)TUNE_MAX_AGE * span;
    s->step = ((uint64_t)(PS_SCORE_ONE / TUNE_AGE) << 32) / span;
}

void ps_score_init(ps_score *s, const ps_window *window,
                   const ps_dual_prices *prices, ps_mem *mem)
{
    *s = (ps_score){
        .window = window,
        .prices = prices,
        .capacity = prices->capacity,
    };
    set_span(s, prices->window_size);
    s->score = open_table(s->capacity, mem);
    s->reversed = open_table(s->capacity, mem);
    s->by_unit = open_table(prices->cuts.max_units, mem);
    s->placed = ps_mem_alloc(mem, (uint64_t)s->capacity + 1,
                             sizeof *s->placed);
    ps_balance_init(&s->balance, prices->cuts.max_units,
                    prices->window_size, mem);
    set_units(s);
}

void ps_score_destroy(ps_score *s)
{
    int32_t *const tables[] = {s->score, s->reversed, s->by_unit};

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (tables[i] != NULL)
            free(tables[i] - PS_SEARCH_GROUP);
    free(s->placed);
    ps_balance_destroy(&s->balance);
}

uint32_t ps_score_best_in(const ps_score *s, uint32_t unit)
{
    uint32_t size = s->units.size;
    uint32_t first = unit == 1 ? 1 : unit * size - size / 2;
    uint32_t last = unit == s->units.count
                        ? s->capacity
                        : (unit + 1) * size - size / 2 - 1;
    uint32_t best = 0;
    uint32_t l;

    if (size == 1)
        return ps_score_exists(s->score[unit]) ? unit : 0;
    if (size <= FEW) {
        for (l = first; l <= last; l++)
            if (s->score[l] > s->score[best])
                best = l;
        return best;
    }
    for (l = ps_window_longest(s->window, last); l >= first && l > 0;
         l = ps_window_longest(s->window, l - 1))
        if (s->score[l] >= s->score[best])
            best = l;
    return ps_score_exists(s->score[best]) ? best : 0;
}

/* Recomputes all scores.  No sequence may be placed. */
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
    const ps_dual_prices *p = s->prices;
    uint64_t max = (uint64_t)TUNE_BALANCE_WINDOWS * p->window_size;

    if (s->learned > 0 && p->arrivals < TUNE_BALANCE_GROWTH * s->learned &&
        p->arrivals - s->learned < max)
        return;
    s->learned = p->arrivals;
    ps_balance_learn(&s->balance, p->units.count, p->count, p->in_window);
}

void ps_score_forget(ps_score *s)
{
    s->learned = 0;
}

void ps_score_refresh(ps_score *s, uint64_t now, uint32_t span)
{
    set_units(s);
    set_span(s, span);
    s->epoch = now;
    ps_balance_weigh(&s->balance, s->window->count, s->prices->linear);
    score_all(s);
}

void ps_score_save(const ps_score *s, ps_saver *saver)
{
    ps_save_u64(saver, s->learned);
    ps_save_u64(saver, s->epoch);
    ps_save_u32(saver, s->span);
    ps_balance_save(&s->balance, saver);
}

void ps_score_load(ps_score *s, ps_restorer *restorer)
{
    s->learned = ps_load_u64(restorer);
    s->epoch = ps_load_u64(restorer);
    set_span(s, ps_load_within(restorer, 1, s->window->size));
    set_units(s);
    ps_balance_load(&s->balance, s->prices->units.count,
                    s->prices->in_window, restorer);
    if (s->learned > s->prices->arrivals)
        restorer->failed = true;
    score_all(s);
}
