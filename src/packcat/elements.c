/*
 * elements.c - tokens and channels of a sequence, element by element.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packcat/elements.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "files/packs.h"

/*
 * Maximum size of a printed element, in bytes: a double with 17 digits, sign,
 * point, exponent and NUL, or an integer with sign; a separator and brackets.
 */
#define PRINTED_MAX 32
#define PRINTED_RUN 2048

elements elements_of(const ps_schema *schema, const ps_sequence *sequence,
                     uint32_t channel)
{
    const ps_channel *c =
        channel == PS_TOKENS ? NULL : &schema->channels[channel];
    uint64_t offset = ps_payload_offset(schema, channel, sequence->n_tok);
    elements list = {.type = schema->token_type, .n = sequence->n_tok};

    if (c != NULL) {
        list.type = c->type;
        list.vector = c->count;
        if (c->kind == PS_PER_SEQUENCE)
            list.n = 1;
        if (c->kind == PS_LIST)
            offset = ps_payload_list(schema, channel, sequence->n_tok,
                                     sequence->payload, &list.n);
        list.n *= ps_channel_values(c);
    }
    /* The payload is in memory, so offsets fit in a size_t. */
    list.bytes = sequence->payload + (size_t)offset;
    return list;
}

elements elements_in_pack(const ps_pack_info *info, const ps_pack *pack,
                          const ps_field *field, uint32_t i)
{
    const ps_channel *c = &field->channel;
    const ps_piece piece = ps_pack_piece(info, pack, i);
    elements list = {.type = c->type, .n = 1, .vector = c->count};

    if (c->kind == PS_LIST) {
        const ps_list of = ps_pack_list(info, pack, field->source, i);

        list.n = of.n;
        list.bytes = of.elements;
    } else {
        list.n = c->kind == PS_PER_SEQUENCE ? 1 : piece.n_tok;
        list.bytes = packs_values(info, pack, field, i, piece.begin);
    }
    list.n *= ps_channel_values(c);
    return list;
}

uint32_t elements_channel(const ps_schema *schema, const char *name)
{
    for (uint32_t c = 0; c < schema->n_channels; c++)
        if (strcmp(schema->channels[c].name, name) == 0)
            return c;
    return PS_TOKENS;
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

/* Loads an f32 or f64. */
static double load_float(ps_type type, const unsigned char *p)
{
    if (type == PS_F32) {
        const uint32_t bits = load_u32(p);
        float value;

        memcpy(&value, &bits, sizeof value);
        return (double)value;
    } else {
        const uint64_t bits = load_u64(p);
        double value;

        memcpy(&value, &bits, sizeof value);
        return value;
    }
}

bool elements_have_infinity(const elements *list)
{
    const size_t width = ps_type_bytes(list->type);

    if (list->type != PS_F32 && list->type != PS_F64)
        return false;
    for (uint32_t i = 0; i < list->n; i++)
        if (isinf(load_float(list->type, list->bytes + i * width)))
            return true;
    return false;
}

/*
 * Formats a number, two digits at a time.  printf parses its format string for
 * every number, which would dominate the time to export tokens as text.
 */
static char *print_integer(char *at, uint64_t value)
{
    static const char pairs[] =
        "0001020304050607080910111213141516171819"
        "2021222324252627282930313233343536373839"
        "4041424344454647484950515253545556575859"
        "6061626364656667686970717273747576777879"
        "8081828384858687888990919293949596979899";
    uint64_t rest = value;
    unsigned digits = 1;
    char *end;
    char *p;

    while (rest >= 10000) {
        rest /= 10000;
        digits += 4;
    }
    end = at + digits + (rest >= 10) + (rest >= 100) + (rest >= 1000);

    p = end;
    while (value >= 100) {
        p -= 2;
        memcpy(p, pairs + 2 * (value % 100), 2);
        value /= 100;
    }
    if (value >= 10)
        memcpy(at, pairs + 2 * value, 2);
    else
        *at = (char)('0' + value);
    return end;
}

/*
 * Appends ".0" to integral values, so that JSON parsers read them as floats and
 * preserve the sign of zero.
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
    int64_t value = 0;

    switch (type) {
    case PS_U8:
        return print_integer(at, *p);
    case PS_U16:
        return print_integer(at, load_u16(p));
    case PS_U32:
        return print_integer(at, load_u32(p));
    case PS_U64:
        return print_integer(at, load_u64(p));
    case PS_F32:
        return print_float(at, load_float(type, p), 9);
    case PS_F64:
        return print_float(at, load_float(type, p), 17);
    case PS_I32:
        value = (int32_t)load_u32(p);
        break;
    case PS_I64:
        value = (int64_t)load_u64(p);
        break;
    }
    if (value >= 0)
        return print_integer(at, (uint64_t)value);
    *at++ = '-';
    return print_integer(at, 0 - (uint64_t)value);
}

bool elements_print(output *out, const elements *list, char separator)
{
    const size_t width = ps_type_bytes(list->type);
    const unsigned char *p = list->bytes;

    for (uint32_t done = 0; done < list->n;) {
        const uint32_t left = list->n - done;
        const uint32_t run = left < PRINTED_RUN ? left : PRINTED_RUN;
        char *at = output_reserve(out, run * (size_t)PRINTED_MAX);

        if (at == NULL)
            return false;
        for (uint32_t i = 0; i < run; i++) {
            if (done + i > 0)
                *at++ = separator;
            if (list->vector > 0 && (done + i) % list->vector == 0)
                *at++ = '[';
            at = print_element(at, list->type, p);
            if (list->vector > 0 && (done + i + 1) % list->vector == 0)
                *at++ = ']';
            p += width;
        }
        out->used = (size_t)(at - out->buffer);
        done += run;
    }
    return true;
}
