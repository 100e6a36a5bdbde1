/*
 * exchange_plan.h - decide which pack moves from which rank to which.
 *
 * All ranks have the same table of packs and so make the same plan; only the
 * counts sent and received differ.  Numbers from other ranks are checked here
 * before they are used.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RANKS_EXCHANGE_PLAN_H
#define TR_RANKS_EXCHANGE_PLAN_H

#include "data/batch_builder.h"
#include "data/data_loader.h"
#include "ranks/assigner.h"
#include "ranks/workers.h"

/* A pack, in what ranks tell one another. */
typedef struct tr_plan_pack {
    tr_pack_size pack;
    uint64_t digest; /* of its numbers */
} tr_plan_pack;

typedef struct tr_plan {
    uint32_t rank, ranks;
    uint32_t capacity;
    uint32_t max;       /* most packs of a batch */
    uint32_t n;         /* packs of this one: those of rank 0 first... */
    uint32_t *first;    /* [ranks + 1] ...and of rank i from first[i] on */
    tr_plan_pack *packs;   /* [max] */
    uint64_t *costs;    /* [max] */
    uint32_t *to;       /* [max] the rank that each goes to */
    uint64_t *loads;    /* [ranks] */
    tr_workers_parts told; /* packs of each rank, as the table is gathered */
    tr_workers_parts sent, got; /* numbers, to and from each rank */
} tr_plan;

/* After a failure it is to be freed, too.  PS_OK, PS_ERR_MEMORY. */
PS_MUST_CHECK ps_result tr_plan_open(tr_plan *p, uint32_t rank, uint32_t ranks,
                                     uint32_t max, ps_error *err);
void tr_plan_free(tr_plan *p);

/*
 * Begins one of packs[i] packs of rank i.  PS_OK, PS_ERR_CORRUPT: more than a
 * batch has.
 */
PS_MUST_CHECK ps_result tr_plan_begin(tr_plan *p, uint32_t capacity,
                                      const uint64_t *packs, ps_error *err);

/* Once p->packs has all of them.  PS_OK; PS_ERR_CORRUPT: not such packs. */
PS_MUST_CHECK ps_result tr_plan_check(const tr_plan *p, ps_error *err);

/*
 * Says where each goes, and how uneven costs are then.  PS_OK, PS_ERR_MEMORY,
 * PS_ERR_LIMIT.
 */
PS_MUST_CHECK ps_result tr_plan_assign(tr_plan *p, tr_assigner *s,
                                       double *imbalance, ps_error *err);

/*
 * Counts what is sent and got.  PS_OK; PS_ERR_LIMIT: more than an int counts.
 */
PS_MUST_CHECK ps_result tr_plan_count(tr_plan *p, ps_error *err);

/* Which rank has read a pack. */
uint32_t tr_plan_reader(const tr_plan *p, uint32_t place);

#endif /* TR_RANKS_EXCHANGE_PLAN_H */
