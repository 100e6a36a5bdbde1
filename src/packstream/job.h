/*
 * job.h - the one job of packstream: records in, packs out.
 *
 * main.c runs the steps of a job, and conf.c knows what the command line asks
 * for.  job_open.c opens the state, the input, the outputs and the packer;
 * job.c takes each sequence from the reader to the packer; job_close.c ends
 * the stream.  They are helped by
 *
 *   memory.c   which divides the memory that -M gives;
 *   rejects.c  which writes the stream of --rejects;
 *   resume.c   which keeps the state of the job in a file (--state),
 *              and says what follows from it for a new one (--resume);
 *   verify.c   which reads all of the output (--verify).
 *
 * All of this uses the library by its public header, src/common, and what the
 * programs share in src/cli.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_JOB_H
#define PACKSTREAM_JOB_H

#include "cli/file_set.h"
#include "cli/progress.h"
#include "packstream/conf.h"
#include "packstream/memory.h"
#include "packstream/rejects.h"
#include "packstream/resume.h"

typedef struct job {
    const conf *conf;
    int next_name; /* of conf->names, to be opened next */
    const char *input;
    int in;
    uint32_t writers; /* threads that compress or write */
    bool reads_ahead;
    int out;
    file_set set; /* outputs that appear when all went well: without a state */
    ps_histogram *learn_from; /* NULL: nothing */
    ps_token_reader *reader;
    ps_packer *packer;
    memory memory;
    rejects rejects;
    progress progress;
    resume resume;
    uint64_t records; /* put so far */
    uint64_t next_id; /* of the sequences */
    uint64_t refill_until; /* those below are packed; but the packer may want
                              the payloads that it held */
    uint64_t known_until;  /* those below came before: their rejects are
                              written */
    uint64_t lines;       /* of --every that these packs are worth */
    uint64_t input_bytes; /* of the files that were read, as in resume_place */
    bool caught_up; /* what is packed anew is behind what the state knows */
    bool timed;     /* packs were flushed because of time or a signal */
    int stop;       /* the signal that ends the job, or 0 */
    bool output_failed; /* nothing more can be written */
} job;

/*
 * The steps, each giving an exit status after a message; a step must follow
 * the success of the one before it.  The fourth compares all with the state,
 * which may leave nothing to pack for the fifth.
 */
int job_open_state(job *j);
int job_read_histogram(job *j);
int job_open_input(job *j);
int job_begin(job *j); /* opens the outputs, then the packer */
int job_pack(job *j);

/*
 * Ends the stream, if all went well so far, and closes everything.  After it
 * the process is to end by the signal job.stop, if that is not 0.
 */
int job_close(job *j, int status);

#endif
