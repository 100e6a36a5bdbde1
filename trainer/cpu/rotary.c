/*
 * rotary.c - rotary positions.
 *
 * The angle is rounded to a real before its sine and cosine are taken, as in
 * transformers.  Both are computed once per position and frequency: positions
 * restart with each sequence, so there are far fewer of them than rows.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/rotary.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/device.h"
#include "cpu/vector.h"

#define PAGE 256 /* positions are rounded up to a multiple of this */

void tr_turns_free(tr_turns *turns)
{
    free(turns->frequency);
    free(turns->table);
    *turns = (tr_turns){0};
}

static bool has_frequencies(const tr_turns *turns, const tr_rotary *r)
{
    const size_t pairs = r->width / 2;

    return turns->table && turns->pairs == pairs
           && memcmp(turns->frequency, r->frequency,
                     pairs * sizeof *r->frequency) == 0;
}

static void fill_position(const tr_turns *turns, size_t position)
{
    real *const cosine = turns->table + position * 2 * turns->pairs;
    real *const sine = cosine + turns->pairs;

    for (size_t i = 0; i < turns->pairs; i++) {
        const real angle = (real)position * turns->frequency[i];

        cosine[i] = cos(angle);
        sine[i] = sin(angle);
    }
}

/* Returns false, with *turns zeroed, if out of memory. */
static bool fill(tr_turns *turns, const tr_rotary *r, size_t positions)
{
    const size_t pairs = r->width / 2;

    tr_turns_free(turns);
    positions = (positions + PAGE - 1) / PAGE * PAGE;
    turns->frequency = calloc(pairs, sizeof *turns->frequency);
    turns->table = calloc(positions, 2 * pairs * sizeof *turns->table);
    if (!turns->frequency || !turns->table) {
        tr_turns_free(turns);
        return false;
    }
    memcpy(turns->frequency, r->frequency, pairs * sizeof *r->frequency);
    turns->pairs = pairs;
    turns->positions = positions;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < positions; i++)
        fill_position(turns, i);
    return true;
}

/* Returns a table for these frequencies and positions; NULL: out of memory. */
static const tr_turns *turns_of(tr_cpu *c, const tr_rotary *r,
                                size_t positions)
{
    tr_turns *turns = NULL;

    for (size_t i = 0; i < TR_CPU_TURNS; i++)
        if (has_frequencies(c->turns + i, r))
            turns = c->turns + i;
    if (!turns) {
        turns = c->turns + c->next_turns;
        c->next_turns = (c->next_turns + 1) % TR_CPU_TURNS;
    } else if (turns->positions >= positions) {
        return turns;
    }
    if (fill(turns, r, positions))
        return turns;
    c->failed = "no memory for the angles of rotary positions";
    return NULL;
}

/* `sign` is 1, or -1 to turn back. */
TR_VECTORS
static void turn_row(size_t heads, size_t pairs, const real *restrict cosine,
                     real sign, real *restrict x)
{
    const real *const sine = cosine + pairs;

    for (size_t h = 0; h < heads; h++) {
        real *const first = x + h * 2 * pairs;
        real *const second = first + pairs;

#pragma omp simd
        for (size_t i = 0; i < pairs; i++) {
            const real a = first[i];
            const real b = second[i];
            const real s = sign * sine[i];

            first[i] = a * cosine[i] - b * s;
            second[i] = b * cosine[i] + a * s;
        }
    }
}

/* The largest position plus one. */
static size_t positions_in(size_t rows, const int32_t *position)
{
    int32_t most = -1;

    for (size_t i = 0; i < rows; i++)
        most = position[i] > most ? position[i] : most;
    return (size_t)(most + 1);
}

void tr_cpu_rotate(tr_device *d, const tr_rotary *r, size_t rows,
                   const int32_t *position, bool back, void *x)
{
    const size_t pairs = r->width / 2;
    const tr_turns *const turns =
        rows ? turns_of(tr_cpu_of(d), r, positions_in(rows, position)) : NULL;
    real *const to = x;

    if (!turns)
        return;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < rows; i++)
        turn_row(r->heads, pairs,
                 turns->table + (size_t)position[i] * 2 * pairs,
                 back ? -1 : 1, to + i * r->stride);
}
