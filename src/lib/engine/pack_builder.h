/*
 * pack_builder.h - build a pack from sequences in the window.
 *
 * Sequences are placed by length.  Placed sequences do not count in the scores
 * (score.h) until the placement is undone.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_PACK_BUILDER_H
#define LIB_ENGINE_PACK_BUILDER_H

#include "engine/kernels.h"
#include "engine/score.h"
#include "engine/value.h"

/* Inputs of the builder.  The policy owns them and outlives the builder. */
typedef struct ps_pack_builder {
    const ps_window *window;
    ps_score *score;
    const ps_value *value;
    ps_search search;
    uint32_t capacity;
    uint32_t depth;
    bool ample_depth; /* full packs do not reach the depth */
} ps_pack_builder;

/* A pack being built. */
typedef struct ps_candidate {
    uint32_t room;   /* remaining capacity, units of the engine */
    uint32_t places; /* remaining depth, sequences */
    int64_t score;   /* sum; can be far below 0 for thousands of sequences */
    uint32_t n;      /* sequences placed */
    uint64_t cost;   /* sum of squared lengths */
    uint32_t *lengths;
} ps_candidate;

/* Places a sequence of a length, which must fit and be available. */
void ps_pack_place(ps_pack_builder *builder, ps_candidate *pack,
                   uint32_t length);

/*
 * Fills the remaining capacity and depth by the value function.  With ample
 * depth, it stops as soon as one or two lengths fill the pack exactly and give
 * it a score of at least `good`.
 */
void ps_pack_fill(ps_pack_builder *builder, ps_candidate *pack, int64_t good);

/*
 * If packs hold many sequences, places the oldest ones and leaves the rest to
 * ps_pack_fill.  Returns true if it placed any.
 */
bool ps_pack_place_oldest(ps_pack_builder *builder, ps_candidate *pack);

/*
 * Fills an empty pack by best fit: starts with one of the oldest sequences, or
 * the oldest if `urgent`, and repeatedly adds the longest that fits.  Unless
 * `urgent`, the best one or two lengths that fill the pack exactly come first.
 */
void ps_pack_fit(ps_pack_builder *builder, bool urgent, ps_candidate *pack);

#endif
