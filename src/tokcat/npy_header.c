/*
 * npy_header.c - what stands before the numbers of a .npy file.
 *
 *   {'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }
 *
 * numpy takes any Python literal; we take the strings, truth values and
 * tuples of integers that it writes, in any order and with any blanks, and
 * nothing that nests.  Under Python 2, which knew versions 1.0 and 2.0, it
 * wrote (2L, 3L) on some systems.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/npy_header.h"

#include <string.h>

#include "common/bytes.h"

const char *npy_measure(const unsigned char bytes[NPY_START_BYTES],
                        size_t *start, size_t *n, size_t *at)
{
    const unsigned major = bytes[NPY_MAGIC_BYTES];

    *start = *n = *at = 0;
    if (memcmp(bytes, "\x93NUMPY", NPY_MAGIC_BYTES) != 0)
        return "no .npy file begins so (see --from=nanogpt for numbers "
               "without a header)";
    *at = NPY_MAGIC_BYTES;
    if (major < 1 || major > 3 || bytes[NPY_MAGIC_BYTES + 1] != 0)
        return "a version of .npy other than 1.0, 2.0 and 3.0";
    *at = NPY_MAGIC_BYTES + 2;
    *start = major == 1 ? 10 : 12;
    *n = major == 1 ? load_u16(bytes + 8) : load_u32(bytes + 8);
    return *n > NPY_LONGEST ? "a header of more than 20000 bytes" : NULL;
}

/* ---------------------------------------------------------------------
 * Python's words
 */

typedef struct scan {
    const unsigned char *at, *end;
    bool longs; /* there may be an L behind a number */
} scan;

static void skip_blanks(scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n'))
        s->at++;
}

/* Takes that word, after blanks. */
static bool take(scan *s, const char *word)
{
    const size_t n = strlen(word);

    skip_blanks(s);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
        return false;
    s->at += n;
    return true;
}

/* Takes a string, within quotes of either kind and without escapes. */
static bool take_string(scan *s, const unsigned char **text, size_t *n)
{
    unsigned char quote;

    skip_blanks(s);
    if (s->at == s->end || (*s->at != '\'' && *s->at != '"'))
        return false;
    quote = *s->at++;
    *text = s->at;
    while (s->at < s->end && *s->at != quote && *s->at != '\\')
        s->at++;
    *n = (size_t)(s->at - *text);
    return s->at < s->end && *s->at++ == quote;
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

/* Takes a size as Python writes it: without a zero before other digits. */
static bool take_number(scan *s, uint64_t *number)
{
    const unsigned char *from;

    skip_blanks(s);
    from = s->at;
    *number = 0;
    for (; s->at < s->end && is_digit(*s->at); s->at++) {
        const unsigned digit = (unsigned)*s->at - '0';

        if (*number > ((uint64_t)INT64_MAX - digit) / 10)
            return false;
        *number = 10 * *number + digit;
    }
    return s->at > from && (*from != '0' || s->at == from + 1);
}

/* ---------------------------------------------------------------------
 * What the keys hold
 */

/* "<u2": byte order, kind, bytes. */
static const char *take_type(scan *s, number_type *type)
{
    const unsigned char *d;
    size_t n;

    skip_blanks(s);
    if (s->at < s->end && *s->at == '[')
        return "an array of records; --from=npy reads integers";
    if (!take_string(s, &d, &n))
        return "'descr' is no string";
    s->at -= n + 1;
    if (n >= 2 && d[1] == 'O')
        return "an array of pickled objects; --from=npy reads integers";
    if (n != 3 || (d[1] != 'u' && d[1] != 'i') || !is_digit(d[2]))
        return "an array of no integers, and tokens are integers";
    if (d[0] == '>')
        return "a big-endian array; --from=npy reads little-endian ones";
    type->width = (size_t)d[2] - '0';
    type->is_signed = d[1] == 'i';
    if (d[0] != '<' && !(d[0] == '|' && type->width == 1))
        return "an array of unknown byte order";
    if (type->width != 1 && type->width != 2 && type->width != 4 &&
        type->width != 8)
        return "integers of an odd width";
    s->at += n + 1;
    return NULL;
}

/* (N,) or (N, N), behind which a comma may stand; (N) is no tuple. */
static const char *take_shape(scan *s, npy_header *h)
{
    uint64_t sizes[3] = {0, 0, 0};
    bool comma = false;
    int n = 0;

    if (!take(s, "("))
        return "'shape' is no tuple";
    while (n < 3 && take_number(s, &sizes[n])) {
        n++;
        if (s->longs && s->at < s->end && *s->at == 'L')
            s->at++;
        comma = take(s, ",");
        if (!comma)
            break;
    }
    if (n == 3)
        return "an array of more than two dimensions";
    if (!take(s, ")") || (n == 1 && !comma))
        return "'shape' is no tuple of sizes that there can be";
    if (n == 0)
        return "an array without dimensions";
    h->dimensions = n;
    h->rows = n == 2 ? sizes[0] : 1;
    h->columns = sizes[n - 1];
    return NULL;
}

/* ---------------------------------------------------------------------
 * The dictionary
 */

enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7 };

/* Takes a key that is not among `had`, and its value. */
static const char *take_entry(scan *s, unsigned *had, npy_header *h)
{
    const unsigned char *text;
    unsigned key = 0;
    size_t n;

    if (!take_string(s, &text, &n))
        return "no key of a dictionary";
    if (n == 5 && memcmp(text, "descr", n) == 0)
        key = DESCR;
    else if (n == 13 && memcmp(text, "fortran_order", n) == 0)
        key = ORDER;
    else if (n == 5 && memcmp(text, "shape", n) == 0)
        key = SHAPE;
    if (key == 0)
        return "an unknown key";
    if ((*had & key) != 0)
        return "a key for the second time";
    if (!take(s, ":"))
        return "a key without a value";
    *had |= key;
    skip_blanks(s);
    if (key == DESCR)
        return take_type(s, &h->type);
    if (key == SHAPE)
        return take_shape(s, h);
    if (take(s, "False"))
        return NULL;
    if (!take(s, "True"))
        return "'fortran_order' is neither True nor False";
    s->at -= strlen("True");
    return "an array in Fortran's order; --from=npy reads arrays in C's "
           "order";
}

const char *npy_parse(const unsigned char *dictionary, size_t n,
                      unsigned major, npy_header *header, size_t *at)
{
    scan s = {.at = dictionary, .end = dictionary + n, .longs = major < 3};
    const char *why = take(&s, "{") ? NULL : "no dictionary";
    unsigned had = 0;

    while (why == NULL && !take(&s, "}")) {
        why = take_entry(&s, &had, header);
        if (why == NULL && !take(&s, ",")) {
            if (!take(&s, "}"))
                why = "neither a comma nor the end of the dictionary";
            break;
        }
    }
    skip_blanks(&s);
    if (why == NULL && s.at < s.end)
        why = "more than blanks behind the dictionary";
    if (why == NULL && had != ALL)
        why = "one of 'descr', 'fortran_order' and 'shape' is missing";
    *at = (size_t)(s.at - dictionary);
    return why;
}
