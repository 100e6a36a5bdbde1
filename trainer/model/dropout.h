/*
 * dropout.h - which numbers dropout zeroes.
 *
 * It is a function of the seed, of the place in the network (a site), of row
 * and column: no mask is stored, backward asks again, and every device drops
 * the same numbers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_DROPOUT_H
#define BERT_DROPOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/counter_rng.h"
#include "model/host_device.h"
#include "model/ops.h"

/* What the numbers of a row depend on. */
typedef struct bert_dropout_key {
    uint32_t first;
    uint32_t second;
} bert_dropout_key;

/* `rate` from 0 to below 1. */
static inline bert_dropout bert_dropout_at(double rate, uint64_t seed)
{
    bert_dropout dropout;

    dropout.seed = seed;
    dropout.threshold = (uint32_t)(rate * 4294967296.0);
    dropout.scale = (real)(1 / (1 - rate));
    dropout.place = NULL;
    dropout.shared = NULL;
    return dropout;
}

BERT_BOTH
static inline bert_dropout_key bert_dropout_row(const bert_dropout *dropout,
                                                uint32_t site, uint64_t row)
{
    const uint64_t seed = dropout->shared ? *dropout->shared : dropout->seed;
    const uint64_t h = bert_mix(bert_mix(seed, site), row);
    bert_dropout_key key;

    key.first = (uint32_t)h;
    key.second = (uint32_t)(h >> 32);
    return key;
}

/* Where a row is in the padded batch of all ranks. */
BERT_BOTH
static inline uint32_t bert_dropout_place(const bert_dropout *dropout,
                                          size_t row)
{
    return (uint32_t)(dropout->place ? dropout->place[row] : (int32_t)row);
}

/* What is dropped of a row of the batch at a site. */
BERT_BOTH
static inline bert_dropout_key bert_dropout_at_row(const bert_dropout *dropout,
                                                   uint32_t site, size_t row)
{
    return bert_dropout_row(dropout, site, bert_dropout_place(dropout, row));
}

/* True if the number in this column stays. */
BERT_BOTH
static inline bool bert_dropout_keeps(bert_dropout_key key, uint32_t column,
                                      uint32_t threshold)
{
    uint32_t h = (column ^ key.first) * UINT32_C(0x9e3779b1);

    h = (h ^ h >> 15) * UINT32_C(0x85ebca6b) + key.second;
    h = (h ^ h >> 13) * UINT32_C(0xc2b2ae35);
    return (h ^ h >> 16) >= threshold;
}

/*
 * Scores are drawn four at a time, since attention asks for as many as there
 * are pairs of tokens.  Rows and columns count from the start of their
 * sequence.  The four whose rows and columns differ in bit 3 alone share a
 * draw: on tensor cores one lane holds them all, of a tile and of its
 * transpose.  A row's key is that of the row without this bit.
 */
#define BERT_DRAW_BIT 8u

/* Two scores to a word: words by the row's bit, halves by the column's. */
typedef struct bert_dropout_four {
    uint32_t row[2];
} bert_dropout_four;

/* The key of a row of scores; `place` is where its sequence starts. */
BERT_BOTH
static inline bert_dropout_key
bert_dropout_scores(const bert_dropout *dropout, uint32_t site, uint32_t place,
                    uint32_t row, uint32_t head, uint32_t heads)
{
    return bert_dropout_row(dropout, site,
                            (uint64_t)(place + (row & ~BERT_DRAW_BIT)) * heads
                                + head);
}

BERT_BOTH
static inline bert_dropout_four bert_dropout_draw(bert_dropout_key key,
                                                  uint32_t column)
{
    bert_dropout_four four;
    uint32_t h = ((column & ~BERT_DRAW_BIT) ^ key.first)
                 * UINT32_C(0x9e3779b1);

    h = (h ^ h >> 15) * UINT32_C(0x85ebca6b) + key.second;
    four.row[0] = (h ^ h >> 13) * UINT32_C(0xc2b2ae35);
    four.row[1] = (four.row[0] ^ four.row[0] >> 16) * UINT32_C(0x27d4eb2f);
    return four;
}

/*
 * True if a score stays, by its row's word and its column's bit, 0 or 1.  The
 * lower half counts in steps of 2^-16.
 */
BERT_BOTH
static inline bool bert_dropout_stays(uint32_t word, uint32_t bit,
                                      uint32_t threshold)
{
    return (bit ? word : word << 16) >= threshold;
}

/* The same for one score alone. */
BERT_BOTH
static inline bool bert_dropout_score_stays(bert_dropout_key key, uint32_t row,
                                            uint32_t column,
                                            uint32_t threshold)
{
    const bert_dropout_four four = bert_dropout_draw(key, column);

    return bert_dropout_stays(four.row[(row & BERT_DRAW_BIT) != 0],
                              (column & BERT_DRAW_BIT) != 0, threshold);
}

#endif /* BERT_DROPOUT_H */
