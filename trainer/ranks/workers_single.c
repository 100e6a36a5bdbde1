/*
 * workers_single.c - one rank, for builds without MPI.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ranks/workers.h"

#include <stdlib.h>

const char *tr_workers_open(tr_workers *w)
{
    *w = (tr_workers){.rank = 0, .ranks = 1};
    return tr_workers_launched() <= 1
               ? NULL
               : "started as one of several processes, but built without MPI";
}

void tr_workers_close(tr_workers *w)
{
    (void)w;
}

void tr_workers_sum_begin(const tr_workers *w, real *x, size_t n)
{
    (void)w;
    (void)x;
    (void)n;
}

void tr_workers_sum_end(const tr_workers *w)
{
    (void)w;
}

void tr_workers_sum(const tr_workers *w, double *x, int n)
{
    (void)w;
    (void)x;
    (void)n;
}

void tr_workers_copy(const tr_workers *w, void *x, size_t bytes)
{
    (void)w;
    (void)x;
    (void)bytes;
}

void tr_workers_send_first(const tr_workers *w, uint32_t from, void *x,
                           size_t bytes)
{
    (void)w;
    (void)from;
    (void)x;
    (void)bytes;
}

void tr_workers_abort(const tr_workers *w, int status)
{
    (void)w;
    exit(status);
}

tr_workers_verdict tr_workers_agree(const tr_workers *w, int status,
                                    uint64_t digest)
{
    (void)digest;
    return (tr_workers_verdict){.first = status != 0 ? w->rank : w->ranks,
                                .status = status,
                                .same = true};
}

void tr_workers_gather(const tr_workers *w, void *all, size_t bytes)
{
    (void)w;
    (void)all;
    (void)bytes;
}

void tr_workers_gather_parts(const tr_workers *w, void *all,
                             const tr_workers_parts *parts, size_t item_bytes)
{
    (void)w;
    (void)all;
    (void)parts;
    (void)item_bytes;
}

void tr_workers_trade(const tr_workers *w, const int32_t *from,
                      const tr_workers_parts *sent, int32_t *to,
                      const tr_workers_parts *got)
{
    (void)w;
    (void)from;
    (void)sent;
    (void)to;
    (void)got;
}
