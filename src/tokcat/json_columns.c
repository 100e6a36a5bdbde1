/*
 * json_columns.c - parse a JSON object of numbers into columns.
 *
 * Each parsing function gets the position at which an item starts and returns
 * the position after it, or NULL if the line is not valid JSON there.  No
 * function reads past the newline at the end, which is never part of an item.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/json_columns.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

typedef const unsigned char *place;

static place broken(json_columns *t, place at, const char *why)
{
    t->broken_at = at;
    t->broken = why;
    return NULL;
}

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
 * Strings
 */

/*
 * Finds the quotation mark that ends a string, starting at `p` inside the
 * string.  An even number of backslashes precedes it.  Returns NULL if it is
 * missing.
 */
static place find_quote(place p, place end)
{
    const place first = p;

    while ((p = memchr(p, '"', (size_t)(end - p))) != NULL) {
        place slash = p;

        while (slash > first && slash[-1] == '\\')
            slash--;
        if (((p - slash) & 1) == 0)
            break;
        p++;
    }
    return p;
}

/* Skips a multibyte UTF-8 character, as defined in RFC 3629. */
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

/* Value of four hexadecimal digits, or UINT32_MAX. */
static uint32_t read_hex(place p)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    uint32_t value = 0;

    for (int i = 0; i < 4; i++) {
        const char *digit = p[i] == 0 ? NULL : strchr(digits, p[i]);

        if (digit == NULL)
            return UINT32_MAX;
        value = value << 4 | (uint32_t)((digit - digits) & 15);
    }
    return value;
}

/* Encodes a character as UTF-8.  Returns its length in bytes. */
static size_t put_utf8(uint32_t c, unsigned char *to)
{
    const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        to[i] = (unsigned char)(0x80 | (c & 0x3f));
    to[0] = (unsigned char)(leads[n] | c);
    return n;
}

/* Decodes the escape at `p` to *to, and advances *to. */
static place read_escape(json_columns *t, place p, unsigned char **to)
{
    static const char names[] = "\"\\/bfnrt";
    const char *name = p[1] == 0 ? NULL : strchr(names, p[1]);
    uint32_t c;
    uint32_t low;

    if (name != NULL) {
        *(*to)++ = (unsigned char)"\"\\/\b\f\n\r\t"[name - names];
        return p + 2;
    }
    c = p[1] == 'u' ? read_hex(p + 2) : UINT32_MAX;
    if (c == UINT32_MAX)
        return broken(t, p, "invalid escape");
    if (c == 0)
        return broken(t, p, "a NUL character in a key");
    if (c >= 0xd800 && c < 0xe000) {
        low = c < 0xdc00 && p[6] == '\\' && p[7] == 'u' ? read_hex(p + 8) : 0;
        if (low < 0xdc00 || low > 0xdfff)
            return broken(t, p, "half of a surrogate pair");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        p += 6;
    }
    *to += put_utf8(c, *to);
    return p + 6;
}

/* Decodes the key that starts at `p` to `to` and appends a NUL. */
static place read_key(json_columns *t, place p, unsigned char *to, size_t *n)
{
    const unsigned char *const first = to;

    if (*p != '"')
        return broken(t, p, "expected '\"'");
    for (p++; *p != '"';) {
        size_t bytes = 1;

        if (*p == '\\') {
            p = read_escape(t, p, &to);
            if (p == NULL)
                return NULL;
            continue;
        }
        if (*p < 0x20)
            return broken(t, p, p == t->end ? "expected '\"'"
                                            : "a control character in a key");
        if (*p >= 0x80) {
            const place next = skip_wide(p);

            if (next == NULL)
                return broken(t, p, "invalid UTF-8");
            bytes = (size_t)(next - p);
        }
        for (; bytes > 0; bytes--)
            *to++ = *p++;
    }
    *to = '\0';
    *n = (size_t)(to - first);
    return p + 1;
}

/* ---------------------------------------------------------------------
 * Skipped values
 */

/*
 * Skips any value.  Only brackets and quotation marks are examined, so this
 * needs no memory at any depth of nesting.
 */
