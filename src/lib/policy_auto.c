/*
 * policy_auto.c - packs as full as the future allows.
 *
 * What a sequence is worth is the price of its length (prices.h) and a
 * little for its age (worth.h).  A pack takes the choice that is worth most:
 * max-weight scheduling (Tassiulas and Ephremides 1992) with the prices of
 * the relaxation in place of most of the queue lengths.  So short sequences
 * are spent where they close a pack that is worth having, and are kept where
 * longer ones will need them.
 *
 * The best of all choices is not looked for.  A pack with more than a few
 * places is filled with the oldest sequences, which changes nothing in the
 * mixture that stays behind, until a few more can fill it; and the last three
 * are the best choice with one of a few leading lengths.  Those are the
 * oldest and some long ones, since these are the hardest to place.  Only if
 * no choice fills the pack at the price of a full one, such are compared as
 * leave something empty.
 *
 * A sequence that has waited long enough leads the next pack.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>

#include "amount.h"
#include "error.h"
#include "policy.h"
#include "prices.h"
#include "random.h"
#include "worth.h"

#define LEADERS 4
#define LAST 3       /* places that are filled by one choice */
#define LAST_MEANS 4 /* and the mean lengths of room that go with it */
#define GOOD (PS_WORTH_ONE / 200)
#define URGENT 64 /* this part of the delay before its end, none waits on */

typedef struct state {
    ps_policy_setup is;
    ps_worth *worth;
    ps_prices *prices;
    int32_t *price; /* by length, new ones */
    void *closing;  /* the policy for what is left in the end */
    uint64_t random;
    uint64_t packs;
    uint64_t cost; /* of all packs: sums of squared lengths */
} state;

/* A pack in the making. */
typedef struct pack {
    uint32_t room;
    uint32_t places;
    int32_t missing; /* worth, up to that of a full pack */
    uint64_t cost;
    uint32_t *slots;
    uint32_t n;
} pack;

static void free_state(void *p)
{
    state *s = p;

    ps_worth_free(s->worth);
    ps_prices_free(s->prices);
    if (s->closing != NULL)
        ps_policy_plan_calls.free(s->closing);
    free(s->price);
    free(s);
}

/* It learns while no plan is there: that is for the end. */
static uint64_t bytes_of(const ps_policy_setup *is)
{
    uint64_t bytes = ps_amount_sum(sizeof(state),
                                   ps_worth_bytes(is->capacity));

    bytes = ps_amount_sum(bytes, ps_amount_array((uint64_t)is->capacity + 1,
                                                 sizeof(int32_t)));
    bytes = ps_amount_sum(bytes, ps_prices_bytes(is->capacity));
    return ps_amount_sum(
        bytes,
        ps_amount_most(ps_prices_learn_bytes(is->capacity, is->depth),
                       ps_policy_plan_calls.bytes(is)));
}

static ps_result open_state(void **p, const ps_policy_setup *setup,
                            ps_error *err)
{
    state *s = calloc(1, sizeof *s);
    ps_result r;

    *p = s;
    if (s == NULL)
        return ps_fail_memory(err);
    s->is = *setup;
    s->price = malloc(((size_t)setup->capacity + 1) * sizeof *s->price);
    r = s->price == NULL ? ps_fail_memory(err)
                         : ps_worth_open(&s->worth, setup->window,
                                         setup->capacity, setup->window_size,
                                         err);
    if (r == PS_OK)
        r = ps_prices_open(&s->prices, setup->capacity, setup->depth,
                           setup->window_size, err);
    if (r == PS_OK)
        r = ps_policy_plan_calls.open(&s->closing, setup, err);
    if (r != PS_OK) {
        free_state(s);
        *p = NULL;
    }
    return r;
}

/* A sequence that fills a pack alone need not wait. */
static bool has_full(void *p)
{
    const state *s = p;

    return !s->is.in_order &&
           ps_window_count_of(s->is.window, s->is.capacity) > 0;
}

static bool admitted(void *p, uint32_t length)
{
    state *s = p;

    ps_prices_count(s->prices, length);
    if (ps_window_count_of(s->is.window, length) == 1)
        ps_worth_update(s->worth, length);
    return has_full(p);
}

