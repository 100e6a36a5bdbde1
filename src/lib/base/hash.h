/*
 * hash.h - XXH3, as fast as the processor has it.
 *
 * Where libxxhash can choose at run time between its versions for different
 * processors, its header for that gives the same names another meaning.
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
