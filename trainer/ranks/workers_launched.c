/*
 * workers_launched.c - the number of processes that a launcher started.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

#include "ranks/workers.h"

long tr_workers_launched(void)
{
    /* Set by Open MPI, MPICH and Slurm. */
    const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                 "SLURM_STEP_NUM_TASKS"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *const value = getenv(names[i]);

        if (value != NULL)
            return strtol(value, NULL, 10);
    }
    return 0;
}
