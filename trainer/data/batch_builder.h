/*
 * batch_builder.h - the arrays of a batch, filled pack by pack.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_FILL_H
#define BERT_FILL_H

#include "data/data_loader.h"

typedef struct fill fill;

/* NULL: no memory. */
fill *fill_open(const feed_options *options);
void fill_free(fill *f);

/*
 * Packs that follow are of a stream with this header, which has to live as
 * long.  PS_OK, PS_ERR_ARGUMENT.
 */
PS_MUST_CHECK ps_result fill_use(fill *f, const ps_pack_info *info,
                                 ps_error *err);
feed_form fill_form(const fill *f);

/* Empties the batch. */
void fill_begin(fill *f);

/*
 * Adds a pack.  `key` is one of the stream's own and makes, with ids, the
 * keys of masks.  PS_OK, PS_ERR_MEMORY, _RANGE, _ARGUMENT.
 */
PS_MUST_CHECK ps_result fill_put(fill *f, const ps_pack *pack, uint64_t key,
                                 ps_error *err);

/* What the weights in a loss go by: those of all packs of the step. */
typedef struct fill_totals {
    uint64_t sequences;
    uint64_t masked;   /* tokens */
    uint64_t labelled; /* sequences that have a next_sentence_label */
} fill_totals;

fill_totals fill_total(const fill *f);

/* Makes what only all packs together tell: weights. */
void fill_end(fill *f);

/* After fill_end: keeps a rank's packs, ranks[i] being the rank of pack i. */
void fill_keep(fill *f, const uint32_t *ranks, uint32_t rank);

const bert_batch *fill_batch(const fill *f);

/*
 * A pack can go from one rank's fill to another's, as numbers: of each sequence
 * its tokens and its next-sentence label, of each token itself, its type and
 * its label.  They are as many as fill_numbers says.
 */
typedef struct fill_pack {
    uint32_t n_seq;
    uint32_t n_tok;
    uint64_t squares; /* of the lengths, added up */
} fill_pack;

static inline uint64_t fill_numbers(uint32_t n_seq, uint32_t n_tok)
{
    return 2 * (uint64_t)n_seq + 3 * (uint64_t)n_tok;
}

/* A place in a fill, zeros at first. */
typedef struct fill_cursor {
    uint32_t pack, seq;
} fill_cursor;

/* Before fill_end: the pack there, and then its numbers; goes on behind it. */
fill_pack fill_look(const fill *f, const fill_cursor *at);
void fill_get(const fill *f, fill_cursor *at, int32_t *numbers);

/* For a fill that packs are only moved to. */
void fill_shape(fill *f, const feed_form *form);

/* PS_OK, PS_ERR_MEMORY, PS_ERR_ARGUMENT (more than a model can take). */
PS_MUST_CHECK ps_result fill_reserve(fill *f, uint32_t packs, ps_error *err);

/*
 * Adds such a pack, for which there is room, as the one at `place` in the
 * batch of all ranks.  PS_OK; PS_ERR_CORRUPT: its lengths are wrong.
 */
PS_MUST_CHECK ps_result fill_move(fill *f, uint32_t place,
                                  const fill_pack *pack,
                                  const int32_t *numbers, ps_error *err);

/* As fill_end, of packs that are a part of so many. */
void fill_end_among(fill *f, const fill_totals *all);

/* Of all packs that were added, whatever was kept. */
feed_counts fill_count(const fill *f);

#endif /* BERT_FILL_H */
