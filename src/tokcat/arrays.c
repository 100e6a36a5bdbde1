/*
 * arrays.c - files that contain one array of numbers: .bin files of llm.c,
 * which have a header, .bin files of nanoGPT, which do not, and numpy's .npy
 * files.
 *
 * A one-dimensional array is a stream without sequence boundaries.  In a
 * two-dimensional array, which only .npy files can have, each row is a
 * sequence.
 *
 * SPDX-License-Identifier: MIT
 */

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "tokcat/reader.h"
#include "tokcat/split.h"

/* ---------------------------------------------------------------------
 * llm.c and nanoGPT
 */

/* The header of llm.c has 256 numbers of type i32; three of them are used. */
#define LLMC_HEADER_BYTES ((size_t)4 * 256)
#define LLMC_MAGIC_U16 UINT32_C(20240520)
#define LLMC_VERSION_U16 UINT32_C(1)
#define LLMC_MAGIC_U32 UINT32_C(20240801)
#define LLMC_VERSION_U32 UINT32_C(7)

static int read_llmc(reader *r)
{
    input_file *in = &r->in;
    uint32_t magic;
    uint32_t version;
    uint32_t known;
    uint32_t n;
    number_type type;
    size_t ready;
    int status = input_require(in, LLMC_HEADER_BYTES,
                               "the header of 1024 bytes");

    if (status != STATUS_OK)
        return status;
    magic = load_u32(input_at(in));
    version = load_u32(input_at(in) + 4);
    n = load_u32(input_at(in) + 8);
    known = magic == LLMC_MAGIC_U32 ? LLMC_VERSION_U32 : LLMC_VERSION_U16;
    type = (number_type){.width = magic == LLMC_MAGIC_U32 ? 4 : 2};
    if (magic != LLMC_MAGIC_U16 && magic != LLMC_MAGIC_U32)
        return input_bad(in, 0, "not an llm.c token file: it starts with "
                         "%" PRIu32, magic);
    if (version != known)
        return input_bad(in, 4, "unknown llm.c version %" PRIu32 ": expected "
                         "%" PRIu32 " for magic number %" PRIu32,
                         version, known, magic);
    if (n > INT32_MAX)
        return input_bad(in, 8, "the number of tokens is negative");
    input_take(in, LLMC_HEADER_BYTES);

    status = reader_start(r, type.width);
    if (status == STATUS_OK)
        status = split_stream(r, type, n);
    if (status == STATUS_OK)
        status = input_need(in, 1, &ready);
    if (status == STATUS_OK && ready > 0)
        status = input_bad(in, input_offset(in), "extra bytes after the "
                           "%" PRIu32 " tokens that the header declares", n);
    return status;
}

/*
 * There is no header to check, so files of other formats have to be recognized
 * and refused.
 */
static int read_nanogpt(reader *r)
{
    const number_type type = split_token_type(r);
    const char *seems;
    size_t ready;
    int status = input_need(&r->in, PS_RECOGNIZE_BYTES, &ready);

    if (status != STATUS_OK)
        return status;
    seems = r->conf->as_it_is ? NULL : input_seems(&r->in);
    if (seems != NULL)
        return input_bad(&r->in, 0, "this looks like %s, not tokens: use "
                         "--no-decompress to read it anyway", seems);
    status = reader_start(r, type.width);
    return status == STATUS_OK ? split_stream(r, type, SPLIT_ALL) : status;
}

const form_reader reader_llmc = {
    .unit = "sequence",
    .learns = true,
    .expected = "an llm.c token file",
    .read = read_llmc,
};

const form_reader reader_nanogpt = {
    .unit = "sequence",
    .learns = true,
    .read = read_nanogpt,
};

/* ---------------------------------------------------------------------
 * The header of .npy files
 *
 *   {'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }
 *
 * numpy accepts any Python literal.  This parser accepts only literals that
 * numpy writes: strings, booleans and tuples of integers, in any order, with
 * any blanks, and not nested.  Under Python 2, numpy wrote only versions 1.0
 * and 2.0, and on some systems sizes such as (2L, 3L).
 */

/* Size of the magic.  Two version bytes and the header's length follow it. */
#define NPY_MAGIC_BYTES 6
/*
 * Size of the start of versions 2 and 3, in bytes.  That of version 1 has 10,
 * but its header makes the file longer.
 */
