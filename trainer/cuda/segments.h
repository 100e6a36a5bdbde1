/*
 * segments.h - list the rows of a batch that are added to each row of a table,
 * for the gradients of embeddings.
 *
 * The host sorts the rows by table index.  A segment consists of the rows with
 * the same index, in batch order.  A single block sums it, so no two blocks
 * write to the same address, and the order is fixed.  The segments of [MASK],
 * of frequent tokens and of the two types are so long that they are split into
 * pieces; a second launch adds the sums of the pieces.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_SEGMENTS_H
#define TR_CUDA_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>

#define TR_PIECE_ROWS 64 /* maximum rows in a piece */

enum tr_table { TR_TABLE_WORD, TR_TABLE_POSITION, TR_TABLE_TYPE,
                  TR_TABLES };

/* Rows order[first] to order[first + count - 1]. */
struct tr_piece {
    uint32_t table;
    int32_t to;      /* row of the table */
    uint32_t first;
    uint32_t count;  /* 0: unused */
    int32_t partial; /* index of its partial sum; -1 if it is a whole segment */
};

/* A segment of several pieces, which has `count` consecutive partial sums. */
struct tr_long {
    uint32_t table;
    int32_t to;
    uint32_t first;
    uint32_t count; /* 0: unused */
};

struct tr_segments {
    int32_t *order; /* [TR_TABLES * n_rows] */
    struct tr_piece *pieces;
    uint32_t n_pieces;
    struct tr_long *longs;
    uint32_t n_longs;
    uint32_t n_partials;
};

/* In a rounded batch, the counts are multiples of these. */
#define TR_PIECES_ROUND 1024
#define TR_LONGS_ROUND 64

/* Maximum numbers of pieces and of long segments. */
static inline size_t tr_pieces_max(size_t rows)
{
    return TR_TABLES * rows + TR_PIECES_ROUND;
}

static inline size_t tr_longs_max(size_t rows)
{
    return TR_TABLES * (rows / TR_PIECE_ROWS) + TR_LONGS_ROUND;
}

/*
 * Fills the arrays, which must have room for the maximum numbers.  index[]
 * holds the nonnegative index of each row in each table; `spare` has room for
 * n_rows numbers.
 */
void tr_segments_make(struct tr_segments *segments, uint32_t n_rows,
                      const int32_t *const index[TR_TABLES],
                      int32_t *spare);

/*
 * Rounds the counts up by adding unused pieces and long segments, and sets the
 * number of partial sums to its maximum.
 */
void tr_segments_round(struct tr_segments *segments, uint32_t n_rows);

#endif /* TR_CUDA_SEGMENTS_H */
