/*
 * even.c - move and swap sequences between ranks, to make their costs even.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "deal/balance.h"

/* Number of the cheapest ranks that are tried. */
#define TRIED 512

/* Maximum number of items looked at, per item; and good enough an excess. */
#define WORK 128
#define ENOUGH_SHIFT 30 /* of the cost of all sequences */

#define NO_ITEM UINT32_MAX

/* The sequences of a rank: items[begin] to items[end - 1], longest first. */
typedef struct rank {
    uint64_t cost;
    uint32_t begin;
    uint32_t end;
    uint32_t limit; /* of `end` */
    uint32_t pack;  /* its first one in `packs` */
} rank;

typedef struct place {
    uint64_t cost; /* of the rank, for a loop without its other members */
    rank *of;
} place;

typedef struct ranks {
    const ps_shares *shares;
    uint32_t per_rank;
    ps_share_item *items; /* of all ranks */
    uint32_t *packs;      /* [n_packs], by rank */
    ps_share_item *spare; /* [n] */
    rank *of;             /* [ranks] */
    place *order;         /* [ranks], cheapest first */
    uint64_t work;
} ranks;

/*
 * An exchange between the costliest rank and another.  `from` and `to` are an
 * item of the first and a shorter item of the other, or NO_ITEM; if `packs` is
 * set, they are indexes of ranks.packs.
 */
typedef struct swap {
    uint32_t from;
    uint32_t to;
    uint32_t pack; /* where the first item goes */
    bool packs;
    uint64_t miss; /* distance of its gain from the ideal one, doubled */
} swap;

/* ---- Lists ---- */

/* Distributes the sequences, which are sorted, and the packs over the ranks. */
static void fill_lists(ranks *r)
{
    const ps_shares *s = r->shares;
    uint32_t at = 0;

    for (uint32_t i = 0; i < s->n; i++)
        r->of[s->rank_of[s->items[i].pack]].end++;
    for (uint32_t i = 0; i < s->ranks; i++) {
        rank *one = &r->of[i];
        const uint32_t n = one->end;

        one->begin = one->end = at;
        at += n + s->n / s->ranks + 1;
        one->limit = at;
        one->pack = i * r->per_rank;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        rank *one = &r->of[s->rank_of[s->items[i].pack]];

        r->items[one->end++] = s->items[i];
        one->cost += s->items[i].cost;
    }
    for (uint32_t i = 0; i < s->n_packs; i++)
        r->packs[r->of[s->rank_of[i]].pack++] = i;
    for (uint32_t i = 0; i < s->ranks; i++)
        r->of[i].pack -= r->per_rank;
}

static void take_out(ranks *r, rank *from, uint32_t at)
{
    from->end--;
    memmove(r->items + at, r->items + at + 1,
            (from->end - at) * sizeof *r->items);
}

static void insert(ranks *r, rank *to, ps_share_item item)
{
    uint32_t at = to->end++;

    for (; at > to->begin && r->items[at - 1].length < item.length; at--)
        r->items[at] = r->items[at - 1];
    r->items[at] = item;
}

/* Moves the rank at `at` to its position in the first `n` of the order. */
static void settle(ranks *r, uint32_t at, uint32_t n)
{
    const place one = {r->order[at].of->cost, r->order[at].of};
    place *order = r->order;
    uint32_t low = 0;
    uint32_t high = n - 1;

    memmove(order + at, order + at + 1, (n - 1 - at) * sizeof *order);
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (order[middle].cost <= one.cost)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(order + low + 1, order + low, (n - 1 - low) * sizeof *order);
    order[low] = one;
}

/* ---- Swaps ---- */

/*
 * First of the items from `low` to `high`, which are sorted, that has at most
 * this length and cost.  Returns `high` if no earlier one has.
 */
