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

/* `n` elements of one type, packed and little-endian. */
typedef struct elements {
    ps_type type;
    uint32_t n;
    const unsigned char *bytes;
} elements;

/* The tokens of a sequence, or one channel of it. */
elements elements_of(const ps_schema *schema, const ps_sequence *sequence,
                     uint32_t channel);

/* The same of sequence `i` of a pack, from the field that holds them. */
elements elements_in_pack(const ps_pack_info *info, const ps_pack *pack,
                          const ps_field *field, uint32_t i);

/* The index of a channel of that name; PS_TOKENS if there is none. */
uint32_t elements_channel(const ps_schema *schema, const char *name);

/* The value of element `i` < n, for the types u8, u16 and u32. */
uint32_t elements_value(const elements *list, uint32_t i);

/* The same for any type of integers but u64. */
int64_t elements_integer(const elements *list, uint32_t i);

/* True if an element is an infinity. */
bool elements_have_infinity(const elements *list);

/*
 * Adds the elements as decimal text with `separator` between them.  Floats
 * get as many digits as restore them exactly, a NaN is "null".
 */
bool elements_print(output *out, const elements *list, char separator);

#endif
