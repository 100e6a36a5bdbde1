/*
 * channel.h - the channels of a stream: what their names say of them, and
 * JSON values as their elements, exactly or not at all.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_CHANNEL_H
#define TOKCAT_CHANNEL_H

#include <jansson.h>
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
 * Stores `value` as one little-endian element of `type`.  true and false
 * are 1 and 0; null is a NaN in a channel of floats.  A number written with
 * a point is rounded to the nearest float.
 */
element_result element_store(ps_type type, const json_t *value,
                             unsigned char *to);

/* The integers that a type holds; false for floats. */
bool element_range(ps_type type, int64_t *min, int64_t *max);

/* Reads a fill value, a JSON number or null, as the bits of a ps_channel. */
bool element_fill(ps_type type, const char *text, uint64_t *fill);

/* ---------------------------------------------------------------------
 * Jansson's memory
 *
 * Some of jansson's failures for want of memory look like faults of the
 * text.  It allocates through functions of ours, which remember a failure.
 */

/* To be called before jansson is used. */
void memory_watch(void);

/* As malloc; a failure is remembered. */
void *memory_alloc(size_t size);

/* True if such an allocation has failed, or one of jansson. */
bool memory_ran_out(void);

#endif