static place skip_any(json_columns *t, place p)
{
    /* Bytes that change the depth, start a string or end the line. */
    static const bool marks[256] = {['"'] = true, ['['] = true, [']'] = true,
                                    ['{'] = true, ['}'] = true,
                                    ['\n'] = true};
    const place first = p;
    size_t depth = 0;

    do {
        if (depth == 0)
            while (!marks[*p] && *p != ',' && skip_blanks(p) == p)
                p++;
        else
            while (!marks[*p])
                p++;
        if (*p == '"') {
            p = find_quote(p + 1, t->end);
            if (p == NULL)
                return broken(t, t->end, "expected '\"'");
            p++;
        } else if (*p == '[' || *p == '{') {
            depth++;
            p++;
        } else if (depth > 0 && *p != '\n') {
            depth--;
            p++;
        } else {
            break;
        }
    } while (depth > 0);
    if (p == first)
        return broken(t, p, "expected a value");
    if (depth > 0)
        return broken(t, p, "expected ']' or '}'");
    if (memchr(first, '\0', (size_t)(p - first)) != NULL)
        return broken(t, first, "a NUL byte");
    return p;
}

/* ---------------------------------------------------------------------
 * Numbers
 */

/* Maximum number of decimal digits such that any number fits an int64_t. */
#define MAX_DIGITS 18

/* A byte times this number is the byte repeated eight times. */
#define EACH_BYTE UINT64_C(0x0101010101010101)

#define MAX_WIDTH 8 /* largest value, in bytes */

static place skip_digits(place p)
{
    while (is_digit(*p))
        p++;
    return p;
}

/* Parses digits one at a time. */
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
 * Parses up to seven digits at once, if a comma or blank follows them.  The
 * first of the eight bytes that is less than '0' ends the digits.  The digits
 * are shifted to the end of the word, after zeros, and combined in pairs, fours
 * and eights.  Returns p if the text is anything else.
 *
 * The position of the next number depends only on the first three steps, so the
 * processor can overlap the remaining steps with the next number.
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

/*
 * A double represents integers up to MAX_EXACT and powers of ten up to
 * MAX_POWER exactly.
 */
#define MAX_EXACT (UINT64_C(1) << DBL_MANT_DIG)
#define MAX_POWER 22

