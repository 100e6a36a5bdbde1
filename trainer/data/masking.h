/*
 * masking.h - choose the tokens of a sequence to mask.
 *
 * As in Devlin et al. (2018), section 3.1, 15 % of the tokens are selected.  Of
 * these, 80 % become [MASK], 10 % become a random token, and 10 % are
 * unchanged.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_DATA_MASKING_H
#define TR_DATA_MASKING_H

#include <stdint.h>

#include "packstream.h"

/* The label of a token that is not predicted. */
#define TR_MASKING_NONE PS_NO_LABEL

/* The default share of selected tokens. */
#define TR_MASKING_SHARE 0.15

#define TR_MASKING_SPECIALS PS_SPECIALS

typedef struct tr_masking {
    double share;        /* share of maskable tokens that are selected */
    uint32_t max;       /* maximum per sequence; 0: no limit */
    uint32_t vocab_size; /* at least 1; limits random tokens */
    uint32_t mask_id;
    uint32_t special[TR_MASKING_SPECIALS]; /* unmaskable ids, or UINT32_MAX */
    uint32_t n_special;
} tr_masking;

/*
 * Masks some of n tokens, and at least one if any may be masked.  Sets label[i]
 * to the original token if token i is masked, otherwise to TR_MASKING_NONE.
 * `room` is scratch for n numbers.  The choice depends only on the key and the
 * tokens.  Returns the number of masked tokens.
 */
uint32_t tr_masking_apply(const tr_masking *m, uint64_t key, uint32_t n,
                          int32_t *token, int32_t *label, uint32_t *room);

#endif /* TR_DATA_MASKING_H */
