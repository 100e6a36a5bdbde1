/*
 * job_parts.h - what the parts of the job share: job_open.c begins, job.c
 * packs, job_close.c ends.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_JOB_PARTS_H
#define PACKSTREAM_JOB_PARTS_H

#include "packstream/job.h"

#define MIB 1048576

/* ---- job_open.c ---- */

/* Report what the library says of an input or of the output. */
int job_input_failure(const job *j, const ps_error *err);
int job_output_failure(job *j, const ps_error *err);

/* Opens the next input file. */
int job_open_file(job *j);

/*
 * Once nothing comes again and nothing speaks against it, the outputs are cut
 * to where the state was saved; until then nothing is written.
 */
int job_cut_outputs(job *j);

/* Marks where the reader is, for a state. */
void job_add_mark(job *j);

/* ---- job.c ---- */

/* Whether the next sequence is packed already, and only its payload wanted. */
bool job_refills(const job *j);

/*
 * Checks, before anything new is packed or rejected, that the packs made anew
 * are those of the state.  It cannot check earlier: flushes after the last
 * sequence that the state knows have to come again first.
 */
int job_catch_up(job *j);

/* Saves the state of the job, if there is anything to go on from. */
int job_save(job *j, bool ended);

/*
 * Hooks of the reader, whose context is the job.  job_drain packs all that is
 * held, as a flush record asks for it.  job_on_wait, before the reader waits
 * for input, has full blocks written; and when the wait is long, or a signal
 * asks for it, packs what is held.
 */
ps_wait_hook job_drain;
ps_wait_hook job_on_wait;

#endif
