/*
 * elements.h - tokens and channels of a sequence, element by element.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKCAT_ELEMENTS_H
#define PACKCAT_ELEMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "packcat/output.h"
#include "packstream.h"

/* A list of contiguous little-endian values, which it does not own. */
typedef struct elements {
    ps_type type;
    uint32_t n;      /* number of values, over all vectors */
    uint32_t vector; /* values of a vector; 0: each value is an element */
    const unsigned char *bytes;
} elements;

/* Tokens of a sequence (`channel` = PS_TOKENS), or one of its channels. */
elements elements_of(const ps_schema *schema, const ps_sequence *sequence,
                     uint32_t channel);

/* Elements of sequence `i` of a pack, from the field that contains them. */
elements elements_in_pack(const ps_pack_info *info, const ps_pack *pack,
                          const ps_field *field, uint32_t i);

/* Index of the channel of this name, or PS_TOKENS. */
uint32_t elements_channel(const ps_schema *schema, const char *name);

/* Value of element `i` < n, for types u8, u16 and u32. */
uint32_t elements_value(const elements *list, uint32_t i);

/* Value of element `i` < n, for all integer types except u64. */
int64_t elements_integer(const elements *list, uint32_t i);

/* True if an element is infinite. */
bool elements_have_infinity(const elements *list);

/*
 * Prints the elements in decimal, separated by `separator`, and vectors in
 * brackets.  Floats get enough digits to be restored exactly; NaN is printed as
 * "null".  Returns false after a failure of `out`.
 */
bool elements_print(output *out, const elements *list, char separator);

#endif
