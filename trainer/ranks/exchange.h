/*
 * exchange.h - packs that ranks exchange, so that all have as much work.
 *
 * Each rank reads packs of its own, or the first one does for all.  Together
 * they make a batch of all ranks, in this order: those of rank 0, of rank 1,
 * and so on.  Of --packs=S each rank that has packs left in this epoch brings
 * as many, the first ones one more where S does not come out even; where one
 * has fewer the others bring more.  Of --sequences=B each brings its part of
 * B as long as it has any.
 *
 * An exchange has four parts, each of which all ranks take part in:
 *
 *   offer  what each rank has read, or that it has failed
 *   table  the lengths of every pack, and a digest of it; from these all ranks
 *          work out which rank gets it, and how much moves from where to where
 *   ready  whether each rank has memory for what it gets
 *   trade  the packs, and only those that move
 *
 * Digests tell that what came is what was read.  As all ranks have the same
 * table and the same deal, which is compared before the step, each pack is
 * learnt from exactly once.
 *
 * A thread makes the exchange of a step while the step before is computed.
 * Failures are offered: all ranks know them in the same exchange, and begin no
 * other.  So no rank waits for one that has ended.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RANKS_EXCHANGE_H
#define TR_RANKS_EXCHANGE_H

#include "data/batch_builder.h"
#include "data/data_loader.h"
#include "data/source.h"
#include "ranks/workers.h"

typedef struct tr_exchange tr_exchange;

/*
 * For a source that fills `mine`, or none where the first rank reads; all have
 * to live as long.  PS_OK, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result tr_exchange_open(tr_exchange **x,
                                         const tr_loader_options *options,
                                         tr_source *from, tr_builder *mine,
                                         ps_error *err);

/*
 * All ranks come together, each with the shape of what it reads, and those that
 * read nothing are told that of the first rank.  PS_OK, PS_ERR_ARGUMENT,
 * PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result tr_exchange_join(tr_exchange *x, const tr_workers *w,
                                         tr_batch_shape *shape, ps_error *err);

/* All ranks do that after as many batches, or after a failure of one. */
void tr_exchange_free(tr_exchange *x);

/* Before the first batch: goes on in this epoch; and as tr_loader_limit. */
void tr_exchange_resume(tr_exchange *x, uint32_t epoch);
void tr_exchange_limit(tr_exchange *x, uint64_t batches);

/* As tr_loader_next, and what follows it. */
PS_MUST_CHECK ps_result tr_exchange_next(tr_exchange *x, ps_error *err);
const tr_builder *tr_exchange_builder(const tr_exchange *x);
tr_batch_counts tr_exchange_count(const tr_exchange *x);
tr_exchange_times tr_exchange_time(const tr_exchange *x);

/* Where each rank is behind the batch. */
const tr_input_position *tr_exchange_positions(const tr_exchange *x);

#endif /* TR_RANKS_EXCHANGE_H */
