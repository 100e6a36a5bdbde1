/*
 * job.h - takes from an input what to pack and how, for targets that pack.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_FUZZ_JOB_H
#define TESTS_FUZZ_JOB_H

#include "fuzz.h"

/* A byte of a job's steps: a sequence, or one of these. */
enum {
    STEP_FLUSH = 248,
    STEP_DRAIN,
    STEP_PUSH,
    STEP_FLUSH_RECORD
};

/* Bits of job.bits that are not options. */
#define JOB_SKIPS 64u /* dropped sequences have no payload */

typedef struct job {
    ps_packer_options options;
    ps_schema schema;
    unsigned bits;
    unsigned manner; /* argument of feed() */
    input steps;
} job;

/* Takes the whole rest of the input: options, then one byte for each step. */
job take_job(input *in);

/* The length of a step's sequence, or 0. */
uint32_t job_length(const job *j, unsigned step);

/* The payload of a sequence, a function of its id; the caller frees it. */
unsigned char *job_payload(const job *j, uint64_t id, uint32_t n_tok,
                           size_t *size);

#endif
