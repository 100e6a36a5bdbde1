/*
 * segments.cc - sort rows by table index and divide them into pieces.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/segments.h"

#include <string.h>

#include "model/bucket_pad.h"

#define DIGIT 11 /* bits sorted per pass */

/* One pass of a stable radix sort. */
static void sort_digit(uint32_t n, const int32_t *index, unsigned shift,
                       const int32_t *from, int32_t *to)
{
    const uint32_t mask = (1u << DIGIT) - 1;
    uint32_t start[(1u << DIGIT) + 1] = {0};

    for (uint32_t i = 0; i < n; i++)
        start[((uint32_t)index[i] >> shift & mask) + 1]++;
    for (uint32_t i = 1; i <= mask; i++)
        start[i] += start[i - 1];
    for (uint32_t i = 0; i < n; i++)
        to[start[(uint32_t)index[from[i]] >> shift & mask]++] = from[i];
}

/* Sets order[] to the rows, sorted by index[]. */
static void sort_rows(uint32_t n, const int32_t *index, int32_t *order,
                      int32_t *spare)
{
    uint32_t bits = 0;

    for (uint32_t i = 0; i < n; i++) {
        bits |= (uint32_t)index[i];
        order[i] = (int32_t)i;
    }
    for (unsigned shift = 0; shift < 32 && bits >> shift; shift += DIGIT) {
        sort_digit(n, index, shift, order, spare);
        memcpy(order, spare, n * sizeof *order);
    }
}

/* Adds a segment: `count` rows starting at order[first]. */
static void add_segment(struct tr_segments *s, uint32_t table, int32_t to,
                        uint32_t first, uint32_t count)
{
    const bool cut = count > TR_PIECE_ROWS;
    const uint32_t before = s->n_partials;

    for (uint32_t at = 0; at < count; at += TR_PIECE_ROWS) {
        const uint32_t left = count - at;

        s->pieces[s->n_pieces++] = {
            table, to, first + at,
            left < TR_PIECE_ROWS ? left : TR_PIECE_ROWS,
            cut ? (int32_t)s->n_partials++ : -1};
    }
    if (cut)
        s->longs[s->n_longs++] = {table, to, before, s->n_partials - before};
}

void tr_segments_make(struct tr_segments *s, uint32_t n_rows,
                      const int32_t *const index[TR_TABLES],
                      int32_t *spare)
{
    s->n_pieces = s->n_longs = s->n_partials = 0;
    for (uint32_t table = 0; table < TR_TABLES; table++) {
        int32_t *const order = s->order + (size_t)table * n_rows;
        uint32_t first = 0;

        sort_rows(n_rows, index[table], order, spare);
        for (uint32_t i = 1; i <= n_rows; i++) {
            const int32_t to = index[table][order[first]];

            if (i < n_rows && index[table][order[i]] == to)
                continue;
            add_segment(s, table, to, table * n_rows + first, i - first);
            first = i;
        }
    }
}

void tr_segments_round(struct tr_segments *s, uint32_t n_rows)
{
    const uint32_t pieces = tr_round_up(s->n_pieces, TR_PIECES_ROUND);
    const uint32_t longs = tr_round_up(s->n_longs, TR_LONGS_ROUND);

    memset(s->pieces + s->n_pieces, 0,
           (pieces - s->n_pieces) * sizeof *s->pieces);
    memset(s->longs + s->n_longs, 0, (longs - s->n_longs) * sizeof *s->longs);
    s->n_pieces = pieces;
    s->n_longs = longs;
    s->n_partials = TR_TABLES * (n_rows / TR_PIECE_ROWS) + longs;
}
