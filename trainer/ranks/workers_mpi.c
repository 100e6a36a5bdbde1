/*
 * workers_mpi.c - ranks connected by MPI.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ranks/workers.h"

#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#define PENDING_MAX 64              /* maximum concurrent sums */
#define PIECE_MAX ((size_t)1 << 28) /* numbers per sum, bytes per copy */

#ifdef TR_DOUBLE
#define MPI_REAL_TYPE MPI_DOUBLE
#else
#define MPI_REAL_TYPE MPI_FLOAT
#endif

struct tr_workers_sums {
    MPI_Request list[PENDING_MAX];
    int n;
};

struct tr_workers_second {
    MPI_Comm ranks; /* duplicate, to separate the messages */
};

/* Makes all collective calls before any call that can fail on a single rank. */
static tr_workers_second *open_second(void)
{
    tr_workers_second *second;
    MPI_Comm ranks;

    (void)MPI_Comm_dup(MPI_COMM_WORLD, &ranks);
    second = calloc(1, sizeof *second);
    if (second != NULL)
        second->ranks = ranks;
    return second;
}

static uint32_t local_rank(void)
{
    MPI_Comm machine;
    int rank;

    (void)MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
                              MPI_INFO_NULL, &machine);
    (void)MPI_Comm_rank(machine, &rank);
    (void)MPI_Comm_free(&machine);
    return (uint32_t)rank;
}

const char *tr_workers_open(tr_workers *w)
{
    int rank = 0, ranks = 1, level;

    *w = (tr_workers){.rank = 0, .ranks = 1};
    /* Without mpirun, MPI_Init would start a helper process. */
    if (tr_workers_launched() == 0 && getenv("PMIX_RANK") == NULL)
        return NULL;
    (void)MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks == 1 && tr_workers_launched() > 1)
        return "started as one of several processes, which this MPI does not "
               "connect";
    *w = (tr_workers){.rank = (uint32_t)rank,
                      .ranks = (uint32_t)ranks,
                      .local = local_rank(),
                      .sums = calloc(1, sizeof *w->sums)};
    w->second = ranks > 1 ? open_second() : NULL;
    w->has_second = level == MPI_THREAD_MULTIPLE;
    return w->sums != NULL && (ranks == 1 || w->second != NULL)
               ? NULL : "no memory";
}

static bool is_open(void)
{
    int is = 0, was = 0;

    (void)MPI_Initialized(&is);
    (void)MPI_Finalized(&was);
    return is && !was;
}

void tr_workers_close(tr_workers *w)
{
    if (is_open() && w->second != NULL)
        (void)MPI_Comm_free(&w->second->ranks);
    if (is_open())
        (void)MPI_Finalize();
    free(w->second);
    w->second = NULL;
    free(w->sums);
    w->sums = NULL;
}

void tr_workers_sum_begin(const tr_workers *w, real *x, size_t n)
{
    tr_workers_sums *const sums = w->sums;
    int all;

    if (w->ranks == 1)
        return;
    while (n > 0) {
        const size_t m = n < PIECE_MAX ? n : PIECE_MAX;

        if (sums->n == PENDING_MAX)
            tr_workers_sum_end(w);
        (void)MPI_Iallreduce(MPI_IN_PLACE, x, (int)m, MPI_REAL_TYPE, MPI_SUM,
                             MPI_COMM_WORLD, &sums->list[sums->n++]);
        x += m;
        n -= m;
    }
    /* Open MPI makes progress only during calls of its functions. */
    (void)MPI_Testall(sums->n, sums->list, &all, MPI_STATUSES_IGNORE);
}

void tr_workers_sum_end(const tr_workers *w)
{
    if (w->ranks == 1)
        return;
    (void)MPI_Waitall(w->sums->n, w->sums->list, MPI_STATUSES_IGNORE);
    w->sums->n = 0;
}