#define NPY_START_BYTES 12

/* Maximum size of the header, in bytes, twice the limit of numpy. */
#define NPY_MAX_BYTES ((size_t)20000)

typedef struct npy_header {
    number_type type;
    int dimensions;   /* 1 or 2 */
    uint64_t rows;    /* 1 if there is one dimension */
    uint64_t columns; /* numbers per row */
} npy_header;

typedef struct scan {
    const unsigned char *at, *end;
    bool longs; /* numbers can end with L */
} scan;

static void skip_blanks(scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n'))
        s->at++;
}

/* Skips blanks and `word`.  Returns false if the word is missing. */
static bool take(scan *s, const char *word)
{
    const size_t n = strlen(word);

    skip_blanks(s);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
        return false;
    s->at += n;
    return true;
}

/* Parses a string in single or double quotes, without escapes. */
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

/* Parses a size as Python writes it, without leading zeros. */
static bool take_number(scan *s, uint64_t *number)
{
    const unsigned char *from;

    skip_blanks(s);
    from = s->at;
    *number = 0;
    for (; s->at < s->end && isdigit(*s->at); s->at++) {
        const unsigned digit = (unsigned)*s->at - '0';

        if (*number > ((uint64_t)INT64_MAX - digit) / 10)
            return false;
        *number = 10 * *number + digit;
    }
    return s->at > from && (*from != '0' || s->at == from + 1);
}

/* Parses a type such as "<u2": byte order, kind, width in bytes. */
static const char *take_type(scan *s, number_type *type)
{
    const unsigned char *d;
    size_t n;

    skip_blanks(s);
    if (s->at < s->end && *s->at == '[')
        return "an array of records: --from=npy reads integers";
    if (!take_string(s, &d, &n))
        return "'descr' is not a string";
    s->at -= n + 1;
    if (n >= 2 && d[1] == 'O')
        return "an array of pickled objects: --from=npy reads integers";
    if (n != 3 || (d[1] != 'u' && d[1] != 'i') || !isdigit(d[2]))
        return "not an array of integers: token ids are integers";
    if (d[0] == '>')
        return "a big-endian array: --from=npy reads little-endian arrays";
    type->width = (size_t)d[2] - '0';
    type->is_signed = d[1] == 'i';
    if (d[0] != '<' && !(d[0] == '|' && type->width == 1))
        return "an array of unknown byte order";
    if (type->width != 1 && type->width != 2 && type->width != 4 &&
        type->width != 8)
        return "integers of an unsupported width";
    s->at += n + 1;
    return NULL;
}

/*
 * Parses (N,) or (N, N).  A trailing comma is allowed; (N) is not a tuple in
 * Python.
 */
static const char *take_shape(scan *s, npy_header *h)
{
    uint64_t sizes[3] = {0, 0, 0};
    bool comma = false;
    int n = 0;

    if (!take(s, "("))
        return "'shape' is not a tuple";
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
        return "'shape' is not a tuple of valid sizes";
    if (n == 0)
        return "an array of zero dimensions";
    h->dimensions = n;
    h->rows = n == 2 ? sizes[0] : 1;
    h->columns = sizes[n - 1];
    return NULL;
}

enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7 };

/* Parses a key, which must not be in `had` yet, and its value. */
static const char *take_entry(scan *s, unsigned *had, npy_header *h)
{
    const unsigned char *text;
    unsigned key = 0;
    size_t n;

    if (!take_string(s, &text, &n))
        return "expected a dictionary key";
    if (n == 5 && memcmp(text, "descr", n) == 0)
        key = DESCR;
    else if (n == 13 && memcmp(text, "fortran_order", n) == 0)
        key = ORDER;
    else if (n == 5 && memcmp(text, "shape", n) == 0)
        key = SHAPE;
    if (key == 0)
        return "an unknown key";
    if ((*had & key) != 0)
        return "duplicate key";
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
        return "'fortran_order' is not True or False";
    s->at -= strlen("True");
    return "an array in Fortran order: --from=npy reads arrays in C order";
}

