/*
 * policy-harness.h - a policy on its own window, with a naive model of the
 * window, against which every chosen pack is checked.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_POLICY_STAND_H
#define TESTS_POLICY_STAND_H

#include "engine/policy.h"

#define MAX_SLOTS 64

typedef struct entry {
    uint32_t slot;
    uint32_t length;
    uint64_t time;
} entry;

/* A policy, and the expected contents of its window, oldest first. */
typedef struct stand {
    const ps_policy_calls *calls;
    void *state;
    ps_policy_setup is;
    ps_window window;
    uint64_t now;
    entry list[MAX_SLOTS];
    uint32_t n;
    uint32_t pack[MAX_SLOTS]; /* lengths of the last one chosen */
    uint32_t n_pack;
    uint64_t pack_oldest; /* arrival of its oldest sequence */
} stand;

/* A maximum delay of 0 means no limit. */
void open_stand(stand *s, const ps_policy_calls *calls,
                const ps_policy_setup *setup);
void close_stand(stand *s);

/* Admits a sequence, one record later. */
void admit(stand *s, uint32_t length);
void admit_all(stand *s, const uint32_t *lengths, size_t n);

bool is_ready(const stand *s);

/* Chooses a pack, which must have waiting sequences and fit. */
void choose(stand *s, bool flush);

/* Fails the test unless these were chosen: in this order, or ascending. */
void assert_pack(const stand *s, const uint32_t *lengths, size_t n);
void assert_sorted_pack(stand *s, const uint32_t *lengths, size_t n);

/* Lengths up to the capacity, or mostly short ones, or of a few values. */
uint32_t draw(uint32_t capacity, uint64_t *random, uint32_t flavour);

/* A run for each of these; the depth is at most the capacity. */
typedef void policy_run(const ps_policy_calls *calls,
                        const ps_policy_setup *setup, uint32_t flavour);

void run_all(policy_run *run, const ps_policy_calls *calls,
             ps_policy_setup setup);

/* To draw other lengths for each setup. */
uint64_t seed_of(const ps_policy_setup *setup);

#endif
