/*
 * segments.h - which rows of a batch go into which row of a table, for the
 * gradients of embeddings.
 *
 * The host sorts the rows by what they look up.  Rows that name the same row
 * of a table are a segment, in the order of the batch, and a block adds them
 * up: no two blocks write to one place, and the order is always the same.
 * [MASK], frequent tokens, and each of the two types have so many rows that
 * they are cut into pieces; sums of pieces are added in a second launch.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_SEGMENTS_H
#define TR_CUDA_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>

#define TR_PIECE_ROWS 64 /* of a piece, at most */

enum tr_table { TR_TABLE_WORD, TR_TABLE_POSITION, TR_TABLE_TYPE,
                  TR_TABLES };

/* Rows order[first] up to, but without, order[first + count]. */
struct tr_piece {
    uint32_t table;
    int32_t to;      /* row of the table */
    uint32_t first;
    uint32_t count;  /* 0: none */
    int32_t partial; /* which partial sum it is; -1: it is all there is */
};

/* A segment of several pieces: so many partial sums, one after the other. */
struct tr_long {
    uint32_t table;
    int32_t to;
    uint32_t first;
    uint32_t count; /* 0: none */
};

struct tr_segments {
    int32_t *order; /* [TR_TABLES * n_rows] */
    struct tr_piece *pieces;
    uint32_t n_pieces;
    struct tr_long *longs;
    uint32_t n_longs;
    uint32_t n_partials;
};

/* Of a rounded batch there are multiples of so many. */
#define TR_PIECES_ROUND 1024
#define TR_LONGS_ROUND 64

/* How many pieces and long segments there are at most. */
static inline size_t tr_pieces_max(size_t rows)
{
    return TR_TABLES * rows + TR_PIECES_ROUND;
}

static inline size_t tr_longs_max(size_t rows)
{
    return TR_TABLES * (rows / TR_PIECE_ROWS) + TR_LONGS_ROUND;
}

/*
 * Fills the arrays, which have room for those.  index[]: what each row looks
 * up in each table, not negative; spare: room for n_rows.
 */
void tr_segments_make(struct tr_segments *segments, uint32_t n_rows,
                      const int32_t *const index[TR_TABLES],
                      int32_t *spare);

/*
 * Adds pieces and long segments of nothing, which are passed over, and says the
 * partial sums that there may be at most.
 */
void tr_segments_round(struct tr_segments *segments, uint32_t n_rows);

#endif /* TR_CUDA_SEGMENTS_H */
