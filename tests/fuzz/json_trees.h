/*
 * json_trees.h - JSON Lines read with jansson, for comparison.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_FUZZ_JSON_TREES_H
#define TESTS_FUZZ_JSON_TREES_H

#include <stdbool.h>

/* Whether jansson reads the lines from now on. */
void json_use_trees(bool yes);

#endif
