/*
 * job.h - the work that packdeal is asked for.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKDEAL_JOB_H
#define PACKDEAL_JOB_H

#include "packdeal/conf.h"

/* Each does its work and gives an exit status, after a message if it failed. */
int job_shares(const conf *c);
int job_list(const conf *c);
int job_steps(const conf *c);

#endif
