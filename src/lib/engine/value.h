/*
 * value.h - value function: the greatest score that fits a capacity.
 *
 * V_k(c) is the greatest total score of at most k sequences within c units: an
 * unbounded knapsack over the lengths in the window (Gilmore and Gomory 1966).
 * A pack is then filled step by step: take the length whose score plus the
 * value of the remaining capacity and depth is greatest.
 *
 * Capacity is counted in units (units.h), so the cost of filling the tables
 * does not depend on it.  Exact sums are found by length.
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
    uint32_t row_size; /* elements */
    uint32_t units;    /* units of the current rows; 0: not filled yet */
    uint32_t levels;   /* rows V_1 to V_levels exist */
    bool has_any;      /* and a row for any number of sequences */
    bool any_only;     /* only that row is used */
    int32_t *table;    /* rows, by descending capacity */
    const ps_kernels *kernels;
} ps_value;

/*
 * For packs of at most `depth` sequences and max_units.  Sets mem->failed if
 * memory runs out.
 */
void ps_value_init(ps_value *value, uint32_t max_units, uint32_t depth,
                   ps_mem *mem);
void ps_value_destroy(ps_value *value);

/*
 * Fills the table from the scores `best`, by unit.  With `unlimited`, packs do
 * not reach the depth, so only the row for any number of sequences is needed.
 */
void ps_value_refresh(ps_value *value, const int32_t *best, uint32_t units,
                      bool unlimited);

/* Loading fails if the table has a different number of units. */
void ps_value_save(const ps_value *value, ps_saver *saver);
void ps_value_load(ps_value *value, uint32_t units, ps_restorer *restorer);

/* Values for `places` >= 1 more sequences; index units - c is capacity c. */
const int32_t *ps_value_row(const ps_value *value, uint32_t places);

#endif
