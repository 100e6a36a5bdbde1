/*
 * npy.c - numpy's array files: of one dimension a stream without boundaries,
 * of two a sequence in each row.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "tokcat/job.h"
#include "tokcat/npy_header.h"
#include "tokcat/split.h"

static int open_npy(job *j, const char *name)
{
    return binary_open(&j->data, name);
}

/* Reads up to the first number. */
static int read_header(job *j, npy_header *h)
{
    const char *why;
    size_t start;
    size_t n;
    size_t at;
    size_t ready;
    int status = binary_need(&j->data, NPY_START_BYTES, &ready);

    if (status != STATUS_OK)
        return status;
    if (ready < NPY_START_BYTES)
        return binary_cut(&j->data, "its header");
    why = npy_measure(binary_at(&j->data), &start, &n, &at);
    if (why != NULL)
        return binary_bad(&j->data, at, "%s", why);
    status = binary_need(&j->data, start + n, &ready);
    if (status != STATUS_OK)
        return status;
    if (ready < start + n)
        return binary_cut(&j->data, "its header");
    why = npy_parse(binary_at(&j->data) + start, n,
                    binary_at(&j->data)[NPY_MAGIC_BYTES], h, &at);
    if (why != NULL)
        return binary_bad(&j->data, start + at, "%s", why);
    binary_take(&j->data, start + n);
    return STATUS_OK;
}

/*
 * Whether a header's numbers can be, and what is asked of them.  As for
 * numpy, a dimension of 0 does not make up for a large one.
 */
static int check_shape(const job *j, const npy_header *h)
{
    const uint64_t max = INT64_MAX / h->type.width;
    const uint64_t columns = h->columns > 0 ? h->columns : 1;

    if (columns > max || h->rows > max / columns)
        return binary_bad(&j->data, 0, "an array of more numbers than any "
                          "file can have");
    if (h->dimensions == 1 && !j->conf->split_given)
        return binary_bad(&j->data, 0, "an array of one dimension: say "
                          "where sequences end with --split=eos, "
                          "--split=bos or --split=N");
    if (h->dimensions == 1 && j->conf->trim)
        return binary_bad(&j->data, 0, "an array of one dimension has no "
                          "rows, of which --trim-pad leaves out the end");
    if (h->dimensions == 2 && j->conf->split_given)
        return binary_bad(&j->data, 0, "an array of two dimensions has a "
                          "sequence in each row, and is not cut as --split "
                          "says");
    return STATUS_OK;
}

/* How many tokens are left without padding at the end. */
static uint64_t trim(const job *j, const unsigned char *tokens, uint64_t n)
{
    const bool wide = j->out.schema.token_type == PS_U32;
    const uint32_t pad = j->conf->schema.special[PS_PAD];

    while (j->conf->trim && n > 0 &&
           (wide ? load_u32(tokens + 4 * (n - 1))
                 : load_u16(tokens + 2 * (n - 1))) == pad)
        n--;
    return n;
}

static int read_row(job *j, const npy_header *h)
{
    const unsigned char *tokens = NULL;
    uint64_t n = h->columns;
    int status;

    j->place.offset = binary_offset(&j->data);
    status = cut_piece(j, &j->data, h->type, n, &tokens);
    if (status != STATUS_OK)
        return status;
    j->out.figures.bytes += n * h->type.width;
    n = trim(j, tokens, n);
    return n == 0 ? job_empty(j)
                  : records_put_tokens(&j->out, (uint32_t)n, tokens);
}

static int read_rows(job *j, const npy_header *h)
{
    int status = STATUS_OK;

    j->place = (job_place){"row", 0, binary_offset(&j->data)};
    /* There may be more of these than there is time to count. */
    if (h->columns == 0 && h->rows > 0)
        return job_empties(j, h->rows);
    while (status == STATUS_OK && j->place.number < h->rows) {
        status = read_row(j, h);
        j->place.number++;
    }
    return status;
}

static int read_npy(job *j)
{
    npy_header h = {.dimensions = 0};
    size_t ready;
    int status = read_header(j, &h);

    if (status == STATUS_OK)
        status = check_shape(j, &h);
    if (status == STATUS_OK)
        status = job_start(j, h.type.width);
    if (status == STATUS_OK)
        status = h.dimensions == 1 ? cut_stream(j, h.type, h.columns)
                                   : read_rows(j, &h);
    if (status == STATUS_OK)
        status = binary_need(&j->data, 1, &ready);
    if (status == STATUS_OK && ready > 0)
        status = binary_bad(&j->data, binary_offset(&j->data), "the file "
                            "goes on behind its array");
    return status;
}

const job_source source_npy = {
    .unit = "row",
    .learns = true,
    .open = open_npy,
    .read = read_npy,
};
