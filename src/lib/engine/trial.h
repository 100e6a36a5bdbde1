/*
 * trial.h - a pack in the making, of sequences that a window holds.
 *
 * Sequences are placed by their lengths, which takes them out of the scores
 * (score.h) until they are unplaced or leave.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_TRIAL_H
#define LIB_ENGINE_TRIAL_H

#include "engine/kernels.h"
#include "engine/score.h"
#include "engine/value.h"

/* What packs are made of; each is another's, and outlives it. */
typedef struct ps_trial {
    const ps_window *window;
    ps_score *score;
    const ps_value *value;
    ps_search search;
    uint32_t capacity;
    uint32_t depth;
    bool is_ample; /* full packs leave some of the depth unused */
} ps_trial;

typedef struct ps_trial_pack {
    uint32_t room;   /* tokens */
    uint32_t places; /* sequences */
    int64_t score;   /* of thousands of sequences, it may be far below 0 */
    uint32_t n;
    uint64_t cost; /* the sum of squared lengths */
    uint32_t *lengths;
} ps_trial_pack;

/* Places a sequence; one of the length is left, and there is room. */
void ps_trial_place(ps_trial *trial, ps_trial_pack *pack, uint32_t length);

/*
 * Fills what room and places are left, by a walk along the value function.
 * An exact end that makes the pack worth `good` is enough where the depth is.
 */
void ps_trial_walk(ps_trial *trial, ps_trial_pack *pack, int64_t good);

/*
 * Places the oldest sequences where a pack takes many, and leaves the last
 * ones to a walk.  Says whether it placed any.
 */
bool ps_trial_place_oldest(ps_trial *trial, ps_trial_pack *pack);

/*
 * Fills an empty pack where two sequences fill one: with the exact pair of
 * the best score unless the oldest is urgent; or with the oldest and the
 * longest that fits, so that shorter ones stay for longer sequences.
 */
void ps_trial_pair(ps_trial *trial, bool urgent, ps_trial_pack *pack);

#endif
