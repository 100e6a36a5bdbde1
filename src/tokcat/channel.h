/*
 * channel.h - the channels of a stream: what their names say of them, and
 * numbers as their elements, exactly or not at all.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_CHANNEL_H
#define TOKCAT_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "packstream.h"

/* ---------------------------------------------------------------------
 * Names
 */

/* A channel whose name tells its type and fill. */
typedef struct known_channel {
    const char *name;
    ps_type type;
    int64_t fill;
} known_channel;

/* The channel of that name, or NULL. */
const known_channel *known_find(const char *name);

/*
 * The fill of a channel for which none is given: that of the known name if
 * the type can hold it, else 0.
 */
uint64_t known_fill(const char *name, ps_type type);

/* True if the formats allow a channel of that name. */
bool known_good_name(const char *name);

/* ---------------------------------------------------------------------
 * Elements
 */

/* Whether a value was stored, or why not. */
typedef enum element_result {
    ELEMENT_OK,
    ELEMENT_NO_NUMBER, /* a string, a list, an object */
    ELEMENT_NULL,      /* null in a channel of integers */
    ELEMENT_FRACTION,  /* written with a point or an exponent */
    ELEMENT_OUTSIDE,   /* beyond what the type reaches */
    ELEMENT_INEXACT    /* an integer that a float would round */
} element_result;

/*
 * The bits of an element; those above the width of the type are zero.  Floats
 * are rounded to the nearest; null is a NaN.
 */
element_result element_integer(ps_type type, int64_t value, uint64_t *bits);
element_result element_real(ps_type type, double value, uint64_t *bits);
element_result element_null(ps_type type, uint64_t *bits);

/* The integers that a type holds; false for floats. */
bool element_range(ps_type type, int64_t *min, int64_t *max);

#endif
