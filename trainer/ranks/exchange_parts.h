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

/* What a rank tells all others before anything else. */
typedef struct offer {
    uint64_t failed; /* 0 or 1; the rest is of no use then */
    uint64_t more;   /* 0: its epoch has ended */
    uint64_t packs;
    tr_batch_totals totals;
    tr_input_position position; /* behind these packs */
    tr_batch_shape shape;   /* in the first one */
} offer;

/* A batch, and what is told of it. */
typedef struct slot {
    tr_builder *builder;
    tr_input_position *positions; /* [ranks] */
    tr_batch_counts count;
    tr_exchange_times time;
    ps_result result;
    ps_error err;
    bool over; /* all ranks know that none follows */
} slot;

/* Numbers, as many as there is room for. */
typedef struct numbers {
    int32_t *at;
    size_t room;
} numbers;

struct tr_exchange {
    const tr_loader_options *options;
    const tr_workers *workers;
    tr_source *source; /* NULL: the first rank reads for us */
    tr_builder *mine;     /* what the source has filled */
    tr_assigner *assigner;
    tr_batch_shape shape;
    uint32_t epoch;
    offer *offers;        /* [ranks] */
    uint64_t *packs;      /* [ranks] of the offers */
    tr_plan plan;
    numbers own, out, in; /* packs as read, by rank, and as they came */
    ps_result failed;     /* here, and in no other rank */
    ps_error err;
    bool over;
    slot slots[2];

    /* Of both threads. */
    bool has_thread;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t begun, made; /* exchanges */
    bool quits;
    uint64_t given; /* of the first thread: the batch is that before it */
    uint64_t limit; /* batches that will be asked for */
};

/* A new epoch: nothing is known of what ranks have left. */
void tr_exchange_expect(tr_exchange *x);

/*
 * Makes the next batch together with all ranks.  What fails here is noted in
 * x->failed, and x->over tells whether all ranks know that none follows.
 */
void tr_exchange_make(tr_exchange *x, slot *s);

#endif /* TR_RANKS_EXCHANGE_PARTS_H */
