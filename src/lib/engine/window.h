/*
 * window.h - the sequences admitted and not yet emitted, by length and by
 * age.  Knows lengths only; payloads are in a store under the same slots.
 *
 * Sequences of a length wait in a queue, the oldest at its head, where
 * sequences are taken out.  A second chain links all of them by age.  Admit
 * and take touch a constant number of words.
 *
 * The engine and its policies read the members as they are, several times
 * for each sequence; only the functions here change them.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_WINDOW_H
#define LIB_ENGINE_WINDOW_H

#include "base/bitset.h"
#include "packstream.h"

#define PS_NO_SLOT UINT32_MAX

/* A sequence; its time and length stay until the slot is used again. */
typedef struct ps_window_slot {
    uint64_t time; /* when it came */
    uint32_t length;
    uint32_t next_of_length; /* or, of a released slot, the next of these */
    uint32_t older;          /* PS_NO_SLOT: it is the oldest */
    uint32_t younger;
} ps_window_slot;

/* The sequences of a length, the oldest first. */
typedef struct ps_window_queue {
    uint32_t first;
    uint32_t last;
    uint32_t count;
} ps_window_queue;

typedef struct ps_window {
    ps_window_slot *slots;
    ps_window_queue *queues; /* by length */
    ps_bitset lengths;       /* those of which there are sequences */
    uint64_t tokens;
    uint64_t enough; /* tokens that fill it, */
    uint32_t least;  /* if it has so many sequences */
    uint32_t size;   /* the most sequences */
    uint32_t count;
    uint32_t oldest; /* PS_NO_SLOT: the window is empty */
    uint32_t youngest;
    uint32_t made; /* slots so far: those from it on were never touched */
    uint32_t free; /* the first of the released slots, or PS_NO_SLOT */
} ps_window;

/*
 * For `size` >= 1 sequences of 1..max_length tokens, and slots for `spare`
 * more that were taken and are not yet released.  It is full with `size`
 * sequences, unless `least` and `enough` are set to less.  Sets mem->failed
 * without memory.
 */
void ps_window_init(ps_window *window, uint32_t size, uint32_t spare,
                    uint32_t max_length, ps_mem *mem);
void ps_window_destroy(ps_window *window);

static inline bool ps_window_is_full(const ps_window *w)
{
    return w->count >= w->least &&
           (w->tokens >= w->enough || w->count == w->size);
}

/* The greatest length that is there and at most `limit`; 0 for none. */
static inline uint32_t ps_window_longest(const ps_window *w, uint32_t limit)
{
    uint32_t length;

    return ps_bitset_at_most(&w->lengths, limit, &length) ? length : 0;
}

/*
 * Adds a sequence of `length` that came at a time, not before that of the
 * one added last, and returns its slot.  The window is not full.
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

/* Takes out the oldest sequence of a length, and returns its slot. */
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

/* Releases the slot of a sequence that was taken. */
static inline void ps_window_release(ps_window *w, uint32_t slot)
{
    w->slots[slot].next_of_length = w->free;
    w->free = slot;
}

#endif
