/*
 * job.h - the job of packstream: read records, write packs.
 *
 * main.c runs the steps of a job, with the options in conf.c.  job_plan.c
 * checks everything that can be checked before a file is changed; job_open.c
 * opens the state, the input, the outputs and the packer; job.c passes each
 * sequence from the reader to the packer; job_close.c ends the stream.  They
 * use
 *
 *   memory.c   to divide the memory given by -M;
 *   rejects.c  to write the stream of --rejects;
 *   resume.c   to save the state of the job (--state) and to resume
 *              from it (--resume);
 *   verify.c   to read back the whole output (--verify).
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_JOB_H
#define PACKSTREAM_JOB_H

#include "cli/progress.h"
#include "files/file_set.h"
#include "packstream/conf.h"
#include "packstream/memory.h"
#include "packstream/rejects.h"
#include "packstream/resume.h"

typedef struct job_input {
    int next;         /* index in conf->names of the next input to open */
    const char *name; /* of the current input */
    int fd;           /* its descriptor; -1: not open */
    /* bytes read from completed inputs; can be RESUME_UNKNOWN */
    uint64_t bytes;
    ps_token_reader *reader;
} job_input;

typedef struct job {
    const conf *conf;
    job_input input;
    int out; /* descriptor of the output; -1: not open */
    /* outputs to be published at the end; unused with --state */
    file_set set;
    ps_histogram *learn_from; /* owned; NULL: none */
    ps_packer *packer;
    memory memory;
    rejects rejects;
    progress progress;
    resume resume;
    uint64_t records; /* records put so far */
    uint64_t next_id; /* number of the next sequence, from 0 */
    /*
     * sequences below it are packed already and read again only for payloads
     * that the packer held
     */
    uint64_t refill_until;
    /*
     * sequences below it were processed before resuming; their rejects are
     * already written
     */
    uint64_t known_until;
    uint64_t lines; /* lines of --every already printed */
    /* the replay has passed the last sequence of the state */
    bool caught_up;
    bool timed;         /* packs were flushed by time or a signal */
    int stop;           /* signal that ends the job; 0: none */
    bool output_failed; /* no further writes are possible */
    int reject_status;  /* of job_on_reject; on failure it printed a message */
} job;

/*
 * The steps of a job, in order.  Each returns an exit status and prints a
 * message on failure; call the next one only after STATUS_OK.  If the job had
 * already ended, job_pack has nothing to do.
 */
int job_open_state(job *j);
int job_read_histogram(job *j);
int job_open_input(job *j);
int job_begin(job *j); /* plans; opens the outputs, then the packer */
int job_pack(job *j);

/*
 * Ends the stream if `status` is STATUS_OK, and closes everything.  If job.stop
 * is not 0 afterwards, the caller must end the process by that signal.
 */
int job_close(job *j, int status);

#endif
