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

#include "both.h"
#include "mix.h"
#include "ops.h"

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

/* The row of scores of a head, whose columns are rows of the batch. */
BERT_BOTH
static inline bert_dropout_key
bert_dropout_scores(const bert_dropout *dropout, uint32_t site, uint64_t row,
                    uint64_t head, uint64_t heads)
{
    return bert_dropout_row(dropout, site, row * heads + head);
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

#endif /* BERT_DROPOUT_H */
