/*
 * options.h - the options of a packer, completed, and what follows from
 * them.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_PACKER_OPTIONS_H
#define LIB_PACKER_OPTIONS_H

#include "bytes.h"
#include "engine/engine.h"
#include "format/pack.h"
#include "format/schema.h"
#include "packer/payload_store.h"
#include "packstream.h"
#include "stream/block_output.h"

/* A sequence or piece, as listed in a state and stored before its payload. */
typedef struct ps_held_piece {
    uint64_t id;      /* of the sequence in the input */
    uint32_t seq_off; /* offset of the piece, tokens */
    uint32_t seq_len; /* of the whole sequence, tokens */
    uint32_t n_tok;   /* of the piece */
    uint32_t slot;    /* of the store */
} ps_held_piece;

/* Set by ps_settings_set, and constant afterwards. */
typedef struct ps_settings {
    ps_packer_options options; /* with defaults; `learn_from`, `group`,
                                  `by` and `budgets` are the caller's and
                                  invalid after opening */
    uint64_t learned;          /* hash of the histogram learned from; 0: none */
    ps_pack_info info;
    ps_shape shape;
    ps_payload_column columns[PS_MAX_FIELDS]; /* in payload order */
    uint32_t n_columns;
    uint64_t lists_bytes; /* of all lists of a pack, at most */
    uint32_t group; /* 1 + index of the channel whose values are the groups; 0:
                       no groups */
    const ps_payload_column *by; /* the channel of `group`, or NULL */
    const ps_payload_column *used[PS_MAX_BUDGETS]; /* channels of the budgets
                                                      in `columns`; NULL:
                                                      attention */
    uint32_t topic; /* 1 + index of the channel with the topic; 0: none */
    const ps_payload_column *topics; /* that channel in `columns`, or NULL */
    bool has_uses;    /* there are budgets or topics */
    uint32_t longest; /* maximum number of tokens of a sequence in a pack */
    uint32_t piece;   /* tokens of a piece that is cut off: `longest`, rounded
                         down to a multiple of `align` */
} ps_settings;

/*
 * Checks schema and options, and sets everything.  The settings must not be
 * moved afterwards.
 */
ps_result ps_settings_set(ps_settings *s, const ps_schema *schema,
                          const ps_packer_options *options, ps_error *err);

/*
 * Encodes the options that determine the output.  Their hash is in the header.
 */
#define PS_OPTIONS_BYTES 96
void ps_settings_encode(const ps_settings *s,
                        unsigned char to[PS_OPTIONS_BYTES]);

/*
 * Compares encoded options.  PS_OK, PS_ERR_ARGUMENT (the text names the first
 * difference).
 */
ps_result ps_settings_compare(const unsigned char *then,
                              const unsigned char *now, ps_error *err);

/* Options of the output, without its position. */
ps_output_options ps_settings_output(const ps_settings *s);

/* Options of the engine, without learn_from. */
ps_engine_options ps_settings_engine(const ps_settings *s);

/*
 * Returns the histogram for the engine, in its units, or NULL.  The caller
 * frees it.  PS_OK, PS_ERR_MEMORY.
 */
ps_result ps_settings_expected(const ps_settings *s, ps_histogram **expected,
                               ps_error *err);

/*
 * Upper bound, in bytes, on the payloads of `n` sequences in whole chunks, if
 * the sequences are no longer than `packs` packs in total.  The second function
 * returns the bound for all sequences in the window.
 */
uint64_t ps_settings_chunks(const ps_settings *s, uint64_t n, uint64_t packs);
uint64_t ps_settings_window_bytes(const ps_settings *s);

/*
 * Maximum number of reader blocks that may be held: as many as the payloads in
 * the window fill.  0 with max_bytes.
 */
uint32_t ps_settings_max_blocks(const ps_settings *s);

/* Slots besides the slots of the engine: one for the group being collected. */
static inline uint32_t ps_settings_spare(const ps_settings *s)
{
    return s->group != 0;
}

/* Upper bound, in bytes, on the store's contents for one item of the window. */
uint64_t ps_settings_item_bytes(const ps_settings *s);

/* Upper bound on the pieces in all groups of `n` items. */
uint64_t ps_settings_pieces(const ps_settings *s, uint64_t n);

/*
 * Size of a payload in bytes, without the elements of its lists, for at most
 * PS_MAX_SEQUENCE_BYTES.
 */
static inline size_t ps_settings_payload_bytes(const ps_settings *s,
                                               uint32_t n_tok)
{
    return (size_t)ps_shape_bytes(&s->shape, n_tok);
}

/* Maximum size of a payload that fits a pack, bytes. */
static inline size_t ps_settings_max_payload(const ps_settings *s)
{
    return ps_settings_payload_bytes(s, s->info.capacity) +
           (size_t)s->lists_bytes;
}

/*
 * Size of a payload in the store, with `lists` bytes of elements of lists, in
 * bytes: whole chunks.
 */
static inline uint64_t ps_settings_store_bytes(const ps_settings *s,
                                               uint32_t n_tok, uint64_t lists)
{
    return round_up(ps_shape_bytes(&s->shape, n_tok) + lists,
                    PS_STORE_CHUNK_BYTES);
}

/* Size, in bytes, of a piece of a group in the store; see group.h. */
static inline uint64_t ps_settings_piece_bytes(const ps_settings *s,
                                               uint32_t n_tok, uint64_t lists)
{
    return sizeof(ps_held_piece) + ps_shape_bytes(&s->shape, n_tok) + lists;
}

/* Bytes of the elements of all lists of a sequence. */
static inline uint64_t ps_settings_lists(const ps_settings *s,
                                         const ps_sequence *sequence)
{
    return s->shape.n_lists == 0
               ? 0
               : ps_shape_lists(&s->shape,
                                sequence->payload + (size_t)s->shape.per_token *
                                                        sequence->n_tok);
}

/* True if a sequence has as many bytes as its length and its lists need. */
static inline bool ps_settings_is_payload(const ps_settings *s,
                                          const ps_sequence *sequence)
{
    return sequence->payload != NULL &&
           sequence->payload_bytes >=
               ps_shape_bytes(&s->shape, sequence->n_tok) &&
           sequence->payload_bytes ==
               ps_shape_all(&s->shape, sequence->n_tok, sequence->payload);
}

/* Address of the value of a per-sequence channel, or the length of a list. */
static inline const unsigned char *
ps_settings_at(const ps_settings *s, const ps_sequence *sequence,
               const ps_payload_column *column)
{
    return sequence->payload +
           (size_t)s->shape.per_token * sequence->n_tok + column->before;
}

/* That value, as a bit pattern. */
static inline uint64_t ps_settings_value(const ps_settings *s,
                                         const ps_sequence *sequence,
                                         const ps_payload_column *column)
{
    return load_low(ps_settings_at(s, sequence, column), column->bytes);
}

/* Length in units of the engine, each `align` tokens, rounded up. */
static inline uint32_t ps_settings_units(const ps_settings *s, uint32_t n_tok)
{
    const uint32_t align = s->info.align;

    return align == 1 ? n_tok : n_tok / align + (n_tok % align != 0);
}

#endif
