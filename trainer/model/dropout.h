/*
 * dropout.h - select the values that dropout zeroes.
 *
 * The selection is a function of the seed, the site (the layer of the network),
 * the row and the column.  No mask is stored: backward computes the selection
 * again, and every device drops the same values.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_DROPOUT_H
#define TR_MODEL_DROPOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/counter_rng.h"
#include "model/host_device.h"
#include "model/ops.h"

/* A random key that selects the dropped values of one row at one site. */
typedef struct tr_dropout_key {
    uint32_t first;
    uint32_t second;
} tr_dropout_key;

/* `rate` is at least 0 and below 1. */
static inline tr_dropout tr_dropout_at(double rate, uint64_t seed)
{
    tr_dropout dropout;

    dropout.seed = seed;
    dropout.threshold = (uint32_t)(rate * 4294967296.0);
    dropout.scale = (real)(1 / (1 - rate));
    dropout.place = NULL;
    dropout.shared = NULL;
    return dropout;
}

TR_HOST_DEVICE
static inline tr_dropout_key tr_dropout_row(const tr_dropout *dropout,
                                            uint32_t site, uint64_t row)
{
    const uint64_t seed = dropout->shared ? *dropout->shared : dropout->seed;
    const uint64_t h = tr_counter_rng(tr_counter_rng(seed, site), row);
    tr_dropout_key key;

    key.first = (uint32_t)h;
    key.second = (uint32_t)(h >> 32);
    return key;
}

/* The row's index in the padded batch of all ranks. */
TR_HOST_DEVICE
static inline uint32_t tr_dropout_place(const tr_dropout *dropout, size_t row)
{
    return (uint32_t)(dropout->place ? dropout->place[row] : (int32_t)row);
}

/* The key of a batch row at a site. */
TR_HOST_DEVICE
static inline tr_dropout_key tr_dropout_at_row(const tr_dropout *dropout,
                                               uint32_t site, size_t row)
{
    return tr_dropout_row(dropout, site, tr_dropout_place(dropout, row));
}

/* Returns true if dropout keeps the value in this column. */
TR_HOST_DEVICE
static inline bool tr_dropout_keeps(tr_dropout_key key, uint32_t column,
                                    uint32_t threshold)
{
    uint32_t h = (column ^ key.first) * UINT32_C(0x9e3779b1);

    h = (h ^ h >> 15) * UINT32_C(0x85ebca6b) + key.second;
    h = (h ^ h >> 13) * UINT32_C(0xc2b2ae35);
    return (h ^ h >> 16) >= threshold;
}

/*
 * Random numbers for attention scores are drawn four at a time, because there
 * is a score per pair of tokens.  Rows and columns are numbered from the start
 * of their sequence.  Four scores whose rows and columns differ only in bit 3
 * share a draw: on tensor cores one lane holds all four, both in a tile and in
 * its transpose.  A row's key ignores this bit.
 */
#define TR_DRAW_BIT 8u

/* Four 16-bit draws.  The row's bit selects a word, the column's bit a half. */
typedef struct tr_dropout_four {
    uint32_t row[2];
} tr_dropout_four;

/* The key of a row of scores; `place` is the first row of the sequence. */
TR_HOST_DEVICE
static inline tr_dropout_key
tr_dropout_scores(const tr_dropout *dropout, uint32_t site, uint32_t place,
                  uint32_t row, uint32_t head, uint32_t heads)
{
    return tr_dropout_row(dropout, site,
                          (uint64_t)(place + (row & ~TR_DRAW_BIT)) * heads
                              + head);
}

TR_HOST_DEVICE
static inline tr_dropout_four tr_dropout_draw(tr_dropout_key key,
                                              uint32_t column)
{
    tr_dropout_four four;
    uint32_t h = ((column & ~TR_DRAW_BIT) ^ key.first)
                 * UINT32_C(0x9e3779b1);

    h = (h ^ h >> 15) * UINT32_C(0x85ebca6b) + key.second;
    four.row[0] = (h ^ h >> 13) * UINT32_C(0xc2b2ae35);
    four.row[1] = (four.row[0] ^ four.row[0] >> 16) * UINT32_C(0x27d4eb2f);
    return four;
}

/*
 * Returns true if a score is kept, given the word of its row and the bit of its
 * column (0 or 1).  In the lower half, the threshold has a resolution of 2^-16.
 */
TR_HOST_DEVICE
static inline bool tr_dropout_stays(uint32_t word, uint32_t bit,
                                    uint32_t threshold)
{
    return (bit ? word : word << 16) >= threshold;
}

/* Like tr_dropout_stays(), for a single score. */
TR_HOST_DEVICE
static inline bool tr_dropout_score_stays(tr_dropout_key key, uint32_t row,
                                          uint32_t column,
                                          uint32_t threshold)
{
    const tr_dropout_four four = tr_dropout_draw(key, column);

    return tr_dropout_stays(four.row[(row & TR_DRAW_BIT) != 0],
                            (column & TR_DRAW_BIT) != 0, threshold);
}

#endif /* TR_MODEL_DROPOUT_H */
