/*
 * job.h - something to pack and how, out of an input, for the targets that
 * pack.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_FUZZ_JOB_H
#define TESTS_FUZZ_JOB_H

#include "fuzz.h"

/* What comes in a byte of a job's steps: a sequence, or one of these. */
enum {
    STEP_FLUSH = 248,
    STEP_DRAIN,
    STEP_PUSH,
    STEP_FLUSH_RECORD
};

/* Of job.bits, what the options do not say. */
#define JOB_SKIPS 64u /* dropped sequences come without payload */

typedef struct job {
    ps_packer_options options;
    ps_schema schema;
    unsigned bits;
    unsigned manner; /* of feed() */
    input steps;
} job;

/* All that is left of the input: options, then a step a byte. */
job take_job(input *in);

/* The length of the sequence that a step stands for, or 0. */
uint32_t job_length(const job *j, unsigned step);

/* The payload of a sequence, a function of its id; to be freed. */
unsigned char *job_payload(const job *j, uint64_t id, uint32_t n_tok,
                           size_t *size);

#endif
