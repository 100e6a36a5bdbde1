/*
 * shadow.c - decide whether best fit packs a stream as well as prices do.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/shadow.h"
#include "engine/tuning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Counts can be fractions; less than this counts as 0. */
#define LEAST 1e-6

#define MAX_TAKEN 16 /* maximum sequences per pack of best fit decreasing */

void ps_shadow_init(ps_shadow *s, const ps_dual_prices *prices,
                    uint32_t depth, ps_mem *mem)
{
    const uint64_t n = (uint64_t)prices->cuts.max_units + 1;

    *s = (ps_shadow){.prices = prices, .depth = depth};
    ps_window_init(&s->window, prices->window_size, 0, prices->capacity, mem);
    s->from = ps_mem_alloc(mem, n, sizeof *s->from);
    s->left = ps_mem_alloc(mem, n, sizeof *s->left);
}

void ps_shadow_destroy(ps_shadow *s)
{
    ps_window_destroy(&s->window);
    free(s->from);
    free(s->left);
}

/* ---- Best fit ---- */

/* Packs the oldest sequence, then repeatedly the longest that fits. */
static void pack(ps_shadow *s)
{
    ps_window *w = &s->window;
    uint32_t room = s->prices->capacity;
    uint32_t length = w->slots[w->oldest].length;

    for (uint32_t n = 0; length > 0 && n < s->depth; n++) {
        ps_window_release(w, ps_window_take(w, length));
        room -= length;
        length = ps_window_longest(w, room);
    }
    s->packs++;
}

void ps_shadow_admit(ps_shadow *s, uint32_t length)
{
    if (length == s->prices->capacity)
        return;
    (void)ps_window_admit(&s->window, length, s->prices->arrivals);
    if (s->window.count == s->window.size)
        pack(s);
}

/* ---- The initial guess ---- */

/*
 * Makes packs of the longest length and the lengths that best fit adds to it,
 * until a count runs out.  Returns the number of packs.
 */
static double pack_counts(ps_shadow *s, uint32_t longest)
{
    uint32_t taken[MAX_TAKEN];
    uint32_t n = 0;
    uint32_t u = longest;
    uint32_t room = s->prices->units.count;
    double times = s->left[longest];

    while (u > 0 && n < s->depth && n < MAX_TAKEN) {
        if (s->left[u] <= LEAST) {
            u--;
            continue;
        }
        taken[n++] = u;
        room -= u;
        u = u < room ? u : room;
    }
    for (uint32_t i = 0, same; i < n; i += same) {
        for (same = 1; i + same < n && taken[i + same] == taken[i];)
            same++;
        times = fmin(times, s->left[taken[i]] / same);
    }
    for (uint32_t i = 0; i < n; i++)
        s->left[taken[i]] = fmax(s->left[taken[i]] - times, 0);
    return times;
}

/* True if best fit decreasing packs all arrivals well. */
static bool looks_good(ps_shadow *s, double bound)
{
    const ps_dual_prices *p = s->prices;
    const double max = bound + TUNE_START_EXCESS + TUNE_START_PART * bound;
    double packs = 0;

    memcpy(s->left, p->count, ((size_t)p->units.count + 1) * sizeof *s->left);
    for (uint32_t u = p->units.count; u > 0; u--)
        while (s->left[u] > LEAST && packs <= max)
            packs += pack_counts(s, u);
    return packs <= max;
}

/* ---- The comparison ---- */

/* Sets `left` to the arrivals that best fit has packed. */
static void count_packed(ps_shadow *s)
{
    const ps_dual_prices *p = s->prices;
    const ps_window *w = &s->window;
    uint32_t l = ps_window_longest(w, p->capacity);

    memcpy(s->left, p->count, ((size_t)p->units.count + 1) * sizeof *s->left);
    for (; l > 0; l = ps_window_longest(w, l - 1))
        s->left[ps_units_round(&p->units, l)] -= w->queues[l].count;
}

