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

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "packstream.h"
#include "plan/plan.h"

/* Beyond it sums would not fit a signed 64-bit integer. */
#define MAX ((uint64_t)INT64_MAX)

#define FIRST_ROOM 64

typedef struct bin {
    uint64_t count;
    uint32_t length;
} bin;

/* Apart from the handle: looking at a histogram may put it in order. */
typedef struct table {
    bin *bins;
    size_t n;
    size_t n_settled; /* the front part */
    size_t room;
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
    uint64_t bins = ps_mem_growing((uint64_t)2 * lengths, FIRST_ROOM,
                                   sizeof(bin));

    return ps_mem_sum(sizeof(ps_histogram) + sizeof(table),
                      ps_mem_sum(bins, ps_mem_array(
                                                 (uint64_t)4 * lengths,
                                                 sizeof(bin))));
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

/* The bin of a length in the front part, or NULL. */
static bin *find_settled(const table *t, uint32_t length)
{
    const bin key = {.length = length};

    if (t->n_settled == 0)
        return NULL;
    return bsearch(&key, t->bins, t->n_settled, sizeof *t->bins,
                   compare_bins);
}

/* Room for another bin. */
static bool make_room(table *t)
{
    size_t room = t->room == 0 ? FIRST_ROOM : 2 * t->room;
    bin *bins;

    if (t->n < t->room)
        return true;
    settle(t);
    /* Repeats may have filled it. */
    if (t->n < t->room / 2)
        return true;
    if (room > SIZE_MAX / sizeof *bins)
        return false;
    bins = realloc(t->bins, room * sizeof *bins);
    if (bins == NULL)
        return false;
    t->bins = bins;
    t->room = room;
    return true;
}

static bool put(table *t, uint32_t length, uint64_t count)
{
    bin *known;
    bool in_order;

    if (!make_room(t))
        return false;
    in_order = t->n_settled == t->n &&
               (t->n == 0 || t->bins[t->n - 1].length < length);
    known = in_order ? NULL : find_settled(t, length);
    if (known != NULL) {
        known->count += count;
        return true;
    }
    t->bins[t->n++] = (bin){.count = count, .length = length};
    if (in_order)
        t->n_settled = t->n;
    return true;
}

ps_result ps_histogram_add(ps_histogram *h, uint32_t length, uint64_t count,
                           ps_error *err)
{
    if (length == 0 || count == 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "histogram: %s of 0", length == 0 ? "length" : "count");
    if (count > MAX - h->sequences)
        return ps_fail(err, PS_ERR_LIMIT,
                       "histogram: more than 2^63 - 1 sequences");
    if (count > (MAX - h->tokens) / length)
        return ps_fail(err, PS_ERR_LIMIT,
                       "histogram: more than 2^63 - 1 tokens");
    if (!put(h->table, length, count))
        return ps_fail_memory(err);
    h->sequences += count;
    h->tokens += count * length;
    return PS_OK;
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
