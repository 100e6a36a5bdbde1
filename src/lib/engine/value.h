/*
 * value.h - the most that some sequences on hand can be worth in some room.
 *
 * V_k(c) is the greatest score of at most k sequences in c units of room: a
 * knapsack over the lengths on hand, as if each were there without end
 * (Gilmore and Gomory 1966).  A pack is then filled by a walk: take the
 * length that has the greatest score together with the value of what room
 * and places are left.
 *
 * Room is counted in units (score.h), so that filling the tables costs the
 * same at any capacity; exact sums are found by length.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_VALUE_H
#define LIB_ENGINE_VALUE_H

#include "engine/kernels.h"
#include "engine/score.h"

typedef struct ps_value {
    uint32_t max_units;
    uint32_t units;    /* of the tables as they are; 0: not filled yet */
    uint32_t levels;   /* V_1 up to this are known */
    bool has_any;      /* and V for any number of sequences */
    bool is_far;       /* nothing is asked for but that */
    int32_t *table;    /* rows by descending room */
    const ps_kernels *kernels;
} ps_value;

/* For packs of at most `depth` sequences and so many units.  PS_ERR_MEMORY. */
ps_result ps_value_open(ps_value **value, uint32_t max_units,
                        uint32_t depth, ps_error *err);
void ps_value_free(ps_value *value);

/* The most memory that it takes. */
uint64_t ps_value_bytes(uint32_t max_units, uint32_t depth);

/*
 * Fills the tables for the scores as they are, by units.  `is_far` says that
 * so many sequences as the depth allows are never asked for.
 */
void ps_value_refresh(ps_value *value, const int32_t *best, uint32_t units,
                      bool is_far);

/* Nothing is known until the next refresh. */
void ps_value_clear(ps_value *value);

/* The load fails if the tables are for another number of units. */
void ps_value_save(const ps_value *value, ps_saver *saver);
void ps_value_load(ps_value *value, uint32_t units, ps_restorer *restorer);

/* The values of rooms with so many places >= 1: entry units - c is of c. */
const int32_t *ps_value_row(const ps_value *value, uint32_t places);

#endif
