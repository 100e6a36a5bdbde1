/*
 * histogram.c - how many sequences there are of each length.
 *
 * An array of bins.  Its front part is in order and free of repeats; what
 * does not fit there is put behind it as it comes, and the whole is put in
 * order when somebody looks or when the array is full.  So lengths may come
 * in any order at the cost of a sort, and in ascending order at none.
 *
 * SPDX-License-Identifier: MIT
 */

#include "base/histogram.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"

/* Beyond it sums would not fit a signed 64-bit integer. */
#define MAX ((uint64_t)INT64_MAX)

#define MIN_BINS 64

typedef struct bin {
    uint64_t count;
    uint32_t length;
} bin;

/* Apart from the handle: looking at a histogram may put it in order. */
typedef struct table {
    bin *bins;
    size_t n;
    size_t n_settled; /* the front part */
    size_t capacity;
} table;

struct ps_histogram {
    table *table;
    uint64_t sequences;
    uint64_t tokens;
};

/*
 * When repeats fill it, it may double once more than it has to; and to be
 * put in order it is copied.
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

/* Puts the bins in order, one for each length. */
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
                       "histogram: more than 2^63 - 1 sequences");
    if (count > (MAX - h->tokens) / length)
        return ps_fail(err, PS_ERR_LIMIT,
                       "histogram: more than 2^63 - 1 tokens");

    /* Another bin may need space, unless repeats have filled the array. */
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
