/*
 * exchange_parts.h - the members of an exchange.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RANKS_EXCHANGE_PARTS_H
#define TR_RANKS_EXCHANGE_PARTS_H

#include <pthread.h>

#include "ranks/assigner.h"
#include "ranks/exchange.h"
#include "ranks/exchange_plan.h"

/* The first message of an exchange, from each rank to all ranks. */
typedef struct offer {
    uint64_t failed; /* 0 or 1; if 1, other members are invalid */
    uint64_t more;   /* 0 if the rank's epoch has ended */
    uint64_t packs;
    tr_batch_totals totals;
    tr_input_position position; /* position after these packs */
    tr_batch_shape shape;   /* valid in the first offer */
} offer;

/* A batch and its properties. */
typedef struct slot {
    tr_builder *builder;
    tr_input_position *positions; /* [ranks] */
    tr_batch_counts count;
    tr_exchange_times time;
    ps_result result;
    ps_error err;
    bool over; /* true if all ranks know that no batch follows */
} slot;

/* A growable array. */
typedef struct numbers {
    int32_t *at;
    size_t room;
} numbers;

struct tr_exchange {
    const tr_loader_options *options;
    const tr_workers *workers;
    tr_source *source; /* NULL if rank 0 reads for this rank */
    tr_builder *mine;     /* packs that the source has read */
    tr_assigner *assigner;
    tr_batch_shape shape;
    uint32_t epoch;
    offer *offers;        /* [ranks] */
    uint64_t *packs;      /* [ranks] number of packs, from the offers */
    tr_plan plan;
    numbers own, out, in; /* packs in read order, by rank, as received */
    ps_result failed;     /* this rank's first failure */
    ps_error err;
    bool over;
    slot slots[2];

    /* Both threads use the members below. */
    bool has_thread;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t begun, made; /* counts of exchanges */
    bool quits;
    uint64_t given; /* batches returned; only the first thread uses it */
    uint64_t limit; /* number of batches that will be requested */
};

/* Starts an epoch, in which every rank is assumed to have packs. */
void tr_exchange_expect(tr_exchange *x);

/*
 * Builds the next batch together with all ranks.  A failure of this rank is
 * stored in x->failed.  x->over is set when all ranks know that no batch
 * follows.
 */
void tr_exchange_make(tr_exchange *x, slot *s);

#endif /* TR_RANKS_EXCHANGE_PARTS_H */
