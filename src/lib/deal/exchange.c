/*
 * exchange.c - swap one or two items of the costliest set for the same number
 * of cheaper items of another set, as long as this lowers the greatest sum.
 *
 * SPDX-License-Identifier: MIT
 */

#include "base/mem_bound.h"
#include "deal/sets.h"

/* Number of sets with the least sums that are tried first. */
#define EMPTIEST 32

/* Maximum number of items and pairs examined, per item of the deal. */
#define WORK 512

/* The items or pairs of a set, sorted by cost. */
typedef struct choices {
    const ps_deal_item *list;
    uint32_t n; /* number of items or pairs */
} choices;

/* The index of a pair encodes the positions of its items in the set. */
#define PAIR(first, second) ((second) * PS_DEAL_PAIRED + (first))
#define FIRST(pair) ((pair) % PS_DEAL_PAIRED)
#define SECOND(pair) ((pair) / PS_DEAL_PAIRED)

/* A swap, and the greater of the two sums after it. */
typedef struct swap {
    uint64_t max;
    uint32_t other; /* index of the other set in deal->order */
    bool pairs;
    uint32_t from;  /* item position or pair in the costliest set */
    uint32_t to;    /* item position or pair in the other set */
} swap;

/* Returns the items of a set or, if `pairs` is not NULL, all pairs of them. */
static choices choices_of(const ps_deal *d, uint32_t set, ps_deal_item *pairs)
{
    const ps_deal_item *items = d->items + (size_t)set * d->per_rank;
    uint32_t n = 0;

    if (pairs == NULL)
        return (choices){items, d->per_rank};
    for (uint32_t i = 1; i < d->per_rank; i++)
        for (uint32_t k = 0; k < i; k++)
            pairs[n++] = (ps_deal_item){items[i].cost + items[k].cost,
                                        PAIR(i, k)};
    ps_deal_insertion_sort(pairs, n);
    return (choices){pairs, n};
}

/*
 * Finds the best swap between `a`, items or pairs of the costliest set, and
 * `b`, items or pairs of the other set, and stores it in *best if it is an
 * improvement.  Ideally the costliest set loses half of the difference between
 * the sums.  Both lists are sorted, so one pass finds the swap whose loss is
 * nearest to this: advancing b increases the loss, advancing a decreases it.
 */
static void find_swap(const ps_deal *d, uint32_t other, bool pairs, choices a,
                      choices b, swap *best)
{
    uint64_t high = d->sets[d->order[d->ranks - 1]].sum;
    uint64_t low = d->sets[d->order[other]].sum;
    uint64_t half = (high - low) / 2;
    uint32_t i = 0;
    uint32_t k = 0;

    while (i < a.n && k < b.n) {
        uint64_t loss = a.list[i].cost - b.list[k].cost;
        uint64_t max;

        if (a.list[i].cost <= b.list[k].cost) {
            k++;
            continue;
        }
        max = loss > half ? low + loss : high - loss;
        if (max < best->max)
            *best = (swap){max, other, pairs, pairs ? a.list[i].index : i,
                           pairs ? b.list[k].index : k};
        if (loss < half)
            k++;
        else
            i++;
    }
}

/*
 * Tries swaps of items, or pairs, with the sets at indexes first to end - 1 of
 * the order, until a swap lowers both sums to `enough`.  Stops at a set if the
 * mean of its sum and the greatest sum is not below best->max.  Returns the
 * number of items and pairs examined.
 */
static uint64_t try_sets(ps_deal *d, uint32_t first, uint32_t end, bool pairs,
                         uint64_t enough, swap *best)
{
    const uint32_t full = d->order[d->ranks - 1];
    const choices a = choices_of(d, full, pairs ? d->pairs[0] : NULL);
    uint64_t work = 0;

    for (uint32_t i = first; i < end && best->max > enough; i++) {
        const uint64_t low = d->sets[d->order[i]].sum;
        choices b;

        if (low + (d->sets[full].sum - low) / 2 >= best->max)
            break;
        b = choices_of(d, d->order[i], pairs ? d->pairs[1] : NULL);
        find_swap(d, i, pairs, a, b, best);
        work += (pairs ? 4 : 2) * (uint64_t)a.n;
    }
    return work;
}

/* Restores the order after the sum of the set at index `at` has changed. */
static void settle(ps_deal *d, uint32_t at)
{
    uint32_t set = d->order[at];
    uint64_t sum = d->sets[set].sum;

    for (; at > 0 && d->sets[d->order[at - 1]].sum > sum; at--)
        d->order[at] = d->order[at - 1];
    for (; at + 1 < d->ranks && d->sets[d->order[at + 1]].sum < sum; at++)
        d->order[at] = d->order[at + 1];
    d->order[at] = set;
}

static void swap_items(ps_deal_item *a, ps_deal_item *b)
{
    ps_deal_item item = *a;

    *a = *b;
    *b = item;
}

static void apply_swap(ps_deal *d, const swap *s)
{
    const uint32_t last = d->ranks - 1;
    uint32_t full = d->order[last];
    uint32_t other = d->order[s->other];
    uint64_t both = d->sets[full].sum + d->sets[other].sum;
    ps_deal_item *a = d->items + (size_t)full * d->per_rank;
    ps_deal_item *b = d->items + (size_t)other * d->per_rank;
    uint64_t sum = 0;

    if (s->pairs) {
        swap_items(&a[FIRST(s->from)], &b[FIRST(s->to)]);
        swap_items(&a[SECOND(s->from)], &b[SECOND(s->to)]);
    } else {
        swap_items(&a[s->from], &b[s->to]);
    }
    /* At most two items of each set are not in order. */
    ps_deal_insertion_sort(a, d->per_rank);
    ps_deal_insertion_sort(b, d->per_rank);
    for (uint32_t i = 0; i < d->per_rank; i++)
        sum += a[i].cost;
    d->sets[full].sum = sum;
    d->sets[other].sum = both - sum;

    /* The other set may have moved past the set that was the costliest. */
    settle(d, s->other);
    settle(d, d->order[last] == full ? last : last - 1);
}

/*
 * A swap is good enough if the costliest set loses one eighth of its excess
 * over the least sum.  A search for the best swap would cost more than another
 * swap.
 */
void ps_deal_exchange(ps_deal *d)
{
    const uint32_t last = d->ranks - 1;
    const uint32_t few = last < EMPTIEST ? last : EMPTIEST;
    const int passes = d->per_rank > PS_DEAL_PAIRED ? 1 : 2;
    ps_deal_item *sums = d->sums;
    uint64_t work = 0;

    for (uint32_t i = 0; i < d->ranks; i++)
        sums[i] = (ps_deal_item){d->sets[i].sum, i};
    ps_deal_sort(sums, d->spare, d->ranks);
    for (uint32_t i = 0; i < d->ranks; i++)
        d->order[last - i] = sums[i].index;
    while (work < (uint64_t)WORK * d->n) {
        uint64_t max = d->sets[d->order[last]].sum;
        uint64_t more = max - d->sets[d->order[0]].sum;
        uint64_t enough = ps_mem_max(d->enough, max - more / 8);
        swap best = {.max = max};

        if (max <= d->enough)
            break;
        for (int pass = 0; pass < passes && best.max == max; pass++) {
            work += try_sets(d, 0, few, pass == 1, enough, &best);
            if (best.max == max)
                work += try_sets(d, few, last, pass == 1, enough, &best);
        }
        if (best.max == max)
            break;
        work += d->ranks;
        apply_swap(d, &best);
    }
}
