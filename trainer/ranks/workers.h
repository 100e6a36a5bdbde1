/*
 * workers.h - processes (ranks) that train one model, connected by MPI.
 *
 * Each rank has the whole model and computes the gradients of its packs in
 * every batch.  Gradients are summed over all ranks, so all ranks make the same
 * update.  Without mpirun there is one rank, and these functions do nothing.
 *
 * All ranks must make the same calls in the same order.  If MPI itself fails,
 * it ends all ranks with a message.
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
    uint32_t rank;      /* this process, below `ranks` */
    uint32_t ranks;     /* at least 1 */
    uint32_t local;     /* number of lower ranks on this machine */
    tr_workers_sums *sums; /* sums in progress */
    tr_workers_second *second; /* for the second thread */
    bool has_second;        /* true if MPI supports calls from two threads */
} tr_workers;

/* Number of processes that the launcher reports, or 0 without a launcher. */
long tr_workers_launched(void);

/* Returns NULL, or an error message. */
const char *tr_workers_open(tr_workers *w);

/* All ranks must call it. */
void tr_workers_close(tr_workers *w);

/*
 * sum_begin starts to sum x[i] over all ranks, in place.  It also makes
 * progress on earlier sums, even if n is 0.  sum_end waits for all sums.
 */
void tr_workers_sum_begin(const tr_workers *w, real *x, size_t n);
void tr_workers_sum_end(const tr_workers *w);

/* Sums n numbers over all ranks and waits.  Intended for small n. */
void tr_workers_sum(const tr_workers *w, double *x, int n);

/* Copies `x` from rank 0 to all ranks. */
void tr_workers_copy(const tr_workers *w, void *x, size_t bytes);

/* Copies `x` from rank `from` to rank 0.  Other ranks do nothing. */
void tr_workers_send_first(const tr_workers *w, uint32_t from, void *x,
                           size_t bytes);

/* The outcome of tr_workers_agree. */
typedef struct tr_workers_verdict {
    uint32_t first; /* lowest rank that failed, or `ranks` if none has */
    int status;     /* exit status of `first`, or 0 */
    bool same;      /* true if all ranks have the same digest */
} tr_workers_verdict;

/* Ends all ranks with this status, even ranks that wait for other ranks. */
void tr_workers_abort(const tr_workers *w, int status);

/* Compares the exit statuses (0 or more) and the digests of all ranks. */
tr_workers_verdict tr_workers_agree(const tr_workers *w, int status,
                                    uint64_t digest);

/*
 * Only a rank's second thread may call these functions, which sleep while they
 * wait.
 *
 * Gathers `bytes` from each rank, in rank order.  This rank's bytes must
 * already be in place.
 */
void tr_workers_gather(const tr_workers *w, void *all, size_t bytes);

/*
 * The number of items sent to or received from each rank, and the index of the
 * first item.  All are at least 0, and each begin + count is below 2^31.
 */
typedef struct tr_workers_parts {
    int *count;
    int *begin;
} tr_workers_parts;

/* Gathers parts->count[i] items from rank i.  Our items must be in place. */
void tr_workers_gather_parts(const tr_workers *w, void *all,
                             const tr_workers_parts *parts, size_t item_bytes);

/* Sends a part of `from` to each rank, and receives a part from each. */
void tr_workers_trade(const tr_workers *w, const int32_t *from,
                      const tr_workers_parts *sent, int32_t *to,
                      const tr_workers_parts *got);

#ifdef __cplusplus
}
#endif

#endif /* TR_RANKS_WORKERS_H */