static const double powers[MAX_POWER + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

/*
 * Rounds digits / 10^power to the nearest double.  Both numbers must be less
 * than 2^64.  They are shifted until their highest bits are set, so that the
 * quotient has 63 or 64 bits.  If there is a remainder, the lowest bit of the
 * quotient is set, so that the conversion to double rounds as if all bits were
 * known.
 */
static bool divide(uint64_t digits, unsigned power, double *value)
{
#ifdef __SIZEOF_INT128__
    const uint64_t divisor = (uint64_t)powers[power];
    const int up = __builtin_clzll(digits);
    const int down = __builtin_clzll(divisor);
    const uint64_t by = divisor << down;
    __extension__ const unsigned __int128 dividend =
        (unsigned __int128)(digits << up) << 63;
    const uint64_t quotient = (uint64_t)(dividend / by);
    const uint64_t sticky = (uint64_t)dividend != quotient * by;

    *value = ldexp((double)(quotient | sticky), down - up - 63);
    return true;
#else
    (void)digits;
    (void)power;
    (void)value;
    return false;
#endif
}

/*
 * Parses a number with a decimal point and at most 64 bits of digits, and
 * rounds it once, as strtod does.  Returns NULL for any other number.
 */
static place read_short_real(place p, double *value)
{
    const bool negative = *p == '-';
    int64_t integer;
    uint64_t digits;
    unsigned power;
    place point;

    p = read_digits(p + negative, &integer);
    if (p == NULL || *p != '.' || FLT_EVAL_METHOD != 0)
        return NULL;
    digits = (uint64_t)integer;
    for (point = p++; is_digit(*p); p++) {
        if (digits > (UINT64_MAX - 9) / 10)
            return NULL;
        digits = 10 * digits + (uint64_t)(*p - '0');
    }
    if (p - point == 1 || p - point > MAX_POWER + 1 || *p == 'e' || *p == 'E')
        return NULL;
    power = (unsigned)(p - point - 1);
    if (digits <= MAX_EXACT)
        *value = (double)digits / powers[power];
    else if (power > 19 || !divide(digits, power, value))
        return NULL;
    if (negative)
        *value = -*value;
    return p;
}

/*
 * Parses any number with strtoll or strtod to the bits of an element.  Both
 * functions stop at the character after the number.
 */
static place read_number(json_columns *t, json_column *c, place p,
                         uint64_t *bits, element_result *why)
{
    static const char too_large[] =
        "a number is too large (the largest integer is 9223372036854775807)";
    const place digits = p + (*p == '-');
    place q = skip_digits(digits);
    bool is_real = false;
    double real;
    long long integer;

    if (q == digits || (*digits == '0' && q - digits > 1))
        return broken(t, p, "expected a value");
    if (*q == '.') {
        is_real = true;
        if (!is_digit(*++q))
            return broken(t, q, "expected a digit");
        q = skip_digits(q);
    }
    if (*q == 'e' || *q == 'E') {
        is_real = true;
        q++;
        q += *q == '-' || *q == '+';
        if (!is_digit(*q))
            return broken(t, q, "expected a digit");
        q = skip_digits(q);
    }
    c->kinds |= is_real ? KIND_REAL : KIND_INTEGER;
    if (is_real) {
        real = strtod((const char *)p, NULL);
        if (isinf(real))
            return broken(t, p, too_large);
        *why = element_real(c->type, real, bits);
        return q;
    }
    errno = 0;
    integer = strtoll((const char *)p, NULL, 10);
    if (errno == ERANGE)
        return broken(t, p, too_large);
    if (integer < INT32_MIN || integer > INT32_MAX)
        c->kinds |= KIND_WIDE;
    *why = c->is_float || (integer >= c->min && integer <= c->max)
               ? element_integer(c->type, integer, bits)
               : ELEMENT_OUTSIDE;
    return q;
}

/* ---------------------------------------------------------------------
 * Elements
 */

static place read_word(json_columns *t, place p, const char *word)
{
    const size_t n = strlen(word);

    if ((size_t)(t->end - p) < n || memcmp(p, word, n) != 0)
        return broken(t, p, "expected a value");
    return p + n;
}

/* Records the first value that does not fit its column, at index `i`. */
static void misfit(json_columns *t, const json_column *c, place at, size_t i,
                   element_result why)
{
    if (why == ELEMENT_OK || c->is_open || t->misfit_at != NULL)
        return;
    t->misfit = c;
    t->misfit_at = at;
    t->misfit_index = i;
    t->misfit_vector = c->n_vectors;
    t->misfit_why = why;
}

/* Parses any value and stores it at `to` if it fits the column. */
static place read_any(json_columns *t, json_column *c, place p,
                      unsigned char *to)
{
    element_result why = ELEMENT_NO_NUMBER;
    uint64_t bits = 0;
    place q;

    switch (*p) {
    case '"':
    case '[':
    case '{':
        c->kinds |= KIND_OTHER;
        q = skip_any(t, p);
        break;
    case 't':
    case 'f':
        c->kinds |= KIND_BOOLEAN;
        if (!c->is_ids)
            why = element_integer(c->type, *p == 't', &bits);
        q = read_word(t, p, *p == 't' ? "true" : "false");
        break;
    case 'n':
        c->kinds |= KIND_NULL;
        if (!c->is_ids)
            why = element_null(c->type, &bits);
        q = read_word(t, p, "null");
        break;
    default:
        q = read_number(t, c, p, &bits, &why);
        break;
    }
    if (q != NULL)
        misfit(t, c, p, (size_t)(to - c->first) / c->width, why);
    store_low(to, bits, c->width);
    return q;
}

/*
 * Like read_any, with a fast path for short numbers.  Inlined with constant
 * arguments, so that the compiler specialises each call.
 */
static inline place read_element(json_columns *t, json_column *c, place p,
                                 unsigned char *to, size_t width,
                                 bool is_float)
{
    int64_t integer = 0;
    uint64_t bits = 0;
    double real;
    place q = is_float ? read_short_real(p, &real) : NULL;

    if (q != NULL &&
        element_real(width == 8 ? PS_F64 : PS_F32, real, &bits) ==
            ELEMENT_OK) {
        c->kinds |= KIND_REAL;
        store_low(to, bits, width);
        return q;
    }
    q = read_integer(p, &integer);
    if (q == NULL || *q == '.' || *q == 'e' || *q == 'E' ||
        integer < c->min || integer > c->max)
        return read_any(t, c, p, to);
    c->kinds |= KIND_INTEGER;
    bits = (uint64_t)integer;
    if (is_float)
        (void)element_real(c->type, (double)integer, &bits);
    store_low(to, bits, width);
    return q;
}

/* Parses a list of values.  Sets c->length, and stores them at c->first. */
static inline place read_list(json_columns *t, json_column *c, place p,
                              size_t width, bool is_float)
{
    const int64_t min = c->min;
    const int64_t max = c->max;
    const place end = t->end;
    unsigned char *to = c->first;
    int64_t value;

    p = skip_blanks(p + 1);
    c->length = 0;
    if (*p == ']')
        return p + 1;
    for (;;) {
        if (!is_float && end - p >= 8) {
            const place q = read_few_digits(p, &value);

            if (q > p && *q == ',' && (*p != '0' || q == p + 1) &&
                value >= min && value <= max) {
                store_low(to, (uint64_t)value, width);
                to += width;
                p = q + 1;
                if (*p == ' ')
                    p++;
                continue;
            }
        }
        p = read_element(t, c, skip_blanks(p), to, width, is_float);
        if (p == NULL)
            return NULL;
        to += width;
        p = skip_blanks(p);
        if (*p != ',')
            break;
        p = skip_blanks(p + 1);
    }
    c->length = (size_t)(to - c->first) / width;
    return *p == ']' ? p + 1 : broken(t, p, "expected ',' or ']'");
}

/*
 * Parses an element of a list of vectors, and advances c->first over its
 * values.  The type is not constant here: second copies of read_list would slow
 * down plain lists.
 */
static place read_vector(json_columns *t, json_column *c, place p)
{
    const place at = p;

    if (*p != '[') {
        misfit(t, c, p, 0, ELEMENT_NO_VECTOR);
        p = read_any(t, c, p, c->first);
        c->kinds |= KIND_OTHER;
        c->first += c->width;
        return p;
    }
    p = read_list(t, c, p, c->width, c->is_float);
    c->first += c->length * c->width;
    if (c->n_vectors == 0)
        c->vector = c->length;
    if (c->ragged_at == NULL &&
        c->length != (c->count != 0 ? c->count : c->vector)) {
        c->ragged_at = at;
        c->ragged_index = c->n_vectors;
        c->ragged_length = c->length;
    }
    return p;
}

/* Parses a list whose first element, at `p`, is a list. */
static place read_vectors(json_columns *t, json_column *c, place p)
{
    c->is_nested = true;
    c->ragged_at = NULL;
    for (c->n_vectors = 0;; p = skip_blanks(p + 1)) {
        p = read_vector(t, c, p);
        if (p == NULL)
            return NULL;
        c->n_vectors++;
        p = skip_blanks(p);
        if (*p != ',')
            break;
    }
    c->length = c->n_vectors;
    return *p == ']' ? p + 1 : broken(t, p, "expected ',' or ']'");
}

/* Parses a value and stores its elements at c->values. */
static place read_value(json_columns *t, json_column *c, place p)
{
    c->at = p;
    c->is_list = *p == '[';
    c->is_nested = false;
    c->length = 1;
    c->kinds = 0;
    if (c->is_ignored)
        return skip_any(t, p);
    if (!c->is_list)
        return c->is_float
                   ? read_element(t, c, p, c->values, c->width, true)
                   : read_element(t, c, p, c->values, c->width, false);
    if (c->is_open || c->count > 0) {
        const place q = skip_blanks(p + 1);

        if (*q == '[')
            return read_vectors(t, c, q);
    }
    if (c->is_float)
        return c->width == 4 ? read_list(t, c, p, 4, true)
                             : read_list(t, c, p, 8, true);
    switch (c->width) {
    case 1:
        return read_list(t, c, p, 1, false);
    case 2:
        return read_list(t, c, p, 2, false);
    case 4:
        return read_list(t, c, p, 4, false);
    default:
        return read_list(t, c, p, 8, false);
    }
}

/* ---------------------------------------------------------------------
 * The object
 */

/* Returns the column of a key, or NULL if the key is unknown. */
static json_column *find_column(json_columns *t, const unsigned char *key,
                                size_t n)
{
    const uint32_t all = t->n + t->n_strays;

    for (uint32_t i = 0; i < all; i++) {
        const uint32_t k = (t->expected + i) % all;
        json_column *c = &t->column[k];

        if (c->key_bytes == n && memcmp(c->key, key, n) == 0) {
            t->expected = k + 1;
            return c;
        }
    }
    return NULL;
}

/* Parses a key and its value.  Stores the elements at *to and advances *to. */
static place read_member(json_columns *t, place p, unsigned char **to)
{
    const place at = p;
    json_column *c;
    size_t n;

    p = read_key(t, p, *to, &n);
    if (p == NULL)
        return NULL;
    c = find_column(t, *to, n);
    if (c != NULL && c->at != NULL)
        return broken(t, at, "duplicate key");
    if (c == NULL) {
        /* Unknown keys beyond the limit share the last column. */
        t->n_strays += t->n_strays < JSON_STRAYS;
        c = &t->column[t->n + t->n_strays - 1];
        *c = json_column_of((const char *)*to, PS_F64);
        c->is_open = true;
        c->min = INT32_MIN; /* read_number reports KIND_WIDE */
        c->max = INT32_MAX;
        *to += n + 1;
    }
    p = skip_blanks(p);
    if (*p != ':')
        return broken(t, p, "expected ':'");
    c->values = *to;
    c->first = *to;
    p = read_value(t, c, skip_blanks(p + 1));
    if (p == NULL)
        return NULL;
    if (!c->is_ignored)
        *to = c->is_nested ? c->first : *to + c->length * c->width;
    return skip_blanks(p);
}

static bool reserve(json_columns *t, size_t n)
{
    /* A value has at least two bytes in the line. */
    const size_t size = (n / 2 + 1) * MAX_WIDTH;

    if (size <= t->size)
        return true;
    free(t->values);
    t->size = 0;
    t->values = malloc(2 * size);
    if (t->values == NULL)
        return false;
    t->size = 2 * size;
    return true;
}

bool json_columns_read(json_columns *t, const unsigned char *line, size_t n)
{
    place p = skip_blanks(line);
    unsigned char *to;

    t->n_strays = 0;
    t->misfit_at = NULL;
    t->broken = NULL;
    t->line = line;
    t->end = line + n;
    for (uint32_t i = 0; i < t->n; i++)
        t->column[i].at = NULL;
    if (!reserve(t, n))
        return false;
    if (*p != '{')
        return broken(t, p, "expected '{'") != NULL;

    to = t->values;
    p = skip_blanks(p + 1);
    if (*p != '}') {
        while ((p = read_member(t, p, &to)) != NULL && *p == ',')
            p = skip_blanks(p + 1);
        if (p == NULL)
            return false;
        if (*p != '}')
            return broken(t, p, "expected ',' or '}'") != NULL;
    }
    p = skip_blanks(p + 1);
    return p == t->end || broken(t, p, "expected the end of the line") != NULL;
}

/* ---------------------------------------------------------------------
 * Columns
 */

bool json_columns_open(json_columns *t, uint32_t n)
{
    free(t->column);
    t->column = calloc(n + JSON_STRAYS, sizeof *t->column);
    t->n = t->column == NULL ? 0 : n;
    t->expected = 0;
    return t->column != NULL;
}

json_column json_column_of(const char *key, ps_type type)
{
    json_column c = {.key = key, .key_bytes = strlen(key), .type = type,
                     .width = ps_type_bytes(type)};

    c.is_float = !element_range(type, &c.min, &c.max);
    if (c.is_float) {
        /* Maximum magnitude up to which a float stores every integer. */
        c.max = INT64_C(1) << (c.width == 8 ? DBL_MANT_DIG : FLT_MANT_DIG);
        c.min = -c.max;
    }
    return c;
}

void json_columns_free(json_columns *t)
{
    free(t->values);
    free(t->column);
    *t = (json_columns){0};
}

bool json_element(ps_type type, const char *text, uint64_t *bits)
{
    const place from = (place)text;
    json_columns t = {.end = from + strlen(text)};
    json_column c = json_column_of("", type);
    unsigned char element[MAX_WIDTH] = {0};
    place p;

    /* Refuse strings, lists and objects: their parsers rely on a newline. */
    if (strchr("\"[{", *text) != NULL)
        return false;
    c.first = element;
    p = read_any(&t, &c, from, element);
    *bits = load_u64(element);
    return p == t.end && t.misfit_at == NULL;
}
