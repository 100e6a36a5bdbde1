/*
 * channel.h - well-known channels, and exact conversion of numbers to channel
 * elements.
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

/* A channel whose name determines its type and fill. */
typedef struct known_channel {
    const char *name;
    ps_type type;
    int64_t fill;
} known_channel;

/* The well-known channel of this name, or NULL. */
const known_channel *known_find(const char *name);

/*
 * Default fill of a channel: the fill of the well-known channel of this name if
 * it fits the type, otherwise 0.
 */
uint64_t known_fill(const char *name, ps_type type);

/* True if this is a valid channel name. */
bool known_good_name(const char *name);

/* ---------------------------------------------------------------------
 * Elements
 */

/* Result of a conversion. */
typedef enum element_result {
    ELEMENT_OK,
    ELEMENT_NO_NUMBER, /* not a number, but a string, list or object */
    ELEMENT_NO_VECTOR, /* not a list, but in a list of vectors */
    ELEMENT_NULL,      /* null in an integer channel */
    ELEMENT_FRACTION,  /* a real number in an integer channel */
    ELEMENT_OUTSIDE,   /* out of the type's range */
    ELEMENT_INEXACT    /* an integer that a float would round */
} element_result;

/*
 * Store an element in *bits.  Bits beyond the width of the type are 0.  Real
 * numbers are rounded to the nearest value; null becomes NaN.
 */
element_result element_integer(ps_type type, int64_t value, uint64_t *bits);
element_result element_real(ps_type type, double value, uint64_t *bits);
element_result element_null(ps_type type, uint64_t *bits);

/* Range of an integer type; returns false for floats. */
bool element_range(ps_type type, int64_t *min, int64_t *max);

#endif
