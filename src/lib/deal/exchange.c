/*
 * exchange.c - swaps of one or two items of the fullest set for as many
 * cheaper ones of another, as long as they help.
 *
 * SPDX-License-Identifier: MIT
 */

#include <string.h>

#include "base/mem_bound.h"
#include "deal/deal.h"

/* So many of the emptiest sets are tried before all others. */
#define EMPTIEST 32

/* Items and pairs that are looked at, for each item of the deal. */
#define WORK 512

/* Some items of a set that may be swapped: one, or two. */
typedef struct choices {
    const ps_deal_item *of; /* sorted by cost; index: i, or i and k of a pair */
    uint32_t n;
} choices;

#define SECOND(index) ((index) / PS_DEAL_PAIRED)
#define FIRST(index) ((index) % PS_DEAL_PAIRED)

/* A swap, and the greater sum of the two sets behind it. */
typedef struct swap {
    uint64_t max;
    uint32_t place; /* of the other set in deal->order */
    bool pairs;
    uint32_t from;  /* index of a choice of the fullest, and of the other */
    uint32_t to;
} swap;

static ps_deal_item *items_of(const ps_deal *d, uint32_t set)
{
    return d->items + (size_t)set * d->per_rank;
}

/* All pairs of items of a set, sorted by what they cost. */
static choices pairs_of(const ps_deal *d, uint32_t set, ps_deal_item *to)
{
    const ps_deal_item *items = items_of(d, set);
    uint32_t n = 0;

    for (uint32_t i = 1; i < d->per_rank; i++)
        for (uint32_t k = 0; k < i; k++)
            to[n++] = (ps_deal_item){items[i].cost + items[k].cost,
                                     k * PS_DEAL_PAIRED + i};
    ps_deal_insertion_sort(to, n);
    return (choices){to, n};
}

/* Single items of it; their index is their place. */
static choices singles_of(const ps_deal *d, uint32_t set)
{
    return (choices){items_of(d, set), d->per_rank};
}

/*
 * The best swap of a choice `a` of the fullest set for one `b` of the set at
 * `place`, into *best if it is better than that.  What the fullest loses is
 * best near to half of what it has more.  Since both are sorted, two fingers
 * find it: the next b makes it more, the next a less.
 */
static void look_at(const ps_deal *d, uint32_t place, bool pairs, choices a,
                    choices b, swap *best)
{
    uint64_t high = d->sets[d->order[d->ranks - 1]].sum;
    uint64_t low = d->sets[d->order[place]].sum;
    uint64_t half = (high - low) / 2;
    uint32_t i = 0;
    uint32_t k = 0;

    while (i < a.n && k < b.n) {
        uint64_t less = a.of[i].cost - b.of[k].cost;
        uint64_t max;

        if (a.of[i].cost <= b.of[k].cost) {
            k++;
            continue;
        }
        max = less > half ? low + less : high - less;
        if (max < best->max)
            *best = (swap){max, place, pairs, pairs ? a.of[i].index : i,
                           pairs ? b.of[k].index : k};
        if (less < half)
            k++;
        else
            i++;
    }
}

/*
 * Looks at the sets at these places, the emptiest first, until a swap brings
 * both sets down to `enough`; returns the work.
 */
static uint64_t look_through(ps_deal *d, uint32_t first, uint32_t end,
                             uint64_t enough, swap *best)
{
    const uint32_t full = d->order[d->ranks - 1];
    uint64_t work = 0;
    choices a = singles_of(d, full);

    for (uint32_t i = first; i < end && best->max > enough; i++) {
        choices b = singles_of(d, d->order[i]);

        look_at(d, i, false, a, b, best);
        work += a.n + b.n;
    }
    if (best->max <= enough || first == end || d->per_rank > PS_DEAL_PAIRED)
        return work;
    a = pairs_of(d, full, d->pairs[0]);
    for (uint32_t i = first; i < end && best->max > enough; i++) {
        choices b = pairs_of(d, d->order[i], d->pairs[1]);

        look_at(d, i, true, a, b, best);
        work += 4 * (uint64_t)a.n;
    }
    return work;
}

/* Puts the set at a place of the order, whose sum has changed, where it is. */
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

static void make(ps_deal *d, const swap *s)
{
    uint32_t full = d->order[d->ranks - 1];
    uint32_t other = d->order[s->place];
    uint64_t both = d->sets[full].sum + d->sets[other].sum;
    ps_deal_item *a = items_of(d, full);
    ps_deal_item *b = items_of(d, other);
    uint64_t sum = 0;

    if (s->pairs) {
        swap_items(&a[FIRST(s->from)], &b[FIRST(s->to)]);
        swap_items(&a[SECOND(s->from)], &b[SECOND(s->to)]);
    } else {
        swap_items(&a[s->from], &b[s->to]);
    }
    /* One or two items of each are out of place. */
    ps_deal_insertion_sort(a, d->per_rank);
    ps_deal_insertion_sort(b, d->per_rank);
    for (uint32_t i = 0; i < d->per_rank; i++)
        sum += a[i].cost;
    d->sets[full].sum = sum;
    d->sets[other].sum = both - sum;

    /* The other first: the fullest stays behind all that may change place. */
    settle(d, s->place);
    for (uint32_t i = d->ranks; i-- > 0;)
        if (d->order[i] == full) {
            settle(d, i);
            break;
        }
}

/*
 * A swap is good enough that takes an eighth of what the fullest set has more
 * than the emptiest: to look for the best costs more than another swap.
 */
void ps_deal_exchange(ps_deal *d)
{
    const uint64_t near = ps_deal_near(d);
    const uint32_t last = d->ranks - 1;
    const uint32_t few = last < EMPTIEST ? last : EMPTIEST;
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
        uint64_t enough = ps_mem_max(near, max - more / 8);
        swap best = {.max = max};

        if (max <= near)
            break;
        work += look_through(d, 0, few, enough, &best);
        if (best.max == max)
            work += look_through(d, few, last, enough, &best);
        if (best.max == max)
            break;
        work += d->ranks;
        make(d, &best);
    }
}
