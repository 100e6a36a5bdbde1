/*
 * fill.h - the arrays of a batch, filled pack by pack.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_FILL_H
#define BERT_FILL_H

#include "feed.h"

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
uint32_t fill_vocab(const fill *f);

/* Empties the batch. */
void fill_begin(fill *f);

/*
 * Adds a pack.  `key` is one of the stream's own and makes, with ids, the
 * keys of masks.  PS_OK, PS_ERR_MEMORY, _RANGE, _ARGUMENT.
 */
PS_MUST_CHECK ps_result fill_put(fill *f, const ps_pack *pack, uint64_t key,
                                 ps_error *err);

/* Makes what only all packs together tell: weights. */
void fill_end(fill *f);

/* After fill_end: keeps a rank's packs, ranks[i] being the rank of pack i. */
void fill_keep(fill *f, const uint32_t *ranks, uint32_t rank);

const bert_batch *fill_batch(const fill *f);

/* Of all packs that were added, whatever was kept. */
feed_counts fill_count(const fill *f);

#endif /* BERT_FILL_H */
