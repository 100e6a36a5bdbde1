/*
 * config.h - the dimensions of a BERT model.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_CONFIG_H
#define BERT_CONFIG_H

#include <stdint.h>

/* Every integer is at least 1, and `heads` divides `hidden`. */
typedef struct bert_config {
    uint32_t vocab_size;
    uint32_t hidden;       /* width of the residual stream */
    uint32_t layers;
    uint32_t heads;
    uint32_t intermediate; /* width of the feed-forward network */
    uint32_t positions;    /* longest sequence, in tokens */
    uint32_t types;        /* token types, 2 in BERT */
    double dropout;        /* dropout rate, at least 0 and below 1 */
} bert_config;

#endif /* BERT_CONFIG_H */
