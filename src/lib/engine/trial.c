/*
 * trial.c - a pack in the making.
 *
 * A walk along the value function (value.h) adds the best next length, until
 * one or two lengths fill what is left exactly and are worth as much.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/trial.h"

#define BULK_MEANS 7 /* mean lengths of room that a walk is to fill */
#define BULK_LEAVES 2 /* places for it: as many, or the depth over this */
#define PAIR_MEANS 3 /* and that a pair is to fill exactly */
#define BULK_PART 4  /* no longer part of the capacity goes in bulk */
#define LOOKS 24     /* lengths among which a last one is looked for */

/* An exact fill is preferred to a value better by this. */
#define EXACT (PS_SCORE_ONE / 200)

void ps_trial_place(ps_trial *t, ps_trial_pack *p, uint32_t length)
{
    p->lengths[p->n++] = length;
    p->score += t->score->score[length];
    p->room -= length;
    p->places--;
    p->cost += (uint64_t)length * length;
    ps_score_place(t->score, length);
}

/* One or two lengths, and their score together. */
typedef struct choice {
    int32_t score;
    uint32_t length[2];
} choice;

/* The best of the longest that fit; a shorter one leaves a gap. */
static choice find_last(const ps_trial *t, uint32_t room)
{
    choice c = {.score = PS_SCORE_NONE};
    uint32_t l = ps_window_longest(t->window, room);

    for (unsigned i = 0; i < LOOKS && l > 0; i++) {
        if (t->score->score[l] > c.score)
            c = (choice){t->score->score[l], {l, 0}};
        l = ps_window_longest(t->window, l - 1);
    }
    return c;
}

/* The best two different lengths that sum to `room`, the shorter first. */
static choice find_exact_pair(const ps_trial *t, uint32_t room)
{
    const ps_score *score = t->score;
    uint32_t n = (room - 1) / 2;
    choice c = {.score = PS_SCORE_NONE};
    ps_found found;

    if (n <= 2048 || n <= 8 * ps_window_count(t->window)) {
        found = t->search(score->score + 1,
                          score->reversed + (score->capacity - room) + 1, n,
                          PS_SCORE_NONE / 2);
        if (found.sum >= PS_SCORE_NONE / 2)
            c = (choice){found.sum, {found.at + 1, room - found.at - 1}};
        return c;
    }
    for (uint32_t l = ps_window_longest(t->window, n); l > 0;
         l = ps_window_longest(t->window, l - 1)) {
        int32_t sum = score->score[l] + score->score[room - l];

        if (sum > c.score)
            c = (choice){sum, {l, room - l}};
    }
    return c;
}

/* The best one or two lengths that fill the room exactly. */
static choice find_exact(const ps_trial *t, uint32_t room, uint32_t places)
{
    const int32_t *score = t->score->score;
    choice c = {score[room], {room, 0}};

    if (places < 2 || room < 2 ||
        (uint64_t)room * ps_window_count(t->window) >
            PAIR_MEANS * ps_window_tokens(t->window))
        return c;
    if (room > 2) {
        choice pair = find_exact_pair(t, room);

        if (pair.score > c.score)
            c = pair;
    }
    if (room % 2 == 0 && 2 * score[room / 2] > c.score &&
        ps_score_left(t->score, room / 2) >= 2)
        c = (choice){2 * score[room / 2], {room / 2, room / 2}};
    return c;
}

/* The length with the best score and value of what it leaves. */
static choice find_next(const ps_trial *t, uint32_t room, uint32_t places)
{
    const ps_score *score = t->score;
    uint32_t units = ps_units_round(&score->units, room);
    ps_found found;
    uint32_t length;

    if (places == 1 || room < score->units.size)
        return find_last(t, room);
    found = t->search(score->best + 1,
                      ps_value_row(t->value, places - 1) +
                          (score->units.count - units) + 1,
                      units, PS_SCORE_NONE / 2);
    if (found.sum < PS_SCORE_NONE / 2)
        return (choice){.score = PS_SCORE_NONE};
    length = found.at < units ? ps_score_best_in(score, found.at + 1) : 0;
    if (length == 0 || length > room)
        return find_last(t, room);
    return (choice){found.sum, {length, 0}};
}

/* True if no better end of a pack need be looked for. */
static bool is_enough(const ps_trial *t, const ps_trial_pack *p, choice exact,
                      int64_t good)
{
    uint32_t n = exact.length[1] > 0 ? 2 : 1;

    return ps_score_is_there(exact.score) &&
           p->score + exact.score >= good &&
           (n == p->places || t->is_ample);
}

void ps_trial_walk(ps_trial *t, ps_trial_pack *p, int64_t good)
{
    while (p->places > 0 && p->room > 0) {
        choice exact = find_exact(t, p->room, p->places);
        choice next = {.score = PS_SCORE_NONE};

        if (!is_enough(t, p, exact, good))
            next = find_next(t, p->room, p->places);
        if (ps_score_is_there(exact.score) &&
            exact.score >= next.score - EXACT) {
            ps_trial_place(t, p, exact.length[0]);
            if (exact.length[1] > 0)
                ps_trial_place(t, p, exact.length[1]);
            return;
        }
        if (!ps_score_is_there(next.score))
            return;
        ps_trial_place(t, p, next.length[0]);
    }
}

bool ps_trial_place_oldest(ps_trial *t, ps_trial_pack *p)
{
    const ps_window *w = t->window;
    uint64_t count = ps_window_count(w);
    uint64_t tokens = ps_window_tokens(w);
    uint32_t slot = ps_window_oldest(w);
    uint32_t places = t->depth / BULK_LEAVES;
    uint32_t n = p->n;

    places = places < BULK_MEANS ? places : BULK_MEANS;
    for (; slot != PS_NO_SLOT && p->places > places &&
           p->room * count > BULK_MEANS * tokens;
         slot = ps_window_younger(w, slot)) {
        uint32_t length = ps_window_length(w, slot);

        if (length <= p->room && length <= t->capacity / BULK_PART &&
            ps_score_left(t->score, length) > 0)
            ps_trial_place(t, p, length);
    }
    return p->n > n;
}

void ps_trial_pair(ps_trial *t, bool urgent, ps_trial_pack *p)
{
    choice exact = {.score = PS_SCORE_NONE};
    uint32_t l = t->capacity;

    if (!urgent)
        exact = find_exact(t, p->room, p->places);
    if (ps_score_is_there(exact.score) && exact.length[1] > 0) {
        ps_trial_place(t, p, exact.length[0]);
        ps_trial_place(t, p, exact.length[1]);
        return;
    }
    ps_trial_place(t, p, ps_window_length(t->window,
                                          ps_window_oldest(t->window)));
    while (p->places > 0 && p->room > 0 && l > 0) {
        l = ps_window_longest(t->window, l < p->room ? l : p->room);
        if (l > 0 && ps_score_left(t->score, l) > 0)
            ps_trial_place(t, p, l);
        else if (l > 0)
            l--;
    }
}
