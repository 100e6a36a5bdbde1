/*
 * faults.h - what is wrong with one file, printed as it is found.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_FAULTS_H
#define PACKSTAT_FAULTS_H

#include <stdint.h>

#include "cli/message.h"
#include "packstream.h"

typedef struct faults {
    const char *file; /* as the user named it; NULL is stdin */
    uint64_t count;   /* of those that faults_add took */
    int status;       /* the worst exit status so far */
} faults;

/* A pack, or the END of a stream. */
typedef struct fault_place {
    uint64_t number; /* index of the pack, or which of joined streams */
    uint64_t offset; /* of the pack's block, bytes; 0: it is END */
} fault_place;

/*
 * "prog: FILE: pack 12 in the block at byte 4096: TEXT", or
 * "prog: FILE: END of stream 0: TEXT".
 */
void faults_add(faults *f, const fault_place *place, const char *format, ...)
    MESSAGE_PRINTF(3, 4);

/* A failure after which the file is read no further: always printed. */
void faults_fatal(faults *f, const ps_error *err);
void faults_no_memory(faults *f);

/* Prints how many faults there were beyond those that were printed. */
void faults_end(const faults *f);

/* The worse of two exit statuses: bad input is worse than a failure. */
int faults_worse(int a, int b);

#endif
