/*
 * batch_builder.h - build the arrays of a batch, pack by pack.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_DATA_BATCH_BUILDER_H
#define TR_DATA_BATCH_BUILDER_H

#include "data/data_loader.h"

typedef struct tr_builder tr_builder;

/* Returns NULL if out of memory. */
tr_builder *tr_builder_open(const tr_loader_options *options);
void tr_builder_free(tr_builder *f);

/*
 * Announces that the next packs come from a stream with this header, which must
 * outlive them.  Returns PS_OK or PS_ERR_ARGUMENT.
 */
PS_MUST_CHECK ps_result tr_builder_use(tr_builder *f, const ps_pack_info *info,
                                       ps_error *err);
tr_batch_shape tr_builder_shape(const tr_builder *f);

/* Empties the batch. */
void tr_builder_begin(tr_builder *f);

/*
 * Adds a pack.  Masks depend on sequence ids and on `key`, which identifies the
 * stream.  Returns PS_OK, PS_ERR_MEMORY, PS_ERR_RANGE or PS_ERR_ARGUMENT.
 */
PS_MUST_CHECK ps_result tr_builder_add(tr_builder *f, const ps_pack *pack,
                                       uint64_t key, ps_error *err);

/* Totals over all packs of a step, for loss weights. */
typedef struct tr_batch_totals {
    uint64_t sequences;
    uint64_t masked;   /* masked tokens */
    uint64_t labelled; /* sequences with a next_sentence_label */
} tr_batch_totals;

tr_batch_totals tr_builder_totals(const tr_builder *f);

/* Computes loss weights, after all packs have been added. */
void tr_builder_finish(tr_builder *f);

/*
 * Drops the packs of ranks other than `rank`, after tr_builder_finish.
 * ranks[i] is the rank of pack i.
 */
void tr_builder_select(tr_builder *f, const uint32_t *ranks, uint32_t rank);

const tr_batch *tr_builder_batch(const tr_builder *f);

/*
 * The size of a pack.  Another rank's builder receives the pack as
 * tr_pack_numbers() numbers: the lengths and the next-sentence labels of the
 * sequences, then tokens, types and labels.
 */
typedef struct tr_pack_size {
    uint32_t n_seq;
    uint32_t n_tok;
    uint64_t squares; /* sum of squared lengths */
} tr_pack_size;

static inline uint64_t tr_pack_numbers(uint32_t n_seq, uint32_t n_tok)
{
    return 2 * (uint64_t)n_seq + 3 * (uint64_t)n_tok;
}

/* A position in a builder.  Zero-initialise it for the first pack. */
typedef struct tr_builder_cursor {
    uint32_t pack, seq;
} tr_builder_cursor;

/*
 * peek returns the size of the pack at the cursor; get copies its numbers and
 * advances the cursor.  Call them before tr_builder_finish.
 */
tr_pack_size tr_builder_peek(const tr_builder *f, const tr_builder_cursor *at);
void tr_builder_get(const tr_builder *f, tr_builder_cursor *at,
                    int32_t *numbers);

/* Call this instead of tr_builder_use if tr_builder_insert adds the packs. */
void tr_builder_set_shape(tr_builder *f, const tr_batch_shape *shape);

/* Returns PS_OK, PS_ERR_MEMORY, or PS_ERR_ARGUMENT for too many tokens. */
PS_MUST_CHECK ps_result tr_builder_reserve(tr_builder *f, uint32_t packs,
                                           ps_error *err);

/*
 * Adds a pack from its numbers, in the reserved space.  `place` is the pack's
 * index in the batch of all ranks.  Returns PS_OK, or PS_ERR_CORRUPT if lengths
 * are wrong.
 */
PS_MUST_CHECK ps_result tr_builder_insert(tr_builder *f, uint32_t place,
                                          const tr_pack_size *pack,
                                          const int32_t *numbers,
                                          ps_error *err);

/* Like tr_builder_finish, for packs that are part of a larger batch. */
void tr_builder_finish_among(tr_builder *f, const tr_batch_totals *all);

/* Counts of all packs that were added, including dropped packs. */
tr_batch_counts tr_builder_counts(const tr_builder *f);

#endif /* TR_DATA_BATCH_BUILDER_H */
