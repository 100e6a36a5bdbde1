/*
 * policy_exact.c - oldest first, exact fits if there are any, else the
 * longest that fits.
 *
 * Best fit with a look two sequences ahead, on a window instead of all the
 * data.  That the oldest always leaves bounds the delay: a sequence is
 * emitted at the latest in the pack when it has become the oldest.
 *
 * SPDX-License-Identifier: MIT
 */

#include "policy.h"

/*
 * Looks for two lengths on hand that sum to `room`; the shorter of the two
 * into *shorter.  Starts with the most even pair, so that short sequences,
 * which close other packs, are not spent here; visits each length on hand
 * at most once.
 */
static bool find_pair(const ps_window *w, uint32_t room, uint32_t *shorter)
{
    uint32_t b = ps_window_longest(w, room / 2);

    while (b > 0) {
        uint32_t others = ps_window_count_of(w, room - b);

        if (others > (b == room - b ? 1u : 0u)) {
            *shorter = b;
            return true;
        }
        b = ps_window_longest(w, b - 1);
    }
    return false;
}

/*
 * The length to add to a pack with `room` tokens and `depth` places left; 0
 * if nothing fits.  Of a pair one comes first; the other is then an exact
 * fit.
 */
static uint32_t next_length(const ps_window *w, uint32_t room,
                            uint32_t depth)
{
    uint32_t length;

    if (ps_window_count_of(w, room) > 0)
        return room;
    if (depth >= 2 && room >= 2 && find_pair(w, room, &length))
        return length;
    return ps_window_longest(w, room);
}

static uint32_t choose(ps_window *w, uint32_t capacity, uint32_t depth,
                       uint32_t *slots)
{
    uint32_t length = ps_window_length(w, ps_window_oldest(w));
    uint32_t n = 0;

    while (length > 0) {
        slots[n++] = ps_window_take(w, length);
        capacity -= length;
        length = n < depth && capacity > 0
                     ? next_length(w, capacity, depth - n)
                     : 0;
    }
    return n;
}

const ps_policy ps_policy_exact = {"exact", choose};
