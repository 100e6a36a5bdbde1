/*
 * fourier.h - the discrete Fourier transform, for sums of random lengths.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_FOURIER_H
#define PACKPLAN_FOURIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Makes the distribution of the sum of `times` >= 1 independent numbers of
 * the distribution of one of them: values[i] is the probability of i, for i
 * below `n`, a power of two above any sum.  False if there is no memory.
 */
bool fourier_sum(double *values, size_t n, uint32_t times);

#endif
