/*
 * auto_depth.h - how many sequences a pack should be allowed to hold.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_ENGINE_AUTO_DEPTH_H
#define LIB_ENGINE_AUTO_DEPTH_H

#include "engine/engine.h"

/* Depths up to this may be planned for with more effort than others. */
#define PS_SMALL_DEPTH 3

/*
 * A depth, at most `options->depth`, with which an engine of these options
 * packs sequences as in the histogram as full as with `options->depth`; few
 * sequences are given at least 16 places.
 * PS_ERR_ARGUMENT (a length above the capacity), _MEMORY.
 */
ps_result ps_depth_choose(const ps_histogram *histogram,
                          const ps_engine_options *options, uint32_t *depth,
                          ps_error *err);

/* The most memory that it takes, for so many sequences. */
uint64_t ps_depth_bytes(const ps_engine_options *options, uint32_t sequences);

#endif
