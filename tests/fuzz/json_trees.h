/*
 * json_trees.h - JSON Lines read with jansson, for comparison.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_FUZZ_JSON_TREES_H
#define TESTS_FUZZ_JSON_TREES_H

#include <stdbool.h>

/* Selects jansson for all lines from now on, or not. */
void json_use_trees(bool yes);

#endif
