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
 * loader_fill.c     reads a batch into its buffer, through the reader or
 *                   straight from a file, and merges its boundaries.
 * loader_deal.c     deals the packs of all ranks by their costs.
 * loader_threads.c  threads that fill buffers ahead of their use.
 *
 * A slot is a buffer and the batch in it.  The slots are a ring, in which
 * `released` <= `given` <= `filled`: threads fill slots from `filled` on, the
 * user is given those from `given` on, and keeps the ones behind `released`.
 * Without a thread ps_loader_next fills a slot itself.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BATCH_LOADER_H
#define LIB_BATCH_LOADER_H

#include <pthread.h>

#include "format/pack_record.h"
#include "packstream.h"
#include "stream/pack_reader.h"

/* Threads that fill buffers, where they can read at several places. */
#define PS_LOADER_THREADS 2

/* A buffer and the batch in it, or the result that comes in its place. */
typedef struct ps_slot {
    unsigned char *memory;
    ps_pack *heads;
    ps_batch batch;
    ps_result result;
    ps_error err;
    unsigned char mark[PS_PACK_MARK_BYTES]; /* behind the batch */
    uint64_t offset;  /* direct: where in the input it is read */
    bool must_reread; /* direct: not all of what was there are packs */
} ps_slot;

typedef struct ps_loader_thread {
    ps_loader *loader;
    uint32_t i; /* of those there are */
    pthread_t id;
} ps_loader_thread;

/* A round whose packs are dealt: those of all ranks. */
typedef struct ps_loader_round {
    ps_deal *deal; /* NULL: packs are not dealt */
    unsigned char *records;
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
    uint64_t bytes; /* of the records of a batch */
    ps_slot *slots; /* batch i is in slot i % options.buffers */
    ps_pack *heads; /* of all slots */
    unsigned char *own; /* memory of all slots, or NULL: the caller's */
    unsigned char mark[PS_PACK_MARK_BYTES]; /* behind the last one given */
    bool ended;  /* without a thread: slot `given` has a result */
    bool direct; /* batches are read where they lie in a file... */
    int64_t input_start;   /* ...in which the input starts here */
    uint32_t wake_batches; /* so many are worth a wake-up of the user */
    uint32_t group;        /* batches that a thread fills at a time */
    uint32_t n_threads;
    ps_loader_thread threads[PS_LOADER_THREADS];
    int quit[2]; /* a pipe; wakes a thread that waits for input, to end */

    /* These, and the reader, are the thread's whose turn it is. */
    uint64_t next_offset; /* direct: of the next batch in the input */
    ps_loader_round round;

    /* The lock guards these. */
    pthread_mutex_t lock;
    pthread_cond_t batch_ready; /* for the user */
    pthread_cond_t slots_freed; /* for threads that want slots... */
    pthread_cond_t turn_passed; /* ...and those whose slots are filled */
    uint64_t likely_start; /* direct: batch i is at this + i * bytes, likely */
    uint64_t filled;       /* slots with a batch, or the last result */
    uint64_t given;        /* batches that the user has got */
    uint64_t released;     /* batches that the user is done with */
    bool full;             /* threads wait for slots */
    bool stop;             /* the loader is freed, or all is read */
};

/* Checks the options and fills in the defaults.  As ps_loader_plan. */
ps_result ps_loader_settle(const ps_pack_info *info,
                           const ps_loader_options *options,
                           ps_loader_options *settled,
                           ps_loader_layout *layout, ps_error *err);

/* How many batches of so many bytes are read by one thread at a time. */
uint32_t ps_loader_group(uint64_t bytes);

/* ---- Filling, by the thread whose turn it is ---- */

/* Reads the next batch into a slot; may take as long as the input does. */
void ps_loader_fill(ps_loader *loader, ps_slot *slot);

/* ---- Rounds that are dealt ---- */

/* Makes room for a round, if packs are to be dealt. */
ps_result ps_loader_open_round(ps_loader *loader, ps_error *err);
void ps_loader_free_round(ps_loader *loader);

/* Copies pack `i` of the round. */
ps_result ps_loader_keep(ps_loader *loader, uint64_t i, const ps_pack *pack,
                         ps_error *err);

/* Says in round.ranks who gets each of the `n` packs that were kept. */
ps_result ps_loader_deal(ps_loader *loader, uint64_t n, ps_error *err);

/* ---- Batches that are read where they lie in a file ---- */

/*
 * Reads the packs at slot->offset into a slot and checks each by itself.  Any
 * thread may do that, at any time.
 */
void ps_loader_read_direct(const ps_loader *loader, ps_slot *slot);

/*
 * Makes them the next batch.  If they must be read again, or are not the next
 * packs of the stream, fills the slot as ps_loader_fill does.
 */
void ps_loader_take_direct(ps_loader *loader, ps_slot *slot);

/* ---- Threads ---- */

/* Without a thread, which is no failure, the user fills. */
ps_result ps_loader_start(ps_loader *loader, ps_error *err);

#endif
