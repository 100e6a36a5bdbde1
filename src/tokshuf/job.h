/*
 * job.h - the work of tokshuf: read, shuffle and write.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKSHUF_JOB_H
#define TOKSHUF_JOB_H

#include "tokshuf/conf.h"

/*
 * Runs a shuffle.  Returns an exit status; prints a message on failure.  If a
 * signal ended a job with a state, *stop is set to it, and the process must
 * then end itself by that signal; otherwise *stop is unchanged.
 */
int job_run(const conf *c, int *stop);

#endif
