/*
 * lp_input.c - convert a histogram to an instance of the relaxation.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan/lp_input.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"

uint32_t ps_lp_input_unit(const ps_histogram *h, uint32_t capacity,
                          uint32_t max_lengths, uint32_t max_units)
{
    uint32_t unit = (capacity - 1) / max_units + 1;

    for (;;) {
        uint32_t last = 0;
        size_t n = 0; /* distinct lengths after rounding */

        for (size_t i = 0; i < ps_histogram_size(h); i++) {
            uint32_t length = (ps_histogram_length(h, i) - 1) / unit + 1;

            n += length != last;
            last = length;
        }
        if (n <= max_lengths)
            return unit;
        unit += unit / 16 + 1;
    }
}

size_t ps_lp_input_pairable(const ps_histogram *h, uint32_t capacity)
{
    size_t n = ps_histogram_size(h);

    while (n > 0 && ps_histogram_length(h, n - 1) >
                        capacity - ps_histogram_length(h, 0))
        n--;
    return n;
}

/* Allocates one more than needed, since an empty histogram must not fail. */
static void allocate(ps_lp_input *g, size_t lengths, ps_mem *mem)
{
    g->length = ps_mem_alloc(mem, (uint64_t)lengths + 1, sizeof *g->length);
    g->count = ps_mem_alloc(mem, (uint64_t)lengths + 1, sizeof *g->count);
    g->place = ps_mem_alloc(mem, (uint64_t)lengths + 1, sizeof *g->place);
}

uint64_t ps_lp_input_bytes(uint32_t lengths)
{
    ps_mem mem = {.counts = true};
    ps_lp_input g;

    allocate(&g, lengths, &mem);
    return mem.bytes;
}

ps_result ps_lp_input_open(ps_lp_input *g, const ps_histogram *h,
                           uint32_t capacity, uint32_t depth, uint32_t unit,
                           bool up, ps_error *err)
{
    size_t lengths = ps_histogram_size(h);
    uint32_t max = capacity / unit;
    ps_mem mem = {0};
    uint32_t n = 0;

    *g = (ps_lp_input){.unit = unit};
    allocate(g, lengths, &mem);
    if (mem.failed) {
        ps_lp_input_free(g);
        return ps_fail_memory(err);
    }
    if (!up)
        lengths = ps_lp_input_pairable(h, capacity);
    for (size_t i = 0; i < lengths; i++) {
        uint32_t length = ps_histogram_length(h, i);
        uint32_t units = up ? (length - 1) / unit + 1 : length / unit;

        /*
         * A length greater than the capacity in whole units is alone in its
         * pack, as is a length equal to it.
         */
        if (units > max)
            units = max;
        if (units == 0)
            continue;
        if (n == 0 || g->length[n - 1] != units) {
            g->length[n] = units;
            g->count[n++] = 0;
        }
        g->count[n - 1] += (double)ps_histogram_count(h, i);
        g->place[i] = n - 1;
    }
    g->instance = (ps_lp_instance){.n = n,
                                   .length = g->length,
                                   .count = g->count,
                                   .capacity = max,
                                   .depth = depth < max ? depth : max};
    return PS_OK;
}

void ps_lp_input_free(ps_lp_input *g)
{
    free(g->length);
    free(g->count);
    free(g->place);
}
