/*
 * job_parts.h - what the parts of the job share: job.c reads, job_put.c packs,
 * job_reject.c sees to what cannot be packed as it is, job_open.c begins,
 * job_idle.c waits.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_JOB_PARTS_H
#define PACKSTREAM_JOB_PARTS_H

#include "packstream/job.h"

/* Report what the library says of an input or of the output. */
int job_input_failure(const job *j, const ps_error *err);
int job_output_failure(job *j, const ps_error *err);

/* What reading gave: a failure, or the end that a signal asked for. */
int job_read_failure(job *j, const ps_error *err);

/* Has the next sequence packed. */
int job_put(job *j, const ps_sequence *sequence);

/* The packer took it, or not: what is due after that. */
int job_took(job *j, const ps_sequence *sequence, ps_result result,
             const ps_error *why);

/*
 * Sees to a sequence of which the reader gave only the length: longer than a
 * pack, with a token outside the vocabulary, or without tokens.
 */
int job_put_overlong(job *j, ps_sequence *sequence, const ps_error *why);
int job_put_outside(job *j, ps_sequence *sequence, const ps_error *why);
int job_put_empty(job *j, const ps_sequence *sequence, const ps_error *why);

/* Saves the state of the job, if there is anything to go on from. */
int job_save(job *j, bool ended);

/* Takes note of where the reader is, for a state. */
void job_note(job *j);

/* With -v: the depth and what it costs, once it is known. */
void job_tell_depth(job *j);

/* Opens the next input file. */
int job_open_file(job *j);

/*
 * Once nothing comes again and nothing speaks against it, the outputs are cut
 * to where the state was saved; until then nothing is written.
 */
int job_cut_outputs(job *j);

/*
 * Before anything new is packed or rejected: where packs are made anew, these
 * have to be those of the state by now.
 */
int job_catch_up(job *j);

/* Whether what comes came before already. */
bool job_is_again(const job *j);

/* Hooks of the reader, whose context is the job. */
ps_wait_hook job_drain;
ps_wait_hook job_pass_on;

#endif
