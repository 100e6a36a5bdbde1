/*
 * depth_cost.h - what the cap on the depth costs a stream.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_DEPTH_COST_H
#define LIB_ENGINE_DEPTH_COST_H

#include "base/serial.h"
#include "packstream.h"

/* Sequences that were packed, by length in units of 2^shift tokens. */
typedef struct ps_length_counts {
    uint32_t capacity;
    uint32_t shift;
    uint32_t units;
    uint64_t *count;
    uint64_t *tokens; /* of all these sequences */
} ps_length_counts;

/* PS_ERR_MEMORY. */
ps_result ps_length_counts_open(ps_length_counts *counts, uint32_t capacity,
                                ps_error *err);
void ps_length_counts_free(ps_length_counts *counts);
uint64_t ps_length_counts_bytes(uint32_t capacity);

static inline void ps_length_counts_add(ps_length_counts *counts,
                                        uint32_t length)
{
    counts->count[length >> counts->shift]++;
    counts->tokens[length >> counts->shift] += length;
}

/* As many numbers as the other has saved; what they say is checked. */
void ps_length_counts_save(const ps_length_counts *counts, ps_saver *saver);
void ps_length_counts_load(ps_length_counts *counts, ps_restorer *restorer);

/*
 * What a cap of `depth` costs a stream of these lengths, which took so many
 * packs; nothing if another depth would not have saved it a few.
 * PS_ERR_MEMORY.
 */
ps_result ps_depth_cost_of(const ps_length_counts *counts, uint32_t depth,
                           uint64_t packs, ps_depth_cost *cost,
                           ps_error *err);

/* The most memory that it takes. */
uint64_t ps_depth_cost_bytes(uint32_t capacity);

#endif
