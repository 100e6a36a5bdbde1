/*
 * bfd-blocks.c - a baseline for the engine: a stream cut into blocks, each
 * packed separately by best fit decreasing.
 *
 * SPDX-License-Identifier: MIT
 */

#include "bfd-blocks.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static ps_result no_memory(ps_error *err)
{
    *err = (ps_error){.code = PS_ERR_MEMORY, .text = "out of memory"};
    return err->code;
}

/* Adds sorted lengths to a histogram. */
static ps_result count(const uint32_t *lengths, size_t n,
                       ps_histogram *histogram, ps_error *err)
{
    ps_result r = PS_OK;
    size_t i = 0;

    while (r == PS_OK && i < n) {
        size_t first = i;

        while (i < n && lengths[i] == lengths[first])
            i++;
        r = ps_histogram_add(histogram, lengths[first], i - first, err);
    }
    return r;
}

ps_result lengths_histogram(const uint32_t *lengths, size_t n,
                            ps_histogram **histogram, ps_error *err)
{
    uint32_t *sorted = malloc((n > 0 ? n : 1) * sizeof *sorted);
    ps_result r;

    *histogram = NULL;
    if (sorted == NULL)
        return no_memory(err);
    for (size_t i = 0; i < n; i++)
        sorted[i] = lengths[i];
    qsort(sorted, n, sizeof *sorted, compare);
    r = ps_histogram_open(histogram, err);
    if (r == PS_OK)
        r = count(sorted, n, *histogram, err);
    free(sorted);
    return r;
}

static ps_result pack_block(const uint32_t *lengths, size_t n,
                            const ps_plan_options *options, uint64_t *packs,
                            ps_error *err)
{
    ps_histogram *histogram;
    ps_plan *plan = NULL;
    ps_result r = lengths_histogram(lengths, n, &histogram, err);

    if (r == PS_OK)
        r = ps_plan_make(&plan, histogram, PS_PLAN_BFD, options, err);
    if (r == PS_OK)
        *packs += ps_plan_packs(plan);
    ps_plan_free(plan);
    ps_histogram_free(histogram);
    return r;
}

ps_result bfd_blocks(const uint32_t *lengths, size_t n, size_t block,
                     uint32_t capacity, uint32_t depth, uint64_t *packs,
                     ps_error *err)
{
    const ps_plan_options options = {.capacity = capacity, .depth = depth};
    ps_result r = PS_OK;

    *packs = 0;
    for (size_t i = 0; r == PS_OK && i < n; i += block)
        r = pack_block(lengths + i, n - i < block ? n - i : block, &options,
                       packs, err);
    return r;
}
