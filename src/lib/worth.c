/*
 * worth.c - what the sequences in the window are worth to a pack, and which
 * of them are worth most together.
 *
 * The worth of each length stands in a table, and once more in a table that
 * is turned round: the pairs that fill some room are then two runs side by
 * side, and the best of them is found by a loop without a branch.
 *
 * Age counts from an epoch that moves now and then, so that the tables need
 * not change with time; what all sequences have aged since is added to each
 * of a choice alike.
 *
 * Whole numbers throughout: the same decisions on every machine.
 *
 * SPDX-License-Identifier: MIT
 */

#include "worth.h"

#include <stdlib.h>

#include "error.h"

/*
 * What waiting for as many records as the window is large is worth, as a part
 * of a pack.  Where the depth binds, many choices are as good as equal, and
 * the one that has waited longest is to be found.  Where it does not, a bonus
 * as large as some tokens would be paid with padding.
 */
#define AGED_BINDING (PS_WORTH_ONE / 128)
#define AGED_FREE (PS_WORTH_ONE / 1024)

#define EPOCH_WINDOWS 4  /* the epoch moves on after so many */
#define OLDEST_WINDOWS 8 /* age beyond this is worth no more */

struct ps_worth {
    const ps_window *window;
    uint32_t capacity;
    uint32_t window_size;
    int32_t *price;  /* by length */
    int32_t *worth;  /* by length, or NONE */
    int32_t *turned; /* the same by capacity - length */
    int32_t *most;   /* by length: the most of all up to it */
    uint32_t n_most; /* how many of `most` are valid */
    uint32_t hidden; /* a length that has one sequence less, or 0 */
    uint64_t epoch;
    int32_t aged;  /* AGED_BINDING or AGED_FREE */
    int64_t step;  /* what a record of waiting is worth, times 2^32 */
    int32_t shift; /* to be added for each sequence */
};

ps_result ps_worth_open(ps_worth **worth, const ps_window *window,
                        uint32_t capacity, uint32_t window_size,
                        ps_error *err)
{
    size_t n = (size_t)capacity + 1;
    ps_worth *w = calloc(1, sizeof *w);

    *worth = w;
    if (w == NULL)
        return ps_fail_memory(err);
    w->window = window;
    w->capacity = capacity;
    w->window_size = window_size;
    w->price = malloc(n * sizeof *w->price);
    w->worth = malloc(n * sizeof *w->worth);
    w->turned = malloc(n * sizeof *w->turned);
    w->most = malloc(n * sizeof *w->most);
    if (w->price == NULL || w->worth == NULL || w->turned == NULL ||
        w->most == NULL) {
        ps_worth_free(w);
        *worth = NULL;
        return ps_fail_memory(err);
    }
    w->price[0] = 0;
    for (uint32_t l = 0; l <= capacity; l++)
        w->worth[l] = w->turned[l] = PS_WORTH_NONE;
    ps_worth_set_prices(w, NULL);
    return PS_OK;
}

void ps_worth_free(ps_worth *w)
{
    if (w == NULL)
        return;
    free(w->price);
    free(w->worth);
    free(w->turned);
    free(w->most);
    free(w);
}

int32_t ps_worth_price(const ps_worth *w, uint32_t length)
{
    return w->price[length];
}

/* What the time from the epoch to another is worth; negative before it. */
static int32_t since_epoch(const ps_worth *w, uint64_t time)
{
    int64_t most = (int64_t)OLDEST_WINDOWS * w->window_size;
    int64_t records = (int64_t)(time - w->epoch);

    if (records > most)
        records = most;
    if (records < -most)
        records = -most;
    return (int32_t)(records * w->step / (INT64_C(1) << 32));
}

static void set(ps_worth *w, uint32_t length, int32_t worth)
{
    w->worth[length] = worth;
    w->turned[w->capacity - length] = worth;
    if (w->n_most > length)
        w->n_most = length;
}

