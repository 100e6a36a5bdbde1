/*
 * assigner.h - assign the packs of a batch to ranks.
 *
 * Every rank computes the same assignment, using ps_deal.  The numbers of packs
 * per rank differ by at most one, and ranks have about equal work.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RANKS_ASSIGNER_H
#define TR_RANKS_ASSIGNER_H

#include "data/data_loader.h"
#include "model/batch.h"
#include "packstream.h"

typedef struct tr_assigner tr_assigner;

/* Uses the options' ranks and width.  Returns NULL if out of memory. */
tr_assigner *tr_assigner_open(const tr_loader_options *options);
void tr_assigner_free(tr_assigner *s);

/*
 * Sets *ranks to an array with the rank of each pack, valid until the next
 * call.  Returns PS_OK, PS_ERR_ARGUMENT if there are too many packs,
 * PS_ERR_MEMORY or PS_ERR_LIMIT.
 */
PS_MUST_CHECK ps_result tr_assigner_assign(tr_assigner *s,
                                           const tr_batch *batch,
                                           const uint32_t **ranks,
                                           ps_error *err);

/*
 * tr_assigner_cost returns the cost of a pack, where `squares` is the sum of
 * its squared sequence lengths.  tr_assigner_assign_costs is like
 * tr_assigner_assign, for n packs with the given costs.
 */
uint64_t tr_assigner_cost(const tr_assigner *s, uint32_t capacity,
                          uint32_t n_tok, uint64_t squares);
PS_MUST_CHECK ps_result tr_assigner_assign_costs(tr_assigner *s,
                                                 const uint64_t *costs,
                                                 uint32_t n,
                                                 const uint32_t **ranks,
                                                 ps_error *err);

#endif /* TR_RANKS_ASSIGNER_H */
