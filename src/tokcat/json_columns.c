/*
 * json_columns.c - an object of numbers in a line of JSON.
 *
 * Each step takes the place where something begins and returns the place
 * behind it, or NULL if that is not what is expected there.  No step goes
 * past the newline at the end: it is part of nothing.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/json_columns.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

typedef const unsigned char *place;

static inline place skip_blanks(place p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

static inline bool is_digit(unsigned char c)
{
    return (unsigned)c - '0' <= 9;
}

/* ---------------------------------------------------------------------
 * Integers
 */

/* At most so many digits: an int64_t holds them all. */
#define MAX_DIGITS 18

/* Times a byte: that byte eight times. */
#define EACH_BYTE UINT64_C(0x0101010101010101)

#define MAX_WIDTH 8 /* bytes of an element */

/* One digit after the other. */
static place read_digits(place p, int64_t *value)
{
    const place first = p;
    int64_t sum = 0;

    for (; is_digit(*p); p++) {
        if (p - first == MAX_DIGITS)
            return NULL;
        sum = 10 * sum + (*p - '0');
    }
    if (p == first || (*first == '0' && p - first > 1))
        return NULL;
    *value = sum;
    return p;
}

static inline place read_integer(place p, int64_t *value)
{
    const bool negative = *p == '-';

    p = read_digits(p + negative, value);
    if (negative)
        *value = -*value;
    return p;
}

/*
 * Up to seven digits at once, if a comma or a blank follows them: the first
 * of eight bytes below '0' tells how many they are.  Shifted to the end,
 * behind zeros, they are added in pairs, fours and all eight.  Returns p if
 * there is something else.
 *
 * Where the next number begins depends on the first three steps alone; the
 * processor does all others beside those of the next number.
 */
static inline place read_few_digits(place p, int64_t *value)
{
    const uint64_t word = load_u64(p);
    const uint64_t below = (word - EACH_BYTE * '0') & EACH_BYTE * 0x80;
    uint64_t digits;
    unsigned first;

    if (below == 0)
        return p;
    first = (unsigned)__builtin_ctzll(below) / 8;
    digits = (word ^ EACH_BYTE * '0') << 1 << (63 - 8 * first);
    if (((digits | (digits + EACH_BYTE * (0x7f - 9))) &
         EACH_BYTE * 0x80) != 0)
        return p;
    digits = digits * 10 + (digits >> 8);
    digits = ((digits & UINT64_C(0x000000ff000000ff)) *
                  UINT64_C(0x000f424000000064) +
              (digits >> 16 & UINT64_C(0x000000ff000000ff)) *
                  UINT64_C(0x0000271000000001)) >> 32;
    *value = (int64_t)digits;
    return p + first;
}

/* Inlined with a constant `width`, so that each call has a loop of its own. */
static inline place read_list(const json_column *c, place p, place end,
                              size_t width, size_t *n)
{
    unsigned char *to = c->values;
    int64_t value;

    if (*p != '[')
        return NULL;
    p++;
    for (;;) {
        if (end - p >= 8) {
            place q = read_few_digits(p, &value);
            if (q > p && *q == ',' && (*p != '0' || q == p + 1) &&
                value >= c->min && value <= c->max) {
                store_low(to, (uint64_t)value, width);
                to += width;
                p = q + 1;
                if (*p == ' ')
                    p++;
                continue;
            }
        }
        value = 0;
        p = read_integer(skip_blanks(p), &value);
        if (p == NULL || value < c->min || value > c->max)
            return NULL;
        store_low(to, (uint64_t)value, width);
        to += width;
        p = skip_blanks(p);
        if (*p != ',')
            break;
        p = skip_blanks(p + 1);
    }
    *n = (size_t)(to - c->values) / width;
    return *p == ']' ? p + 1 : NULL;
}

/* ---------------------------------------------------------------------
 * Floats
 */

/* Integers up to this, and the powers of ten, are exact in a double. */
#define MAX_EXACT (INT64_C(1) << DBL_MANT_DIG)

#define MAX_POWER 22

