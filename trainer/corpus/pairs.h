/*
 * pairs.h - make pairs of texts, of which the second does or does not follow.
 *
 * Devlin et al. (2018), section A.2.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CORPUS_PAIRS_H
#define TR_CORPUS_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#include "corpus/documents.h"

typedef struct pair_options {
    uint32_t length;    /* most tokens of a pair, from 2 */
    double short_share; /* of documents that make shorter pairs */
} pair_options;

/* A run of tokens in a document. */
typedef struct pair_text {
    const int32_t *token;
    uint32_t n;
} pair_text;

typedef struct pair {
    pair_text first;
    pair_text second; /* n is 0 if there is none */
    int label;        /* 0: it follows; 1: it is from elsewhere; -1: none */
} pair;

/* Goes through a document; all but the options is the pairs' own. */
typedef struct pairs {
    pair_options options;
    const document *of;
    uint64_t random;
    uint32_t target; /* tokens */
    uint32_t next;   /* sentence */
} pairs;

pairs pairs_open(const pair_options *options, const document *of,
                 uint64_t seed);

/* What pairs take what does not follow from: others, or NULL for none. */
typedef const document *pair_other(void *context, uint64_t *random);

/* The next pair, or false; its texts are parts of documents. */
bool pairs_next(pairs *p, pair_other *other, void *context, pair *to);

#endif /* TR_CORPUS_PAIRS_H */
