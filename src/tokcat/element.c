/*
 * element.c - JSON values as elements of a channel, exactly or not at all.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/element.h"

#include <float.h>
#include <string.h>

#include "common/bytes.h"

/* The integers that a type holds.  u64 ends where JSON's readers do. */
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

/* The bits of the nearest float; one that would be infinite is none. */
static element_result float_bits(ps_type type, double value, uint64_t *bits)
{
    const float rounded = (float)value;
    uint32_t bits32;

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

/* Floats hold the integers whose digits, as bits, fit the mantissa. */
static element_result integer_bits(ps_type type, int64_t value,
                                   uint64_t *bits)
{
    const int mantissa = type == PS_F64 ? DBL_MANT_DIG : FLT_MANT_DIG;
    uint64_t digits = (uint64_t)value;

    if (!is_float(type)) {
        if (value < ranges[type].min || value > ranges[type].max)
            return ELEMENT_OUTSIDE;
        *bits = (uint64_t)value;
        return ELEMENT_OK;
    }
    if (value < 0)
        digits = 0 - digits;
    while (digits != 0 && (digits & 1) == 0)
        digits >>= 1;
    if (digits >> mantissa != 0)
        return ELEMENT_INEXACT;
    return float_bits(type, (double)value, bits);
}

static element_result value_bits(ps_type type, const json_t *value,
                                 uint64_t *bits)
{
    switch (json_typeof(value)) {
    case JSON_INTEGER:
        return integer_bits(type, json_integer_value(value), bits);
    case JSON_TRUE:
        return integer_bits(type, 1, bits);
    case JSON_FALSE:
        *bits = 0;
        return ELEMENT_OK;
    case JSON_REAL:
        return is_float(type)
                   ? float_bits(type, json_real_value(value), bits)
                   : ELEMENT_FRACTION;
    case JSON_NULL:
        /* One bit pattern for every NaN, whatever the host's is. */
        *bits = type == PS_F64 ? UINT64_C(0x7ff8000000000000)
                               : UINT64_C(0x7fc00000);
        return is_float(type) ? ELEMENT_OK : ELEMENT_NULL;
    default:
        return ELEMENT_NO_NUMBER;
    }
}

element_result element_store(ps_type type, const json_t *value,
                             unsigned char *to)
{
    uint64_t bits = 0;
    const element_result r = value_bits(type, value, &bits);

    if (r == ELEMENT_OK)
        store_low(to, bits, ps_type_bytes(type));
    return r;
}

/* The bits without those above the element's width. */
static uint64_t narrow(uint64_t bits, ps_type type)
{
    const size_t width = 8 * ps_type_bytes(type);

    return width < 64 ? bits & ((UINT64_C(1) << width) - 1) : bits;
}

bool element_fill_integer(ps_type type, int64_t value, uint64_t *fill)
{
    uint64_t bits = 0;

    if (integer_bits(type, value, &bits) != ELEMENT_OK)
        return false;
    *fill = narrow(bits, type);
    return true;
}

bool element_fill(ps_type type, const char *text, uint64_t *fill)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    uint64_t bits = 0;
    const bool good =
        value != NULL && value_bits(type, value, &bits) == ELEMENT_OK;

    json_decref(value);
    *fill = narrow(bits, type);
    return good;
}
