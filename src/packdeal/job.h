/*
 * job.h - the jobs of packdeal.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKDEAL_JOB_H
#define PACKDEAL_JOB_H

#include <stdbool.h>

#include "packdeal/conf.h"
#include "packdeal/input.h"

/*
 * Opens the input as the options require.  On failure, prints a message and
 * returns false.
 */
bool job_begin(input *in, const conf *c);

/* Each returns an exit status and prints a message on failure. */
int job_shares(const conf *c);
int job_list(const conf *c);
int job_steps(const conf *c);

#endif