void tr_workers_sum(const tr_workers *w, double *x, int n)
{
    if (w->ranks > 1)
        (void)MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE, MPI_SUM,
                            MPI_COMM_WORLD);
}

void tr_workers_copy(const tr_workers *w, void *x, size_t bytes)
{
    unsigned char *at = x;

    while (w->ranks > 1 && bytes > 0) {
        const size_t m = bytes < PIECE_MAX ? bytes : PIECE_MAX;

        (void)MPI_Bcast(at, (int)m, MPI_BYTE, 0, MPI_COMM_WORLD);
        at += m;
        bytes -= m;
    }
}

void tr_workers_send_first(const tr_workers *w, uint32_t from, void *x,
                           size_t bytes)
{
    unsigned char *at = x;

    while (from > 0 && bytes > 0) {
        const size_t m = bytes < PIECE_MAX ? bytes : PIECE_MAX;

        if (w->rank == from)
            (void)MPI_Send(at, (int)m, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        else if (w->rank == 0)
            (void)MPI_Recv(at, (int)m, MPI_BYTE, (int)from, 0, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE);
        at += m;
        bytes -= m;
    }
}

/*
 * Rank and status are packed into one number, so that a minimum finds both.
 * All digests are equal if their minimum and maximum are equal; the maximum is
 * the complement of the smallest complement.
 */
tr_workers_verdict tr_workers_agree(const tr_workers *w, int status,
                                    uint64_t digest)
{
    const uint64_t first = status != 0 ? w->rank : w->ranks;
    uint64_t least[3] = {first << 32 | (uint32_t)status, digest, ~digest};

    if (w->ranks > 1)
        (void)MPI_Allreduce(MPI_IN_PLACE, least, 3, MPI_UINT64_T, MPI_MIN,
                            MPI_COMM_WORLD);
    return (tr_workers_verdict){.first = (uint32_t)(least[0] >> 32),
                                .status = (int)(least[0] & UINT32_MAX),
                                .same = least[1] == ~least[2]};
}

void tr_workers_abort(const tr_workers *w, int status)
{
    if (w->ranks > 1)
        (void)MPI_Abort(MPI_COMM_WORLD, status);
    exit(status);
}

/* ---- Second threads ---- */

#define LOOKS 20      /* polls before the first sleep */
#define NAP 50000     /* sleep, in nanoseconds */

/*
 * Polls and sleeps, because MPI_Wait would spin and slow down the first thread.
 */
static void wait_for(MPI_Request *request)
{
    const struct timespec nap = {.tv_nsec = NAP};
    int done = 0;

    for (int looks = 0; !done; looks++) {
        (void)MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (!done && looks < LOOKS)
            (void)sched_yield();
        else if (!done)
            (void)nanosleep(&nap, NULL);
    }
}

void tr_workers_gather(const tr_workers *w, void *all, size_t bytes)
{
    MPI_Request request;

    (void)MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, (int)bytes,
                         MPI_BYTE, w->second->ranks, &request);
    wait_for(&request);
}

void tr_workers_gather_parts(const tr_workers *w, void *all,
                             const tr_workers_parts *parts, size_t item_bytes)
{
    MPI_Request request;
    MPI_Datatype item;

    (void)MPI_Type_contiguous((int)item_bytes, MPI_BYTE, &item);
    (void)MPI_Type_commit(&item);
    (void)MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all,
                          parts->count, parts->begin, item, w->second->ranks,
                          &request);
    wait_for(&request);
    (void)MPI_Type_free(&item);
}

void tr_workers_trade(const tr_workers *w, const int32_t *from,
                      const tr_workers_parts *sent, int32_t *to,
                      const tr_workers_parts *got)
{
    MPI_Request request;

    (void)MPI_Ialltoallv(from, sent->count, sent->begin, MPI_INT32_T, to,
                         got->count, got->begin, MPI_INT32_T,
                         w->second->ranks, &request);
    wait_for(&request);
}
