/*
 * value.h - the greatest score that sequences in the window can have in some
 * room.
 *
 * V_k(c) is the greatest score of at most k sequences in c units of room: a
 * knapsack over the lengths in the window, as if each were there without end
 * (Gilmore and Gomory 1966).  A pack is then filled by a walk: take the
 * length that has the greatest score together with the value of what room
 * and places are left.
 *
 * Room is counted in units (units.h), so that filling the tables costs the
 * same at any capacity; exact sums are found by length.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_VALUE_H
#define LIB_ENGINE_VALUE_H

#include <stdbool.h>

#include "base/mem_bound.h"
#include "base/serial.h"
#include "engine/kernels.h"

typedef struct ps_value {
    uint32_t row_size; /* of the table */
    uint32_t units;    /* of the rows as they are; 0: not filled yet */
    uint32_t levels;   /* V_1 up to this are known */
    bool has_any;      /* and V for any number of sequences */
    bool any_only;     /* only that is used */
    int32_t *table;    /* rows by descending room */
    const ps_kernels *kernels;
} ps_value;

/*
 * For packs of at most `depth` sequences and so many units.  Sets mem->failed
 * without memory.
 */
void ps_value_init(ps_value *value, uint32_t max_units, uint32_t depth,
                   ps_mem *mem);
void ps_value_destroy(ps_value *value);

/*
 * Fills the table for the scores as they are, by units.  With an `ample`
 * depth, packs do not fill it, and only V for any number is used.
 */
void ps_value_refresh(ps_value *value, const int32_t *best, uint32_t units,
                      bool ample);

/* The load fails if the table is for another number of units. */
void ps_value_save(const ps_value *value, ps_saver *saver);
void ps_value_load(ps_value *value, uint32_t units, ps_restorer *restorer);

/* The values of rooms with so many places >= 1: entry units - c is of c. */
const int32_t *ps_value_row(const ps_value *value, uint32_t places);

#endif
