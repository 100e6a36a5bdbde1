/*
 * pack_builder.c - build a pack from sequences in the window.
 *
 * Adds the best next length by the value function (value.h), until one or two
 * lengths fill the remaining capacity exactly and score about as much.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/pack_builder.h"
#include "engine/tuning.h"

/* Up to this many scores, or scores per sequence, are searched linearly. */
#define SHORT_RUN 2048
#define RUN_PER_SEQUENCE 8

void ps_pack_place(ps_pack_builder *b, ps_candidate *p, uint32_t length)
{
    p->lengths[p->n++] = length;
    p->score += b->score->score[length];
    p->room -= length;
    p->places--;
    p->cost += (uint64_t)length * length;
    ps_score_place(b->score, length);
}

/* One or two lengths and their total score. */
typedef struct choice {
    int32_t score;
    uint32_t length[2];
} choice;

/* Returns the best of the longest lengths that fit; others leave a gap. */
static choice find_last(const ps_pack_builder *b, uint32_t room)
{
    choice c = {.score = PS_SCORE_NONE};
    uint32_t l = ps_window_longest(b->window, room);

    for (unsigned i = 0; i < TUNE_LAST_TRIES && l > 0; i++) {
        if (b->score->score[l] > c.score)
            c = (choice){b->score->score[l], {l, 0}};
        l = ps_window_longest(b->window, l - 1);
    }
    return c;
}

/* Returns the best one or two lengths that fill `room` exactly. */
static choice find_exact(const ps_pack_builder *b, uint32_t room,
                         uint32_t places)
{
    const ps_window *w = b->window;
    const ps_score *s = b->score;
    const int32_t *score = s->score;
    uint32_t n = (room - 1) / 2; /* maximum of the shorter of two lengths */
    choice c = {score[room], {room, 0}};

    if (places < 2 || room < 2 ||
        (uint64_t)room * w->count > TUNE_PAIR_MEANS * w->tokens)
        return c;

    /* Two distinct lengths, the shorter first. */
    if (n <= SHORT_RUN || n <= RUN_PER_SEQUENCE * w->count) {
        ps_max_sum max =
            b->search(score + 1, s->reversed + (s->capacity - room) + 1, n,
                      PS_SCORE_NONE / 2);

        if (max.sum >= PS_SCORE_NONE / 2 && max.sum > c.score)
            c = (choice){max.sum, {max.index + 1, room - max.index - 1}};
    } else {
        for (uint32_t l = ps_window_longest(w, n); l > 0;
             l = ps_window_longest(w, l - 1)) {
            int32_t sum = score[l] + score[room - l];

            if (sum > c.score)
                c = (choice){sum, {l, room - l}};
        }
    }

    /* Two equal lengths. */
    if (room % 2 == 0 && 2 * score[room / 2] > c.score &&
        ps_score_left(s, room / 2) >= 2)
        c = (choice){2 * score[room / 2], {room / 2, room / 2}};
    return c;
}

/* Returns the length whose score plus the value of the rest is greatest. */
static choice find_next(const ps_pack_builder *b, uint32_t room,
                        uint32_t places)
{
    const ps_score *score = b->score;
    uint32_t units = ps_units_round(&score->units, room);
    ps_max_sum max;
    uint32_t length;

    if (places == 1 || room < score->units.size)
        return find_last(b, room);
    max = b->search(score->best + 1,
                    ps_value_row(b->value, places - 1) +
                        (score->units.count - units) + 1,
                    units, PS_SCORE_NONE / 2);
    if (max.sum < PS_SCORE_NONE / 2)
        return (choice){.score = PS_SCORE_NONE};
    length = max.index < units ? ps_score_best_in(score, max.index + 1) : 0;
    if (length == 0 || length > room)
        return find_last(b, room);
    return (choice){max.sum, {length, 0}};
}

