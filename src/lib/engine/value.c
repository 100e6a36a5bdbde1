/*
 * value.c - the most that some sequences on hand can be worth in some room.
 *
 * SPDX-License-Identifier: MIT
 */

#include "engine/value.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"

/*
 * More places than these count as any number; with no more it never pays to
 * know of any number.
 */
#define MAX_LEVELS 8

/*
 * More than the value of any room: that of 1,024 sequences with 0.3
 * PS_SCORE_ONE each for balance and age, and less than 2 for all their prices,
 * is below 310 of 384.  With one score more it still fits its type.
 */
#define MAX_VALUE (INT32_MAX / 4 * 3)

static uint32_t levels_for(uint32_t depth)
{
    return depth - 1 < MAX_LEVELS ? depth - 1 : MAX_LEVELS;
}

/* Rows for each level, and one for any number. */
static size_t row_size(uint32_t max_units)
{
    return (size_t)max_units + 1 + PS_SEARCH_GROUP;
}

static size_t table_size(uint32_t max_units, uint32_t depth)
{
    return (levels_for(depth) + 1) * row_size(max_units) + PS_SEARCH_GROUP;
}

uint64_t ps_value_bytes(uint32_t max_units, uint32_t depth)
{
    return ps_mem_sum(sizeof(ps_value),
                      ps_mem_array(table_size(max_units, depth),
                                   sizeof(int32_t)));
}

ps_result ps_value_open(ps_value **value, uint32_t max_units,
                        uint32_t depth, ps_error *err)
{
    ps_value *v = calloc(1, sizeof *v);

    *value = v;
    if (v == NULL)
        return ps_fail_memory(err);
    v->max_units = max_units;
    v->levels = levels_for(depth);
    v->has_any = depth - 1 > MAX_LEVELS;
    v->kernels = ps_kernels_best();
    v->table = calloc(table_size(max_units, depth), sizeof *v->table);
    if (v->table == NULL) {
        free(v);
        *value = NULL;
        return ps_fail_memory(err);
    }
    return PS_OK;
}

void ps_value_free(ps_value *v)
{
    if (v == NULL)
        return;
    free(v->table);
    free(v);
}

/* Level 0 is that for any number.  What is in front of a row stays 0. */
static int32_t *row(const ps_value *v, uint32_t level)
{
    return v->table + PS_SEARCH_GROUP + level * row_size(v->max_units);
}

const int32_t *ps_value_row(const ps_value *v, uint32_t places)
{
    return row(v, v->is_far || places > v->levels ? 0 : places);
}

static void fill_single(const ps_value *v, const int32_t *best)
{
    int32_t *to = row(v, 1);
    int32_t max = 0;

    to[v->units] = 0;
    for (uint32_t c = 1; c <= v->units; c++) {
        max = best[c] > max ? best[c] : max;
        to[v->units - c] = max;
    }
}

/* A length is of no use that scores no more than a shorter one. */
static void fill_level(const ps_value *v, const int32_t *best, uint32_t level)
{
    const int32_t *from = row(v, level - 1);
    int32_t *to = row(v, level);
    int32_t max = 0;

    memcpy(to, from, (v->units + 1) * sizeof *to);
    for (uint32_t i = 1; i <= v->units; i++)
        if (best[i] > max) {
            max = best[i];
            v->kernels->more(max, i, from, to, v->units);
        }
}

void ps_value_refresh(ps_value *v, const int32_t *best, uint32_t units,
                      bool is_far)
{
    v->units = units;
    v->is_far = is_far && v->has_any;
    memset(row(v, 0), 0, (units + 1) * sizeof *v->table);
    if (v->has_any)
        v->kernels->any(best, row(v, 0), units);
    if (v->is_far || v->levels == 0)
        return;
    fill_single(v, best);
    for (uint32_t level = 2; level <= v->levels; level++)
        fill_level(v, best, level);
}

void ps_value_clear(ps_value *v)
{
    v->units = 0;
}

void ps_value_save(const ps_value *v, ps_saver *saver)
{
    ps_save_u32(saver, v->units);
    ps_save_u32(saver, v->is_far);
    for (uint32_t level = 0; level <= v->levels; level++)
        for (uint32_t c = 0; c <= v->units; c++)
            ps_save_u32(saver, (uint32_t)row(v, level)[c]);
}

void ps_value_load(ps_value *v, uint32_t units, ps_restorer *restorer)
{
    v->units = ps_load_within(restorer, 0, units);
    if (v->units != 0 && v->units != units)
        restorer->failed = true;
    v->is_far = ps_load_within(restorer, 0, v->has_any ? 1 : 0) == 1;
    for (uint32_t level = 0; level <= v->levels; level++)
        for (uint32_t c = 0; c <= v->units; c++)
            row(v, level)[c] =
                (int32_t)ps_load_within(restorer, 0, MAX_VALUE);
}
