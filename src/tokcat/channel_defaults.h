/*
 * channel_defaults.h - channels that are what they are called.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_CHANNEL_DEFAULTS_H
#define TOKCAT_CHANNEL_DEFAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "packstream.h"

typedef struct known_channel {
    const char *name;
    ps_type type;
    int64_t fill;
} known_channel;

/* The channel of that name, or NULL. */
const known_channel *known_find(const char *name);

/* True if the formats allow a channel of that name. */
bool known_good_name(const char *name);

/*
 * The fill of a channel for which none is given: that of the known name if
 * the type can hold it, else 0.
 */
uint64_t known_fill(const char *name, ps_type type);

#endif
