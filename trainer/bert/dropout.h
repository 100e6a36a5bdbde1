/*
 * dropout.h - zeroes some numbers, and scales the others up.
 *
 * Which ones is a function of the seed, of the place in the network (a site),
 * of row and column: no mask is stored, backward asks again.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_DROPOUT_H
#define BERT_DROPOUT_H

#include <stddef.h>
#include <stdint.h>

#include "real.h"

typedef struct bert_dropout {
    uint64_t seed;
    uint32_t threshold; /* of 2^32 numbers so many are zeroed; 0: none */
    real scale;         /* of those that stay */
} bert_dropout;

/* `rate` from 0 to below 1. */
bert_dropout bert_dropout_at(double rate, uint64_t seed);

/* What the numbers of a row depend on. */
typedef struct bert_dropout_key {
    uint32_t first;
    uint32_t second;
} bert_dropout_key;

bert_dropout_key bert_dropout_row(const bert_dropout *dropout,
                                  uint32_t site, uint64_t row);

/* True if the number in this column stays. */
static inline int bert_dropout_keeps(bert_dropout_key key, uint32_t column,
                                     uint32_t threshold)
{
    uint32_t h = (column ^ key.first) * UINT32_C(0x9e3779b1);

    h = (h ^ h >> 15) * UINT32_C(0x85ebca6b) + key.second;
    h = (h ^ h >> 13) * UINT32_C(0xc2b2ae35);
    return (h ^ h >> 16) >= threshold;
}

/* y = x, dropped out, the columns being counted from `first`; y may be x. */
void bert_dropout_apply(const bert_dropout *dropout, bert_dropout_key key,
                        uint32_t first, size_t n, const real *x, real *y);

/*
 * Of numbers that are not negative: turns the sign of what is to be dropped,
 * and drops what has been marked so.
 */
void bert_dropout_mark(const bert_dropout *dropout, bert_dropout_key key,
                       uint32_t first, size_t n, real *x);
void bert_dropout_marked(const bert_dropout *dropout, size_t n,
                         const real *x, real *y);

/* y = x, dropped out: rows x columns numbers at a site. */
void bert_dropout_rows(const bert_dropout *dropout, uint32_t site,
                       size_t rows, size_t columns, const real *x, real *y);

#endif /* BERT_DROPOUT_H */
