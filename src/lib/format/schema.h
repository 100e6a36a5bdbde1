/*
 * schema.h - schemas, and the 64-byte table entries that describe channels in
 * both formats.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_SCHEMA_H
#define LIB_FORMAT_SCHEMA_H

#include "bytes.h"
#include "packstream.h"

/* Size of a channel table entry; see packstream(5), "Channel table". */
#define PS_CHANNEL_ENTRY_BYTES 64

/*
 * Writes an entry.  `offset` is 0 in token streams.  `one` is the count stored
 * for single values: 0 in token streams, 1 in pack streams.
 */
void ps_channel_encode(const ps_channel *channel, uint32_t offset,
                       uint32_t one, unsigned char *entry);

/*
 * Decodes an entry.  Checks type, kind, fill, count and the syntax of the name,
 * but not reserved names or unused bytes.  PS_OK, PS_ERR_CORRUPT.
 */
ps_result ps_channel_decode(const unsigned char *entry, ps_channel *channel,
                            uint32_t *offset, uint32_t one, ps_error *err);

/*
 * True if the unused bytes of an entry are zero.  `is_field` is set for an
 * entry of a pack stream, in which source and offset are used.
 */
bool ps_channel_unused_is_zero(const unsigned char *entry, bool is_field);

/* Name of a ps_special for messages, such as "the pad id". */
const char *ps_special_name(int special);

/* Encode and decode the PS_SPECIALS special ids, 4 bytes each. */
void ps_specials_encode(const ps_schema *schema, unsigned char *to);
void ps_specials_decode(const unsigned char *from, ps_schema *schema);

/* Sets the token type for a width of 2 or 4 bytes; otherwise returns false. */
bool ps_token_type(unsigned token_bytes, ps_type *type);

/*
 * Finds a per-sequence channel.  `use` ends the message, as in "to group by".
 * PS_OK, PS_ERR_ARGUMENT.
 */
ps_result ps_schema_find(const ps_schema *schema, const char *name,
                         const char *use, uint32_t *channel,
                         ps_error *err);

bool ps_type_is_float(ps_type type);

/* True for a per-sequence channel of single values. */
bool ps_channel_is_number(const ps_channel *channel);

/* True if the elements of a list, or integers per sequence, can be summed. */
bool ps_channel_has_budget(const ps_channel *channel);

/*
 * Size of a channel's element, or of the length of a list, in bytes.  The
 * elements of a list have a part of the payload of their own.
 */
uint32_t ps_channel_fixed_bytes(const ps_channel *channel);

/* Loads an integer.  A negative one is extended to 64 bits. */
uint64_t ps_integer_load(ps_type type, const unsigned char *from);

/* Prints that value; `text` has at least PS_INTEGER_BYTES. */
#define PS_INTEGER_BYTES 21
void ps_integer_print(ps_type type, uint64_t value, char *text);

/*
 * Size of a payload of n tokens, in bytes: per_token * n + fixed, plus the
 * elements of the lists.
 */
typedef struct ps_shape {
    uint32_t token_bytes; /* 2 or 4 */
    uint32_t per_token;   /* bytes per token, including per-token channels */
    uint32_t fixed;       /* bytes of all per-sequence channels, and lengths of
                             lists */
    uint32_t n_lists;
    struct {
        uint32_t at;    /* offset of the length in the `fixed` bytes */
        uint32_t bytes; /* size of an element */
    } lists[PS_MAX_LISTS];
} ps_shape;

ps_shape ps_schema_shape(const ps_schema *schema);

static inline uint64_t ps_shape_bytes(const ps_shape *shape, uint32_t n_tok)
{
    return (uint64_t)shape->per_token * n_tok + shape->fixed;
}

/*
 * Bytes of the elements of all lists, whose lengths are in the `fixed` bytes at
 * `fixed`.
 */
static inline uint64_t ps_shape_lists(const ps_shape *shape,
                                      const unsigned char *fixed)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < shape->n_lists; i++)
        sum += (uint64_t)load_u32(fixed + shape->lists[i].at) *
               shape->lists[i].bytes;
    return sum;
}

/* Size of a payload, of which the bytes before its lists are at `payload`. */
static inline uint64_t ps_shape_all(const ps_shape *shape, uint32_t n_tok,
                                    const unsigned char *payload)
{
    const uint64_t lists_at = ps_shape_bytes(shape, n_tok);

    return shape->n_lists == 0
               ? lists_at
               : lists_at + ps_shape_lists(shape, payload + lists_at -
                                                      shape->fixed);
}

/* Index of the first token >= vocab_size, or n_tok if there is none. */
uint32_t ps_tokens_check(const unsigned char *tokens, uint32_t n_tok,
                         ps_type type, uint32_t vocab_size);

uint32_t ps_token_at(const unsigned char *tokens, uint32_t i, ps_type type);

#endif
