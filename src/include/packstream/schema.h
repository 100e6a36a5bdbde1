/*
 * schema.h - token types and channels of a stream; part of <packstream.h>.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_SCHEMA_H
#define PACKSTREAM_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------
 * Schemas: the contents of a sequence
 */

/* Element types.  The values are as stored on disk. */
typedef enum ps_type {
    PS_U8 = 1,
    PS_U16 = 2,
    PS_U32 = 3,
    PS_U64 = 4,
    PS_I32 = 5,
    PS_I64 = 6,
    PS_F32 = 7,
    PS_F64 = 8
} ps_type;

/*
 * Kinds of channels: an element per token, an element per sequence, or a list
 * of elements per sequence, whose length does not depend on the tokens.  The
 * values are as stored on disk.
 */
typedef enum ps_kind {
    PS_PER_TOKEN = 1,
    PS_PER_SEQUENCE = 2,
    PS_LIST = 3
} ps_kind;

/*
 * A named column of elements, each of which is one value or a vector of `count`
 * values.  The name starts with a letter, followed by letters, digits and
 * underscores, is at most PS_NAME_BYTES - 1 bytes long, and is not reserved by
 * the formats.  `fill` is every value of unused elements in a pack, as a
 * little-endian bit pattern: 0xffffff9c is -100 in an i32 channel.  Bits above
 * the value's width are 0.
 */
typedef struct ps_channel {
    char name[PS_NAME_BYTES];
    ps_type type; /* of a value */
    ps_kind kind;
    uint64_t fill;
    uint32_t count; /* values of a vector, 2 to PS_MAX_VECTOR; 0: one value */
} ps_channel;

/* Special token ids, PS_NO_ID if undefined. */
typedef enum ps_special {
    PS_PAD,
    PS_BOS,
    PS_EOS,
    PS_CLS,
    PS_SEP,
    PS_MASK,
    PS_SPECIALS
} ps_special;

/* Token to which the label at position t belongs.  Stored, not interpreted. */
typedef enum ps_label_convention {
    PS_LABELS_UNSTATED = 0,
    PS_LABELS_ALIGNED = 1, /* position t: the trainer shifts */
    PS_LABELS_SHIFTED = 2  /* position t + 1: already shifted */
} ps_label_convention;

/*
 * Contents of the records of a stream.  A raw stream has no channels and no
 * declarations; the caller provides its token type.
 */
typedef struct ps_schema {
    bool framed;         /* the stream has a header; otherwise it is raw */
    ps_type token_type;  /* PS_U16 or PS_U32 */
    uint32_t vocab_size; /* number of token ids; 0: not declared */
    uint32_t special[PS_SPECIALS]; /* indexed by ps_special */
    ps_label_convention labels;
    uint8_t tokenizer[32]; /* digest of the tokenizer; zeros: unknown */
    uint32_t n_channels;   /* 0 to PS_MAX_CHANNELS */
    ps_channel channels[PS_MAX_CHANNELS]; /* at most PS_MAX_LISTS lists */
} ps_schema;

/* Returns a raw schema with tokens of `token_type` and no declarations. */
ps_schema ps_schema_raw(ps_type token_type);

/*
 * Checks names, types, kinds, fills, special ids and counts.  Every function
 * that takes a schema performs this check.
 * PS_OK, PS_ERR_ARGUMENT.
 */
PS_MUST_CHECK ps_result ps_schema_check(const ps_schema *schema,
                                        ps_error *err);

/*
 * Checks whether records of schema `a` may follow records of schema `b`.  Both
 * must pass ps_schema_check.  The text of the error names the first difference,
 * with the value in `a` before the value in `b`: "vocab_size is 50304, not
 * 50257".
 * PS_OK, PS_ERR_ARGUMENT.
 */
PS_MUST_CHECK ps_result ps_schema_compare(const ps_schema *a,
                                          const ps_schema *b, ps_error *err);

/* True if ps_schema_compare returns PS_OK. */
bool ps_schema_equal(const ps_schema *a, const ps_schema *b);

/*
 * Size of a value in bytes, name of the type ("u16"), and its numpy name
 * ("<u2").  0 or "?" for an invalid type.
 */
size_t ps_type_bytes(ps_type type);
const char *ps_type_name(ps_type type);
const char *ps_type_numpy(ps_type type);

/* Finds the type with a name such as "u16"; false if unknown. */
bool ps_type_from_name(const char *name, ps_type *type);

/* Number of values of an element, and its size in bytes. */
uint32_t ps_channel_values(const ps_channel *channel);
size_t ps_channel_bytes(const ps_channel *channel);

/*
 * Writes the type of an element to `text`: "u16", or "f32[80]".  A list has
 * brackets without a number at the end: "u32[]" or "u32[2][]".
 */
#define PS_TYPE_TEXT 16
void ps_channel_type(const ps_channel *channel, char text[PS_TYPE_TEXT]);

/*
 * A payload is contiguous: the tokens, then each per-token channel (n_tok
 * elements), then one element of each per-sequence channel, where a list has
 * its length as a u32; and at the end the elements of each list.  Channels are
 * in table order, without padding.
 *
 * These functions return the size of a payload before the elements of its
 * lists, and the offset of a channel, or of the length of a list; both in
 * bytes.  `channel` is an index into schema->channels, or PS_TOKENS for the
 * tokens.  The results cannot overflow.
 */
#define PS_TOKENS UINT32_MAX
uint64_t ps_payload_bytes(const ps_schema *schema, uint32_t n_tok);
uint64_t ps_payload_offset(const ps_schema *schema, uint32_t channel,
                           uint32_t n_tok);

/*
 * These functions read the lengths of the lists in a payload, of which the
 * first ps_payload_bytes(schema, n_tok) bytes must be present.  They return the
 * size of the elements of all lists, and the offset of the elements of one
 * list, whose length is stored at *n; both in bytes.
 */
uint64_t ps_payload_lists(const ps_schema *schema, uint32_t n_tok,
                          const void *payload);
uint64_t ps_payload_list(const ps_schema *schema, uint32_t channel,
                         uint32_t n_tok, const void *payload, uint32_t *n);

#ifdef __cplusplus
}
#endif

#endif
