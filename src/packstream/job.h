/*
 * job.h - the one job of packstream: records in, packs out.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_JOB_H
#define PACKSTREAM_JOB_H

#include "cli/progress.h"
#include "packstream/conf.h"
#include "packstream/rejects.h"

typedef struct job {
    const conf *conf;
    int next_name; /* of conf->names, to be opened next */
    const char *input;
    int in;
    uint32_t writers; /* threads that compress or write */
    bool reads_ahead;
    int out;
    ps_token_reader *reader;
    ps_packer *packer;
    rejects rejects;
    progress progress;
    uint64_t records;   /* put so far */
    bool output_failed; /* nothing more can be written */
} job;

/*
 * The steps, each giving an exit status after a message; a step must follow
 * the success of the one before it.
 */
int job_open_input(job *j);
int job_open_output(job *j);
int job_pack(job *j);

/* Ends the stream, if all went well so far, and closes everything. */
int job_close(job *j, int status);

#endif
