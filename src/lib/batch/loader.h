/*
 * loader.h - a loader from inside the library: its buffers, and what fills
 * them.
 *
 * The room `batch` gives packs to trainers: as views, as arrays, in batches.
 * It reads packs with stream, and may use base, deal, io, format and stream.
 *
 * spans.h, view.c   a pack as the boundaries of its sequences, a ps_spans;
 *                   fields of packs as one array.
 * span_arrays.c     what follows from boundaries: positions, labels, weights.
 * loader.c          ps_loader_open, _next, _free: the side of the user.
 * loader_layout.c   checks the options, lays out a buffer.
 * loader_fill.c     reads a batch into its buffer and merges its boundaries.
 * loader_deal.c     deals the packs of all ranks by their costs.
 * loader_threads.c  the thread that fills buffers ahead of their use.
 *
 * A slot is a buffer and the batch in it.  The slots are a ring, in which
 * `released` <= `given` <= `filled`: the thread fills slots from `filled` on,
 * the user is given those from `given` on, and keeps those from `released` on.
 * Without a thread ps_loader_next fills a slot itself.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BATCH_LOADER_H
#define LIB_BATCH_LOADER_H

#include <pthread.h>

#include "format/pack.h"
#include "packstream.h"
#include "stream/pack_reader.h"

/* A buffer and the batch in it, or the result that comes in its place. */
typedef struct ps_slot {
    unsigned char *memory;
    ps_pack *heads;
    ps_batch batch;
    ps_result result;
    ps_error err;
    unsigned char mark[PS_PACK_MARK_BYTES]; /* after the batch */
} ps_slot;

/* A round whose packs are dealt: those of all ranks. */
typedef struct ps_loader_round {
    ps_deal *deal; /* NULL: packs are not dealt */
    unsigned char *rows;
    unsigned char *sequences; /* sequence rows, one pack after another... */
    size_t sequences_size;    /* ...bytes of room for them... */
    size_t sequences_used;    /* ...and of the packs so far */
    ps_pack *heads;
    uint64_t *costs;
    uint32_t *ranks; /* who gets each */
} ps_loader_round;

struct ps_loader {
    ps_pack_reader *reader;
    ps_pack_info info;
    ps_form form;
    ps_loader_options options; /* with defaults filled in */
    ps_loader_layout layout;
    uint32_t places; /* for sequences of a pack, in a buffer */
    ps_slot *slots; /* batch i is in slot i % options.buffers */
    ps_pack *heads; /* of all slots */
    unsigned char *own; /* memory of all slots, or NULL: the caller's */
    unsigned char mark[PS_PACK_MARK_BYTES]; /* after the last one given */
    bool ended; /* without a thread: slot `given` has a result */
    uint32_t wake_batches; /* so many are worth a wake-up of the user */
    bool has_thread;
    pthread_t thread;
    int quit[2]; /* a pipe; wakes the thread if it waits for input, to end */

    /* This and the reader are the thread's. */
    ps_loader_round round;

    /* The lock guards these. */
    pthread_mutex_t lock;
    pthread_cond_t batch_ready; /* for the user */
    pthread_cond_t slots_freed; /* for the thread */
    uint64_t filled;            /* slots with a batch, or the last result */
    uint64_t given;             /* batches that the user has got */
    uint64_t released;          /* batches that the user is done with */
    bool full;                  /* the thread waits for slots */
    bool stop;                  /* the loader is freed */
};

/* The most sequences that a pack may have in buffers for that view. */
uint32_t ps_loader_places(const ps_pack_info *info, ps_view view);

/* Checks the options and fills in the defaults.  As ps_loader_plan. */
ps_result ps_loader_settle(const ps_pack_info *info,
                           const ps_loader_options *options,
                           ps_loader_options *settled,
                           ps_loader_layout *layout, ps_error *err);

/* Reads the next batch into a slot; may take as long as the input does. */
void ps_loader_fill(ps_loader *loader, ps_slot *slot);

/* ---- Rounds that are dealt ---- */

/* Makes room for a round, if packs are to be dealt. */
ps_result ps_loader_open_round(ps_loader *loader, ps_error *err);
void ps_loader_free_round(ps_loader *loader);

/* Copies pack `i` of the round. */
ps_result ps_loader_keep(ps_loader *loader, uint64_t i, const ps_pack *pack,
                         ps_error *err);

/* Says in round.ranks who gets each of the `n` packs in round.heads. */
ps_result ps_loader_deal(ps_loader *loader, uint64_t n, ps_error *err);

/* ---- The thread ---- */

/* Without a thread, which is not a failure, the user fills. */
ps_result ps_loader_start(ps_loader *loader, ps_error *err);

#endif
