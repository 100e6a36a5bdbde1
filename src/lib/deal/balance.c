/*
 * balance.c - pack the sequences of one step for ranks that work together.
 *
 * SPDX-License-Identifier: MIT
 *
 * Best fit decreasing makes few packs.  The costliest of them are split until
 * their number is a multiple of the ranks, ps_deal_make assigns them, and
 * even.c swaps sequences to make the ranks even.
 */

#include "deal/balance.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bitset.h"
#include "base/error.h"
#include "base/mem_bound.h"

#define NO_PACK UINT32_MAX

/* ---- Checks ---- */

/* The least multiple of `unit` that is at least n. */
static uint32_t multiple(uint32_t n, uint32_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Sets the cost of a sequence.  False: it exceeds 64 bits. */
static bool set_cost(const ps_cost *cost, uint64_t n, uint64_t *value)
{
    const uint64_t squares = ps_mem_times(cost->squares, n * n);

    *value = ps_mem_sum(ps_mem_times(cost->tokens, n), squares);
    return *value < UINT64_MAX;
}

/* Makes an item of each sequence. */
static ps_result add_items(ps_shares *s, const uint32_t *lengths,
                           const ps_balance_options *o, ps_error *err)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        const uint64_t length =
            lengths[i] > o->capacity ? lengths[i]
                                     : multiple(lengths[i], o->align);
        uint64_t cost;

        if (lengths[i] == 0)
            return ps_fail(err, PS_ERR_EMPTY,
                           "sequence %" PRIu32 " has no tokens", i);
        if (length > o->capacity)
            return ps_fail(err, PS_ERR_OVERLONG,
                           "sequence %" PRIu32 " has %" PRIu32 " tokens, which "
                           "exceeds the capacity, %" PRIu32,
                           i, lengths[i], o->capacity);
        if (!set_cost(&o->cost, lengths[i], &cost) ||
            cost > INT64_MAX - sum)
            return ps_fail(err, PS_ERR_LIMIT,
                           "the sum of the costs exceeds 63 bits");
        sum += cost;
        s->items[i] = (ps_share_item){
            .cost = cost, .length = (uint32_t)length, .id = i};
    }
    s->cost = sum;
    return PS_OK;
}

static ps_result check_options(const ps_balance_options *o, uint32_t n,
                               ps_error *err)
{
    if (o->capacity == 0 || o->capacity > PS_MAX_CAPACITY)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the capacity must be between 1 and %" PRIu32,
                       PS_MAX_CAPACITY);
    if (o->align == 0 || o->capacity % o->align != 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the alignment, %" PRIu32 ", does not divide the "
                       "capacity, %" PRIu32,
                       o->align, o->capacity);
    if (o->cost.tokens == 0 && o->cost.squares == 0)
        return ps_fail(err, PS_ERR_ARGUMENT, "every cost is 0");
    if (o->ranks == 0 || n < o->ranks || n > PS_MAX_DEAL - o->ranks)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "%" PRIu32 " sequences for %" PRIu32 " ranks: each rank "
                       "needs one, and the limit is %" PRIu32 " of both",
                       n, o->ranks, PS_MAX_DEAL);
    return PS_OK;
}

/* ---- Packing ---- */

/* Longest first, and equal ones in their order. */
static int by_length(const void *a, const void *b)
{
    const ps_share_item *x = a;
    const ps_share_item *y = b;

    if (x->length != y->length)
        return x->length < y->length ? 1 : -1;
    return x->id < y->id ? -1 : 1;
}

static ps_share_pack empty_pack(uint32_t capacity)
{
    return (ps_share_pack){.room = capacity, .first = NO_PACK};
}

static void put(ps_shares *s, uint32_t item, uint32_t pack)
{
    ps_share_item *x = &s->items[item];
    ps_share_pack *p = &s->packs[pack];

    x->pack = pack;
    x->next = p->first;
    p->first = item;
    p->cost += x->cost;
    p->room -= x->length;
    p->n++;
}

/*
 * Best fit decreasing.  Packs with equal room are a stack: `top` by room, and
 * `next` by pack.  `rooms` has the capacity minus each room that occurs, so
 * that the least sufficient room is the greatest number up to a limit.
 */
