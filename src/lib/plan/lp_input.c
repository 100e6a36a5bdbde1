/*
 * lp_input.c - a histogram made ready for the relaxation.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan/lp_input.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"

/* How many lengths there are when they are rounded to units. */
static size_t count_lengths(const ps_histogram *h, uint32_t unit)
{
    size_t n = 0;
    uint32_t last = 0;

    for (size_t i = 0; i < ps_histogram_size(h); i++) {
        uint32_t length = (ps_histogram_length(h, i) - 1) / unit + 1;

        n += length != last;
        last = length;
    }
    return n;
}

uint32_t ps_goods_unit(const ps_histogram *h, uint32_t capacity,
                       uint32_t most_lengths, uint32_t most_units)
{
    uint32_t unit = (capacity - 1) / most_units + 1;

    while (count_lengths(h, unit) > most_lengths)
        unit += unit / 16 + 1;
    return unit;
}

void ps_goods_free(ps_goods *g)
{
    free(g->length);
    free(g->count);
    free(g->place);
}

/*
 * A length in units.  What is longer than a whole number of units that the
 * capacity holds is alone in its pack, as what fills it is.
 */
static uint32_t round_length(uint32_t length, uint32_t unit, uint32_t most,
                             bool up)
{
    uint32_t units = up ? (length - 1) / unit + 1 : length / unit;

    return units < most ? units : most;
}

size_t ps_goods_pairable(const ps_histogram *h, uint32_t capacity)
{
    size_t n = ps_histogram_size(h);

    while (n > 0 && ps_histogram_length(h, n - 1) >
                        capacity - ps_histogram_length(h, 0))
        n--;
    return n;
}

static void fill(ps_goods *g, const ps_histogram *h, size_t lengths, bool up)
{
    uint32_t n = 0;

    for (size_t i = 0; i < lengths; i++) {
        uint32_t units = round_length(ps_histogram_length(h, i), g->unit,
                                      g->stock.capacity, up);

        if (units == 0)
            continue;
        if (n == 0 || g->length[n - 1] != units) {
            g->length[n] = units;
            g->count[n++] = 0;
        }
        g->count[n - 1] += (double)ps_histogram_count(h, i);
        g->place[i] = n - 1;
    }
    g->stock.n = n;
    g->stock.length = g->length;
    g->stock.count = g->count;
}

uint64_t ps_goods_bytes(uint32_t lengths)
{
    return ps_amount_array((uint64_t)lengths + 1,
                           2 * sizeof(uint32_t) + sizeof(double));
}

ps_result ps_goods_open(ps_goods *g, const ps_histogram *h,
                        uint32_t capacity, uint32_t depth, uint32_t unit,
                        bool up, ps_error *err)
{
    size_t n = ps_histogram_size(h) + 1; /* an empty one is no failure */

    *g = (ps_goods){.unit = unit};
    g->stock.capacity = capacity / unit;
    g->stock.depth = depth < g->stock.capacity ? depth : g->stock.capacity;
    g->length = calloc(n, sizeof *g->length);
    g->count = calloc(n, sizeof *g->count);
    g->place = calloc(n, sizeof *g->place);
    if (g->length == NULL || g->count == NULL || g->place == NULL) {
        ps_goods_free(g);
        return ps_fail_memory(err);
    }
    fill(g, h, up ? ps_histogram_size(h) : ps_goods_pairable(h, capacity), up);
    return PS_OK;
}
