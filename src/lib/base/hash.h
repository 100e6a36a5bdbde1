/*
 * hash.h - XXH3, in the fastest version that the processor can run.
 *
 * If libxxhash can choose that at run time, xxh_x86dispatch.h redefines the
 * names of xxhash.h to do so.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_BASE_HASH_H
#define LIB_BASE_HASH_H

#include <xxhash.h>

#ifdef HAVE_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#endif

#endif
