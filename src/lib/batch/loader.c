/*
 * loader.c - batches of packs, read ahead on a thread.
 *
 * SPDX-License-Identifier: MIT
 */

#include "batch/loader.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "io/fd.h"

/* ---- Opening and closing ---- */

/* Creates the slots, in the caller's or the loader's memory. */
static ps_result make_slots(ps_loader *l, ps_error *err)
{
    const ps_loader_options *o = &l->options;

    if (o->buffers > SIZE_MAX / l->layout.bytes)
        return ps_fail_memory(err);
    if (o->memory == NULL)
        l->own = malloc(o->buffers * l->layout.bytes);
    l->slots = calloc(o->buffers, sizeof *l->slots);
    /* Cannot overflow: a pack takes more bytes in a buffer than its head. */
    l->heads = calloc((size_t)o->buffers * o->packs, sizeof *l->heads);
    if (l->slots == NULL || l->heads == NULL ||
        (o->memory == NULL && l->own == NULL))
        return ps_fail_memory(err);
    for (uint32_t i = 0; i < o->buffers; i++) {
        l->slots[i].memory = o->memory != NULL
                                 ? o->memory[i]
                                 : l->own + i * l->layout.bytes;
        l->slots[i].heads = l->heads + (size_t)i * o->packs;
    }
    return PS_OK;
}

ps_result ps_loader_open(ps_loader **loader, ps_pack_reader *reader,
                         const ps_loader_options *options, ps_error *err)
{
    ps_loader *l = calloc(1, sizeof *l);
    ps_result r;

    *loader = NULL;
    if (l == NULL)
        return ps_fail_memory(err);
    l->quit[0] = l->quit[1] = -1;
    (void)pthread_mutex_init(&l->lock, NULL);
    (void)pthread_cond_init(&l->batch_ready, NULL);
    (void)pthread_cond_init(&l->slots_freed, NULL);
    l->reader = reader;
    l->info = reader->info;
    l->form = ps_form_of(&l->info);
    l->places = ps_loader_places(&l->info, options->view);
    if (reader->ranks != 1)
        r = ps_fail(err, PS_ERR_ARGUMENT,
                    "the reader already assigns its packs to ranks");
    else
        r = ps_loader_settle(&l->info, options, &l->options, &l->layout,
                             err);
    if (r == PS_OK)
        r = make_slots(l, err);
    if (r == PS_OK)
        r = ps_loader_open_round(l, err);
    if (r == PS_OK) {
        ps_pack_reader_save(reader, l->mark);
        if (!l->options.no_thread)
            r = ps_loader_start(l, err);
    }
    if (r != PS_OK) {
        ps_loader_free(l);
        return r;
    }
    *loader = l;
    return PS_OK;
}

void ps_loader_free(ps_loader *l)
{
    if (l == NULL)
        return;
    if (l->has_thread) {
        (void)pthread_mutex_lock(&l->lock);
        l->stop = true;
        (void)pthread_cond_signal(&l->slots_freed);
        (void)pthread_mutex_unlock(&l->lock);
        ps_wake(l->quit);
        (void)pthread_join(l->thread, NULL);
        ps_pack_reader_on_wait(l->reader, NULL, NULL);
    }
    for (int i = 0; i < 2; i++)
        if (l->quit[i] >= 0)
            (void)close(l->quit[i]);
    (void)pthread_cond_destroy(&l->slots_freed);
    (void)pthread_cond_destroy(&l->batch_ready);
    (void)pthread_mutex_destroy(&l->lock);
    ps_loader_free_round(l);
    free(l->heads);
    free(l->slots);
    free(l->own);
    free(l);
}

/* ---- Batches ---- */

ps_result ps_loader_next(ps_loader *l, ps_batch *batch, ps_error *err)
{
    ps_slot *slot = &l->slots[l->given % l->options.buffers];

    /* A failure or the end is not counted, so later calls return it again. */
    if (l->has_thread) {
        bool wake;

        (void)pthread_mutex_lock(&l->lock);
        /* The oldest batch kept becomes invalid with this call. */
        if (l->given >= l->options.keep)
            l->released = l->given - l->options.keep + 1;
        while (l->filled == l->given)
            (void)pthread_cond_wait(&l->batch_ready, &l->lock);
        l->given += slot->result == PS_OK;
        wake = l->full && l->filled - l->given <=
                              (l->options.buffers - l->options.keep) / 2;
        if (wake)
            l->full = false;
        (void)pthread_mutex_unlock(&l->lock);
        if (wake)
            (void)pthread_cond_signal(&l->slots_freed);
    } else if (!l->ended) {
        ps_loader_fill(l, slot);
        l->ended = slot->result != PS_OK;
        l->given += !l->ended;
    }
    if (slot->result == PS_OK) {
        *batch = slot->batch;
        memcpy(l->mark, slot->mark, sizeof l->mark);
    } else if (slot->result != PS_END && err != NULL) {
        *err = slot->err;
    }
    return slot->result;
}

const ps_pack_info *ps_loader_info(const ps_loader *l)
{
    return &l->info;
}

void ps_loader_save(const ps_loader *l,
                    unsigned char mark[PS_PACK_MARK_BYTES])
{
    memcpy(mark, l->mark, PS_PACK_MARK_BYTES);
}