void ps_pack_fill(ps_pack_builder *b, ps_candidate *p, int64_t good)
{
    while (p->places > 0 && p->room > 0) {
        choice exact = find_exact(b, p->room, p->places);
        choice next = {.score = PS_SCORE_NONE};
        uint32_t n = exact.length[1] > 0 ? 2 : 1;
        bool is_exact = ps_score_exists(exact.score);

        if (!is_exact || p->score + exact.score < good ||
            (n != p->places && !b->ample_depth))
            next = find_next(b, p->room, p->places);
        if (is_exact &&
            exact.score >= next.score - PS_SCORE_ONE / TUNE_EXACT) {
            for (uint32_t i = 0; i < n; i++)
                ps_pack_place(b, p, exact.length[i]);
            return;
        }
        if (!ps_score_exists(next.score))
            return;
        ps_pack_place(b, p, next.length[0]);
    }
}

bool ps_pack_place_oldest(ps_pack_builder *b, ps_candidate *p)
{
    const ps_window *w = b->window;
    uint32_t slot = w->oldest;
    uint32_t places = b->depth / TUNE_BULK_LEAVES;
    uint32_t n = p->n;

    places = places < TUNE_BULK_MEANS ? places : TUNE_BULK_MEANS;
    for (; slot != PS_NO_SLOT && p->places > places &&
           (uint64_t)p->room * w->count > TUNE_BULK_MEANS * w->tokens;
         slot = w->slots[slot].younger) {
        uint32_t length = w->slots[slot].length;

        if (length <= p->room && length <= b->capacity / TUNE_BULK_PART &&
            ps_score_left(b->score, length) > 0)
            ps_pack_place(b, p, length);
    }
    return p->n > n;
}

/*
 * Returns the capacity that best fit leaves unused after a first length.  0 if
 * nothing fits beside that length, since waiting would not help.
 */
static uint32_t gap_behind(const ps_pack_builder *b, uint32_t first,
                           uint32_t places)
{
    const ps_window *w = b->window;
    uint32_t room = b->capacity - first;
    uint32_t length = ps_window_longest(w, room);
    uint32_t taken = length == first; /* sequences of this length */

    if (length == 0)
        return 0;
    while (length > 0 && places > 1) {
        uint32_t next = length - 1;

        if (taken < w->queues[length].count) {
            room -= length;
            places--;
            next = ++taken < w->queues[length].count ? length : next;
        }
        next = ps_window_longest(w, next < room ? next : room);
        if (next != length)
            taken = next == first;
        length = next;
    }
    return room;
}

/* Returns the length of an old sequence with which best fit wastes least. */
static uint32_t find_first(const ps_pack_builder *b, uint32_t places)
{
    const ps_window *w = b->window;
    uint32_t tries = w->size / TUNE_FIRST_PART;
    uint32_t slot = w->oldest;
    uint32_t first = w->slots[slot].length;
    uint64_t least = (uint64_t)gap_behind(b, first, places) << 20;

    for (uint32_t i = 1; i < tries && i < TUNE_FIRSTS; i++) {
        uint64_t off = (uint64_t)b->capacity * TUNE_FIRST_AGE * i;

        slot = w->slots[slot].younger;
        if (slot == PS_NO_SLOT || off >= least)
            break;
        if (w->queues[w->slots[slot].length].first != slot)
            continue; /* the same length as an older sequence */
        off += (uint64_t)gap_behind(b, w->slots[slot].length, places) << 20;
        if (off < least) {
            least = off;
            first = w->slots[slot].length;
        }
    }
    return first;
}

void ps_pack_fit(ps_pack_builder *b, bool urgent, ps_candidate *p)
{
    const ps_window *w = b->window;
    uint32_t l = b->capacity;
    choice exact = {.score = PS_SCORE_NONE};

    if (!urgent)
        exact = find_exact(b, p->room, p->places);
    if (ps_score_exists(exact.score)) {
        ps_pack_place(b, p, exact.length[0]);
        l = exact.length[1];
    } else {
        ps_pack_place(b, p, urgent ? w->slots[w->oldest].length
                                   : find_first(b, p->places));
    }
    while (p->places > 0 && p->room > 0 && l > 0) {
        l = ps_window_longest(w, l < p->room ? l : p->room);
        if (l > 0 && ps_score_left(b->score, l) > 0)
            ps_pack_place(b, p, l);
        else if (l > 0)
            l--;
    }
}
