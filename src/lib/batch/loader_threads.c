/*
 * loader_threads.c - the threads of a loader.
 *
 * The slots are a ring.  A thread claims a group of them, fills it, and hands
 * it out when its turn comes, so that batches come in order.  To wake a thread
 * costs as much as to read some packs.  So the user is woken for
 * `wake_batches`, or when the loader must wait for input; and threads that
 * wait for slots are woken when half of what can be filled is free.
 *
 * SPDX-License-Identifier: MIT
 */

#include "batch/loader.h"

#include <unistd.h>

#include "base/error.h"
#include "base/thread.h"
#include "io/fd.h"

/* So many bytes of packs are worth a wake-up of the user. */
#define WAKE_BYTES ((uint64_t)512 << 10)

/* ---- What a thread does ---- */

static ps_slot *slot_of(const ps_loader *l, uint64_t number)
{
    return &l->slots[number % l->options.buffers];
}

/* Hands out the next slot; false if its result is the last. */
static bool hand_out(ps_loader *l, const ps_slot *slot)
{
    const bool last = slot->result != PS_OK;
    bool wake;

    (void)pthread_mutex_lock(&l->lock);
    l->filled++;
    wake = last || l->filled - l->given >= l->wake_batches;
    if (last)
        l->stop = true; /* who waits for slots is woken by ps_loader_free */
    if (last || l->filled % l->group == 0)
        (void)pthread_cond_broadcast(&l->turn_passed);
    l->likely_start = l->next_offset - l->filled * l->bytes;
    (void)pthread_mutex_unlock(&l->lock);
    if (wake)
        (void)pthread_cond_signal(&l->batch_ready);
    return !last;
}

/*
 * Fills groups of slots until all is read or the loader is freed.  What can be
 * read where it lies is read first; the rest waits for the thread's turn, when
 * all slots before the group are handed out.
 */
static void *run(void *context)
{
    const ps_loader_thread *t = context;
    ps_loader *l = t->loader;
    uint64_t first = (uint64_t)t->i * l->group;
    bool more = true;

    while (more) {
        /* Waits until slots can be filled from `first` on. */
        (void)pthread_mutex_lock(&l->lock);
        while (!l->stop &&
               first + l->group > l->released + l->options.buffers) {
            l->full = true;
            (void)pthread_cond_wait(&l->slots_freed, &l->lock);
        }
        more = !l->stop;
        for (uint64_t i = first; i < first + l->group; i++)
            slot_of(l, i)->offset = l->likely_start + i * l->bytes;
        (void)pthread_mutex_unlock(&l->lock);
        if (!more)
            break;

        for (uint32_t i = 0; l->direct && i < l->group; i++)
            ps_loader_read_direct(l, slot_of(l, first + i));

        /* Waits for its turn. */
        (void)pthread_mutex_lock(&l->lock);
        while (!l->stop && l->filled != first)
            (void)pthread_cond_wait(&l->turn_passed, &l->lock);
        more = !l->stop;
        (void)pthread_mutex_unlock(&l->lock);

        for (uint32_t i = 0; more && i < l->group; i++) {
            ps_slot *slot = slot_of(l, first + i);

            if (l->direct)
                ps_loader_take_direct(l, slot);
            else
                ps_loader_fill(l, slot);
            more = hand_out(l, slot);
        }
        first += (uint64_t)l->n_threads * l->group;
    }
    return NULL;
}

/* The reader's wait hook: the user gets what there is, and may stop us. */
static ps_result wait_input(void *context, ps_error *err)
{
    ps_loader *l = context;

    (void)pthread_cond_signal(&l->batch_ready);
    if (!ps_wait_input(ps_input_descriptor(l->reader->input), l->quit[0]))
        return ps_fail(err, PS_ERR_IO, "the loader was stopped");
    return PS_OK;
}

/* ---- Beginning and end ---- */

/* From 1 to `max`. */
static uint32_t within(uint64_t n, uint32_t max)
{
    if (n < 2 || max < 2)
        return 1;
    return n < max ? (uint32_t)n : max;
}

ps_result ps_loader_start(ps_loader *l, ps_error *err)
{
    const uint32_t read_ahead = l->options.buffers - l->options.keep;
    const ps_input *input = l->reader->input;
    const off_t here = lseek(ps_input_descriptor(input), 0, SEEK_CUR);
    ps_loader_thread *t = l->threads;
    uint32_t wanted;
    ps_result r;

    /* In a plain file all packs of which are ours, batches lie ready. */
    l->direct =
        l->options.ranks == 1 && here >= 0 && ps_input_can_skip(input);
    if (l->direct) {
        l->next_offset = l->likely_start = input->taken;
        l->input_start = (int64_t)here - (int64_t)input->left -
                         (int64_t)l->next_offset;
    }
    wanted = l->direct ? PS_LOADER_THREADS : 1;
    l->group = l->direct ? within(ps_loader_group(l->bytes),
                                  read_ahead / PS_LOADER_THREADS)
                         : 1;
    l->wake_batches =
        within(WAKE_BYTES / l->bytes / l->options.ranks, read_ahead / 2);
    r = ps_wakeup_pipe_open(l->quit, err);
    if (r != PS_OK)
        return r;

    ps_pack_reader_on_wait(l->reader, wait_input, l);
    /* The lock holds the threads back until all of them are counted. */
    (void)pthread_mutex_lock(&l->lock);
    for (; l->n_threads < wanted; l->n_threads++, t++) {
        *t = (ps_loader_thread){.loader = l, .i = l->n_threads};
        if (ps_thread_start(&t->id, run, t, NULL) != PS_OK)
            break;
    }
    (void)pthread_mutex_unlock(&l->lock);
    if (l->n_threads == 0)
        ps_pack_reader_on_wait(l->reader, NULL, NULL);
    return PS_OK;
}
