/*
 * histogram.c - how often each value occurred.
 *
 * A hash table with linear probing.  The hash has no secret: whoever wants
 * n lengths to collide must send n different lengths, which is n * n / 2
 * tokens to read, as much work as the n * n / 2 probes they cause.
 *
 * SPDX-License-Identifier: MIT
 */

#include "histogram.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 256 };

/* The slot where `value` is, or where it belongs. */
static histogram_bin *find(histogram_bin *bins, size_t n_slots,
                           uint32_t value)
{
    uint64_t hash = value * UINT64_C(0x9e3779b97f4a7c15);
    size_t i = (size_t)(hash >> 32) & (n_slots - 1);

    while (bins[i].value != 0 && bins[i].value != value)
        i = (i + 1) & (n_slots - 1);
    return &bins[i];
}

static bool grow(histogram *h)
{
    size_t n_slots = h->n_slots == 0 ? FIRST_SLOTS : h->n_slots * 2;
    histogram_bin *bins;

    if (n_slots < h->n_slots)
        return false;
    bins = calloc(n_slots, sizeof(*bins));
    if (bins == NULL)
        return false;
    for (size_t i = 0; i < h->n_slots; i++) {
        if (h->bins[i].value != 0)
            *find(bins, n_slots, h->bins[i].value) = h->bins[i];
    }
    free(h->bins);
    h->bins = bins;
    h->n_slots = n_slots;
    return true;
}

bool histogram_add(histogram *h, uint32_t value)
{
    histogram_bin *bin;

    if (h->n_used >= h->n_slots / 2 && !grow(h))
        return false;
    bin = find(h->bins, h->n_slots, value);
    if (bin->value == 0) {
        bin->value = value;
        h->n_used++;
    }
    bin->count++;
    return true;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = ((const histogram_bin *)a)->value;
    uint32_t y = ((const histogram_bin *)b)->value;

    return (x > y) - (x < y);
}

void histogram_sort(histogram *h)
{
    size_t n = 0;

    for (size_t i = 0; i < h->n_slots; i++) {
        if (h->bins[i].value != 0)
            h->bins[n++] = h->bins[i];
    }
    if (n > 1)
        qsort(h->bins, n, sizeof(*h->bins), compare);
    h->n_slots = n;
}

uint32_t histogram_min(const histogram *h)
{
    return h->n_used == 0 ? 0 : h->bins[0].value;
}

uint32_t histogram_greatest(const histogram *h)
{
    return h->n_used == 0 ? 0 : h->bins[h->n_used - 1].value;
}

void histogram_free(histogram *h)
{
    free(h->bins);
    *h = (histogram){0};
}
