/*
 * window.h - the sequences admitted and not yet in a pack, by length and age.
 *
 * Payloads are elsewhere, under the same slots.  Sequences of equal length form
 * a queue, oldest first, and are taken from its head.  A doubly linked list has
 * all of them by age.  Admitting and taking a sequence takes constant time.
 *
 * The engine and its policies read the members directly; only the functions
 * here change them.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_WINDOW_H
#define LIB_ENGINE_WINDOW_H

#include "base/bitset.h"
#include "packstream.h"

#define PS_NO_SLOT UINT32_MAX

/* A sequence.  Time and length stay valid until the slot is reused. */
typedef struct ps_window_slot {
    uint64_t time;           /* records when it arrived */
    uint32_t length;         /* units */
    uint32_t next_of_length; /* next in its queue, or next released slot */
    uint32_t older;          /* PS_NO_SLOT: this is the oldest */
    uint32_t younger;        /* PS_NO_SLOT: this is the youngest */
} ps_window_slot;

/* The sequences of one length, oldest first. */
typedef struct ps_window_queue {
    uint32_t first;
    uint32_t last;
    uint32_t count;
} ps_window_queue;

typedef struct ps_window {
    ps_window_slot *slots;
    ps_window_queue *queues; /* by length */
    ps_bitset lengths;       /* lengths with a sequence */
    uint64_t tokens;         /* of all sequences, in units */
    uint64_t enough;   /* it is full with at least this many units, in at */
    uint32_t least;    /* least this many sequences */
    uint32_t size;     /* maximum number of sequences */
    uint32_t count;    /* number of sequences */
    uint32_t oldest;   /* slot; PS_NO_SLOT: the window is empty */
    uint32_t youngest; /* slot; the same */
    uint32_t made;     /* slots from here on were never used */
    uint32_t free;     /* first released slot, or PS_NO_SLOT */
} ps_window;

/*
 * Makes a window for `size` >= 1 sequences of 1 to max_length units, and slots
 * for `spare` more that were taken but not released.  It is full with `size`
 * sequences, unless the caller sets `least` and `enough`.  Sets mem->failed if
 * memory runs out.
 */
void ps_window_init(ps_window *window, uint32_t size, uint32_t spare,
                    uint32_t max_length, ps_mem *mem);
void ps_window_destroy(ps_window *window);

static inline bool ps_window_is_full(const ps_window *w)
{
    return w->count >= w->least &&
           (w->tokens >= w->enough || w->count == w->size);
}

/* The greatest length in the window that is at most `limit`; 0: none. */
static inline uint32_t ps_window_longest(const ps_window *w, uint32_t limit)
{
    uint32_t length;

    return ps_bitset_at_most(&w->lengths, limit, &length) ? length : 0;
}

/*
 * Adds a sequence that arrived at `time`, not before the one added last, and
 * returns its slot.  The window must not be full.
 */
static inline uint32_t ps_window_admit(ps_window *w, uint32_t length,
                                       uint64_t time)
{
    uint32_t s = w->free;
    ps_window_queue *q = &w->queues[length];

    if (s == PS_NO_SLOT)
        s = w->made++;
    else
        w->free = w->slots[s].next_of_length;
    w->slots[s] = (ps_window_slot){.time = time,
                                   .length = length,
                                   .next_of_length = PS_NO_SLOT,
                                   .older = w->youngest,
                                   .younger = PS_NO_SLOT};
    if (w->youngest == PS_NO_SLOT)
        w->oldest = s;
    else
        w->slots[w->youngest].younger = s;
    w->youngest = s;
    if (q->count++ == 0) {
        q->first = s;
        ps_bitset_add(&w->lengths, length);
    } else {
        w->slots[q->last].next_of_length = s;
    }
    q->last = s;
    w->tokens += length;
    w->count++;
    return s;
}

/* Removes the oldest sequence of a length and returns its slot. */
static inline uint32_t ps_window_take(ps_window *w, uint32_t length)
{
    ps_window_queue *q = &w->queues[length];
    uint32_t s = q->first;
    uint32_t older = w->slots[s].older;
    uint32_t younger = w->slots[s].younger;

    q->first = w->slots[s].next_of_length;
    if (--q->count == 0)
        ps_bitset_remove(&w->lengths, length);
    if (older == PS_NO_SLOT)
        w->oldest = younger;
    else
        w->slots[older].younger = younger;
    if (younger == PS_NO_SLOT)
        w->youngest = older;
    else
        w->slots[younger].older = older;
    w->tokens -= length;
    w->count--;
    return s;
}

/*
 * Takes the oldest of the first sequences of a length whose topic, which is
 * topics[slot], is `topic`.  If there is none, takes the oldest.
 */
uint32_t ps_window_take_like(ps_window *window, uint32_t length,
                             const uint64_t *topics, uint64_t topic);

/*
 * Removes the sequences in `n` slots, which are ordered by length, and those of
 * equal length by age, the oldest first.  Walks the queue of each length up to
 * the last one.
 */
void ps_window_remove(ps_window *window, const uint32_t *slots, uint32_t n);

/* Makes the slot of a removed sequence available. */
static inline void ps_window_release(ps_window *w, uint32_t slot)
{
    w->slots[slot].next_of_length = w->free;
    w->free = slot;
}

#endif
