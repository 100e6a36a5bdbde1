/*
 * pack_builder.h - builds a pack of sequences in the window.
 *
 * Sequences are placed by their lengths, which takes them out of the scores
 * (score.h) until they are unplaced or leave.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_PACK_BUILDER_H
#define LIB_ENGINE_PACK_BUILDER_H

#include "engine/kernels.h"
#include "engine/score.h"
#include "engine/value.h"

/* What packs are made of; each belongs to the policy, and outlives this. */
typedef struct ps_pack_builder {
    const ps_window *window;
    ps_score *score;
    const ps_value *value;
    ps_search search;
    uint32_t capacity;
    uint32_t depth;
    bool ample_depth; /* full packs leave some of the depth unused */
} ps_pack_builder;

/* A pack in the making. */
typedef struct ps_candidate {
    uint32_t room;   /* tokens */
    uint32_t places; /* sequences */
    int64_t score;   /* of thousands of sequences, it may be far below 0 */
    uint32_t n;
    uint64_t cost; /* the sum of squared lengths */
    uint32_t *lengths;
} ps_candidate;

/* Places a sequence; one of the length is left, and there is room. */
void ps_pack_place(ps_pack_builder *builder, ps_candidate *pack,
                   uint32_t length);

/*
 * Fills what room and places are left, by a walk along the value function.
 * An exact end that makes the pack worth `good` is enough where the depth is.
 */
void ps_pack_fill(ps_pack_builder *builder, ps_candidate *pack, int64_t good);

/*
 * Places the oldest sequences where a pack takes many, and leaves the last
 * ones to ps_pack_fill.  Says whether it placed any.
 */
bool ps_pack_place_oldest(ps_pack_builder *builder, ps_candidate *pack);

/*
 * Fills an empty pack by best fit: one of the oldest sequences, or the oldest
 * if it is urgent, and then the longest that fits, again and again.  Only of
 * pairs that fill the pack exactly, which go first, the best is taken.
 */
void ps_pack_fit(ps_pack_builder *builder, bool urgent, ps_candidate *pack);

#endif