/* Starts comparing the packs made from now on. */
static void begin(ps_shadow *s, double carry, uint32_t windows)
{
    count_packed(s);
    memcpy(s->from, s->left,
           ((size_t)s->prices->units.count + 1) * sizeof *s->from);
    s->packs = 0;
    s->carry = carry;
    s->windows = windows;
}

/* Number of packs by which best fit exceeds the bound. */
static double find_excess(ps_shadow *s, const double *price)
{
    const ps_price_cuts *c = &s->prices->cuts;

    count_packed(s);
    return s->carry + (double)s->packs -
           (ps_price_value(c, s->left, price) -
            ps_price_value(c, s->from, price));
}

static void start(ps_shadow *s, double bound)
{
    s->runs = true;
    s->fits = looks_good(s, bound);
    begin(s, 0, 0);
}

void ps_shadow_stop(ps_shadow *s)
{
    ps_window *w = &s->window;

    s->runs = s->fits = false;
    while (w->oldest != PS_NO_SLOT)
        ps_window_release(
            w, ps_window_take(w, w->slots[w->oldest].length));
}

static void compare(ps_shadow *s, const double *price)
{
    double excess = find_excess(s, price);
    const double part = s->prices->few ? TUNE_EXCESS_FEW : 1;
    double limit;

    s->windows++;
    limit = part * TUNE_EXCESS * s->windows;
    if (s->fits)
        s->fits = excess <= limit + part * TUNE_EXCESS_OUT;
    else
        s->fits = s->windows >= TUNE_IN_WINDOWS &&
                  excess <= limit - TUNE_EXCESS_IN;
    if (s->windows == TUNE_EXCESS_WINDOWS)
        begin(s, excess / 2, TUNE_EXCESS_WINDOWS / 2);
}

void ps_shadow_judge(ps_shadow *s)
{
    const ps_dual_prices *p = s->prices;
    const uint32_t best = ps_price_cuts_best(&p->cuts, p->count);
    const double *price = ps_price_cut(&p->cuts, best);
    const double bound = ps_price_value(&p->cuts, p->count, price);

    if (!p->few && p->total > TUNE_PER_PACK * bound)
        ps_shadow_stop(s);
    else if (!s->runs)
        start(s, bound);
    else if (p->total < s->total) /* counts were halved */
        begin(s, s->carry, s->windows);
    else
        compare(s, price);
    s->total = p->total;
}

/* ---- Saving and loading ---- */

void ps_shadow_save(const ps_shadow *s, ps_saver *saver)
{
    const ps_window *w = &s->window;

    ps_save_u32(saver, s->runs);
    if (!s->runs)
        return;
    ps_save_u32(saver, s->fits);
    ps_save_u64(saver, s->packs);
    ps_save_double(saver, s->carry);
    ps_save_double(saver, s->total);
    ps_save_u32(saver, s->windows);
    for (uint32_t u = 1; u <= s->prices->units.count; u++)
        ps_save_double(saver, s->from[u]);
    ps_save_u32(saver, w->count);
    for (uint32_t i = w->oldest; i != PS_NO_SLOT; i = w->slots[i].younger)
        ps_save_u32(saver, w->slots[i].length);
}

static double load_finite(ps_restorer *restorer)
{
    double number = ps_load_double(restorer);

    if (isfinite(number))
        return number;
    restorer->failed = true;
    return 0;
}

void ps_shadow_load(ps_shadow *s, ps_restorer *restorer)
{
    uint32_t n;

    s->runs = ps_load_within(restorer, 0, 1) == 1;
    if (!s->runs)
        return;
    s->fits = ps_load_within(restorer, 0, 1) == 1;
    s->packs = ps_load_u64(restorer);
    s->carry = load_finite(restorer);
    s->total = load_finite(restorer);
    s->windows = ps_load_within(restorer, 0, TUNE_EXCESS_WINDOWS - 1);
    for (uint32_t u = 1; u <= s->prices->units.count; u++)
        s->from[u] = load_finite(restorer);
    n = ps_load_count(restorer, s->window.size - 1, 4);
    for (uint32_t i = 0; i < n; i++)
        (void)ps_window_admit(
            &s->window,
            ps_load_within(restorer, 1, s->prices->capacity - 1), i);
}
