/*
 * exchange.h - exchange packs between ranks to balance their work.
 *
 * Each rank reads its own packs, or rank 0 reads all.  Together they form a
 * batch of all ranks: the packs of rank 0 first, then those of rank 1, and so
 * on.  With --packs=S every rank that has packs left in the epoch contributes
 * equally many, the first ranks one more if S is not a multiple; if a rank runs
 * out, the others contribute more.  With --sequences=B every rank contributes
 * its share of B as long as it has sequences.
 *
 * An exchange has four phases.  All ranks take part in each:
 *
 *   offer  the number of packs that each rank has read, or its failure
 *   table  the lengths and a digest of every pack; from these every rank
 *          computes the assignment, and how much moves between any two ranks
 *   ready  whether each rank has memory for the packs that it receives
 *   trade  the packs that move
 *
 * Digests verify that packs arrive unchanged.  All ranks compare table and
 * assignment before the step, so each pack is trained on exactly once.
 *
 * A thread exchanges the packs of the next step during the current one.  Offers
 * also carry failures: all ranks see them in the same exchange and start no
 * further one, so none waits for a rank that has exited.
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
 * `from` adds packs to `mine`; NULL if rank 0 reads for this rank.  Both must
 * outlive the exchange.  PS_OK, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result tr_exchange_open(tr_exchange **x,
                                         const tr_loader_options *options,
                                         tr_source *from, tr_builder *mine,
                                         ps_error *err);

/*
 * Connects all ranks.  Each passes the shape of its batches and receives rank
 * 0's.  PS_OK, PS_ERR_ARGUMENT, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result tr_exchange_join(tr_exchange *x, const tr_workers *w,
                                         tr_batch_shape *shape, ps_error *err);

/* All ranks must call it after the same number of batches, or a failure. */
void tr_exchange_free(tr_exchange *x);

/* Before the first batch: continues in this epoch; see tr_loader_limit. */
void tr_exchange_resume(tr_exchange *x, uint32_t epoch);
void tr_exchange_limit(tr_exchange *x, uint64_t batches);

/* As tr_loader_next and the functions after it. */
PS_MUST_CHECK ps_result tr_exchange_next(tr_exchange *x, ps_error *err);
const tr_builder *tr_exchange_builder(const tr_exchange *x);
tr_batch_counts tr_exchange_count(const tr_exchange *x);
tr_exchange_times tr_exchange_time(const tr_exchange *x);

/* The input position of each rank after the batch. */
const tr_input_position *tr_exchange_positions(const tr_exchange *x);

#endif /* TR_RANKS_EXCHANGE_H */