/* Reads the file up to the first number. */
static int read_npy_header(reader *r, npy_header *h)
{
    input_file *in = &r->in;
    const unsigned char *p;
    const char *why;
    scan s;
    unsigned had = 0;
    unsigned major;
    size_t start;
    size_t n;
    int status = input_require(in, NPY_START_BYTES, "the header");

    if (status != STATUS_OK)
        return status;
    p = input_at(in);
    major = p[NPY_MAGIC_BYTES];
    start = major == 1 ? 10 : 12;
    n = major == 1 ? load_u16(p + 8) : load_u32(p + 8);
    if (memcmp(p, "\x93NUMPY", NPY_MAGIC_BYTES) != 0)
        return input_bad(in, 0, "not a .npy file (use --from=nanogpt for "
                         "numbers without a header)");
    if (major < 1 || major > 3 || p[NPY_MAGIC_BYTES + 1] != 0)
        return input_bad(in, NPY_MAGIC_BYTES, "unknown .npy version: only 1.0, "
                         "2.0 and 3.0 are supported");
    if (n > NPY_MAX_BYTES)
        return input_bad(in, NPY_MAGIC_BYTES + 2, "the header exceeds 20000 "
                         "bytes");

    status = input_require(in, start + n, "the header");
    if (status != STATUS_OK)
        return status;

    /* All three keys are required; other keys are refused. */
    p = input_at(in) + start;
    s = (scan){.at = p, .end = p + n, .longs = major < 3};
    why = take(&s, "{") ? NULL : "not a dictionary";
    while (why == NULL && !take(&s, "}")) {
        why = take_entry(&s, &had, h);
        if (why == NULL && !take(&s, ",")) {
            if (!take(&s, "}"))
                why = "expected a comma or the end of the dictionary";
            break;
        }
    }
    skip_blanks(&s);
    if (why == NULL && s.at < s.end)
        why = "extra characters after the dictionary";
    if (why == NULL && had != ALL)
        why = "one of 'descr', 'fortran_order' and 'shape' is missing";
    if (why != NULL)
        return input_bad(in, start + (size_t)(s.at - p), "%s", why);
    input_take(in, start + n);
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * numpy's arrays
 */

static int read_rows(reader *r, const npy_header *h)
{
    int status = STATUS_OK;

    r->place = (reader_place){"row", 0, input_offset(&r->in)};
    /* Do not count such rows in a loop: a small file can declare 2^64 - 1. */
    if (h->columns == 0 && h->rows > 0)
        return reader_empty(r, h->rows);
    while (status == STATUS_OK && r->place.number < h->rows) {
        r->place.offset = input_offset(&r->in);
        r->out.figures.bytes += h->columns * h->type.width;
        status = split_sequence(r, h->type, h->columns);
        r->place.number++;
    }
    return status;
}

static int read_npy(reader *r)
{
    npy_header h = {.dimensions = 0};
    uint64_t max;
    uint64_t columns;
    size_t ready;
    int status = read_npy_header(r, &h);

    if (status != STATUS_OK)
        return status;

    /* As in numpy, a large dimension is refused even if the other is 0. */
    max = INT64_MAX / h.type.width;
    columns = h.columns > 0 ? h.columns : 1;
    if (columns > max || h.rows > max / columns)
        return input_bad(&r->in, 0, "the array has more numbers than a file "
                         "can hold");
    if (h.dimensions == 1 && !r->conf->split_given)
        return input_bad(&r->in, 0, "a one-dimensional array needs "
                         "--split=eos, --split=bos or --split=N");
    if (h.dimensions == 1 && r->conf->trim)
        return input_bad(&r->in, 0, "--trim-pad needs a two-dimensional array, "
                         "which has rows to trim");
    if (h.dimensions == 2 && r->conf->split_given)
        return input_bad(&r->in, 0, "--split cannot be used with a "
                         "two-dimensional array, in which each row is a "
                         "sequence");

    status = reader_start(r, h.type.width);
    if (status == STATUS_OK)
        status = h.dimensions == 1 ? split_stream(r, h.type, h.columns)
                                   : read_rows(r, &h);
    if (status == STATUS_OK)
        status = input_need(&r->in, 1, &ready);
    if (status == STATUS_OK && ready > 0)
        status = input_bad(&r->in, input_offset(&r->in), "extra bytes after "
                           "the array");
    return status;
}

const form_reader reader_npy = {
    .unit = "row",
    .learns = true,
    .expected = "a numpy array",
    .read = read_npy,
};
