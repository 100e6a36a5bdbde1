/*
 * job.h - the jobs of packdeal.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKDEAL_JOB_H
#define PACKDEAL_JOB_H

#include "packdeal/conf.h"

/* Each returns an exit status and prints a message on failure. */
int job_shares(const conf *c);
int job_list(const conf *c);
int job_steps(const conf *c);

#endif
