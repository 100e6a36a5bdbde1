/*
 * schema.h - what a sequence is made of; part of <packstream.h>.
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
 * Schemas: what a sequence is made of
 */

/* Element types.  The values are those stored on disk. */
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

/* What a channel has one element for.  The values are those on disk. */
typedef enum ps_kind {
    PS_PER_TOKEN = 1,
    PS_PER_SEQUENCE = 2
} ps_kind;

/*
 * A named column of values.  The name is a letter, then letters, digits and
 * underscores, at most PS_NAME_BYTES - 1, and not a word that the formats
 * use themselves.  `fill` is the little-endian bit pattern of the element
 * that stands in unused places of a pack (in an i32 channel, 0xffffff9c
 * for -100); its bits above the element's width are zero.
 */
typedef struct ps_channel {
    char name[PS_NAME_BYTES];
    ps_type type;
    ps_kind kind;
    uint64_t fill;
} ps_channel;

/* Special token ids, each PS_NO_ID where there is none. */
typedef enum ps_special {
    PS_PAD,
    PS_BOS,
    PS_EOS,
    PS_CLS,
    PS_SEP,
    PS_MASK,
    PS_SPECIALS
} ps_special;

/* What a label at position t is the target for; only recorded. */
typedef enum ps_label_convention {
    PS_LABELS_UNSTATED = 0,
    PS_LABELS_ALIGNED = 1, /* for position t: the trainer shifts */
    PS_LABELS_SHIFTED = 2  /* for position t + 1: shifted already */
} ps_label_convention;

/*
 * What the records of a stream consist of.  A raw stream has no channels and
 * declares nothing; even its token type comes from the caller.
 */
typedef struct ps_schema {
    bool framed;         /* a header describes the stream; else raw */
    ps_type token_type;  /* PS_U16 or PS_U32 */
    uint32_t vocab_size; /* tokens are below it; 0 = not declared */
    uint32_t special[PS_SPECIALS];
    ps_label_convention labels;
    uint8_t tokenizer[32]; /* digest of the tokenizer; zeros = unknown */
    uint32_t n_channels;
    ps_channel channels[PS_MAX_CHANNELS]; /* PER_TOKEN and PER_SEQUENCE */
} ps_schema;

/* An empty schema for tokens of `token_type`, raw, nothing declared. */
ps_schema ps_schema_raw(ps_type token_type);

/*
 * Checks names, types, kinds, fills, special ids and counts, as all calls do
 * that take a schema.
 * PS_OK, PS_ERR_ARGUMENT.
 */
PS_MUST_CHECK ps_result ps_schema_check(const ps_schema *schema,
                                        ps_error *err);

/*
 * Whether records of schema `a` may follow those of `b`; both are such as
 * ps_schema_check accepts.  The error's text is what differs first, with the
 * value in `a` and then that in `b`: "vocab_size is 50304, not 50257".
 * PS_OK, PS_ERR_ARGUMENT.
 */
PS_MUST_CHECK ps_result ps_schema_compare(const ps_schema *a,
                                          const ps_schema *b, ps_error *err);

/* True if ps_schema_compare gives PS_OK. */
bool ps_schema_equal(const ps_schema *a, const ps_schema *b);

/* Bytes of an element; its name, "u16"; numpy's, "<u2".  0 or "?": no type. */
size_t ps_type_bytes(ps_type type);
const char *ps_type_name(ps_type type);
const char *ps_type_numpy(ps_type type);

/* The type of a name such as "u16"; false if there is none. */
bool ps_type_from_name(const char *name, ps_type *type);

/*
 * A sequence's payload is one run of bytes: its tokens, then each per-token
 * channel (as many elements as tokens), then one element of each
 * per-sequence channel; channels in table order, no padding.
 *
 * Its size, and the offset in it of channel `channel` (an index into
 * schema->channels; PS_TOKENS for the tokens).  Cannot overflow for
 * n_tok <= UINT32_MAX.
 */
#define PS_TOKENS UINT32_MAX
uint64_t ps_payload_bytes(const ps_schema *schema, uint32_t n_tok);
uint64_t ps_payload_offset(const ps_schema *schema, uint32_t channel,
                           uint32_t n_tok);

#ifdef __cplusplus
}
#endif

#endif
