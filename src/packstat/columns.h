/*
 * columns.h - locate the tokens and channels of a sequence, in a payload and in
 * a pack.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_COLUMNS_H
#define PACKSTAT_COLUMNS_H

#include <stdint.h>

#include "packstream.h"

typedef struct column {
    uint32_t channel;      /* index in the schema, or PS_TOKENS */
    const ps_field *field; /* field of a pack */
} column;

typedef struct columns {
    const ps_schema *schema;
    uint32_t n;
    column column[PS_MAX_CHANNELS + 1]; /* the tokens, then the channels */
} columns;

/* Columns of a pack stream.  `info` must outlive them. */
columns columns_of(const ps_pack_info *info);

/*
 * Copies the first `kept` of `n_tok` tokens of a payload, with their channels,
 * to the payload `to`, which may be the same memory.
 */
void columns_truncate(const columns *c, const unsigned char *payload,
                      uint32_t n_tok, uint32_t kept, unsigned char *to);

/*
 * Compares piece `i` of a pack with the corresponding part of the payload of
 * its sequence, which has `n_tok` tokens.  Returns NULL if they are equal.
 * Otherwise returns the first column that differs, and sets *element to the
 * index, in the piece, of the first token that differs.
 */
const column *columns_compare(const columns *c, const ps_pack_info *info,
                              const ps_pack *pack, uint32_t i,
                              const ps_piece *piece,
                              const unsigned char *payload, uint32_t n_tok,
                              uint32_t *element);

/* Token `i` of `tokens`, in a payload or in a pack. */
uint32_t columns_token(const columns *c, const unsigned char *tokens,
                       uint32_t i);

#endif
