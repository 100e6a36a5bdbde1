/*
 * find.h - print the sequences of a step, or the steps of sequences.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKDEAL_FIND_H
#define PACKDEAL_FIND_H

#include "packdeal/conf.h"

/* Returns an exit status and prints a message on failure. */
int job_find(const conf *c);

#endif