static ps_result best_fit(ps_shares *s, uint32_t capacity, ps_error *err)
{
    ps_mem mem = {0};
    uint32_t *top = ps_mem_alloc(&mem, (uint64_t)capacity + 1, sizeof *top);
    uint32_t *next = ps_mem_alloc(&mem, s->n, sizeof *next);
    ps_bitset rooms = {0};

    ps_bitset_init(&rooms, capacity, &mem);
    if (!mem.failed)
        memset(top, 0xff, ((size_t)capacity + 1) * sizeof *top);
    for (uint32_t i = 0; !mem.failed && i < s->n; i++) {
        const uint32_t length = s->items[i].length;
        uint32_t pack;
        uint32_t found;

        if (ps_bitset_at_most(&rooms, capacity - length, &found)) {
            pack = top[capacity - found];
            top[capacity - found] = next[pack];
            if (next[pack] == NO_PACK)
                ps_bitset_remove(&rooms, found);
        } else {
            pack = s->n_packs++;
            s->packs[pack] = empty_pack(capacity);
        }
        put(s, i, pack);
        found = capacity - s->packs[pack].room;
        next[pack] = top[capacity - found];
        top[capacity - found] = pack;
        ps_bitset_add(&rooms, found);
    }
    ps_bitset_destroy(&rooms);
    free(top);
    free(next);
    return mem.failed ? ps_fail_memory(err) : PS_OK;
}

/* ---- The number of packs ---- */

/* Packs that can be split, as a heap: the costliest is first. */
typedef struct heap {
    const ps_share_pack *packs;
    uint32_t *of; /* their numbers */
    uint32_t n;
} heap;

static void push(heap *h, uint32_t pack)
{
    uint32_t at = h->n;

    if (h->packs[pack].n < 2)
        return;
    for (h->n++; at > 0; at = (at - 1) / 2) {
        const uint32_t up = h->of[(at - 1) / 2];

        if (h->packs[up].cost >= h->packs[pack].cost)
            break;
        h->of[at] = up;
    }
    h->of[at] = pack;
}

static uint32_t pop(heap *h)
{
    const uint32_t top = h->of[0];
    const uint32_t last = h->of[--h->n];
    uint32_t at = 0;
    uint32_t down = 1;

    for (; down < h->n; at = down, down = 2 * at + 1) {
        if (down + 1 < h->n &&
            h->packs[h->of[down + 1]].cost > h->packs[h->of[down]].cost)
            down++;
        if (h->packs[h->of[down]].cost <= h->packs[last].cost)
            break;
        h->of[at] = h->of[down];
    }
    h->of[at] = last;
    return top;
}

/*
 * Splits a pack: its sequences, longest first, go to the cheaper half.  Both
 * halves get at least one.
 */
static void split(ps_shares *s, uint32_t pack, uint32_t capacity)
{
    const uint32_t half = s->n_packs++;
    uint32_t item = s->packs[pack].first;
    uint32_t longest = NO_PACK;

    /* The list begins with the shortest item: reverse it. */
    while (item != NO_PACK) {
        const uint32_t next = s->items[item].next;

        s->items[item].next = longest;
        longest = item;
        item = next;
    }
    s->packs[pack] = s->packs[half] = empty_pack(capacity);
    while (longest != NO_PACK) {
        const uint32_t next = s->items[longest].next;
        const bool other = s->packs[half].cost < s->packs[pack].cost;

        put(s, longest,
            s->packs[pack].n > 0 && (other || s->packs[half].n == 0) ? half
                                                                     : pack);
        longest = next;
    }
}

/*
 * Splits the costliest packs until their number is a multiple of the ranks.
 * If every pack has a single sequence, empty packs are added.
 */
static ps_result round_packs(ps_shares *s, uint32_t capacity, ps_error *err)
{
    const uint32_t packs = multiple(s->n_packs, s->ranks);
    heap h = {.packs = s->packs, .of = malloc(packs * sizeof *h.of)};

    if (h.of == NULL)
        return ps_fail_memory(err);
    for (uint32_t i = 0; i < s->n_packs; i++)
        push(&h, i);
    while (s->n_packs < packs) {
        if (h.n == 0) {
            s->packs[s->n_packs++] = empty_pack(capacity);
        } else {
            const uint32_t pack = pop(&h);

            split(s, pack, capacity);
            push(&h, pack);
            push(&h, s->n_packs - 1);
        }
    }
    free(h.of);
    return PS_OK;
}

/* ---- Ranks ---- */

