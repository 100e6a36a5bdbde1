/*
 * exchange.c - packs that ranks exchange, so that all have as much work.
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

static void make_slot(exchange *x, slot *s)
{
    const double begun = now();

    s->time = (feed_times){0};
    exchange_make(x, s);
    s->over = x->over;
    s->result = x->failed != PS_OK ? x->failed : x->over ? PS_END : PS_OK;
    s->err = x->err;
    s->time.exchange = now() - begun;
}

/* ---- The thread ---- */

static void *run(void *context)
{
    exchange *x = context;

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

static ps_result start(exchange *x, ps_error *err)
{
    sigset_t all, before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    x->has_thread = pthread_create(&x->thread, NULL, run, x) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return x->has_thread ? PS_OK
                         : error_set(err, PS_ERR_MEMORY,
                                     "no thread to exchange packs");
}

static void begin(exchange *x)
{
    (void)pthread_mutex_lock(&x->lock);
    x->begun++;
    (void)pthread_cond_broadcast(&x->changed);
    (void)pthread_mutex_unlock(&x->lock);
}

static void wait_made(exchange *x, uint64_t count)
{
    (void)pthread_mutex_lock(&x->lock);
    while (x->made < count)
        (void)pthread_cond_wait(&x->changed, &x->lock);
    (void)pthread_mutex_unlock(&x->lock);
}

/* The batch that is given is computed while the thread fills the other one. */
ps_result exchange_next(exchange *x, ps_error *err)
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

static const slot *last_given(const exchange *x)
{
    return &x->slots[(x->given + 1) % 2];
}

const fill *exchange_fill(const exchange *x)
{
    return last_given(x)->fill;
}

feed_counts exchange_count(const exchange *x)
{
    return last_given(x)->count;
}

feed_times exchange_time(const exchange *x)
{
    return last_given(x)->time;
}

const feed_place *exchange_places(const exchange *x)
{
    return last_given(x)->places;
}

void exchange_resume(exchange *x, uint32_t epoch)
{
    x->epoch = epoch;
}

void exchange_limit(exchange *x, uint64_t batches)
{
    x->limit = batches;
}

/* ---- Beginning and end ---- */

static ps_result make_room_for_all(exchange *x, ps_error *err)
{
    const feed_options *const o = x->options;
    bool made;

    x->share = share_open(o);
    x->offers = calloc(o->ranks, sizeof *x->offers);
    x->packs = calloc(o->ranks, sizeof *x->packs);
    made = x->share != NULL && x->offers != NULL && x->packs != NULL;
    for (int i = 0; i < 2; i++) {
        x->slots[i].fill = fill_open(o);
        x->slots[i].places = calloc(o->ranks, sizeof *x->slots[i].places);
        made = made && x->slots[i].fill != NULL &&
               x->slots[i].places != NULL;
    }
    return made ? PS_OK
                : error_set(err, PS_ERR_MEMORY, "no memory for an exchange");
}

ps_result exchange_open(exchange **to, const feed_options *options,
                        source *from, fill *mine, ps_error *err)
{
    exchange *x = calloc(1, sizeof *x);
    ps_result r;

    *to = NULL;
    if (x == NULL)
        return error_set(err, PS_ERR_MEMORY, "no memory for an exchange");
    x->options = options;
    x->source = from;
    x->mine = mine;
    x->limit = UINT64_MAX;
    (void)pthread_mutex_init(&x->lock, NULL);
    (void)pthread_cond_init(&x->changed, NULL);
    r = plan_open(&x->plan, options->rank, options->ranks,
                  options->packs > 0 ? options->packs : options->sequences,
                  err);
    if (r == PS_OK)
        r = make_room_for_all(x, err);
    if (r == PS_OK)
        *to = x;
    else
        exchange_free(x);
    return r;
}

/* The first rank's is that of all. */
static ps_result take_form(exchange *x, feed_form *form, ps_error *err)
{
    const feed_form first = x->offers[0].form;

    if (x->source != NULL &&
        (form->capacity != first.capacity ||
         form->vocab_size != first.vocab_size || form->types != first.types))
        return error_set(err, PS_ERR_ARGUMENT,
                         "packs of %" PRIu32 " tokens below %" PRIu32
                         ", while the first rank has packs of %" PRIu32
                         " tokens below %" PRIu32, form->capacity,
                         form->vocab_size, first.capacity, first.vocab_size);
    *form = x->form = first;
    for (int i = 0; i < 2; i++)
        fill_shape(x->slots[i].fill, form);
    return start(x, err);
}

ps_result exchange_join(exchange *x, const workers *w, feed_form *form,
                        ps_error *err)
{
    x->workers = w;
    x->offers[w->rank].form = *form;
    workers_gather(w, x->offers, sizeof *x->offers);
    exchange_expect(x);
    return take_form(x, form, err);
}

/* Of the exchange that was begun, all ranks make each part, or none. */
void exchange_free(exchange *x)
{
    if (x == NULL)
        return;
    if (x->has_thread) {
        if (x->source != NULL)
            source_stop(x->source);
        (void)pthread_mutex_lock(&x->lock);
        x->quits = true;
        (void)pthread_cond_broadcast(&x->changed);
        (void)pthread_mutex_unlock(&x->lock);
        (void)pthread_join(x->thread, NULL);
    }
    for (int i = 0; i < 2; i++) {
        fill_free(x->slots[i].fill);
        free(x->slots[i].places);
    }
    plan_free(&x->plan);
    share_free(x->share);
    free(x->offers);
    free(x->packs);
    free(x->own.at);
    free(x->out.at);
    free(x->in.at);
    (void)pthread_cond_destroy(&x->changed);
    (void)pthread_mutex_destroy(&x->lock);
    free(x);
}
