/*
 * schema.h - schemas and the 64-byte table entries that describe channels
 * in both formats.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_SCHEMA_H
#define LIB_FORMAT_SCHEMA_H

#include "packstream.h"

/* Bytes of an entry of a channel table, packstream(5) "Channel table". */
#define PS_CHANNEL_ENTRY_BYTES 64

/* Writes an entry; `offset` and `count` are 0 in token streams. */
void ps_channel_encode(const ps_channel *channel, uint32_t offset,
                       uint32_t count, unsigned char *entry);

/*
 * Reads an entry.  Type, kind, fill and the form of the name are checked;
 * the meaning of the name and unused bytes are not.  PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_channel_decode(const unsigned char *entry, ps_channel *channel,
                            uint32_t *offset, uint32_t *count,
                            ps_error *err);

/*
 * True if bytes of an entry without a meaning are zero.  `is_field` says that
 * it is of a pack stream, where source, offset and count have one.
 */
bool ps_channel_unused_is_zero(const unsigned char *entry, bool is_field);

/* "the pad id" and so on, by PS_PAD and so on. */
const char *ps_special_name(int special);

/* The six special ids, 4 bytes each. */
void ps_specials_encode(const ps_schema *schema, unsigned char *to);
void ps_specials_decode(const unsigned char *from, ps_schema *schema);

/* The token type for a width of 2 or 4 bytes; false for any other. */
bool ps_token_type(unsigned token_bytes, ps_type *type);

/* The size of a payload of n tokens: per_token * n + fixed. */
typedef struct ps_shape {
    uint32_t token_bytes;
    uint32_t per_token; /* tokens and per-token channels */
    uint32_t fixed;     /* per-sequence channels */
} ps_shape;

ps_shape ps_schema_shape(const ps_schema *schema);

static inline uint64_t ps_shape_bytes(const ps_shape *shape, uint32_t n_tok)
{
    return (uint64_t)shape->per_token * n_tok + shape->fixed;
}

/* The index of the first token that is not below `vocab_size`, or n_tok. */
uint32_t ps_tokens_check(const unsigned char *tokens, uint32_t n_tok,
                         ps_type type, uint32_t vocab_size);

/* Token `i`. */
uint32_t ps_token_at(const unsigned char *tokens, uint32_t i, ps_type type);

#endif