static ps_result deal(ps_shares *s, ps_error *err)
{
    uint64_t *costs = malloc(s->n_packs * sizeof *costs);
    ps_deal *d = NULL;
    ps_result r = ps_deal_open(&d, s->ranks, s->n_packs / s->ranks, err);

    if (r == PS_OK && costs == NULL)
        r = ps_fail_memory(err);
    for (uint32_t i = 0; r == PS_OK && i < s->n_packs; i++)
        costs[i] = s->packs[i].cost;
    if (r == PS_OK)
        r = ps_deal_make(d, costs, s->rank_of, err);
    ps_deal_free(d);
    free(costs);
    return r;
}

static int by_cost(const void *a, const void *b)
{
    const ps_share_pack *x = a;
    const ps_share_pack *y = b;

    if (x->cost != y->cost)
        return x->cost < y->cost ? 1 : -1;
    return x->first < y->first ? -1 : 1;
}

/*
 * Sets place[p] to the position of pack p in the result.  The costliest pack of
 * each rank comes first, so that the packs that ranks train on at the same time
 * have similar costs.  `next` is 0 for each rank.  Overwrites s->packs.
 */
static void find_places(ps_shares *s, uint32_t *next, uint32_t *place)
{
    const uint32_t per_rank = s->n_packs / s->ranks;

    for (uint32_t i = 0; i < s->n_packs; i++)
        s->packs[i] = (ps_share_pack){.first = i};
    for (uint32_t i = 0; i < s->n; i++)
        s->packs[s->items[i].pack].cost += s->items[i].cost;
    qsort(s->packs, s->n_packs, sizeof *s->packs, by_cost);
    for (uint32_t i = 0; i < s->n_packs; i++) {
        const uint32_t pack = s->packs[i].first;
        const uint32_t rank = s->rank_of[pack];

        place[pack] = rank * per_rank + next[rank]++;
    }
}

/* Lists the sequences by place of their pack, then number. */
static void list_items(const ps_shares *s, const uint32_t *place,
                       uint32_t *pack_of, uint32_t *order, uint32_t *ends)
{
    uint32_t at = 0;

    memset(ends, 0, s->n_packs * sizeof *ends);
    for (uint32_t i = 0; i < s->n; i++) {
        pack_of[s->items[i].id] = place[s->items[i].pack];
        ends[place[s->items[i].pack]]++;
    }
    /* The start of each pack becomes its end as its sequences are listed. */
    for (uint32_t i = 0; i < s->n_packs; i++) {
        const uint32_t n = ends[i];

        ends[i] = at;
        at += n;
    }
    for (uint32_t i = 0; i < s->n; i++)
        order[ends[pack_of[i]]++] = i;
}

static ps_result write_order(ps_shares *s, uint32_t *order, uint32_t *ends,
                             ps_error *err)
{
    uint32_t *place = malloc(s->n_packs * sizeof *place);
    uint32_t *pack_of = malloc(s->n * sizeof *pack_of);
    uint32_t *next = calloc(s->ranks, sizeof *next);
    const bool failed = place == NULL || pack_of == NULL || next == NULL;

    if (!failed) {
        find_places(s, next, place);
        list_items(s, place, pack_of, order, ends);
    }
    free(place);
    free(pack_of);
    free(next);
    return failed ? ps_fail_memory(err) : PS_OK;
}

ps_result ps_balance(const uint32_t *lengths, uint32_t n,
                     const ps_balance_options *o, uint32_t *order,
                     uint32_t *ends, uint32_t *n_packs, ps_error *err)
{
    ps_mem mem = {0};
    ps_shares s = {.ranks = o->ranks, .n = n};
    ps_result r = check_options(o, n, err);

    *n_packs = 0;
    if (r != PS_OK)
        return r;
    /* At most as many packs as sequences, rounded up. */
    s.items = ps_mem_alloc(&mem, n, sizeof *s.items);
    s.packs = ps_mem_alloc(&mem, (uint64_t)n + s.ranks, sizeof *s.packs);
    s.rank_of = ps_mem_alloc(&mem, (uint64_t)n + s.ranks, sizeof *s.rank_of);
    r = mem.failed ? ps_fail_memory(err) : add_items(&s, lengths, o, err);
    if (r == PS_OK) {
        qsort(s.items, n, sizeof *s.items, by_length);
        r = best_fit(&s, o->capacity, err);
    }
    if (r == PS_OK)
        r = round_packs(&s, o->capacity, err);
    if (r == PS_OK)
        r = deal(&s, err);
    if (r == PS_OK)
        r = ps_shares_even(&s, err);
    if (r == PS_OK)
        r = write_order(&s, order, ends, err);
    if (r == PS_OK)
        *n_packs = s.n_packs;
    free(s.items);
    free(s.packs);
    free(s.rank_of);
    return r;
}
