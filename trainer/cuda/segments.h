/*
 * segments.h - which rows of a batch to add to each row of a table, for
 * gradients of embeddings.
 *
 * The host sorts the rows by table index.  A segment is the rows with the same
 * index, in batch order; one block sums it, so no two blocks write to the same
 * address, and the order is fixed.  [MASK], frequent tokens and the two types
 * have so many rows that their segments are split into pieces; a second launch
 * adds the pieces' sums.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_SEGMENTS_H
#define TR_CUDA_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>

#define TR_PIECE_ROWS 64 /* most rows in a piece */

enum tr_table { TR_TABLE_WORD, TR_TABLE_POSITION, TR_TABLE_TYPE,
                  TR_TABLES };

/* Rows order[first] to order[first + count - 1]. */
struct tr_piece {
    uint32_t table;
    int32_t to;      /* row of the table */
    uint32_t first;
    uint32_t count;  /* 0: unused */
    int32_t partial; /* index of its partial sum; -1: the whole segment */
};

/* A segment of several pieces, as `count` consecutive partial sums. */
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

/* In a rounded batch the counts are multiples of these. */
#define TR_PIECES_ROUND 1024
#define TR_LONGS_ROUND 64

/* The most pieces and long segments. */
static inline size_t tr_pieces_max(size_t rows)
{
    return TR_TABLES * rows + TR_PIECES_ROUND;
}

static inline size_t tr_longs_max(size_t rows)
{
    return TR_TABLES * (rows / TR_PIECE_ROWS) + TR_LONGS_ROUND;
}

/*
 * Fills the arrays, which have room for the most.  index[]: each row's index in
 * each table, nonnegative; spare: room for n_rows.
 */
void tr_segments_make(struct tr_segments *segments, uint32_t n_rows,
                      const int32_t *const index[TR_TABLES],
                      int32_t *spare);

/*
 * Rounds the counts up with unused pieces and long segments, and sets the
 * number of partial sums to the most there can be.
 */
void tr_segments_round(struct tr_segments *segments, uint32_t n_rows);

#endif /* TR_CUDA_SEGMENTS_H */
