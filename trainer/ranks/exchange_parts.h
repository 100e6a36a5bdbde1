/*
 * exchange_parts.h - what an exchange is made of.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_EXCHANGE_PARTS_H
#define BERT_EXCHANGE_PARTS_H

#include <pthread.h>

#include "ranks/assignment.h"
#include "ranks/exchange.h"
#include "ranks/exchange_plan.h"

/* What a rank tells all others before anything else. */
typedef struct offer {
    uint64_t failed; /* 0 or 1; the rest is of no use then */
    uint64_t more;   /* 0: its epoch has ended */
    uint64_t packs;
    fill_totals totals;
    feed_place place; /* behind these packs */
    feed_form form;   /* in the first one */
} offer;

/* A batch, and what is told of it. */
typedef struct slot {
    fill *fill;
    feed_place *places; /* [ranks] */
    feed_counts count;
    feed_times time;
    ps_result result;
    ps_error err;
    bool over; /* all ranks know that none follows */
} slot;

/* Numbers, as many as there is room for. */
typedef struct numbers {
    int32_t *at;
    size_t room;
} numbers;

struct exchange {
    const feed_options *options;
    const workers *workers;
    source *source; /* NULL: the first rank reads for us */
    fill *mine;     /* what the source has filled */
    share *share;
    feed_form form;
    uint32_t epoch;
    offer *offers;        /* [ranks] */
    uint64_t *packs;      /* [ranks] of the offers */
    plan plan;
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
void exchange_expect(exchange *x);

/*
 * Makes the next batch together with all ranks.  What fails here is noted in
 * x->failed, and x->over tells whether all ranks know that none follows.
 */
void exchange_make(exchange *x, slot *s);

#endif /* BERT_EXCHANGE_PARTS_H */
