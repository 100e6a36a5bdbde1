/*
 * job.h - the work of tokshuf: reads, shuffles and writes.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKSHUF_JOB_H
#define TOKSHUF_JOB_H

#include "tokshuf/conf.h"

/*
 * An exit status, after a message if it is not STATUS_OK.  *stop becomes the
 * signal that ended a job that keeps a state, or stays 0.
 */
int job_run(const conf *c, int *stop);

#endif
