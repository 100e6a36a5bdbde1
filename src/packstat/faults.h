/*
 * faults.h - report the faults in a file as they are found.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_FAULTS_H
#define PACKSTAT_FAULTS_H

#include <stdint.h>

#include "cli/message.h"
#include "packstream.h"

typedef struct faults {
    const char *file; /* as given by the user; NULL: stdin */
    uint64_t count;   /* number of faults passed to faults_add */
    int status;       /* worst exit status so far */
} faults;

/* A pack, or the END of a stream. */
typedef struct fault_place {
    /* index of the pack; for END, index of the stream */
    uint64_t number;
    uint64_t offset; /* offset of the pack's block, in bytes; 0: END */
} fault_place;

/*
 * Reports "prog: FILE: pack 12 in the block at byte 4096: TEXT", or "prog:
 * FILE: END of stream 0: TEXT".
 */
void faults_add(faults *f, const fault_place *place, const char *format, ...)
    MESSAGE_PRINTF(3, 4);

/* Report an error that ends the reading of the file.  It is always printed. */
void faults_fatal(faults *f, const ps_error *err);
void faults_no_memory(faults *f);

/* Prints the number of faults that have not been printed. */
void faults_end(const faults *f);

/* The worse of two exit statuses; STATUS_DATA is the worst. */
int faults_worse(int a, int b);

#endif
