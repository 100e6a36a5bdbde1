/*
 * exchange_plan.h - decide which packs move between ranks.
 *
 * All ranks have the same table of packs and so make the same plan, except for
 * the counts that they send and receive.  Numbers from other ranks are
 * validated here.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RANKS_EXCHANGE_PLAN_H
#define TR_RANKS_EXCHANGE_PLAN_H

#include "data/batch_builder.h"
#include "data/data_loader.h"
#include "ranks/assigner.h"
#include "ranks/workers.h"

/* A pack's entry in the table. */
typedef struct tr_plan_pack {
    tr_pack_size pack;
    uint64_t digest; /* digest of its serialised numbers */
} tr_plan_pack;

typedef struct tr_plan {
    uint32_t rank, ranks;
    uint32_t capacity;
    uint32_t max;       /* maximum packs in a batch */
    uint32_t n;         /* packs in this batch, ordered by rank */
    uint32_t *first;    /* [ranks + 1] index of each rank's first pack */
    tr_plan_pack *packs;   /* [max] */
    uint64_t *costs;    /* [max] */
    uint32_t *to;       /* [max] receiving rank */
    uint64_t *loads;    /* [ranks] */
    tr_workers_parts told; /* packs per rank, for gathering the table */
    tr_workers_parts sent, got; /* numbers to and from each rank */
} tr_plan;

/* Returns PS_OK or PS_ERR_MEMORY.  Free the plan even after a failure. */
PS_MUST_CHECK ps_result tr_plan_open(tr_plan *p, uint32_t rank, uint32_t ranks,
                                     uint32_t max, ps_error *err);
void tr_plan_free(tr_plan *p);

/*
 * Begins a batch with packs[i] packs of rank i.  Returns PS_OK, PS_ERR_CORRUPT
 * if there are more packs than a batch can have, or PS_ERR_LIMIT.
 */
PS_MUST_CHECK ps_result tr_plan_begin(tr_plan *p, uint32_t capacity,
                                      const uint64_t *packs, ps_error *err);

/* Validates p->packs.  Returns PS_OK or PS_ERR_CORRUPT. */
PS_MUST_CHECK ps_result tr_plan_check(const tr_plan *p, ps_error *err);

/*
 * Assigns packs to ranks and computes the imbalance (max/mean cost).  Returns
 * PS_OK, PS_ERR_MEMORY or PS_ERR_LIMIT.
 */
PS_MUST_CHECK ps_result tr_plan_assign(tr_plan *p, tr_assigner *s,
                                       double *imbalance, ps_error *err);

/* Computes `sent` and `got`.  PS_ERR_LIMIT means that a count exceeds int. */
PS_MUST_CHECK ps_result tr_plan_count(tr_plan *p, ps_error *err);

/* Returns the rank that has read a pack. */
uint32_t tr_plan_reader(const tr_plan *p, uint32_t place);

#endif /* TR_RANKS_EXCHANGE_PLAN_H */
