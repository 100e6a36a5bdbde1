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
#ifndef BERT_EXCHANGE_H
#define BERT_EXCHANGE_H

#include "data/batch_builder.h"
#include "data/data_loader.h"
#include "data/source.h"
#include "ranks/workers.h"

typedef struct exchange exchange;

/*
 * For a source that fills `mine`, or none where the first rank reads; all have
 * to live as long.  PS_OK, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result exchange_open(exchange **x,
                                      const feed_options *options,
                                      source *from, fill *mine,
                                      ps_error *err);

/*
 * All ranks come together, each with the form of what it reads, and those that
 * read nothing are told that of the first rank.  PS_OK, PS_ERR_ARGUMENT,
 * PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result exchange_join(exchange *x, const workers *w,
                                      feed_form *form, ps_error *err);

/* All ranks do that after as many batches, or after a failure of one. */
void exchange_free(exchange *x);

/* Before the first batch: goes on in this epoch; and as feed_limit. */
void exchange_resume(exchange *x, uint32_t epoch);
void exchange_limit(exchange *x, uint64_t batches);

/* As feed_next, and what follows it. */
PS_MUST_CHECK ps_result exchange_next(exchange *x, ps_error *err);
const fill *exchange_fill(const exchange *x);
feed_counts exchange_count(const exchange *x);
feed_times exchange_time(const exchange *x);

/* Where each rank is behind the batch. */
const feed_place *exchange_places(const exchange *x);

#endif /* BERT_EXCHANGE_H */
