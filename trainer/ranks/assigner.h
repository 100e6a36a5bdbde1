/*
 * assigner.h - assign the packs of a batch to ranks.
 *
 * Every rank computes the same assignment: an equal number of packs per rank,
 * give or take one, with about equal work.  The method is ps_deal's.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RANKS_ASSIGNER_H
#define TR_RANKS_ASSIGNER_H

#include "data/data_loader.h"
#include "model/batch.h"
#include "packstream.h"

typedef struct tr_assigner tr_assigner;

/* Uses the options' ranks and model width.  NULL: out of memory. */
tr_assigner *tr_assigner_open(const tr_loader_options *options);
void tr_assigner_free(tr_assigner *s);

/*
 * Sets *ranks to the rank of each pack of the batch, valid until the next call.
 * PS_OK, PS_ERR_ARGUMENT (too many packs), PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
PS_MUST_CHECK ps_result tr_assigner_assign(tr_assigner *s,
                                           const tr_batch *batch,
                                           const uint32_t **ranks,
                                           ps_error *err);

/*
 * The same for packs outside a batch: the cost of one, where `squares` is the
 * sum of its squared sequence lengths, and the ranks of n packs.
 */
uint64_t tr_assigner_cost(const tr_assigner *s, uint32_t capacity,
                          uint32_t n_tok, uint64_t squares);
PS_MUST_CHECK ps_result tr_assigner_assign_costs(tr_assigner *s,
                                                 const uint64_t *costs,
                                                 uint32_t n,
                                                 const uint32_t **ranks,
                                                 ps_error *err);

#endif /* TR_RANKS_ASSIGNER_H */
