/*
 * exchange.h - exchange packs between ranks to balance their work.
 *
 * Each rank reads its own packs, or rank 0 reads all packs.  The packs of all
 * ranks form a batch, ordered by rank.  With --packs=S, all ranks that have
 * packs left in the epoch contribute the same number, except that the first
 * ranks contribute one more if S is not divisible; if a rank runs out of packs,
 * the others contribute more.  With --sequences=B, every rank contributes its
 * share of B until it runs out of sequences.
 *
 * An exchange has four phases.  All ranks take part in each phase:
 *
 *   offer  the number of packs that each rank has read, or its failure
 *   table  the lengths and a digest of every pack; from these every rank
 *          computes the assignment, and the amount that ranks send each other
 *   ready  whether each rank has memory for the packs that it receives
 *   trade  the packs that move
 *
 * Digests verify that packs arrive unchanged.  Before each step, all ranks
 * compare the table and the assignment, so each pack is trained on exactly
 * once.
 *
 * A thread exchanges the packs of the next step during the current step.
 * Offers also carry failures.  All ranks see a failure in the same exchange,
 * and do not start another exchange, so no rank waits for a rank that has
 * exited.
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
 * `from`, which is NULL if rank 0 reads for this rank, adds packs to `mine`.
 * Both must outlive the exchange.  Returns PS_OK or PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result tr_exchange_open(tr_exchange **x,
                                         const tr_loader_options *options,
                                         tr_source *from, tr_builder *mine,
                                         ps_error *err);

/*
 * Connects all ranks.  Each rank passes the shape of its batches and receives
 * the shape of rank 0.  Returns PS_OK, PS_ERR_ARGUMENT or PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result tr_exchange_join(tr_exchange *x, const tr_workers *w,
                                         tr_batch_shape *shape, ps_error *err);

/* All ranks must call it after the same batch, or after a failure. */
void tr_exchange_free(tr_exchange *x);

/* Call these before the first batch; see tr_loader_limit. */
void tr_exchange_resume(tr_exchange *x, uint32_t epoch);
void tr_exchange_limit(tr_exchange *x, uint64_t batches);

/* Like tr_loader_next and the functions that follow it. */
PS_MUST_CHECK ps_result tr_exchange_next(tr_exchange *x, ps_error *err);
const tr_builder *tr_exchange_builder(const tr_exchange *x);
tr_batch_counts tr_exchange_count(const tr_exchange *x);
tr_exchange_times tr_exchange_time(const tr_exchange *x);

/* Input positions of all ranks after the batch. */
const tr_input_position *tr_exchange_positions(const tr_exchange *x);

#endif /* TR_RANKS_EXCHANGE_H */
