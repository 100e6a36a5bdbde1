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

uint32_t ps_lp_input_unit(const ps_histogram *h, uint32_t capacity,
                          uint32_t max_lengths, uint32_t max_units)
{
    uint32_t unit = (capacity - 1) / max_units + 1;

    while (count_lengths(h, unit) > max_lengths)
        unit += unit / 16 + 1;
    return unit;
}

void ps_lp_input_free(ps_lp_input *g)
{
    free(g->length);
    free(g->count);
    free(g->place);
}

/*
 * A length in units.  What is longer than a whole number of units that the
 * capacity holds is alone in its pack, as what fills it is.
 */
static uint32_t round_length(uint32_t length, uint32_t unit, uint32_t max,
                             bool up)
{
    uint32_t units = up ? (length - 1) / unit + 1 : length / unit;

    return units < max ? units : max;
}

size_t ps_lp_input_pairable(const ps_histogram *h, uint32_t capacity)
{
    size_t n = ps_histogram_size(h);

    while (n > 0 && ps_histogram_length(h, n - 1) >
                        capacity - ps_histogram_length(h, 0))
        n--;
    return n;
}

static void fill(ps_lp_input *g, const ps_histogram *h, size_t lengths, bool up)
{
    uint32_t n = 0;

    for (size_t i = 0; i < lengths; i++) {
        uint32_t units = round_length(ps_histogram_length(h, i), g->unit,
                                      g->instance.capacity, up);

        if (units == 0)
            continue;
        if (n == 0 || g->length[n - 1] != units) {
            g->length[n] = units;
            g->count[n++] = 0;
        }
        g->count[n - 1] += (double)ps_histogram_count(h, i);
        g->place[i] = n - 1;
    }
    g->instance.n = n;
    g->instance.length = g->length;
    g->instance.count = g->count;
}

uint64_t ps_lp_input_bytes(uint32_t lengths)
{
    return ps_mem_array((uint64_t)lengths + 1,
                        2 * sizeof(uint32_t) + sizeof(double));
}

ps_result ps_lp_input_open(ps_lp_input *g, const ps_histogram *h,
                           uint32_t capacity, uint32_t depth, uint32_t unit,
                           bool up, ps_error *err)
{
    size_t n = ps_histogram_size(h) + 1; /* an empty one is no failure */

    *g = (ps_lp_input){.unit = unit};
    g->instance.capacity = capacity / unit;
    g->instance.depth =
        depth < g->instance.capacity ? depth : g->instance.capacity;
    g->length = calloc(n, sizeof *g->length);
    g->count = calloc(n, sizeof *g->count);
    g->place = calloc(n, sizeof *g->place);
    if (g->length == NULL || g->count == NULL || g->place == NULL) {
        ps_lp_input_free(g);
        return ps_fail_memory(err);
    }
    fill(g, h, up ? ps_histogram_size(h) : ps_lp_input_pairable(h, capacity),
         up);
    return PS_OK;
}
