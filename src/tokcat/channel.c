/*
 * channel.c - well-known channels, and conversion of numbers to channel
 * elements.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/channel.h"

#include <float.h>
#include <string.h>

#include "common/bytes.h"

/* ---------------------------------------------------------------------
 * Elements
 */

/* Ranges of the integer types.  Readers return at most INT64_MAX. */
static const struct {
    int64_t min, max;
} ranges[] = {
    [PS_U8] = {0, UINT8_MAX},          [PS_U16] = {0, UINT16_MAX},
    [PS_U32] = {0, UINT32_MAX},        [PS_U64] = {0, INT64_MAX},
    [PS_I32] = {INT32_MIN, INT32_MAX}, [PS_I64] = {INT64_MIN, INT64_MAX},
};

static bool is_float(ps_type type)
{
    return type == PS_F32 || type == PS_F64;
}

bool element_range(ps_type type, int64_t *min, int64_t *max)
{
    if (is_float(type))
        return false;
    *min = ranges[type].min;
    *max = ranges[type].max;
    return true;
}

/* A finite value that the type would round to infinity is out of range. */
element_result element_real(ps_type type, double value, uint64_t *bits)
{
    const float rounded = (float)value;
    uint32_t bits32;

    if (!is_float(type))
        return ELEMENT_FRACTION;
    if (type == PS_F64) {
        memcpy(bits, &value, sizeof *bits);
        return ELEMENT_OK;
    }
    if (rounded < -FLT_MAX || rounded > FLT_MAX)
        return ELEMENT_OUTSIDE;
    memcpy(&bits32, &rounded, sizeof bits32);
    *bits = bits32;
    return ELEMENT_OK;
}

/* Sets *bits to a NaN that is the same on every machine. */
element_result element_null(ps_type type, uint64_t *bits)
{
    *bits = type == PS_F64 ? UINT64_C(0x7ff8000000000000)
                           : UINT64_C(0x7fc00000);
    return is_float(type) ? ELEMENT_OK : ELEMENT_NULL;
}

/*
 * A float stores an integer exactly if its significant bits fit in the
 * mantissa.
 */
element_result element_integer(ps_type type, int64_t value, uint64_t *bits)
{
    const int mantissa = type == PS_F64 ? DBL_MANT_DIG : FLT_MANT_DIG;
    uint64_t digits = (uint64_t)value;

    if (!is_float(type)) {
        if (value < ranges[type].min || value > ranges[type].max)
            return ELEMENT_OUTSIDE;
        *bits = digits & (UINT64_MAX >> (64 - 8 * ps_type_bytes(type)));
        return ELEMENT_OK;
    }
    if (value < 0)
        digits = 0 - digits;
    while (digits != 0 && (digits & 1) == 0)
        digits >>= 1;
    if (digits >> mantissa != 0)
        return ELEMENT_INEXACT;
    return element_real(type, (double)value, bits);
}

/* ---------------------------------------------------------------------
 * Names
 */

/* Loss functions ignore the label -100. */
static const known_channel known[] = {
    {"labels", PS_I32, -100},      {"seq_label", PS_I32, -1},
    {"token_type_ids", PS_U8, 0},  {"loss_mask", PS_U8, 0},
    {"attention_mask", PS_U8, 0},  {"assistant_masks", PS_U8, 0},
    {"completion_mask", PS_U8, 0}, {"next_sentence_label", PS_I32, -1},
};

const known_channel *known_find(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0)
            return &known[i];
    return NULL;
}

bool known_good_name(const char *name)
{
    ps_schema alone = ps_schema_raw(PS_U16);
    const size_t n = strlen(name);

    if (n >= PS_NAME_BYTES)
        return false;
    alone.framed = true;
    alone.n_channels = 1;
    alone.channels[0].type = PS_U8;
    alone.channels[0].kind = PS_PER_TOKEN;
    memcpy(alone.channels[0].name, name, n + 1);
    return ps_schema_check(&alone, NULL) == PS_OK;
}

uint64_t known_fill(const char *name, ps_type type)
{
    const known_channel *k = known_find(name);
    uint64_t bits = 0;

    if (k == NULL || element_integer(type, k->fill, &bits) != ELEMENT_OK)
        return 0;
    return bits;
}
