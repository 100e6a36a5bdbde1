/*
 * loader.h - internals of the loader: its buffers and how they are filled.
 *
 * SPDX-License-Identifier: MIT
 *
 * This module, batch, provides packs to trainers as views, arrays and batches.
 * It depends on the modules base, deal, io, format and stream.
 *
 *   spans.h, view.c   a pack as a ps_spans, the boundaries of its sequences;
 *                     fields of packs as arrays
 *   span_arrays.c     arrays of positions, labels and weights from boundaries
 *   loader.c          ps_loader_open, _next, _free: the user's side
 *   loader_layout.c   check options, lay out a buffer
 *   loader_fill.c     read a batch into its buffer and merge its boundaries
 *   loader_deal.c     assign the packs of a round to ranks by cost
 *   loader_threads.c  the thread that fills buffers ahead
 *
 * A slot is a buffer with its batch.  The slots form a ring, with `released` <=
 * `given` <= `filled`.  The thread fills slots starting at `filled`.  The user
 * gets slots starting at `given` and can use slots starting at `released`.
 * Without a thread, ps_loader_next fills the slots.
 */

#ifndef LIB_BATCH_LOADER_H
#define LIB_BATCH_LOADER_H

#include <pthread.h>

#include "format/pack.h"
#include "packstream.h"
#include "stream/pack_reader.h"

/* A buffer with its batch, or with the result to return instead. */
typedef struct ps_slot {
    unsigned char *memory; /* layout.bytes bytes */
    ps_pack *heads;
    ps_batch batch;
    ps_result result;
    ps_error err;
    unsigned char mark[PS_PACK_MARK_BYTES]; /* position after the batch */
} ps_slot;

/* All packs of a round, used only if packs are assigned by cost. */
typedef struct ps_loader_round {
    ps_deal *deal;            /* NULL: packs go to ranks in turn */
    unsigned char *rows;      /* rows of all packs, info.row_bytes apart */
    unsigned char *sequences; /* sequence rows, pack after pack */
    size_t sequences_size;    /* size of `sequences`, bytes */
    size_t sequences_used;    /* bytes of `sequences` in use */
    ps_pack *heads;
    uint64_t *costs; /* cost of each pack */
    uint32_t *ranks; /* rank of each pack */
} ps_loader_round;

struct ps_loader {
    ps_pack_reader *reader;
    ps_pack_info info;
    ps_form form;
    ps_loader_options options; /* with defaults filled in */
    ps_loader_layout layout;
    uint32_t places; /* maximum number of sequences per pack in a buffer */
    ps_slot *slots; /* batch i is in slot i % options.buffers */
    ps_pack *heads; /* heads of all slots; options.packs each */
    unsigned char *own; /* memory of all slots; NULL: the caller provides it */
    unsigned char mark[PS_PACK_MARK_BYTES]; /* position after the last batch
                                               returned */
    bool ended; /* without a thread: slot `given` has the final result */
    uint32_t wake_batches; /* number of filled batches that wakes the user */
    bool has_thread;
    pthread_t thread;
    int quit[2]; /* pipe that stops the thread when it waits for input */

    /* Owned by the thread, like the reader. */
    ps_loader_round round;

    /* `lock` guards the members below. */
    pthread_mutex_t lock;
    pthread_cond_t batch_ready; /* wakes the user */
    pthread_cond_t slots_freed; /* wakes the thread */
    uint64_t filled;            /* number of slots that have been filled */
    uint64_t given;             /* number of batches returned to the user */
    uint64_t released;          /* number of batches that are no longer valid */
    bool full;                  /* the thread waits for slots */
    bool stop;                  /* ps_loader_free was called */
};

/* Maximum number of sequences per pack in buffers for this view. */
uint32_t ps_loader_places(const ps_pack_info *info, ps_view view);

/* Checks the options and fills in defaults.  Results as ps_loader_plan. */
ps_result ps_loader_settle(const ps_pack_info *info,
                           const ps_loader_options *options,
                           ps_loader_options *settled,
                           ps_loader_layout *layout, ps_error *err);

/* Reads the next batch into a slot.  Blocks while the input blocks. */
void ps_loader_fill(ps_loader *loader, ps_slot *slot);

/* ---- Rounds assigned by cost ---- */

/* Allocates the round if packs are assigned by cost. */
ps_result ps_loader_open_round(ps_loader *loader, ps_error *err);
void ps_loader_free_round(ps_loader *loader);

/* Copies pack `i` of the round. */
ps_result ps_loader_keep(ps_loader *loader, uint64_t i, const ps_pack *pack,
                         ps_error *err);

/* Sets round.ranks for the first `n` packs of round.heads. */
ps_result ps_loader_deal(ps_loader *loader, uint64_t n, ps_error *err);

/* ---- The thread ---- */

/* Starts the thread.  If it cannot be started, the user fills the slots. */
ps_result ps_loader_start(ps_loader *loader, ps_error *err);

#endif
