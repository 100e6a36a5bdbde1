/*
 * memory.h - telling jansson's lack of memory from broken JSON.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_MEMORY_H
#define TOKCAT_MEMORY_H

#include <stdbool.h>

/* To be called before jansson is used. */
void memory_watch(void);

/* True if an allocation of jansson has failed. */
bool memory_ran_out(void);

#endif
