/*
 * workers.h - processes that train one model together, through MPI.
 *
 * Each of them, a rank, has the whole model and learns from its share of every
 * batch.  Gradients are summed over all ranks, so that all make the same step.
 * What mpirun did not start, or with one rank, is alone: then nothing here does
 * anything.
 *
 * All ranks have to make the same calls in the same order.  A failure of MPI
 * itself ends all ranks, with a message of MPI's.
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
    tr_workers_sums *sums; /* those that were begun; NULL: there is one rank */
    tr_workers_second *second; /* what the second threads talk by... */
    bool has_second;        /* ...if MPI lets two threads talk */
} tr_workers;

/* How many processes a launcher says that it has started; 0: there is none. */
long tr_workers_launched(void);

/* NULL, or why not. */
const char *tr_workers_open(tr_workers *w);

/* All of them end together. */
void tr_workers_close(tr_workers *w);

/*
 * Begins to sum x[i] over all ranks, in place, and gets on with the sums that
 * were begun before, also with n of 0; waits until all of them are made.
 */
void tr_workers_sum_begin(const tr_workers *w, real *x, size_t n);
void tr_workers_sum_end(const tr_workers *w);

/* The same of a few numbers, and at once. */
void tr_workers_sum(const tr_workers *w, double *x, int n);

/* All ranks get what rank 0 has. */
void tr_workers_copy(const tr_workers *w, void *x, size_t bytes);

/* What all ranks say, put together. */
typedef struct tr_workers_verdict {
    uint32_t first; /* the lowest rank that failed; ranks: none did */
    int status;     /* its status, or 0 */
    bool same;      /* all have the same digest */
} tr_workers_verdict;

/* Ends all ranks, which wait for what never comes, with that status. */
void tr_workers_abort(const tr_workers *w, int status);

/* A status of 0 is no failure, and none is below. */
tr_workers_verdict tr_workers_agree(const tr_workers *w, int status,
                                    uint64_t digest);

/*
 * For the second threads alone, which take no processor while they wait.
 *
 * Gathers `bytes` of each rank, in their order; ours are there already.
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

/* Gathers so many items of each rank; ours are there already. */
void tr_workers_gather_parts(const tr_workers *w, void *all,
                             const tr_workers_parts *parts, size_t item_bytes);

/* Sends each rank its part of `from`, and gets one of each. */
void tr_workers_trade(const tr_workers *w, const int32_t *from,
                      const tr_workers_parts *sent, int32_t *to,
                      const tr_workers_parts *got);

#ifdef __cplusplus
}
#endif

#endif /* TR_RANKS_WORKERS_H */