void ps_worth_update(ps_worth *w, uint32_t length)
{
    uint32_t slot = ps_window_oldest_of(w->window, length);
    int32_t worth = PS_WORTH_NONE;

    if (slot != PS_NO_SLOT)
        worth = w->price[length] -
                since_epoch(w, ps_window_time(w->window, slot));
    set(w, length, worth);
}

static void update_all(ps_worth *w)
{
    uint32_t length = ps_window_longest(w->window, w->capacity);

    for (; length > 0; length = ps_window_longest(w->window, length - 1))
        ps_worth_update(w, length);
}

void ps_worth_set_prices(ps_worth *w, const int32_t *price)
{
    w->aged = price != NULL ? AGED_BINDING : AGED_FREE;
    w->step = ((int64_t)w->aged << 32) / w->window_size;
    for (uint32_t l = 1; l <= w->capacity; l++)
        w->price[l] =
            price != NULL
                ? price[l]
                : (int32_t)((int64_t)l * PS_WORTH_ONE / w->capacity);
    update_all(w);
}

void ps_worth_set_time(ps_worth *w, uint64_t now)
{
    if (now - w->epoch > (uint64_t)EPOCH_WINDOWS * w->window_size) {
        w->epoch = now;
        update_all(w);
    }
    w->shift = since_epoch(w, now) - w->aged;
}

/* ---- One sequence less ---- */

static void hide(ps_worth *w, uint32_t length)
{
    w->hidden = length;
    if (ps_window_count_of(w->window, length) == 1)
        set(w, length, PS_WORTH_NONE);
}

static void show(ps_worth *w)
{
    uint32_t length = w->hidden;

    w->hidden = 0;
    if (ps_window_count_of(w->window, length) == 1)
        ps_worth_update(w, length);
}

static uint32_t count_of(const ps_worth *w, uint32_t length)
{
    return ps_window_count_of(w->window, length) -
           (length == w->hidden ? 1 : 0);
}

/* ---- Searches ---- */

static bool is_there(int32_t worth)
{
    return worth > PS_WORTH_NONE / 2;
}

static ps_choice nothing(void)
{
    return (ps_choice){.worth = PS_WORTH_NONE};
}

static ps_choice better(ps_choice a, ps_choice b)
{
    return b.worth > a.worth ? b : a;
}

static ps_choice single(const ps_worth *w, uint32_t length)
{
    if (length == 0 || !is_there(w->worth[length]))
        return nothing();
    return (ps_choice){w->worth[length] + w->shift, 1, {length}};
}

static ps_choice pair(const ps_worth *w, uint32_t a, uint32_t b)
{
    return (ps_choice){
        w->worth[a] + w->worth[b] + 2 * w->shift, 2, {a, b}};
}

/* The greatest sum of two runs of n numbers each. */
static int32_t greatest_sum(const int32_t *a, const int32_t *b, uint32_t n)
{
    int32_t most = 2 * PS_WORTH_NONE;

    for (uint32_t i = 0; i < n; i++) {
        int32_t sum = a[i] + b[i];

        most = sum > most ? sum : most;
    }
    return most;
}

/* Of pairs that are worth the same the most even one. */
static ps_choice exact_pair(const ps_worth *w, uint32_t room)
{
    uint32_t n = (room - 1) / 2; /* the shorter is at most that, or half */
    const int32_t *shorter = w->worth + 1;
    const int32_t *longer = w->turned + (w->capacity - room) + 1;
    int32_t most = greatest_sum(shorter, longer, n);
    ps_choice c = nothing();

    if (is_there(most)) {
        uint32_t i = n - 1;

        while (shorter[i] + longer[i] != most)
            i--;
        c = pair(w, i + 1, room - i - 1);
    }
    if (room % 2 == 0 && count_of(w, room / 2) >= 2)
        c = better(c, pair(w, room / 2, room / 2));
    return c;
}

static void fill_most(ps_worth *w, uint32_t room)
{
    int32_t most;

    if (w->n_most == 0) {
        w->most[0] = PS_WORTH_NONE;
        w->n_most = 1;
    }
    most = w->most[w->n_most - 1];
    for (uint32_t l = w->n_most; l <= room; l++) {
        most = w->worth[l] > most ? w->worth[l] : most;
        w->most[l] = most;
    }
    if (w->n_most <= room)
        w->n_most = room + 1;
}

