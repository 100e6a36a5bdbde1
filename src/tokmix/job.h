/*
 * job.h - the work of tokmix: sequences of the sources to the output.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKMIX_JOB_H
#define TOKMIX_JOB_H

#include "tokmix/conf.h"

/*
 * Mixes; an exit status, after a message if it is not STATUS_OK.  *stop becomes
 * the signal that ended the job, by which the process is to end, or stays 0.
 */
int job_run(const conf *c, int *stop);

#endif