static const double powers[MAX_POWER + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

static place skip_digits(place p)
{
    while (is_digit(*p))
        p++;
    return p;
}

/* A number with a point or an exponent, of any length. */
static place skip_real(place p)
{
    place from = p + (*p == '-');
    bool is_real = false;

    p = skip_digits(from);
    if (p == from || (*from == '0' && p - from > 1))
        return NULL;
    if (*p == '.') {
        is_real = true;
        from = p + 1;
        p = skip_digits(from);
        if (p == from)
            return NULL;
    }
    if (*p == 'e' || *p == 'E') {
        is_real = true;
        from = p + 1;
        from += *from == '-' || *from == '+';
        p = skip_digits(from);
        if (p == from)
            return NULL;
    }
    return is_real ? p : NULL;
}

/*
 * A number with a point, of few digits: the quotient of two doubles that are
 * exact is rounded once, as strtod would round it.  NULL for any other.
 */
static place read_short_real(place p, double *value)
{
    const bool negative = *p == '-';
    int64_t digits;
    place point;

    p = read_digits(p + negative, &digits);
    if (p == NULL || *p != '.' || FLT_EVAL_METHOD != 0)
        return NULL;
    for (point = p++; is_digit(*p); p++) {
        if (digits > (MAX_EXACT - 9) / 10)
            return NULL;
        digits = 10 * digits + (*p - '0');
    }
    if (p - point == 1 || p - point > MAX_POWER + 1 || *p == 'e' || *p == 'E')
        return NULL;
    *value = (double)digits / powers[p - point - 1];
    if (negative)
        *value = -*value;
    return p;
}

/*
 * A number as a float of the column, at `to`.  Integers that a float might
 * round are left to the library, which refuses them.
 */
static place read_float(const json_column *c, place p, unsigned char *to)
{
    int64_t integer = 0;
    double value;
    float single;
    uint64_t bits;
    uint32_t bits32;
    place q = read_integer(p, &integer);

    if (q != NULL && *q != '.' && *q != 'e' && *q != 'E') {
        if (integer < c->min || integer > c->max)
            return NULL;
        value = (double)integer;
    } else {
        q = read_short_real(p, &value);
        if (q == NULL) {
            q = skip_real(p);
            if (q == NULL)
                return NULL;
            /* The newline behind the line stops it. */
            value = strtod((const char *)p, NULL);
        }
    }
    if (c->width == 8) {
        memcpy(&bits, &value, sizeof bits);
        store_u64(to, bits);
        return isfinite(value) ? q : NULL;
    }
    single = (float)value;
    memcpy(&bits32, &single, sizeof bits32);
    store_u32(to, bits32);
    return isfinite(single) ? q : NULL;
}

static place read_floats(const json_column *c, place p, size_t *n)
{
    unsigned char *to = c->values;

    if (*p != '[')
        return NULL;
    do {
        p = read_float(c, skip_blanks(p + 1), to);
        if (p == NULL)
            return NULL;
        to += c->width;
        p = skip_blanks(p);
    } while (*p == ',');
    *n = (size_t)(to - c->values) / c->width;
    return *p == ']' ? p + 1 : NULL;
}

/* ---------------------------------------------------------------------
 * What is left out
 */

/* A character of UTF-8 beyond ASCII, as RFC 3629 has it. */
static place skip_wide(place p)
{
    const unsigned char lead = *p++;
    const unsigned n = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;

    if (lead < 0xc2 || lead > 0xf4 || (lead == 0xe0 && *p < 0xa0) ||
        (lead == 0xed && *p > 0x9f) || (lead == 0xf0 && *p < 0x90) ||
        (lead == 0xf4 && *p > 0x8f))
        return NULL;
    for (unsigned i = 0; i < n; i++, p++)
        if ((*p & 0xc0) != 0x80)
            return NULL;
    return p;
}

/* A string whose escapes are of one character. */
static place skip_string(place p)
{
    p++;
    while (p != NULL && *p != '"') {
        if (*p >= 0x80)
            p = skip_wide(p);
        else if (*p == '\\' && p[1] > 0 && strchr("\"\\/bfnrt", p[1]) != NULL)
            p += 2;
        else if (*p == '\\' || *p < 0x20)
            return NULL;
        else
            p++;
    }
    return p == NULL ? NULL : p + 1;
}

/* A string, a number without an exponent, or a word. */
static place skip_scalar(place p, place end)
{
    static const char *const words[] = {"true", "false", "null"};
    int64_t value;
    place point;

    if (*p == '"')
        return skip_string(p);
    if (*p == '-' || is_digit(*p)) {
        p = read_digits(*p == '-' ? p + 1 : p, &value);
        if (p == NULL || *p != '.')
            return p;
        point = p;
        p = skip_digits(point + 1);
        return p - point > 1 ? p : NULL;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t n = strlen(words[i]);

        if ((size_t)(end - p) > n && memcmp(p, words[i], n) == 0)
            return p + n;
    }
    return NULL;
}

/* A scalar, or a list of them. */
static place skip_value(place p, place end)
{
    if (*p != '[')
        return skip_scalar(p, end);
    p = skip_blanks(p + 1);
    if (*p == ']')
        return p + 1;
    for (;;) {
        p = skip_scalar(skip_blanks(p), end);
        if (p == NULL)
            return NULL;
        p = skip_blanks(p);
        if (*p != ',')
            return *p == ']' ? p + 1 : NULL;
        p++;
    }
}

/* ---------------------------------------------------------------------
 * The object
 */

bool json_is_plain_key(const char *key)
{
    for (; *key != '\0'; key++)
        if ((unsigned char)*key < 0x20 || *key == '"' || *key == '\\')
            return false;
    return true;
}

/* The column of the key behind a quotation mark, not seen before; or NULL. */
static json_column *find_column(json_columns *columns, place key, place end)
{
    for (uint32_t i = 0; i < columns->n; i++) {
        const uint32_t k = (columns->expected + i) % columns->n;
        json_column *c = &columns->column[k];

        if ((size_t)(end - key) > c->key_bytes &&
            key[c->key_bytes] == '"' &&
            memcmp(key, c->key, c->key_bytes) == 0) {
            columns->expected = k + 1;
            return c->seen ? NULL : c;
        }
    }
    return NULL;
}

static place read_value(json_column *c, place p, place end, size_t *n)
{
    if (c->shape == COLUMN_LEFT_OUT)
        return skip_value(p, end);
    if (c->is_float && c->shape == COLUMN_LIST)
        return read_floats(c, p, n);
    if (c->is_float) {
        *n = 1;
        return read_float(c, p, c->values);
    }
    if (c->shape == COLUMN_NUMBER) {
        int64_t value = 0;

        p = read_integer(p, &value);
        if (p == NULL || value < c->min || value > c->max)
            return NULL;
        store_low(c->values, (uint64_t)value, c->width);
        *n = 1;
        return p;
    }
    switch (c->width) {
    case 1:
        return read_list(c, p, end, 1, n);
    case 2:
        return read_list(c, p, end, 2, n);
    case 4:
        return read_list(c, p, end, 4, n);
    default:
        return read_list(c, p, end, 8, n);
    }
}

size_t json_columns_read(json_columns *columns, const unsigned char *line,
                         size_t n)
{
    const place end = line + n;
    /* Each element takes two bytes of the line, or more. */
    const size_t size = (n / 2 + 1) * MAX_WIDTH;
    size_t length = 0;
    place p = skip_blanks(line);
    unsigned char *to;

    if (columns->n == 0 || *p != '{')
        return 0;
    if (size > columns->size) {
        free(columns->values);
        columns->size = 0;
        columns->values = malloc(2 * size);
        if (columns->values == NULL)
            return 0;
        columns->size = 2 * size;
    }
    for (uint32_t i = 0; i < columns->n; i++)
        columns->column[i].seen = false;

    to = columns->values;
    do {
        size_t here = 0;
        json_column *c;

        p = skip_blanks(p + 1);
        c = *p == '"' ? find_column(columns, p + 1, end) : NULL;
        if (c == NULL)
            return 0;
        p = skip_blanks(p + c->key_bytes + 2);
        if (*p != ':')
            return 0;
        c->seen = true;
        c->values = to;
        p = read_value(c, skip_blanks(p + 1), end, &here);
        if (p == NULL)
            return 0;
        to += here * c->width;
        if (c->shape == COLUMN_LIST) {
            if (length != 0 && here != length)
                return 0;
            length = here;
        }
        p = skip_blanks(p);
    } while (*p == ',');

    /* No key may be missing, and nothing may follow. */
    if (*p != '}' || skip_blanks(p + 1) != end)
        return 0;
    for (uint32_t i = 0; i < columns->n; i++)
        if (!columns->column[i].seen &&
            columns->column[i].shape != COLUMN_LEFT_OUT)
            return 0;
    return length;
}

void json_columns_free(json_columns *columns)
{
    free(columns->values);
    free(columns->column);
    *columns = (json_columns){0};
}
