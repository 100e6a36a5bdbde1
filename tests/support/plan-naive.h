/*
 * plan-naive.h - the packing algorithms in naive form, one pack at a time, with
 * no data structures and only linear searches; histograms to plan for, and
 * checked plans.
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_PLAN_NAIVE_H
#define TESTS_PLAN_NAIVE_H

#include "lib-fixture.h"

/* Most sequences that the naive algorithms accept. */
#define NAIVE_MAX 96

/* Equal packs; lengths from `n` on are 0. */
typedef struct naive_group {
    uint64_t count;
    uint64_t changed; /* when: greater is later */
    uint32_t spare;
    uint32_t n;
    uint32_t lengths[NAIVE_MAX];
} naive_group;

typedef struct naive_plan {
    size_t n_groups;
    uint64_t clock;
    naive_group groups[NAIVE_MAX];
} naive_plan;

/* First fit and best fit decreasing, one sequence at a time. */
void naive_decreasing(naive_plan *p, const ps_histogram *h,
                      uint32_t capacity, uint32_t depth, bool best);

/*
 * Shortest (worst fit) and longest pack first (best fit) on groups of
 * packs; with `repeat` a pack takes as many of a length as fit.
 */
void naive_packs_first(naive_plan *p, const ps_histogram *h,
                       uint32_t capacity, uint32_t depth, bool longest,
                       bool repeat);

/* Fails the test unless both have the same packs. */
void assert_same_packs(const ps_plan *plan, const naive_plan *naive);

/* An empty histogram, and more of a length for one. */
ps_histogram *open_histogram(void);
void add_lengths(ps_histogram *h, uint32_t length, uint64_t count);

/* A histogram from "LENGTH:COUNT LENGTH:COUNT". */
ps_histogram *histogram_of(const char *text);

/* `lengths` random lengths up to `longest`, each up to `max` times. */
ps_histogram *random_histogram(uint64_t *random, uint32_t lengths,
                               uint32_t longest, uint64_t max);

/* Options as in the paper. */
ps_plan_options plan_options(uint32_t capacity, uint32_t depth);

/* Makes and checks a plan; returns its number of packs. */
uint64_t packs_of(const ps_histogram *h, ps_algorithm algorithm,
                  const ps_plan_options *o);

#endif