static uint32_t first_within(ranks *r, uint32_t low, uint32_t high,
                             uint64_t length, uint64_t cost)
{
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const ps_share_item *x = &r->items[middle];

        r->work++;
        if (x->length > length || x->cost > cost)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * Compares a swap with the best so far.  `difference` is that of the costs of
 * the two ranks, of which the swap should move half.
 */
static void consider(const ranks *r, const swap *made, uint64_t difference,
                     swap *best)
{
    const ps_share_item *x = &r->items[made->from];
    const uint64_t back =
        made->to == NO_ITEM ? 0 : r->items[made->to].cost;
    uint64_t gain;
    uint64_t miss;

    if (x->cost <= back || x->cost - back >= difference ||
        (made->to == NO_ITEM && r->shares->packs[x->pack].n == 1))
        return;
    gain = 2 * (x->cost - back);
    miss = gain < difference ? difference - gain : gain - difference;
    if (miss < best->miss) {
        *best = *made;
        best->miss = miss;
    }
}

/*
 * Considers the two items that are nearest to the ideal cost: made.from, which
 * is the first at most as costly, and the one before it if it fits.
 */
static void consider_two(const ranks *r, const rank *costliest, swap made,
                         uint64_t longest, uint64_t difference, swap *best)
{
    if (made.from < costliest->end)
        consider(r, &made, difference, best);
    if (made.from == costliest->begin ||
        r->items[made.from - 1].length > longest)
        return;
    made.from--;
    consider(r, &made, difference, best);
}

/* Finds the best move to the roomiest pack of a rank. */
static void find_move(ranks *r, const rank *costliest, const rank *other,
                      uint64_t difference, swap *best)
{
    const ps_share_pack *packs = r->shares->packs;
    swap made = {.to = NO_ITEM, .pack = r->packs[other->pack]};

    for (uint32_t i = 1; i < r->per_rank; i++)
        if (packs[r->packs[other->pack + i]].room > packs[made.pack].room)
            made.pack = r->packs[other->pack + i];
    made.from = first_within(r, costliest->begin, costliest->end,
                             packs[made.pack].room, difference / 2);
    if (other->end < other->limit)
        consider_two(r, costliest, made, packs[made.pack].room, difference,
                     best);
}

/* True if the lists of two ranks have room after packs p and q are swapped. */
static bool have_room(const ranks *r, const rank *a, uint32_t p,
                      const rank *b, uint32_t q)
{
    const uint32_t n = r->shares->packs[p].n;
    const uint32_t m = r->shares->packs[q].n;

    return a->end - n + m <= a->limit && b->end - m + n <= b->limit;
}

/* Finds the best swap of whole packs. */
static void find_packs(ranks *r, const rank *costliest, const rank *other,
                       uint64_t difference, swap *best)
{
    const ps_share_pack *packs = r->shares->packs;

    for (uint32_t i = 0; i < r->per_rank; i++) {
        const uint32_t p = r->packs[costliest->pack + i];

        for (uint32_t k = 0; k < r->per_rank; k++) {
            const uint32_t q = r->packs[other->pack + k];
            const uint64_t gain = packs[p].cost - packs[q].cost;
            uint64_t miss;

            if (packs[p].cost <= packs[q].cost || gain >= difference)
                continue;
            miss = 2 * gain < difference ? difference - 2 * gain
                                         : 2 * gain - difference;
            if (miss < best->miss && have_room(r, costliest, p, other, q))
                *best = (swap){costliest->pack + i, other->pack + k, 0, true,
                               miss};
        }
    }
    r->work += (uint64_t)r->per_rank * r->per_rank;
}

/*
 * Finds the best move or swap between the costliest rank and another.  Both
 * lists are sorted, so one pass finds the ideal partners of all items of the
 * other rank.
 */
static bool find_swap(ranks *r, const rank *costliest, const rank *other,
                      swap *best)
{
    const ps_share_item *items = r->items;
    const uint64_t difference = costliest->cost - other->cost;
    uint32_t ideal = costliest->begin; /* costs at most the ideal partner */
    uint32_t equal = costliest->begin; /* is at most as long as the other */

    *best = (swap){.miss = difference};
    find_move(r, costliest, other, difference, best);
    for (uint32_t i = other->begin;
         i < other->end && best->miss > difference / 8; i++) {
        const ps_share_item *y = &items[i];
        const uint64_t longest =
            (uint64_t)y->length + r->shares->packs[y->pack].room;
        swap made = {.to = i, .pack = y->pack};

        for (; ideal < costliest->end &&
               items[ideal].cost > y->cost + difference / 2; ideal++)
            r->work++;
        for (; equal < costliest->end && items[equal].length > y->length;
             equal++)
            r->work++;
        made.from = ideal;
        if (ideal < equal && items[ideal].length > longest)
            made.from = first_within(r, ideal, equal, longest, UINT64_MAX);
        consider_two(r, costliest, made, longest, difference, best);
        r->work++;
    }
    if (best->miss > difference / 8)
        find_packs(r, costliest, other, difference, best);
    return best->miss < difference;
}

static void move(ranks *r, rank *from, uint32_t at, rank *to, uint32_t pack)
{
    ps_share_item x = r->items[at];
    ps_share_pack *packs = r->shares->packs;

    packs[x.pack].room += x.length;
    packs[x.pack].cost -= x.cost;
    packs[x.pack].n--;
    packs[pack].room -= x.length;
    packs[pack].cost += x.cost;
    packs[pack].n++;
    from->cost -= x.cost;
    to->cost += x.cost;
    x.pack = pack;
    take_out(r, from, at);
    insert(r, to, x);
}

/* Moves a pack from a rank's list to `to`.  Returns its number of items. */
static uint32_t take_pack(ranks *r, rank *from, uint32_t pack,
                          ps_share_item *to)
{
    uint32_t kept = from->begin;
    uint32_t n = 0;

    for (uint32_t i = from->begin; i < from->end; i++)
        if (r->items[i].pack == pack)
            to[n++] = r->items[i];
        else
            r->items[kept++] = r->items[i];
    from->end = kept;
    from->cost -= r->shares->packs[pack].cost;
    return n;
}

static void make_pack_swap(ranks *r, rank *costliest, rank *other,
                           const swap *made)
{
    const uint32_t p = r->packs[made->from];
    const uint32_t q = r->packs[made->to];
    const uint32_t n = take_pack(r, costliest, p, r->spare);
    const uint32_t m = take_pack(r, other, q, r->spare + n);

    for (uint32_t i = 0; i < n; i++)
        insert(r, other, r->spare[i]);
    for (uint32_t i = 0; i < m; i++)
        insert(r, costliest, r->spare[n + i]);
    other->cost += r->shares->packs[p].cost;
    costliest->cost += r->shares->packs[q].cost;
    r->packs[made->from] = q;
    r->packs[made->to] = p;
}

static void make_swap(ranks *r, rank *costliest, rank *other,
                      const swap *made)
{
    const uint32_t pack = r->items[made->from].pack;

    if (made->to != NO_ITEM) {
        const uint32_t from = made->from;
        ps_share_item y = r->items[made->to];

        r->shares->packs[y.pack].room += y.length;
        r->shares->packs[y.pack].cost -= y.cost;
        r->shares->packs[y.pack].n--;
        other->cost -= y.cost;
        take_out(r, other, made->to);
        move(r, costliest, from, other, made->pack);
        r->shares->packs[pack].room -= y.length;
        r->shares->packs[pack].cost += y.cost;
        r->shares->packs[pack].n++;
        costliest->cost += y.cost;
        y.pack = pack;
        insert(r, costliest, y);
    } else {
        move(r, costliest, made->from, other, made->pack);
    }
}

/* Makes one swap of the costliest rank.  Returns false if no swap helps. */
static bool improve(ranks *r)
{
    const uint32_t last = r->shares->ranks - 1;
    rank *costliest = r->order[last].of;

    for (uint32_t i = 0; i < TRIED && i < last; i++) {
        rank *other = r->order[i].of;
        swap best;

        if (costliest->cost == other->cost)
            return false;
        if (!find_swap(r, costliest, other, &best))
            continue;
        if (best.packs)
            make_pack_swap(r, costliest, other, &best);
        else
            make_swap(r, costliest, other, &best);
        /* The costliest keeps its old cost there until it is settled. */
        settle(r, i, last);
        settle(r, last, last + 1);
        return true;
    }
    return false;
}

static void even_out(ranks *r)
{
    const ps_shares *s = r->shares;
    const uint64_t most =
        s->cost / s->ranks + (s->cost >> ENOUGH_SHIFT) / s->ranks;
    uint32_t n = 0;

    fill_lists(r);
    for (uint32_t i = 0; i < s->ranks; i++) {
        r->order[i].of = &r->of[i];
        settle(r, i, i + 1);
    }
    while (r->order[s->ranks - 1].cost > most &&
           r->work < (uint64_t)WORK * s->n && improve(r))
        ;
    for (uint32_t i = 0; i < s->ranks; i++) {
        for (uint32_t k = r->of[i].begin; k < r->of[i].end; k++)
            s->items[n++] = r->items[k];
        for (uint32_t k = 0; k < r->per_rank; k++)
            s->rank_of[r->packs[r->of[i].pack + k]] = i;
    }
}

ps_result ps_shares_even(ps_shares *s, ps_error *err)
{
    ps_mem mem = {0};
    ranks r = {.shares = s, .per_rank = s->n_packs / s->ranks};

    r.items = ps_mem_alloc(&mem, 2 * (uint64_t)s->n + s->ranks,
                           sizeof *r.items);
    r.packs = ps_mem_alloc(&mem, s->n_packs, sizeof *r.packs);
    r.spare = ps_mem_alloc(&mem, s->n, sizeof *r.spare);
    r.of = ps_mem_alloc(&mem, s->ranks, sizeof *r.of);
    r.order = ps_mem_alloc(&mem, s->ranks, sizeof *r.order);
    if (!mem.failed) {
        memset(r.of, 0, s->ranks * sizeof *r.of);
        even_out(&r);
    }
    free(r.items);
    free(r.packs);
    free(r.spare);
    free(r.of);
    free(r.order);
    return mem.failed ? ps_fail_memory(err) : PS_OK;
}
