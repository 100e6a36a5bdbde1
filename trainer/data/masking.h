/*
 * masking.h - which tokens of a sequence are to be found again.
 *
 * Devlin et al. (2018), section 3.1: of 15 % of the tokens, 80 % become
 * [MASK], 10 % another token at random, and 10 % stay as they are.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_MASKING_H
#define BERT_MASKING_H

#include <stdint.h>

#include "packstream.h"

/* The label of a token that is not to be found. */
#define MASKING_NONE PS_NO_LABEL

/* The share of tokens where none is asked for. */
#define MASKING_SHARE 0.15

#define MASKING_SPECIALS PS_SPECIALS

typedef struct masking {
    double share;        /* of the tokens that may be hidden, 0 to 1 */
    uint32_t max;       /* of a sequence; 0: as many as the share says */
    uint32_t vocab_size; /* from 1; others are drawn below it */
    uint32_t mask_id;
    uint32_t special[MASKING_SPECIALS]; /* ids that stay as they are, or */
    uint32_t n_special;                 /* UINT32_MAX for none */
} masking;

/*
 * Hides some of `n` tokens, at least one if one may be: label[i] is then the
 * token that was there, and MASKING_NONE elsewhere.  `room` is for n numbers.
 * All depends on the key and the tokens alone.  Returns how many were chosen.
 */
uint32_t masking_apply(const masking *m, uint64_t key, uint32_t n,
                       int32_t *token, int32_t *label, uint32_t *room);

#endif /* BERT_MASKING_H */
