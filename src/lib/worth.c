/*
 * worth.c - what the sequences in the window are worth to a pack, and which
 * of them are worth most together.
 *
 * The worth of each length stands in a table, and once more in a table that
 * is turned round: the pairs that fill some room are then two runs side by
 * side, and search.h finds the best of them.  The most that one sequence in
 * some room is worth is turned round, too, and the same search finds the best
 * of the pairs that fit.
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

#include "amount.h"
#include "error.h"
#include "search.h"

/*
 * What waiting for as many records as the window is large is worth, as a part
 * of a pack.  Where the depth binds, many choices are as good as equal, and
 * the one that has waited longest is to be found.  Where it does not, a bonus
 * as large as some tokens would be paid with padding.
 */
#define AGED_BINDING (PS_WORTH_ONE / 128)
#define AGED_FREE (PS_WORTH_ONE / 1024)

#define EPOCH_WINDOWS 4 /* the epoch moves on after so many */

/* Numbers below this are those of something that is not there. */
#define THERE (PS_WORTH_NONE / 2 + 1)

/* Four tables. */
uint64_t ps_worth_bytes(uint32_t capacity)
{
    uint64_t table = ps_amount_array(
        (uint64_t)capacity + 1 + PS_SEARCH_GROUP, sizeof(int32_t));

    return ps_amount_sum(sizeof(ps_worth), ps_amount_times(4, table));
}

