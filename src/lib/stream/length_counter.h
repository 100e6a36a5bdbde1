/*
 * length_counter.h - counts sequences by length while a stream is written or
 * read; makes the LENGTHS record.
 *
 * A hash table: lengths come in any order, and one that was seen before costs
 * a few instructions.  It holds PS_LENGTHS_MAX lengths at most; with one more
 * it frees its memory and counts no further.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_STREAM_LENGTH_COUNTER_H
#define LIB_STREAM_LENGTH_COUNTER_H

#include "format/lengths_record.h"
#include "packstream.h"

typedef struct ps_length_slot {
    uint64_t count;
    uint32_t length; /* 0: the slot is free */
} ps_length_slot;

/* Zero-initialise for one that has counted nothing. */
typedef struct ps_length_counter {
    ps_length_slot *slots;
    unsigned bits; /* there are 2^bits slots, if any; half of them are used */
    uint32_t n;    /* distinct lengths */
    bool full;     /* there were more than it can hold */
} ps_length_counter;

/* Counts `count` >= 1 sequences of `length` >= 1.  PS_OK, PS_ERR_MEMORY. */
ps_result ps_length_counter_add(ps_length_counter *counter, uint32_t length,
                                uint64_t count, ps_error *err);

/* The slot where the search for a length begins. */
static inline uint32_t ps_length_slot_of(uint32_t length, unsigned bits)
{
    /* Multiplied by 2^32 over the golden ratio, near lengths lie apart. */
    return length * UINT32_C(2654435769) >> (32 - bits);
}

/* The same for one sequence, which nearly always is in its first slot. */
static inline ps_result ps_length_counter_add_one(ps_length_counter *counter,
                                                  uint32_t length,
                                                  ps_error *err)
{
    if (counter->slots != NULL) {
        ps_length_slot *slot =
            &counter->slots[ps_length_slot_of(length, counter->bits)];

        if (slot->length == length) {
            slot->count++;
            return PS_OK;
        }
    }
    return ps_length_counter_add(counter, length, 1, err);
}

/* Sequences of that length; 0 after an overflow. */
uint64_t ps_length_counter_count(const ps_length_counter *counter,
                                 uint32_t length);

/*
 * Writes the LENGTHS record of a counter that is not full to `to`,
 * PS_LENGTHS_BYTES(counter->n) bytes.
 */
void ps_length_counter_encode(const ps_length_counter *counter,
                              uint64_t stream_bytes, unsigned char *to);

/* Counts nothing again; full ones count again. */
void ps_length_counter_clear(ps_length_counter *counter);

#endif
