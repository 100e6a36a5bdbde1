/*
 * check.c - whether a plan keeps what it promises: each sequence in
 * one pack, no pack too full or too deep.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "plan/plan.h"

/* The histogram, and how many sequences are still without a pack. */
typedef struct ledger {
    const ps_histogram *histogram;
    uint64_t *left;
    size_t n;
} ledger;

static ps_result ledger_open(ledger *l, const ps_histogram *h, ps_error *err)
{
    size_t n = ps_histogram_size(h);

    *l = (ledger){.histogram = h, .n = n};
    if (n > SIZE_MAX / sizeof *l->left)
        return ps_fail_memory(err);
    l->left = malloc(n == 0 ? 1 : n * sizeof *l->left);
    if (l->left == NULL)
        return ps_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        l->left[i] = ps_histogram_count(h, i);
    return PS_OK;
}

/* The first bin of at least that length, or the number of bins. */
static size_t find(const ledger *l, uint32_t length)
{
    size_t low = 0;
    size_t high = l->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ps_histogram_length(l->histogram, middle) < length)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Takes `repeat` sequences of a length for each of `count` packs. */
static ps_result take(ledger *l, uint32_t length, uint32_t repeat,
                      uint64_t count, ps_error *err)
{
    size_t i = find(l, length);

    if (i == l->n || ps_histogram_length(l->histogram, i) != length)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "plan: uses length %" PRIu32
                       ", which no sequence has", length);
    if (count > l->left[i] / repeat)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "plan: uses more sequences of length %" PRIu32
                       " than there are", length);
    l->left[i] -= count * repeat;
    return PS_OK;
}

static ps_result check_shape(const uint32_t *lengths, uint32_t n,
                             const ps_plan_options *o, ps_error *err)
{
    uint64_t sum = 0;

    if (n == 0)
        return ps_fail(err, PS_ERR_CORRUPT, "plan: an empty pack");
    if (n > o->depth)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "plan: a pack of %" PRIu32 " sequences", n);
    for (uint32_t i = 0; i < n; i++) {
        sum += lengths[i];
        if (i > 0 && lengths[i - 1] > lengths[i])
            return ps_fail(err, PS_ERR_CORRUPT,
                           "plan: lengths of a pack out of order");
    }
    if (sum > o->capacity)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "plan: a pack of %" PRIu64 " tokens", sum);
    return PS_OK;
}

static ps_result check_strategy(ledger *l, const ps_plan *plan, size_t i,
                                const ps_plan_options *o, ps_error *err)
{
    const uint32_t *lengths;
    uint32_t n;
    uint64_t count = ps_plan_strategy(plan, i, &lengths, &n);
    ps_result r = check_shape(lengths, n, o, err);
    uint32_t end;

    for (uint32_t at = 0; r == PS_OK && at < n; at = end) {
        for (end = at + 1; end < n && lengths[end] == lengths[at];)
            end++;
        r = take(l, lengths[at], end - at, count, err);
    }
    return r;
}

static ps_result check_rest(const ledger *l, ps_error *err)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->left[i] > 0)
            return ps_fail(err, PS_ERR_CORRUPT,
                           "plan: leaves %" PRIu64
                           " sequences of length %" PRIu32 " without a pack",
                           l->left[i],
                           ps_histogram_length(l->histogram, i));
    return PS_OK;
}

ps_result ps_plan_check(const ps_plan *plan, const ps_histogram *h,
                        const ps_plan_options *o, ps_error *err)
{
    ledger l;
    ps_result r = ledger_open(&l, h, err);

    for (size_t i = 0; r == PS_OK && i < ps_plan_strategies(plan); i++)
        r = check_strategy(&l, plan, i, o, err);
    if (r == PS_OK)
        r = check_rest(&l, err);
    free(l.left);
    return r;
}
