/*
 * groups.h - the channel that --group names.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef FILES_GROUPS_H
#define FILES_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "packstream.h"

/* Sets the index of a per-sequence channel.  Returns false if it is missing. */
bool groups_find(const ps_schema *schema, const char *name, uint32_t *channel);

/* Value of this channel, as a bit pattern.  Equal values are a group. */
uint64_t groups_value(const ps_schema *schema, uint32_t channel,
                      const ps_sequence *sequence);

#endif
