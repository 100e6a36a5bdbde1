/*
 * elements.c - tokens and channels of a sequence, element by element.
 *
 * SPDX-License-Identifier: MIT
 */

#include "elements.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "digits.h"

/* A double with 17 digits, sign, point, exponent, NUL; and a separator. */
#define PRINTED_MAX 32
#define PRINTED_RUN 2048

elements elements_of(const ps_schema *schema, const ps_sequence *sequence,
                     uint32_t channel)
{
    const uint64_t offset =
        ps_payload_offset(schema, channel, sequence->n_tok);
    elements list = {.type = schema->token_type, .n = sequence->n_tok};

    /* The payload is in memory, so that a place in it is a size_t. */
    list.bytes = sequence->payload + (size_t)offset;
    if (channel != PS_TOKENS) {
        list.type = schema->channels[channel].type;
        if (schema->channels[channel].kind == PS_PER_SEQUENCE)
            list.n = 1;
    }
    return list;
}

uint32_t elements_channel(const ps_schema *schema, const char *name)
{
    for (uint32_t c = 0; c < schema->n_channels; c++)
        if (strcmp(schema->channels[c].name, name) == 0)
            return c;
    return PS_TOKENS;
}

static float load_f32(const unsigned char *p)
{
    const uint32_t bits = load_u32(p);
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static double load_f64(const unsigned char *p)
{
    const uint64_t bits = load_u64(p);
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

uint32_t elements_value(const elements *list, uint32_t i)
{
    switch (list->type) {
    case PS_U8:
        return list->bytes[i];
    case PS_U16:
        return load_u16(list->bytes + 2 * (size_t)i);
    default:
        return load_u32(list->bytes + 4 * (size_t)i);
    }
}

int64_t elements_integer(const elements *list, uint32_t i)
{
    switch (list->type) {
    case PS_I32:
        return (int32_t)load_u32(list->bytes + 4 * (size_t)i);
    case PS_I64:
        return (int64_t)load_u64(list->bytes + 8 * (size_t)i);
    default:
        return elements_value(list, i);
    }
}

uint32_t elements_find_infinity(const elements *list)
{
    uint32_t i = 0;

    if (list->type == PS_F32) {
        while (i < list->n && !isinf(load_f32(list->bytes + 4 * (size_t)i)))
            i++;
        return i;
    }
    if (list->type == PS_F64) {
        while (i < list->n && !isinf(load_f64(list->bytes + 8 * (size_t)i)))
            i++;
        return i;
    }
    return list->n;
}

/*
 * A whole number gets a ".0", so that a reader of JSON takes it for a float
 * and keeps the sign of a zero.
 */
static char *print_float(char *at, double value, int digits)
{
    int n;

    if (isnan(value)) {
        memcpy(at, "null", 4);
        return at + 4;
    }
    n = snprintf(at, PRINTED_MAX, "%.*g", digits, value);
    if (strpbrk(at, ".e") == NULL) {
        memcpy(at + n, ".0", 2);
        n += 2;
    }
    return at + n;
}

static char *print_element(char *at, ps_type type, const unsigned char *p)
{
    switch (type) {
    case PS_U8:
        return digits_unsigned(at, *p);
    case PS_U16:
        return digits_unsigned(at, load_u16(p));
    case PS_U32:
        return digits_unsigned(at, load_u32(p));
    case PS_U64:
        return digits_unsigned(at, load_u64(p));
    case PS_I32:
        return digits_signed(at, (int32_t)load_u32(p));
    case PS_I64:
        return digits_signed(at, (int64_t)load_u64(p));
    case PS_F32:
        return print_float(at, (double)load_f32(p), 9);
    case PS_F64:
        return print_float(at, load_f64(p), 17);
    }
    return at;
}

bool elements_print(output *out, const elements *list, char separator)
{
    const size_t width = ps_type_bytes(list->type);
    const unsigned char *p = list->bytes;

    for (uint32_t done = 0; done < list->n;) {
        const uint32_t left = list->n - done;
        const uint32_t run = left < PRINTED_RUN ? left : PRINTED_RUN;
        char *at = output_room(out, run * (size_t)PRINTED_MAX);

        if (at == NULL)
            return false;
        for (uint32_t i = 0; i < run; i++) {
            if (done + i > 0)
                *at++ = separator;
            at = print_element(at, list->type, p);
            p += width;
        }
        output_took(out, at);
        done += run;
    }
    return true;
}

bool elements_print_list(output *out, const elements *list)
{
    return output_text(out, "[") && elements_print(out, list, ',') &&
           output_text(out, "]");
}
