/*
 * pairs.h - make sentence pairs for next-sentence prediction.
 *
 * The method is described in Devlin et al. (2018), section A.2.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CORPUS_PAIRS_H
#define TR_CORPUS_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#include "corpus/documents.h"

typedef struct pair_options {
    uint32_t length;    /* maximum tokens in a pair, at least 2 */
    double short_share; /* share of documents with shorter pairs */
} pair_options;

/* A run of tokens in a document. */
typedef struct pair_text {
    const int32_t *token;
    uint32_t n;
} pair_text;

typedef struct pair {
    pair_text first;
    pair_text second; /* n is 0 if there is no second text */
    int label;        /* 0: second follows first; 1: random; -1: no second */
} pair;

/* Iterates over a document.  All members except the options are private. */
typedef struct pairs {
    pair_options options;
    const document *of;
    uint64_t random;
    uint32_t target; /* length of the next pair, in tokens */
    uint32_t next;   /* index of the next sentence */
} pairs;

pairs pairs_open(const pair_options *options, const document *of,
                 uint64_t seed);

/* Returns a random other document, or NULL if there is none. */
typedef const document *pair_other(void *context, uint64_t *random);

/* Makes the next pair.  Returns false at the end of the document. */
bool pairs_next(pairs *p, pair_other *other, void *context, pair *to);

#endif /* TR_CORPUS_PAIRS_H */
