/*
 * workers_single.c - the only rank, where there is no MPI.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ranks/workers.h"

#include <stdlib.h>

const char *workers_open(workers *w)
{
    *w = (workers){.rank = 0, .ranks = 1};
    return workers_launched() <= 1
               ? NULL
               : "one of several processes, and built without MPI";
}

void workers_close(workers *w)
{
    (void)w;
}

void workers_sum_begin(const workers *w, real *x, size_t n)
{
    (void)w;
    (void)x;
    (void)n;
}

void workers_sum_end(const workers *w)
{
    (void)w;
}

void workers_sum(const workers *w, double *x, int n)
{
    (void)w;
    (void)x;
    (void)n;
}

void workers_copy(const workers *w, void *x, size_t bytes)
{
    (void)w;
    (void)x;
    (void)bytes;
}

void workers_abort(const workers *w, int status)
{
    (void)w;
    exit(status);
}

workers_verdict workers_agree(const workers *w, int status, uint64_t digest)
{
    (void)digest;
    return (workers_verdict){.first = status != 0 ? w->rank : w->ranks,
                             .status = status,
                             .same = true};
}

void workers_gather(const workers *w, void *all, size_t bytes)
{
    (void)w;
    (void)all;
    (void)bytes;
}

void workers_gather_parts(const workers *w, void *all,
                          const workers_parts *parts, size_t item_bytes)
{
    (void)w;
    (void)all;
    (void)parts;
    (void)item_bytes;
}

void workers_trade(const workers *w, const int32_t *from,
                   const workers_parts *sent, int32_t *to,
                   const workers_parts *got)
{
    (void)w;
    (void)from;
    (void)sent;
    (void)to;
    (void)got;
}
