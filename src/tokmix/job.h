/*
 * job.h - the work of tokmix: mix the sources to the output.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKMIX_JOB_H
#define TOKMIX_JOB_H

#include "tokmix/conf.h"

/*
 * Runs a mix.  Returns an exit status; prints a message on failure.  If a
 * signal ended the job, sets *stop to the signal, by which the caller must then
 * end the process; otherwise *stop is unchanged.
 */
int job_run(const conf *c, int *stop);

#endif
