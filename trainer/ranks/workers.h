/*
 * workers.h - processes (ranks) that train one model, connected by MPI.
 *
 * Each rank has the whole model and learns from its packs of every batch.
 * Gradients are summed over all ranks, so that all take the same step.  A
 * process that mpirun did not start is the only rank; then these functions do
 * nothing.
 *
 * All ranks have to make the same calls in the same order.  If MPI itself
 * fails, it ends all ranks with a message.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_RANKS_WORKERS_H
#define TR_RANKS_WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/scalar.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tr_workers_sums tr_workers_sums;
typedef struct tr_workers_second tr_workers_second;

typedef struct tr_workers {
    uint32_t rank;      /* ours, below... */
    uint32_t ranks;     /* ...this number, from 1 */
    uint32_t local;     /* how many lower ranks are on our machine */
    tr_workers_sums *sums; /* sums in progress; NULL: there is one rank */
    tr_workers_second *second; /* what the second threads talk by... */
    bool has_second;        /* ...if MPI lets two threads talk */
} tr_workers;

/* The number of processes that a launcher reports; 0: no launcher. */
long tr_workers_launched(void);

/* Returns NULL, or the reason that it failed. */
const char *tr_workers_open(tr_workers *w);

/* All of them end together. */
void tr_workers_close(tr_workers *w);

/*
 * Starts to sum x[i] over all ranks, in place, and makes progress on the sums
 * in progress, even if n is 0; end waits for all of them.
 */
void tr_workers_sum_begin(const tr_workers *w, real *x, size_t n);
void tr_workers_sum_end(const tr_workers *w);

/* Sums a few numbers, and waits. */
void tr_workers_sum(const tr_workers *w, double *x, int n);

/* Copies `x` from rank 0 to all ranks. */
void tr_workers_copy(const tr_workers *w, void *x, size_t bytes);

/* The result of an agreement. */
typedef struct tr_workers_verdict {
    uint32_t first; /* the lowest rank that failed; ranks: none did */
    int status;     /* its status, or 0 */
    bool same;      /* all have the same digest */
} tr_workers_verdict;

/* Ends all ranks with this status, even those that wait for another. */
void tr_workers_abort(const tr_workers *w, int status);

/* Collects an exit status, 0 or more, and a digest from each rank. */
tr_workers_verdict tr_workers_agree(const tr_workers *w, int status,
                                    uint64_t digest);

/*
 * The functions below are for the second threads alone; they sleep while they
 * wait.
 *
 * Gathers `bytes` of each rank, in the order of ranks; ours are in place.
 */
void tr_workers_gather(const tr_workers *w, void *all, size_t bytes);

/*
 * How many numbers go to each rank, or come from it, and where they begin.  No
 * number is below 0, and all that begin and end do so below 2^31.
 */
typedef struct tr_workers_parts {
    int *count;
    int *begin;
} tr_workers_parts;

/* Gathers parts->count items of each rank; ours are in place. */
void tr_workers_gather_parts(const tr_workers *w, void *all,
                             const tr_workers_parts *parts, size_t item_bytes);

/* Sends each rank its part of `from` and receives one from each. */
void tr_workers_trade(const tr_workers *w, const int32_t *from,
                      const tr_workers_parts *sent, int32_t *to,
                      const tr_workers_parts *got);

#ifdef __cplusplus
}
#endif

#endif /* TR_RANKS_WORKERS_H */
