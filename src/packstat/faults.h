/*
 * faults.h - what is wrong with one file, told as it is found.
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
    uint64_t count;   /* of those that may be left untold */
    int status;       /* the worst exit status so far */
} faults;

/* A record of the packs, and the byte where it starts. */
typedef struct fault_place {
    uint64_t record;
    uint64_t offset;
} fault_place;

/* "prog: FILE: record 12 at byte 40960: TEXT". */
void faults_add(faults *f, uint64_t record, uint64_t offset,
                const char *format, ...) MESSAGE_PRINTF(4, 5);

/* A failure after which the file is read no further: always told. */
void faults_fatal(faults *f, const ps_error *err);

/* Tells how many faults there were beyond those that were told. */
void faults_end(const faults *f);

/* Fills `err` with PS_ERR_MEMORY and returns that. */
ps_result faults_no_memory(ps_error *err);

/* The worse of two exit statuses: bad input is worse than a failure. */
int faults_worse(int a, int b);

#endif
