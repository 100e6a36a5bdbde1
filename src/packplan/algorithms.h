/*
 * algorithms.h - the algorithms by name.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_ALGORITHMS_H
#define PACKPLAN_ALGORITHMS_H

#include "packstream.h"

#define ALGORITHMS 9

/* In the order of tables. */
ps_algorithm algorithm_at(unsigned i);

const char *algorithm_name(ps_algorithm algorithm);

/* False if there is none of that name. */
bool algorithm_find(const char *name, ps_algorithm *algorithm);

/* True if the algorithm packs nothing, so that no depth applies to it. */
bool algorithm_is_flat(ps_algorithm algorithm);

#endif