/* The length up to `room` that is worth most; 0 if none is there. */
static uint32_t dearest(ps_worth *w, uint32_t room)
{
    int32_t most;

    fill_most(w, room);
    most = w->most[room];
    if (!is_there(most))
        return 0;
    while (w->worth[room] != most)
        room--;
    return room;
}

/* The greatest sum of a run of n numbers and of another from its end. */
static int32_t greatest_turned_sum(const int32_t *a, const int32_t *last,
                                   uint32_t n)
{
    int32_t most = 2 * PS_WORTH_NONE;

    for (uint32_t i = 0; i < n; i++) {
        int32_t sum = a[i] + last[-(ptrdiff_t)i];

        most = sum > most ? sum : most;
    }
    return most;
}

/* The pair worth most whose shorter length is at most `n`. */
static ps_choice pair_up_to(ps_worth *w, uint32_t n, uint32_t room)
{
    const int32_t *a = w->worth + 1;
    uint32_t i = n;
    int32_t most;

    fill_most(w, room);
    most = greatest_turned_sum(a, w->most + (room - 1), n);
    if (!is_there(most))
        return nothing();
    do
        i--;
    while (a[i] + w->most[room - 1 - i] != most);
    return pair(w, i + 1, dearest(w, room - i - 1));
}

/* The pair worth most of a length and another one. */
static ps_choice pair_with(const ps_worth *w, uint32_t length, uint32_t room)
{
    uint32_t best = 0;

    for (uint32_t l = 1; l <= room - length; l++)
        if (l != length && is_there(w->worth[l]) &&
            (best == 0 || w->worth[l] > w->worth[best]))
            best = l;
    return best == 0 ? nothing() : pair(w, length, best);
}

/*
 * If the best are two of a length that is there but once, it is the dearest
 * of all that go with it.  So what is better without it than with it has a
 * shorter length, and with that one too long to go with it.
 */
static ps_choice pair_within(ps_worth *w, uint32_t room)
{
    ps_choice c = pair_up_to(w, room / 2, room);
    uint32_t twin = c.length[0];

    if (c.n == 0 || c.length[1] != twin || count_of(w, twin) >= 2)
        return c;
    return better(pair_with(w, twin, room), pair_up_to(w, twin - 1, room));
}

/* Puts a length in front of a choice. */
static ps_choice lead(const ps_worth *w, uint32_t first, ps_choice c)
{
    if (c.n == 0)
        return c;
    return (ps_choice){c.worth + w->worth[first] + w->shift,
                       c.n + 1,
                       {first, c.length[0], c.length[1]}};
}

static ps_choice exact_rest(const ps_worth *w, uint32_t room,
                            uint32_t places)
{
    ps_choice c = nothing();

    if (places > 0)
        c = single(w, room);
    if (places > 1)
        c = better(c, exact_pair(w, room));
    return c;
}

static ps_choice rest_within(ps_worth *w, uint32_t room, uint32_t places)
{
    ps_choice c = nothing();

    if (places > 0)
        c = single(w, dearest(w, room));
    if (places > 1)
        c = better(c, pair_within(w, room));
    return c;
}

ps_choice ps_worth_exact(ps_worth *w, uint32_t first, uint32_t room,
                         uint32_t places)
{
    ps_choice c;

    if (first == 0)
        return exact_rest(w, room, places);
    if (first == room)
        return single(w, first);
    hide(w, first);
    c = exact_rest(w, room - first, places - 1);
    show(w);
    return lead(w, first, c);
}

ps_choice ps_worth_within(ps_worth *w, uint32_t first, uint32_t room,
                          uint32_t places)
{
    ps_choice c;

    if (first == 0)
        return rest_within(w, room, places);
    if (first == room)
        return single(w, first);
    hide(w, first);
    c = rest_within(w, room - first, places - 1);
    show(w);
    return better(single(w, first), lead(w, first, c));
}
