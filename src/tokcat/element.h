/*
 * element.h - JSON values as elements of a channel, exactly or not at all.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_ELEMENT_H
#define TOKCAT_ELEMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packstream.h"

/* What became of a value. */
typedef enum element_result {
    ELEMENT_OK,
    ELEMENT_NO_NUMBER, /* a string, a list, an object */
    ELEMENT_NULL,      /* null in a channel of integers */
    ELEMENT_FRACTION,  /* written with a point or an exponent */
    ELEMENT_OUTSIDE,   /* beyond what the type reaches */
    ELEMENT_INEXACT    /* an integer that a float would round */
} element_result;

/*
 * Stores `value` as one little-endian element of `type`.  true and false
 * are 1 and 0; null is a NaN in a channel of floats.  A number written with
 * a point is rounded to the nearest float.
 */
element_result element_store(ps_type type, const json_t *value,
                             unsigned char *to);

/* Reads a fill value, a JSON number or null, as the bits of a ps_channel. */
bool element_fill(ps_type type, const char *text, uint64_t *fill);

/* The bits of an integer as a fill; false if the type cannot hold it. */
bool element_fill_integer(ps_type type, int64_t value, uint64_t *fill);

#endif
