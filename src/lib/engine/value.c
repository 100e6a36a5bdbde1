/*
 * value.c - value function: the greatest score that fits a capacity.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/value.h"
#include "engine/tuning.h"

#include <stdlib.h>
#include <string.h>

/*
 * If fewer than 1 in FEW_PART units have a useful length, the row for any
 * number of sequences is filled by length instead of by capacity.
 */
#define FEW_PART 32

/*
 * Greater than any value.  2,048 sequences with at most 0.16 PS_SCORE_ONE each
 * for balance and age, and prices below 2 in total, are worth less than 330
 * PS_SCORE_ONE; the limit is 384.  Adding another score does not overflow.
 */
#define MAX_VALUE (INT32_MAX / 4 * 3)

void ps_value_init(ps_value *v, uint32_t max_units, uint32_t depth,
                   ps_mem *mem)
{
    uint32_t levels = depth - 1 < TUNE_LEVELS ? depth - 1 : TUNE_LEVELS;
    uint32_t row_size = max_units + 1 + PS_SEARCH_GROUP;
    /* A row for each level, and one for any number of sequences. */
    uint64_t n = ((uint64_t)levels + 1) * row_size + PS_SEARCH_GROUP;

    *v = (ps_value){.row_size = row_size,
                    .levels = levels,
                    .has_any = depth - 1 > TUNE_LEVELS,
                    .kernels = ps_kernels_best()};
    v->table = ps_mem_alloc(mem, n, sizeof *v->table);
}

void ps_value_destroy(ps_value *v)
{
    free(v->table);
}

/* Level 0 is for any number of sequences.  Elements before a row stay 0. */
static int32_t *row(const ps_value *v, uint32_t level)
{
    return v->table + PS_SEARCH_GROUP + level * (size_t)v->row_size;
}

const int32_t *ps_value_row(const ps_value *v, uint32_t places)
{
    return row(v, v->any_only || places > v->levels ? 0 : places);
}

/* Fills the row for any number of sequences if few lengths have a score. */
static void fill_any_few(const int32_t *best, int32_t *to, uint32_t units)
{
    int32_t max = 0;

    for (uint32_t i = 1; i <= units; i++) {
        if (best[i] <= max)
            continue;
        max = best[i];
        for (uint32_t k = units - i + 1; k-- > 0;) {
            int32_t sum = max + to[k + i];

            to[k] = sum > to[k] ? sum : to[k];
        }
    }
}

/* Number of lengths with a greater score than all shorter ones. */
static uint32_t useful_lengths(const int32_t *best, uint32_t units)
{
    int32_t max = 0;
    uint32_t n = 0;

    for (uint32_t i = 1; i <= units; i++)
        if (best[i] > max) {
            max = best[i];
            n++;
        }
    return n;
}

void ps_value_refresh(ps_value *v, const int32_t *best, uint32_t units,
                      bool unlimited)
{
    int32_t *single = row(v, 1);
    int32_t max = 0;

    v->units = units;
    v->any_only = unlimited && v->has_any;
    memset(row(v, 0), 0, (units + 1) * sizeof *v->table);
    if (v->has_any && useful_lengths(best, units) < units / FEW_PART)
        fill_any_few(best, row(v, 0), units);
    else if (v->has_any)
        v->kernels->any(best, row(v, 0), units);
    if (v->any_only || v->levels == 0)
        return;
    single[units] = 0;
    for (uint32_t c = 1; c <= units; c++) {
        max = best[c] > max ? best[c] : max;
        single[units - c] = max;
    }

    for (uint32_t level = 2; level <= v->levels; level++) {
        const int32_t *from = row(v, level - 1);
        int32_t *to = row(v, level);

        memcpy(to, from, (units + 1) * sizeof *to);
        max = 0; /* skip lengths that score no more than a shorter one */
        for (uint32_t i = 1; i <= units; i++)
            if (best[i] > max) {
                max = best[i];
                v->kernels->more(max, i, from, to, units);
            }
    }
}

void ps_value_save(const ps_value *v, ps_saver *saver)
{
    ps_save_u32(saver, v->units);
    ps_save_u32(saver, v->any_only);
    for (uint32_t level = 0; level <= v->levels; level++)
        for (uint32_t c = 0; c <= v->units; c++)
            ps_save_u32(saver, (uint32_t)row(v, level)[c]);
}

void ps_value_load(ps_value *v, uint32_t units, ps_restorer *restorer)
{
    v->units = ps_load_within(restorer, 0, units);
    if (v->units != 0 && v->units != units)
        restorer->failed = true;
    v->any_only = ps_load_within(restorer, 0, v->has_any ? 1 : 0) == 1;
    for (uint32_t level = 0; level <= v->levels; level++)
        for (uint32_t c = 0; c <= v->units; c++)
            row(v, level)[c] =
                (int32_t)ps_load_within(restorer, 0, MAX_VALUE);
}
