/*
 * exchange.c - exchange packs between ranks, in a separate thread.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ranks/exchange_parts.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "data/error.h"

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void make_slot(tr_exchange *x, slot *s)
{
    const double begun = now();

    s->time = (tr_exchange_times){0};
    tr_exchange_make(x, s);
    s->over = x->over;
    s->result = x->failed != PS_OK ? x->failed : x->over ? PS_END : PS_OK;
    s->err = x->err;
    s->time.exchange = now() - begun;
}

/* ---- The thread ---- */

static void *run(void *context)
{
    tr_exchange *x = context;

    (void)pthread_mutex_lock(&x->lock);
    for (;;) {
        while (x->made == x->begun && !x->quits)
            (void)pthread_cond_wait(&x->changed, &x->lock);
        if (x->made == x->begun)
            break;
        (void)pthread_mutex_unlock(&x->lock);
        make_slot(x, &x->slots[x->made % 2]);
        (void)pthread_mutex_lock(&x->lock);
        x->made++;
        (void)pthread_cond_broadcast(&x->changed);
    }
    (void)pthread_mutex_unlock(&x->lock);
    return NULL;
}

static ps_result start(tr_exchange *x, ps_error *err)
{
    sigset_t all, before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    x->has_thread = pthread_create(&x->thread, NULL, run, x) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return x->has_thread ? PS_OK
                         : tr_error(err, PS_ERR_MEMORY,
                                    "cannot create a thread for exchanges");
}

static void begin(tr_exchange *x)
{
    (void)pthread_mutex_lock(&x->lock);
    x->begun++;
    (void)pthread_cond_broadcast(&x->changed);
    (void)pthread_mutex_unlock(&x->lock);
}

static void wait_made(tr_exchange *x, uint64_t count)
{
    (void)pthread_mutex_lock(&x->lock);
    while (x->made < count)
        (void)pthread_cond_wait(&x->changed, &x->lock);
    (void)pthread_mutex_unlock(&x->lock);
}

/* The caller trains on one batch while the thread fills another. */
ps_result tr_exchange_next(tr_exchange *x, ps_error *err)
{
    const double asked = now();
    slot *const s = &x->slots[x->given % 2];

    if (x->given > 0 && x->slots[(x->given - 1) % 2].over)
        return PS_END;
    if (x->given == 0)
        begin(x);
    wait_made(x, x->given + 1);
    x->given++;
    if (!s->over && x->given < x->limit)
        begin(x);
    s->time.waited = now() - asked;
    if (s->result != PS_OK && s->result != PS_END)
        *err = s->err;
    return s->result;
}

static const slot *last_given(const tr_exchange *x)
{
    return &x->slots[(x->given + 1) % 2];
}

const tr_builder *tr_exchange_builder(const tr_exchange *x)
{
    return last_given(x)->builder;
}

tr_batch_counts tr_exchange_count(const tr_exchange *x)
{
    return last_given(x)->count;
}

tr_exchange_times tr_exchange_time(const tr_exchange *x)
{
    return last_given(x)->time;
}

const tr_input_position *tr_exchange_positions(const tr_exchange *x)
{
    return last_given(x)->positions;
}

void tr_exchange_resume(tr_exchange *x, uint32_t epoch)
{
    x->epoch = epoch;
}

void tr_exchange_limit(tr_exchange *x, uint64_t batches)
{
    x->limit = batches;
}

/* ---- Beginning and end ---- */

static ps_result make_room_for_all(tr_exchange *x, ps_error *err)
{
    const tr_loader_options *const o = x->options;
    bool made;

    x->assigner = tr_assigner_open(o);
    x->offers = calloc(o->ranks, sizeof *x->offers);
    x->packs = calloc(o->ranks, sizeof *x->packs);
    made = x->assigner != NULL && x->offers != NULL && x->packs != NULL;
    for (int i = 0; i < 2; i++) {
        x->slots[i].builder = tr_builder_open(o);
        x->slots[i].positions = calloc(o->ranks, sizeof *x->slots[i].positions);
        made = made && x->slots[i].builder != NULL &&
               x->slots[i].positions != NULL;
    }
    return made ? PS_OK
                : tr_error(err, PS_ERR_MEMORY, "no memory for an exchange");
}

ps_result tr_exchange_open(tr_exchange **to, const tr_loader_options *options,
                           tr_source *from, tr_builder *mine, ps_error *err)
{
    tr_exchange *x = calloc(1, sizeof *x);
    ps_result r;

    *to = NULL;
    if (x == NULL)
        return tr_error(err, PS_ERR_MEMORY, "no memory for an exchange");
    x->options = options;
    x->source = from;
    x->mine = mine;
    x->limit = UINT64_MAX;
    (void)pthread_mutex_init(&x->lock, NULL);
    (void)pthread_cond_init(&x->changed, NULL);
    r = tr_plan_open(&x->plan, options->rank, options->ranks,
                     options->packs > 0 ? options->packs : options->sequences,
                     err);
    if (r == PS_OK)
        r = make_room_for_all(x, err);
    if (r == PS_OK)
        *to = x;
    else
        tr_exchange_free(x);
    return r;
}

/* Every rank adopts the batch shape of rank 0. */
static ps_result take_form(tr_exchange *x, tr_batch_shape *shape, ps_error *err)
{
    const tr_batch_shape first = x->offers[0].shape;

    if (x->source != NULL &&
        (shape->capacity != first.capacity ||
         shape->vocab_size != first.vocab_size || shape->types != first.types))
        return tr_error(err, PS_ERR_ARGUMENT,
                        "packs of %" PRIu32 " tokens below %" PRIu32
                        ", rank 0 has packs of %" PRIu32
                        " tokens below %" PRIu32, shape->capacity,
                        shape->vocab_size, first.capacity, first.vocab_size);
    *shape = x->shape = first;
    for (int i = 0; i < 2; i++)
        tr_builder_set_shape(x->slots[i].builder, shape);
    return start(x, err);
}

ps_result tr_exchange_join(tr_exchange *x, const tr_workers *w,
                           tr_batch_shape *shape, ps_error *err)
{
    x->workers = w;
    x->offers[w->rank].shape = *shape;
    tr_workers_gather(w, x->offers, sizeof *x->offers);
    tr_exchange_expect(x);
    return take_form(x, shape, err);
}

/* Completes an exchange in progress, because all ranks take part in it. */
void tr_exchange_free(tr_exchange *x)
{
    if (x == NULL)
        return;
    if (x->has_thread) {
        if (x->source != NULL)
            tr_source_stop(x->source);
        (void)pthread_mutex_lock(&x->lock);
        x->quits = true;
        (void)pthread_cond_broadcast(&x->changed);
        (void)pthread_mutex_unlock(&x->lock);
        (void)pthread_join(x->thread, NULL);
    }
    for (int i = 0; i < 2; i++) {
        tr_builder_free(x->slots[i].builder);
        free(x->slots[i].positions);
    }
    tr_plan_free(&x->plan);
    tr_assigner_free(x->assigner);
    free(x->offers);
    free(x->packs);
    free(x->own.at);
    free(x->out.at);
    free(x->in.at);
    (void)pthread_cond_destroy(&x->changed);
    (void)pthread_mutex_destroy(&x->lock);
    free(x);
}
