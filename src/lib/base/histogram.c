/*
 * histogram.c - number of sequences of each length.
 *
 * SPDX-License-Identifier: MIT
 *
 * A histogram is an array of bins.  Its first n_settled bins are sorted and
 * distinct.  Lengths that are not found there are appended as they arrive, and
 * the array is sorted and merged when it is read or full.  Lengths that arrive
 * in ascending order never require a sort.
 */

#include "base/histogram.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"

/* Maximum of the sums, which thus fit a signed 64-bit integer. */
#define MAX ((uint64_t)INT64_MAX)

#define MIN_BINS 64

typedef struct bin {
    uint64_t count;  /* number of sequences */
    uint32_t length; /* tokens */
} bin;

/* Separate from the handle because reading a const histogram can sort it. */
typedef struct table {
    bin *bins;
    size_t n;         /* bins in use */
    size_t n_settled; /* number of sorted and distinct bins at the start */
    size_t capacity;  /* bins allocated */
} table;

struct ps_histogram {
    table *table;
    uint64_t sequences; /* sequences in all bins */
    uint64_t tokens;    /* tokens in all bins */
};

/*
 * Repeated lengths can double the array once more than necessary, and qsort may
 * copy it.
 */
uint64_t ps_histogram_bytes(uint32_t lengths)
{
    uint64_t bins = ps_mem_growing((uint64_t)2 * lengths, MIN_BINS,
                                   sizeof(bin));
    uint64_t copy = ps_mem_array((uint64_t)4 * lengths, sizeof(bin));

    return ps_mem_sum(sizeof(ps_histogram) + sizeof(table),
                      ps_mem_sum(bins, copy));
}

ps_result ps_histogram_open(ps_histogram **histogram, ps_error *err)
{
    ps_histogram *h = calloc(1, sizeof *h);

    *histogram = NULL;
    if (h == NULL)
        return ps_fail_memory(err);
    h->table = calloc(1, sizeof *h->table);
    if (h->table == NULL) {
        free(h);
        return ps_fail_memory(err);
    }
    *histogram = h;
    return PS_OK;
}

void ps_histogram_free(ps_histogram *h)
{
    if (h == NULL)
        return;
    free(h->table->bins);
    free(h->table);
    free(h);
}

static int compare_bins(const void *a, const void *b)
{
    const bin *x = a;
    const bin *y = b;

    return (x->length > y->length) - (x->length < y->length);
}

/* Sorts the bins and merges equal lengths. */
static void settle(table *t)
{
    size_t n = 0;

    if (t->n_settled == t->n)
        return;
    qsort(t->bins, t->n, sizeof *t->bins, compare_bins);
    for (size_t i = 1; i < t->n; i++)
        if (t->bins[i].length == t->bins[n].length)
            t->bins[n].count += t->bins[i].count;
        else
            t->bins[++n] = t->bins[i];
    t->n = n + 1;
    t->n_settled = t->n;
}

ps_result ps_histogram_add(ps_histogram *h, uint32_t length, uint64_t count,
                           ps_error *err)
{
    const bin added = {.count = count, .length = length};
    table *t = h->table;
    bin *known = NULL;
    bool in_order;

    if (length == 0 || count == 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "histogram: %s of 0", length == 0 ? "length" : "count");
    if (count > MAX - h->sequences)
        return ps_fail(err, PS_ERR_LIMIT,
                       "histogram: exceeds 2^63 - 1 sequences");
    if (count > (MAX - h->tokens) / length)
        return ps_fail(err, PS_ERR_LIMIT,
                       "histogram: exceeds 2^63 - 1 tokens");

    /* Grow unless merging equal lengths frees at least half of the array. */
    if (t->n == t->capacity) {
        settle(t);
        if (t->n >= t->capacity / 2) {
            bin *bins = ps_array_grow(t->bins, &t->capacity, t->capacity + 1,
                                      MIN_BINS, sizeof *bins);

            if (bins == NULL)
                return ps_fail_memory(err);
            t->bins = bins;
        }
    }

    in_order = t->n_settled == t->n &&
               (t->n == 0 || t->bins[t->n - 1].length < length);
    if (!in_order && t->n_settled > 0)
        known = bsearch(&added, t->bins, t->n_settled, sizeof *t->bins,
                        compare_bins);
    if (known != NULL)
        known->count += count;
    else
        t->bins[t->n++] = added;
    if (in_order)
        t->n_settled = t->n;
    h->sequences += count;
    h->tokens += count * length;
    return PS_OK;
}

size_t ps_histogram_find(const ps_histogram *h, uint32_t length)
{
    size_t low = 0;
    size_t high = ps_histogram_size(h);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (h->table->bins[middle].length < length)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t ps_histogram_size(const ps_histogram *h)
{
    settle(h->table);
    return h->table->n;
}

uint32_t ps_histogram_length(const ps_histogram *h, size_t i)
{
    settle(h->table);
    return h->table->bins[i].length;
}

uint64_t ps_histogram_count(const ps_histogram *h, size_t i)
{
    settle(h->table);
    return h->table->bins[i].count;
}

uint64_t ps_histogram_sequences(const ps_histogram *h)
{
    return h->sequences;
}

uint64_t ps_histogram_tokens(const ps_histogram *h)
{
    return h->tokens;
}