/* A table by length of nothing that is there, and what is read before it. */
static int32_t *open_table(uint32_t capacity)
{
    size_t n = (size_t)capacity + 1 + PS_SEARCH_GROUP;
    int32_t *table = malloc(n * sizeof *table);

    if (table == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        table[i] = PS_WORTH_NONE;
    return table + PS_SEARCH_GROUP;
}

static void free_table(int32_t *table)
{
    if (table != NULL)
        free(table - PS_SEARCH_GROUP);
}

ps_result ps_worth_open(ps_worth **worth, const ps_window *window,
                        uint32_t capacity, uint32_t window_size,
                        ps_error *err)
{
    ps_worth *w = calloc(1, sizeof *w);

    *worth = w;
    if (w == NULL)
        return ps_fail_memory(err);
    w->window = window;
    w->capacity = capacity;
    w->window_size = window_size;
    w->oldest = (int64_t)PS_WORTH_OLDEST * window_size;
    w->search = ps_search_best();
    w->price = open_table(capacity);
    w->worth = open_table(capacity);
    w->turned = open_table(capacity);
    w->most = open_table(capacity);
    if (w->price == NULL || w->worth == NULL || w->turned == NULL ||
        w->most == NULL) {
        ps_worth_free(w);
        *worth = NULL;
        return ps_fail_memory(err);
    }
    w->price[0] = 0;
    ps_worth_set_prices(w, NULL);
    return PS_OK;
}

void ps_worth_free(ps_worth *w)
{
    if (w == NULL)
        return;
    free_table(w->price);
    free_table(w->worth);
    free_table(w->turned);
    free_table(w->most);
    free(w);
}

static void update_all(ps_worth *w)
{
    uint32_t length = ps_window_longest(w->window, w->capacity);

    for (; length > 0; length = ps_window_longest(w->window, length - 1))
        ps_worth_update(w, length);
}

static void set_ageing(ps_worth *w, bool binding)
{
    w->aged = binding ? AGED_BINDING : AGED_FREE;
    w->step = ((int64_t)w->aged << 32) / w->window_size;
}

void ps_worth_set_prices(ps_worth *w, const int32_t *price)
{
    set_ageing(w, price != NULL);
    for (uint32_t l = 1; l <= w->capacity; l++)
        w->price[l] =
            price != NULL
                ? price[l]
                : (int32_t)((int64_t)l * PS_WORTH_ONE / w->capacity);
    update_all(w);
}

void ps_worth_save(const ps_worth *w, ps_saver *saver)
{
    bool binding = w->aged == AGED_BINDING;

    ps_save_u64(saver, w->epoch);
    ps_save_u32(saver, binding);
    for (uint32_t l = 1; binding && l <= w->capacity; l++)
        ps_save_u32(saver, (uint32_t)w->price[l]);
}

void ps_worth_load(ps_worth *w, ps_restorer *restorer)
{
    bool binding;

    w->epoch = ps_load_u64(restorer);
    binding = ps_load_within(restorer, 0, 1) == 1;
    set_ageing(w, binding);
    for (uint32_t l = 1; binding && l <= w->capacity; l++)
        w->price[l] = (int32_t)ps_load_within(restorer, 0, PS_WORTH_ONE);
    update_all(w);
}

void ps_worth_set_time(ps_worth *w, uint64_t now)
{
    if (now - w->epoch > (uint64_t)EPOCH_WINDOWS * w->window_size) {
        w->epoch = now;
        update_all(w);
    }
    w->shift = ps_worth_since(w, now) - w->aged;
}

/* ---- One sequence less ---- */

/*
 * What leads a choice cannot be chosen once more.  A search seldom comes
 * upon it, so first it stays where it is; only if one did, and it was the
 * last of its length, all is searched again without it.
 */
static void lead_with(ps_worth *w, uint32_t length)
{
    w->led = length;
    w->met = false;
}

static void hide(ps_worth *w)
{
    ps_worth_set(w, w->led, PS_WORTH_NONE);
    w->met = false;
}

static void show(ps_worth *w)
{
    ps_worth_update(w, w->led);
}

static uint32_t count_of(const ps_worth *w, uint32_t length)
{
    return ps_window_count_of(w->window, length) - (length == w->led ? 1 : 0);
}

/* To be called with whatever was found. */
static void meet(ps_worth *w, uint32_t length)
{
    if (length == w->led && count_of(w, length) == 0)
        w->met = true;
}

/* ---- Searches ---- */

static bool is_there(int32_t worth)
{
    return worth >= THERE;
}

static ps_choice nothing(void)
{
    return (ps_choice){.worth = PS_WORTH_NONE};
}

static ps_choice better(ps_choice a, ps_choice b)
{
    return b.worth > a.worth ? b : a;
}

static ps_choice single(ps_worth *w, uint32_t length)
{
    if (length == 0 || !is_there(w->worth[length]))
        return nothing();
    meet(w, length);
    return (ps_choice){w->worth[length] + w->shift, 1, {length}};
}

static ps_choice pair(ps_worth *w, uint32_t a, uint32_t b)
{
    meet(w, a);
    meet(w, b);
    return (ps_choice){
        w->worth[a] + w->worth[b] + 2 * w->shift, 2, {a, b}};
}

/* Of pairs that are worth the same the most even one. */
static ps_choice exact_pair(ps_worth *w, uint32_t room)
{
    uint32_t n = (room - 1) / 2; /* the shorter is at most that, or half */
    ps_found found = w->search(w->worth + 1,
                               w->turned + (w->capacity - room) + 1, n,
                               THERE);
    ps_choice c = nothing();

    if (is_there(found.sum))
        c = pair(w, found.at + 1, room - found.at - 1);
    if (room % 2 == 0 && count_of(w, room / 2) >= 2)
        c = better(c, pair(w, room / 2, room / 2));
    return c;
}

static void fill_most(ps_worth *w, uint32_t room)
{
    int32_t *end = w->most + w->capacity;
    int32_t most;

    if (w->n_most == 0) {
        *end = PS_WORTH_NONE;
        w->n_most = 1;
    }
    most = end[1 - (ptrdiff_t)w->n_most];
    for (uint32_t l = w->n_most; l <= room; l++) {
        most = w->worth[l] > most ? w->worth[l] : most;
        end[-(ptrdiff_t)l] = most;
    }
    if (w->n_most <= room)
        w->n_most = room + 1;
}

/* The length up to `room` that is worth most; 0 if none is there. */
static uint32_t dearest(ps_worth *w, uint32_t room)
{
    uint32_t length;
    int32_t most;

    fill_most(w, room);
    most = w->most[w->capacity - room];
    if (!is_there(most))
        return 0;
    length = ps_window_longest(w->window, room);
    while (w->worth[length] != most)
        length = ps_window_longest(w->window, length - 1);
    meet(w, length);
    return length;
}

/* The pair worth most whose shorter length is at most `n`. */
static ps_choice pair_up_to(ps_worth *w, uint32_t n, uint32_t room)
{
    ps_found found;

    fill_most(w, room);
    found = w->search(w->worth + 1, w->most + (w->capacity - room) + 1, n,
                      THERE);
    if (!is_there(found.sum))
        return nothing();
    return pair(w, found.at + 1, dearest(w, room - found.at - 1));
}

/* The pair worth most of a length and another one. */
static ps_choice pair_with(ps_worth *w, uint32_t length, uint32_t room)
{
    uint32_t best = 0;
    uint32_t l = ps_window_longest(w->window, room - length);

    for (; l > 0; l = ps_window_longest(w->window, l - 1))
        if (l != length && is_there(w->worth[l]) &&
            (best == 0 || w->worth[l] >= w->worth[best]))
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

static ps_choice exact_rest(ps_worth *w, uint32_t room, uint32_t places)
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

static ps_choice best_rest(ps_worth *w, uint32_t room, uint32_t places,
                           bool exact)
{
    return exact ? exact_rest(w, room, places) : rest_within(w, room, places);
}

/* A length and the best choice that may follow it. */
static ps_choice led_by(ps_worth *w, uint32_t first, uint32_t room,
                        uint32_t places, bool exact)
{
    ps_choice c;

    lead_with(w, first);
    c = best_rest(w, room - first, places - 1, exact);
    if (w->met) {
        hide(w);
        c = best_rest(w, room - first, places - 1, exact);
        show(w);
    }
    w->led = 0;
    if (c.n == 0)
        return c;
    return (ps_choice){c.worth + w->worth[first] + w->shift,
                       c.n + 1,
                       {first, c.length[0], c.length[1]}};
}

ps_choice ps_worth_exact(ps_worth *w, uint32_t first, uint32_t room,
                         uint32_t places)
{
    if (first == 0)
        return exact_rest(w, room, places);
    if (first == room)
        return single(w, first);
    return led_by(w, first, room, places, true);
}

ps_choice ps_worth_within(ps_worth *w, uint32_t first, uint32_t room,
                          uint32_t places)
{
    if (first == 0)
        return rest_within(w, room, places);
    if (first == room)
        return single(w, first);
    return better(single(w, first),
                  led_by(w, first, room, places, false));
}
