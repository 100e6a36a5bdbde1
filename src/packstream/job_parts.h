/*
 * job_parts.h - functions shared by job_open.c, job.c and job_close.c.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_JOB_PARTS_H
#define PACKSTREAM_JOB_PARTS_H

#include "packstream/job.h"

#define MIB 1048576

/* ---- job_plan.c ---- */

typedef struct job_plan {
    ps_schema schema; /* of the sequences */
    ps_packer_options options;
} job_plan;

/*
 * Decides what to pack and which files to open or resume, and checks everything
 * that can be checked before a file is changed.
 */
int job_make_plan(job *j, job_plan *p);

/* Checks that the output and the rejects are different files, if they exist. */
int job_check_distinct(const conf *c);

/* ---- job_open.c ---- */

/*
 * Report a library error about an input or the output.  Return the exit status.
 */
int job_input_failure(const job *j, const ps_error *err);
int job_output_failure(job *j, const ps_error *err);

/* Opens the next input file. */
int job_open_file(job *j);

/*
 * Truncates the outputs to their sizes in the state.  Call it once the replay
 * is verified; nothing may be written before that.
 */
int job_cut_outputs(job *j);

/* Records the position of the reader for later states. */
void job_add_position(job *j);

/* ---- job.c ---- */

/* True if the next sequence is already packed and read only for its payload. */
bool job_refills(const job *j);

/*
 * Verifies that the packs of a replay match the state.  Call it before anything
 * new is packed or rejected, but not earlier: flushes after the last sequence
 * of the state must be repeated first.
 */
int job_catch_up(job *j);

/* Saves the state if a pack has been written or the job has `ended`. */
int job_save(job *j, bool ended);

/*
 * Hook of the packer: writes a sequence that exceeds a budget, or whose group
 * does not fit a pack.
 */
ps_reject_hook job_on_reject;

/*
 * Hooks of the reader; their context is the job.  job_drain packs everything
 * held, as a flush record requests.  job_on_wait runs before the reader waits
 * for input: it writes full blocks and, if the wait is long or SIGUSR1 arrives,
 * packs everything held.
 */
ps_wait_hook job_drain;
ps_wait_hook job_on_wait;

#endif
