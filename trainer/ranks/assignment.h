/*
 * assignment.h - which packs of a batch a rank learns from.
 *
 * Each rank reads the whole batch, and works out by itself the same deal: as
 * many packs for each rank, as far as it comes out even, and about as much
 * work.  ps_deal has the method.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_SHARE_H
#define BERT_SHARE_H

#include "data/data_loader.h"
#include "model/batch.h"
#include "packstream.h"

typedef struct share share;

/* For these ranks and a model of this width.  NULL: no memory. */
share *share_open(const feed_options *options);
void share_free(share *s);

/*
 * The rank of each of the batch's packs, until the next call.  PS_OK,
 * PS_ERR_ARGUMENT (too many packs), PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
PS_MUST_CHECK ps_result share_deal(share *s, const bert_batch *batch,
                                   const uint32_t **ranks, ps_error *err);

/*
 * The same of packs that lie elsewhere, each of so many sequences' squared
 * lengths: what one costs, and which rank each of so many goes to.
 */
uint64_t share_cost(const share *s, uint32_t capacity, uint32_t n_tok,
                    uint64_t squares);
PS_MUST_CHECK ps_result share_deal_costs(share *s, const uint64_t *costs,
                                         uint32_t n, const uint32_t **ranks,
                                         ps_error *err);

#endif /* BERT_SHARE_H */
