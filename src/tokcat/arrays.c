/*
 * arrays.c - files that are one array of numbers: the .bin files of llm.c,
 * which have a header, those of nanoGPT, which have none, and numpy's .npy.
 *
 * An array of one dimension is a stream without boundaries; of two, which
 * only numpy's can have, a sequence in each row.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "tokcat/npy_header.h"
#include "tokcat/reader.h"
#include "tokcat/split.h"

/* ---------------------------------------------------------------------
 * llm.c and nanoGPT
 */

/* llm.c's header is so many i32; of these three tell something. */
#define LLMC_HEADER_BYTES ((size_t)4 * 256)
#define LLMC_MAGIC_U16 UINT32_C(20240520)
#define LLMC_VERSION_U16 UINT32_C(1)
#define LLMC_MAGIC_U32 UINT32_C(20240801)
#define LLMC_VERSION_U32 UINT32_C(7)

/* What type the numbers have, and how many there are. */
static int read_llmc_header(reader *r, number_type *type, uint64_t *n)
{
    input_file *in = &r->in;
    uint32_t magic;
    uint32_t version;
    bool wide;
    int status = input_require(in, LLMC_HEADER_BYTES,
                               "its header of 1024 bytes");

    if (status != STATUS_OK)
        return status;
    magic = load_u32(input_at(in));
    version = load_u32(input_at(in) + 4);
    wide = magic == LLMC_MAGIC_U32;
    *n = load_u32(input_at(in) + 8);
    if (magic != LLMC_MAGIC_U16 && !wide)
        return input_bad(in, 0, "no file of llm.c's tokens begins with %"
                         PRIu32, magic);
    if (version != (wide ? LLMC_VERSION_U32 : LLMC_VERSION_U16))
        return input_bad(in, 4, "version %" PRIu32 " of llm.c's tokens; only "
                         "%" PRIu32 " is known to begin with %" PRIu32,
                         version,
                         wide ? LLMC_VERSION_U32 : LLMC_VERSION_U16, magic);
    if (*n > INT32_MAX)
        return input_bad(in, 8, "the number of tokens is negative");
    *type = (number_type){.width = wide ? 4 : 2};
    input_take(in, LLMC_HEADER_BYTES);
    return STATUS_OK;
}

static int read_llmc(reader *r)
{
    number_type type = {.width = 0};
    uint64_t n = 0;
    size_t ready;
    int status = read_llmc_header(r, &type, &n);

    if (status == STATUS_OK)
        status = reader_start(r, type.width);
    if (status == STATUS_OK)
        status = split_stream(r, type, n);
    if (status == STATUS_OK)
        status = input_need(&r->in, 1, &ready);
    if (status == STATUS_OK && ready > 0)
        status = input_bad(&r->in, input_offset(&r->in), "the file goes on "
                           "behind its %" PRIu64 " tokens", n);
    return status;
}

static int read_nanogpt(reader *r)
{
    const ps_type token = r->out.schema.token_type;
    const int status = reader_start(r, ps_type_bytes(token));

    return status == STATUS_OK
               ? split_stream(r, number_of_token(token), SPLIT_ALL)
               : status;
}

const form_reader reader_llmc = {
    .unit = "sequence",
    .learns = true,
    .read = read_llmc,
};

const form_reader reader_nanogpt = {
    .unit = "sequence",
    .learns = true,
    .read = read_nanogpt,
};

/* ---------------------------------------------------------------------
 * numpy
 */

/* Reads up to the first number. */
static int read_npy_header(reader *r, npy_header *h)
{
    input_file *in = &r->in;
    const char *why;
    size_t start;
    size_t n;
    size_t at;
    int status = input_require(in, NPY_START_BYTES, "its header");

    if (status != STATUS_OK)
        return status;
    why = npy_measure(input_at(in), &start, &n, &at);
    if (why != NULL)
        return input_bad(in, at, "%s", why);
    status = input_require(in, start + n, "its header");
    if (status != STATUS_OK)
        return status;
    why = npy_parse(input_at(in) + start, n, input_at(in)[NPY_MAGIC_BYTES],
                    h, &at);
    if (why != NULL)
        return input_bad(in, start + at, "%s", why);
    input_take(in, start + n);
    return STATUS_OK;
}

/*
 * Whether a header's numbers can be, and what is asked of them.  As for
 * numpy, a dimension of 0 does not make up for a large one.
 */
static int check_shape(const reader *r, const npy_header *h)
{
    const uint64_t max = INT64_MAX / h->type.width;
    const uint64_t columns = h->columns > 0 ? h->columns : 1;

    if (columns > max || h->rows > max / columns)
        return input_bad(&r->in, 0, "an array of more numbers than any file "
                         "can have");
    if (h->dimensions == 1 && !r->conf->split_given)
        return input_bad(&r->in, 0, "an array of one dimension: say where "
                         "sequences end with --split=eos, --split=bos or "
                         "--split=N");
    if (h->dimensions == 1 && r->conf->trim)
        return input_bad(&r->in, 0, "an array of one dimension has no rows, "
                         "of which --trim-pad leaves out the end");
    if (h->dimensions == 2 && r->conf->split_given)
        return input_bad(&r->in, 0, "an array of two dimensions has a "
                         "sequence in each row, and is not cut as --split "
                         "says");
    return STATUS_OK;
}

static int read_rows(reader *r, const npy_header *h)
{
    const bool wide = r->out.schema.token_type == PS_U32;
    const uint32_t pad = r->conf->schema.special[PS_PAD];
    int status = STATUS_OK;

    r->place = (reader_place){"row", 0, input_offset(&r->in)};
    /* There may be more of these than there is time to count. */
    if (h->columns == 0 && h->rows > 0)
        return reader_empty(r, h->rows);
    while (status == STATUS_OK && r->place.number < h->rows) {
        const unsigned char *tokens = NULL;
        uint64_t n = h->columns;

        r->place.offset = input_offset(&r->in);
        status = split_next(r, h->type, n, &tokens);
        if (status != STATUS_OK)
            return status;
        r->out.figures.bytes += n * h->type.width;
        while (r->conf->trim && n > 0 &&
               (wide ? load_u32(tokens + 4 * (n - 1))
                     : load_u16(tokens + 2 * (n - 1))) == pad)
            n--;
        status = n == 0 ? reader_empty(r, 1)
                        : records_put(&r->out, (uint32_t)n, tokens);
        r->place.number++;
    }
    return status;
}

static int read_npy(reader *r)
{
    npy_header h = {.dimensions = 0};
    size_t ready;
    int status = read_npy_header(r, &h);

    if (status == STATUS_OK)
        status = check_shape(r, &h);
    if (status == STATUS_OK)
        status = reader_start(r, h.type.width);
    if (status == STATUS_OK)
        status = h.dimensions == 1 ? split_stream(r, h.type, h.columns)
                                   : read_rows(r, &h);
    if (status == STATUS_OK)
        status = input_need(&r->in, 1, &ready);
    if (status == STATUS_OK && ready > 0)
        status = input_bad(&r->in, input_offset(&r->in), "the file goes on "
                           "behind its array");
    return status;
}

const form_reader reader_npy = {
    .unit = "row",
    .learns = true,
    .read = read_npy,
};
