/*
 * mpi-faults.c - an MPI that fails on rank 1; for LD_PRELOAD.
 *
 * MPI_FAULT selects the failure:
 *
 *   level   MPI supports only serialized threads, in all ranks
 *   offer   rank 1 offers a million packs, once
 *   table   its first pack has 1000 tokens
 *   trade   a bit of the data that it sends is flipped
 *   memory  its second thread can no longer allocate, once ranks have gathered
 *           or traded MPI_FAULT_AT times: once to learn about their packs, and
 *           four times for each exchange
 *
 * SPDX-License-Identifier: MIT
 */
/* For dladdr. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "preload.h"

/* Offsets of an offer's packs, and of the tokens in a row of the table. */
#define OFFER_PACKS 16
#define ROW_TOKENS 4

static int is_ours(const char *what, MPI_Comm comm)
{
    const char *fault = getenv("MPI_FAULT");
    int rank;

    (void)MPI_Comm_rank(comm, &rank);
    return rank == 1 && fault != NULL && strcmp(fault, what) == 0;
}

static pthread_t first; /* the main thread */

int MPI_Init_thread(int *argc, char ***argv, int wanted, int *level)
{
    const char *fault = getenv("MPI_FAULT");
    const int result = PMPI_Init_thread(argc, argv, wanted, level);

    first = pthread_self();
    if (fault != NULL && strcmp(fault, "level") == 0)
        *level = MPI_THREAD_SERIALIZED;
    return result;
}

static unsigned long parts; /* exchanges begun */

int MPI_Iallgather(const void *from, int n_from, MPI_Datatype type_from,
                   void *to, int n, MPI_Datatype type, MPI_Comm comm,
                   MPI_Request *request)
{
    const uint64_t packs = 1000000;

    parts++;
    if (is_ours("offer", comm) && parts == 2)
        memcpy((char *)to + n + OFFER_PACKS, &packs, sizeof packs);
    return PMPI_Iallgather(from, n_from, type_from, to, n, type, comm,
                           request);
}

int MPI_Iallgatherv(const void *from, int n_from, MPI_Datatype type_from,
                    void *to, const int *n, const int *begin,
                    MPI_Datatype type, MPI_Comm comm, MPI_Request *request)
{
    const uint32_t tokens = 1000;
    int bytes;

    parts++;
    (void)MPI_Type_size(type, &bytes);
    if (is_ours("table", comm))
        memcpy((char *)to + (size_t)begin[1] * (size_t)bytes + ROW_TOKENS,
               &tokens, sizeof tokens);
    return PMPI_Iallgatherv(from, n_from, type_from, to, n, begin, type, comm,
                            request);
}

int MPI_Ialltoallv(const void *from, const int *n_from, const int *begin_from,
                   MPI_Datatype type_from, void *to, const int *n,
                   const int *begin, MPI_Datatype type, MPI_Comm comm,
                   MPI_Request *request)
{
    static unsigned char changed[1 << 20];
    const size_t bytes =
        ((size_t)begin_from[1] + (size_t)n_from[1]) * sizeof(int32_t);

    parts++;
    if (is_ours("trade", comm) && bytes <= sizeof changed) {
        memcpy(changed, from, bytes);
        changed[0] ^= 1;
        from = changed;
    }
    return PMPI_Ialltoallv(from, n_from, begin_from, type_from, to, n, begin,
                           type, comm, request);
}

/* True if the address is in the program itself, not in a library. */
static bool is_program(void *address)
{
    const uintptr_t entry = (uintptr_t)getauxval(AT_ENTRY);
    Dl_info at, program;
    void *begin;

    memcpy(&begin, &entry, sizeof begin);
    return dladdr(address, &at) != 0 && dladdr(begin, &program) != 0 &&
           at.dli_fbase == program.dli_fbase;
}

/* MPI's own allocations also end up here. */
void *realloc(void *block, size_t n)
{
    const char *const at = getenv("MPI_FAULT_AT");

    REAL(realloc, void *, void *, size_t);
    if (at != NULL && parts >= strtoul(at, NULL, 10) &&
        !pthread_equal(pthread_self(), first) &&
        is_program(__builtin_return_address(0)) &&
        is_ours("memory", MPI_COMM_WORLD))
        return NULL;
    return real(block, n);
}
