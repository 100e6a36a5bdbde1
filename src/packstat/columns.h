/*
 * columns.h - where the values of a sequence lie, in a payload and in a pack.
 *
 * A lane is the tokens or one channel.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_COLUMNS_H
#define PACKSTAT_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packstream.h"

typedef struct lane {
    const char *name; /* NULL: the tokens */
    bool per_token;
    uint32_t bytes;   /* of an element */
    uint64_t before;  /* in a payload: bytes before it, for each token if it
                         has an element for each, else behind all these */
    uint32_t in_pack; /* offset of the field in a record */
} lane;

typedef struct lanes {
    uint32_t n;
    uint64_t per_token; /* bytes of a payload for each token */
    lane lane[PS_MAX_CHANNELS + 1];
} lanes;

/* Those of a pack stream; `info` must outlive them. */
lanes columns_of(const ps_pack_info *info);

/*
 * Copies the first `kept` of `n_tok` tokens of a payload, with their
 * channels, to a payload of its own.
 */
void columns_cut(const lanes *l, const unsigned char *payload, uint32_t n_tok,
                 uint32_t kept, unsigned char *to);

/*
 * Compares piece `i` of a pack with a payload of `n_tok` tokens that it lies
 * within.  NULL if they are equal; else the first lane in which they are
 * not, and in *element the first such token of the piece.
 */
const lane *columns_compare(const lanes *l, const ps_pack *pack, uint32_t i,
                            const ps_piece *piece, const unsigned char *payload,
                            uint32_t n_tok, uint32_t *element);

/* The token `at` a place in a pack or in a payload of so many tokens. */
uint32_t columns_pack_token(const lanes *l, const ps_pack *pack, uint32_t at);
uint32_t columns_token(const lanes *l, const unsigned char *payload,
                       uint32_t at);

#endif
