/*
 * exchange_plan.h - which pack of a batch goes from which rank to which.
 *
 * All ranks know the same of all packs, and so make the same plan; only what is
 * sent and got differs.  What was said by other ranks is checked here, before
 * anything is counted or moved by it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_PLAN_H
#define BERT_PLAN_H

#include "data/batch_builder.h"
#include "data/data_loader.h"
#include "ranks/assignment.h"
#include "ranks/workers.h"

/* A pack, in what ranks tell one another. */
typedef struct plan_pack {
    fill_pack pack;
    uint64_t digest; /* of its numbers */
} plan_pack;

typedef struct plan {
    uint32_t rank, ranks;
    uint32_t capacity;
    uint32_t max;       /* most packs of a batch */
    uint32_t n;         /* packs of this one: those of rank 0 first... */
    uint32_t *first;    /* [ranks + 1] ...and of rank i from first[i] on */
    plan_pack *packs;   /* [max] */
    uint64_t *costs;    /* [max] */
    uint32_t *to;       /* [max] the rank that each goes to */
    uint64_t *loads;    /* [ranks] */
    workers_parts told; /* packs of each rank, as the table is gathered */
    workers_parts sent, got; /* numbers, to and from each rank */
} plan;

/* After a failure it is to be freed, too.  PS_OK, PS_ERR_MEMORY. */
PS_MUST_CHECK ps_result plan_open(plan *p, uint32_t rank, uint32_t ranks,
                                  uint32_t max, ps_error *err);
void plan_free(plan *p);

/*
 * Begins one of packs[i] packs of rank i.  PS_OK, PS_ERR_CORRUPT: more than a
 * batch has.
 */
PS_MUST_CHECK ps_result plan_begin(plan *p, uint32_t capacity,
                                   const uint64_t *packs, ps_error *err);

/* Once p->packs has all of them.  PS_OK; PS_ERR_CORRUPT: not such packs. */
PS_MUST_CHECK ps_result plan_check(const plan *p, ps_error *err);

/*
 * Says where each goes, and how uneven costs are then.  PS_OK, PS_ERR_MEMORY,
 * PS_ERR_LIMIT.
 */
PS_MUST_CHECK ps_result plan_deal(plan *p, share *s, double *imbalance,
                                  ps_error *err);

/*
 * Counts what is sent and got.  PS_OK; PS_ERR_LIMIT: more than an int counts.
 */
PS_MUST_CHECK ps_result plan_count(plan *p, ps_error *err);

/* Which rank has read a pack. */
uint32_t plan_reader(const plan *p, uint32_t place);

#endif /* BERT_PLAN_H */
