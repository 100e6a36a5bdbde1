/*
 * length_counter.h - count sequences by length while reading or writing a
 * stream, for its LENGTHS record.
 *
 * SPDX-License-Identifier: MIT
 *
 * The counter is a hash table with open addressing, because lengths arrive in
 * any order and a known length must cost only a few instructions.  It holds up
 * to PS_LENGTHS_MAX lengths.  If there are more, it frees its memory and stops
 * counting.
 */

#ifndef LIB_STREAM_LENGTH_COUNTER_H
#define LIB_STREAM_LENGTH_COUNTER_H

#include "format/lengths_record.h"
#include "packstream.h"

typedef struct ps_length_slot {
    uint64_t count;  /* number of sequences */
    uint32_t length; /* tokens; 0: free slot */
} ps_length_slot;

/* Zero-initialise for an empty counter. */
typedef struct ps_length_counter {
    ps_length_slot *slots;
    unsigned bits; /* log2 of the number of slots, of which at most half are in
                      use; 0: no slots */
    uint32_t n;    /* number of distinct lengths */
    bool full;     /* there were more than PS_LENGTHS_MAX lengths */
} ps_length_counter;

/*
 * Adds `count` >= 1 sequences of `length` >= 1 tokens.  PS_OK, PS_ERR_MEMORY.
 */
ps_result ps_length_counter_add(ps_length_counter *counter, uint32_t length,
                                uint64_t count, ps_error *err);

/* First slot to probe for a length. */
static inline uint32_t ps_length_slot_of(uint32_t length, unsigned bits)
{
    /* Fibonacci hashing (2^32 / golden ratio) spreads adjacent lengths. */
    return length * UINT32_C(2654435769) >> (32 - bits);
}

/* Adds one sequence.  A hit in the first slot needs no call. */
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

/* Number of sequences of this length; 0 if the counter is full. */
uint64_t ps_length_counter_count(const ps_length_counter *counter,
                                 uint32_t length);

/*
 * Writes the LENGTHS record of a counter that is not full,
 * PS_LENGTHS_BYTES(counter->n) bytes.
 */
void ps_length_counter_encode(const ps_length_counter *counter,
                              uint64_t stream_bytes, unsigned char *to);

/* Empties the counter and frees its memory.  A full counter can count again. */
void ps_length_counter_clear(ps_length_counter *counter);

#endif
