/*
 * plan-relaxed.h - the linear relaxation of packing, solved naively: every
 * column listed, a single dense tableau, Bland's rule.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_PLAN_RELAXED_H
#define TESTS_PLAN_RELAXED_H

#include "lib-fixture.h"

/* The optimum, in packs, for a histogram of few and short lengths. */
double relaxed_packs(const ps_histogram *h, uint32_t capacity,
                     uint32_t depth);

#endif
