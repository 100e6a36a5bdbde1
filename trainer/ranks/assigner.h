/*
 * assigner.h - which packs of a batch a rank learns from.
 *
 * Each rank reads the whole batch, and works out by itself the same deal: as
 * many packs for each rank, as far as it comes out even, and about as much
 * work.  ps_deal has the method.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RANKS_ASSIGNER_H
#define TR_RANKS_ASSIGNER_H

#include "data/data_loader.h"
#include "model/batch.h"
#include "packstream.h"

typedef struct tr_assigner tr_assigner;

/* For these ranks and a model of this width.  NULL: no memory. */
tr_assigner *tr_assigner_open(const tr_loader_options *options);
void tr_assigner_free(tr_assigner *s);

/*
 * The rank of each of the batch's packs, until the next call.  PS_OK,
 * PS_ERR_ARGUMENT (too many packs), PS_ERR_MEMORY, PS_ERR_LIMIT.
 */
PS_MUST_CHECK ps_result tr_assigner_assign(tr_assigner *s,
                                           const tr_batch *batch,
                                           const uint32_t **ranks,
                                           ps_error *err);

/*
 * The same of packs that lie elsewhere, each of so many sequences' squared
 * lengths: what one costs, and which rank each of so many goes to.
 */
uint64_t tr_assigner_cost(const tr_assigner *s, uint32_t capacity,
                          uint32_t n_tok, uint64_t squares);
PS_MUST_CHECK ps_result tr_assigner_assign_costs(tr_assigner *s,
                                                 const uint64_t *costs,
                                                 uint32_t n,
                                                 const uint32_t **ranks,
                                                 ps_error *err);

#endif /* TR_RANKS_ASSIGNER_H */