static ps_result learn(state *s, ps_error *err)
{
    bool binding;
    ps_result r;

    if (!ps_prices_due(s->prices))
        return PS_OK;
    r = ps_prices_learn(s->prices, s->price, &binding, err);
    if (r == PS_OK)
        ps_worth_set_prices(s->worth, binding ? s->price : NULL);
    return r;
}

static void take(state *s, pack *p, uint32_t length)
{
    p->slots[p->n++] = ps_window_take(s->is.window, length);
    p->room -= length;
    p->places--;
    p->missing -= ps_worth_price(s->worth, length);
    p->cost += (uint64_t)length * length;
    ps_worth_update(s->worth, length);
}

static uint32_t oldest_length(const state *s)
{
    uint32_t slot = ps_window_oldest(s->is.window);

    return slot == PS_NO_SLOT ? 0 : ps_window_length(s->is.window, slot);
}

/* ---- Many places: the oldest ---- */

/* Whether a pack has more room and places than one choice is to fill. */
static bool is_wide(const state *s, const pack *p)
{
    uint64_t count = ps_window_count(s->is.window);

    return p->places > LAST && count > 0 &&
           p->room * count > LAST_MEANS * ps_window_tokens(s->is.window);
}

static void fill(state *s, pack *p)
{
    while (is_wide(s, p)) {
        uint32_t length = oldest_length(s);

        if (length > p->room)
            length = ps_window_longest(s->is.window, p->room);
        if (length == 0)
            break;
        take(s, p, length);
    }
}

/* ---- The last places: the best choice ---- */

static bool is_urgent(const state *s, uint64_t now)
{
    uint64_t most = s->is.max_delay - s->is.max_delay / URGENT;
    uint32_t oldest = ps_window_oldest(s->is.window);
    uint64_t time = ps_window_time(s->is.window, oldest);

    return now > time && now - time >= most;
}

/*
 * The lengths that may lead a choice; 0 says that none has to.  The first is
 * known.  The others are held, above a third of the room if there are such;
 * they are looked for when they are asked for, which is seldom.
 */
typedef struct leaders {
    uint32_t length[LEADERS];
    uint32_t n;     /* that are known */
    uint32_t most;  /* there are no more */
    uint32_t room;
    uint32_t limit; /* of the second: at most that long */
} leaders;

/*
 * In an empty pack the first is the oldest's when it must not wait on, or
 * leads always.
 */
static leaders start_leaders(state *s, const pack *p, uint64_t now)
{
    uint32_t third = p->room / 3;
    leaders l = {.n = 1, .most = 1, .room = p->room};

    l.length[0] = p->n == 0 ? oldest_length(s) : 0;
    if (p->n == 0 && (s->is.in_order || is_urgent(s, now)))
        return l;
    if (p->places < 2 && p->n > 0)
        return l;
    l.most = LEADERS;
    l.limit = third + 1 +
              (uint32_t)ps_random_below(&s->random, p->room - third);
    return l;
}

/* Whether there is a leader number i: those before it were asked for. */
static bool has_leader(const state *s, leaders *l, uint32_t i)
{
    const ps_window *w = s->is.window;
    uint32_t next;

    if (i < l->n)
        return true;
    if (i >= l->most)
        return false;
    next = ps_window_longest(w, i == 1 ? l->limit : l->length[i - 1] - 1);
    if (i > 1 && next <= l->room / 3)
        next = ps_window_longest(w, l->room);
    if (next == 0 || (i > 1 && next == l->length[1])) {
        l->most = i;
        return false;
    }
    l->length[l->n++] = next;
    return true;
}

/* How far a pack with this choice is from the mean cost. */
static uint64_t off_cost(const state *s, const pack *p, const ps_choice *c)
{
    uint64_t cost = p->cost;
    uint64_t mean = s->packs == 0 ? 0 : s->cost / s->packs;

    for (uint32_t i = 0; i < c->n; i++)
        cost += (uint64_t)c->length[i] * c->length[i];
    return cost > mean ? cost - mean : mean - cost;
}

