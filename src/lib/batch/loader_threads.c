/*
 * loader_threads.c - the loader's thread, which fills slots ahead.
 *
 * SPDX-License-Identifier: MIT
 *
 * A wakeup costs as much as reading several packs.  The user is therefore woken
 * only for `wake_batches` batches, or when the thread has to wait for input.  A
 * thread that waits for slots is woken once half of the slots that it can fill
 * are free.
 */

#include "batch/loader.h"

#include "base/error.h"
#include "base/thread.h"
#include "io/fd.h"

/* Size of the packs that wake the user, in bytes. */
#define WAKE_BYTES ((uint64_t)512 << 10)

/* Thread function: fills slots until the input ends or the loader is freed. */
static void *run(void *context)
{
    ps_loader *l = context;
    bool more = true;

    while (more) {
        ps_slot *slot;
        bool wake;

        (void)pthread_mutex_lock(&l->lock);
        while (!l->stop && l->filled == l->released + l->options.buffers) {
            l->full = true;
            (void)pthread_cond_wait(&l->slots_freed, &l->lock);
        }
        more = !l->stop;
        slot = &l->slots[l->filled % l->options.buffers];
        (void)pthread_mutex_unlock(&l->lock);
        if (!more)
            break;

        ps_loader_fill(l, slot);
        more = slot->result == PS_OK;
        (void)pthread_mutex_lock(&l->lock);
        l->filled++;
        wake = !more || l->filled - l->given >= l->wake_batches;
        (void)pthread_mutex_unlock(&l->lock);
        if (wake)
            (void)pthread_cond_signal(&l->batch_ready);
    }
    return NULL;
}

/*
 * Wait hook of the reader: wakes the user for the batches filled so far, then
 * waits for input or for ps_loader_free.
 */
static ps_result wait_input(void *context, ps_error *err)
{
    ps_loader *l = context;

    (void)pthread_cond_signal(&l->batch_ready);
    if (!ps_wait_input(ps_input_descriptor(l->reader->input), l->quit[0]))
        return ps_fail(err, PS_ERR_IO, "the loader was stopped");
    return PS_OK;
}

ps_result ps_loader_start(ps_loader *l, ps_error *err)
{
    const ps_loader_options *o = &l->options;
    const uint32_t most = (o->buffers - o->keep) / 2;
    const uint64_t batches =
        WAKE_BYTES / l->info.row_bytes / o->packs / o->ranks;
    const ps_result r = ps_wakeup_pipe_open(l->quit, err);

    if (r != PS_OK)
        return r;
    l->wake_batches = batches < most ? (uint32_t)batches : most;
    ps_pack_reader_on_wait(l->reader, wait_input, l);
    l->has_thread = ps_thread_start(&l->thread, run, l, NULL) == PS_OK;
    if (!l->has_thread)
        ps_pack_reader_on_wait(l->reader, NULL, NULL);
    return PS_OK;
}