/* The better of two; of good ones, if so asked for, by their cost. */
static ps_choice prefer(const state *s, const pack *p, ps_choice a,
                        ps_choice b)
{
    int32_t good = p->missing - GOOD;

    if (s->is.even_cost && a.worth >= good && b.worth >= good)
        return off_cost(s, p, &b) < off_cost(s, p, &a) ? b : a;
    return b.worth > a.worth ? b : a;
}

static ps_choice choose_last(state *s, const pack *p, uint64_t now)
{
    leaders l = start_leaders(s, p, now);
    uint32_t places = p->places < LAST ? p->places : LAST;
    int32_t good = p->missing - GOOD;
    ps_choice best = {.worth = PS_WORTH_NONE};

    for (uint32_t i = 0; has_leader(s, &l, i); i++) {
        best = prefer(s, p, best,
                      ps_worth_exact(s->worth, l.length[i], p->room,
                                     places));
        if (best.worth >= good && !s->is.even_cost)
            return best;
    }
    for (uint32_t i = 0; i < l.n && best.worth < good; i++)
        best = prefer(s, p, best,
                      ps_worth_within(s->worth, l.length[i], p->room,
                                      places));
    return best;
}

/* One choice after the other, and in the end whatever fits. */
static void finish(state *s, pack *p, uint64_t now)
{
    while (p->places > 0 && p->room > 0) {
        ps_choice c = choose_last(s, p, now);

        if (c.n == 0) {
            c.length[0] = ps_window_longest(s->is.window, p->room);
            c.n = c.length[0] > 0 ? 1 : 0;
        }
        if (c.n == 0)
            break;
        for (uint32_t i = 0; i < c.n; i++)
            take(s, p, c.length[i]);
    }
}

/* A pack of the plan for all that is held, as no more will come. */
static ps_result close_pack(state *s, uint64_t now, uint32_t *slots,
                            uint32_t *n, ps_error *err)
{
    ps_result r = ps_policy_plan_calls.choose(s->closing, now, true, slots,
                                               n, err);

    for (uint32_t i = 0; r == PS_OK && i < *n; i++)
        ps_worth_update(s->worth, ps_window_length(s->is.window, slots[i]));
    return r;
}

static ps_result choose(void *policy, uint64_t now, bool flush,
                        uint32_t *slots, uint32_t *n, ps_error *err)
{
    state *s = policy;
    pack p = {.room = s->is.capacity,
              .places = s->is.depth,
              .missing = PS_WORTH_ONE,
              .slots = slots};
    ps_result r;

    if (flush)
        return close_pack(s, now, slots, n, err);
    r = learn(s, err);
    if (r != PS_OK)
        return r;
    if (has_full(s)) {
        take(s, &p, s->is.capacity);
    } else {
        ps_worth_set_time(s->worth, now);
        fill(s, &p);
        finish(s, &p, now);
        s->packs++;
        s->cost += p.cost;
    }
    *n = p.n;
    return PS_OK;
}

static void save(const void *policy, ps_saver *saver)
{
    const state *s = policy;

    ps_save_u64(saver, s->random);
    ps_save_u64(saver, s->packs);
    ps_save_u64(saver, s->cost);
    ps_prices_save(s->prices, saver);
    ps_worth_save(s->worth, saver);
}

/* The plan that closes is none while no pack is due. */
static ps_result load(void *policy, ps_restorer *restorer, ps_error *err)
{
    state *s = policy;

    s->random = ps_load_u64(restorer);
    s->packs = ps_load_u64(restorer);
    s->cost = ps_load_u64(restorer);
    ps_prices_load(s->prices, restorer);
    ps_worth_load(s->worth, restorer);
    return restorer->failed ? ps_fail(err, PS_ERR_CORRUPT,
                                    "the prices in it make no sense")
                          : PS_OK;
}

const ps_policy_calls ps_policy_auto_calls = {
    .bytes = bytes_of,
    .open = open_state,
    .free = free_state,
    .is_ready = has_full,
    .admitted = admitted,
    .choose = choose,
    .save = save,
    .load = load,
};
