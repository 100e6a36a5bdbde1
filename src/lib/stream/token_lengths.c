/*
 * token_lengths.c - read the histogram at the end of a token record file.
 *
 * SPDX-License-Identifier: MIT
 *
 * LENGTHS precedes END.  It ends with its own size and contains the length of
 * the stream before it, so the streams of a file can be found from last to
 * first without reading any sequences.
 */

#include <inttypes.h>
#include <unistd.h>

#include "base/error.h"
#include "format/lengths_record.h"
#include "format/token_header.h"
#include "io/random_input.h"

/* Bytes read at the end of a stream: the size of LENGTHS, then END. */
#define END_BYTES (8 + PS_TOKEN_END_BYTES)

/* Minimum size of a stream with LENGTHS. */
#define MIN_STREAM_BYTES                                               \
    (PS_TOKEN_FIXED_BYTES + 8 + PS_LENGTHS_MIN_BYTES + PS_TOKEN_END_BYTES)

/* Checks that a file starts with framed token records. */
static ps_result check_magic(ps_random_input *in, ps_error *err)
{
    const uint64_t size = ps_random_input_size(in);
    const size_t n = size < PS_RECOGNIZE_BYTES ? (size_t)size
                                               : PS_RECOGNIZE_BYTES;
    const unsigned char *bytes = NULL;
    const char *other;
    ps_result r = PS_OK;

    if (n > 0)
        r = ps_random_input_read(in, 0, n, &bytes, err);
    if (r != PS_OK ||
        (n == PS_RECOGNIZE_BYTES && ps_is_token_magic_prefix(bytes, n)))
        return r;
    other = n > 0 ? ps_recognize(bytes, n) : NULL;
    return other != NULL
               ? ps_fail(err, PS_ERR_MAGIC,
                         "not token records: this looks like %s", other)
               : ps_fail(err, PS_ERR_MAGIC, "not framed token records");
}

/* Reads the header at `at`.  The header and the records must end by `end`. */
static ps_result read_header(ps_random_input *in, uint64_t at, uint64_t end,
                             ps_schema *schema, size_t *size, ps_error *err)
{
    const unsigned char *bytes;
    ps_result r = PS_OK;

    *size = PS_TOKEN_FIXED_BYTES;
    if (end - at >= *size)
        r = ps_random_input_read(in, at, *size, &bytes, err);
    if (r != PS_OK)
        return r;
    if (end - at < *size || !ps_is_token_magic_prefix(bytes, 8))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "no header at byte %" PRIu64, at);
    r = ps_token_header_size(bytes, size, err);
    if (r != PS_OK)
        return r;
    if (end - at < *size)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "truncated header at byte %" PRIu64, at);
    r = ps_random_input_read(in, at, *size, &bytes, err);
    return r == PS_OK ? ps_token_header_decode(bytes, *size, schema, err) : r;
}

/* Reads END of the stream that ends at `end`, and the size of LENGTHS. */
static ps_result read_end(ps_random_input *in, uint64_t end,
                          ps_token_end *sums, uint64_t *size, ps_error *err)
{
    const unsigned char *bytes;
    bool is_end = false;
    ps_result r = PS_OK;

    if (end >= MIN_STREAM_BYTES - PS_LENGTHS_MIN_BYTES) {
        r = ps_random_input_read(in, end - END_BYTES, END_BYTES, &bytes, err);
        if (r != PS_OK)
            return r;
        is_end = load_u32(bytes + 8) == 0 &&
                 load_u32(bytes + 12) == PS_TOKEN_END_KIND;
    }
    if (!is_end)
        return ps_fail(err, PS_ERR_TRUNCATED,
                       "no complete END before byte %" PRIu64 ": the stream is "
                       "truncated or damaged there",
                       end);
    *size = load_u64(bytes);
    *sums = ps_token_end_decode(bytes + 8);
    return PS_OK;
}

/*
 * Reads LENGTHS.  If it exists, it ends at `end` and has `size` bytes; only its
 * first bytes show whether it exists.
 */
static ps_result find_record(ps_random_input *in, uint64_t end, uint64_t size,
                             const unsigned char **bytes, ps_error *err)
{
    ps_result r = PS_ERR_UNSUPPORTED;

    if (size >= PS_LENGTHS_MIN_BYTES &&
        size <= PS_LENGTHS_BYTES(PS_LENGTHS_MAX) && size <= end) {
        r = ps_random_input_read(in, end - size, (size_t)size, bytes, err);
        if (r != PS_OK)
            return r;
        if (load_u32(*bytes) != 0 ||
            load_u32(*bytes + 4) != PS_TOKEN_LENGTHS_KIND)
            r = PS_ERR_UNSUPPORTED;
    }
    return r == PS_OK ? r
                      : ps_fail(err, PS_ERR_UNSUPPORTED,
                                "the stream that ends at byte %" PRIu64
                                " has no LENGTHS",
                                end + PS_TOKEN_END_BYTES);
}

static ps_result add_entries(ps_histogram *h, const unsigned char *entry,
                             uint32_t n, ps_error *err)
{
    ps_result r = PS_OK;

    for (uint32_t i = 0; r == PS_OK && i < n; i++) {
        r = ps_histogram_add(h, ps_lengths_length(entry),
                             ps_lengths_count(entry), err);
        entry += PS_LENGTHS_ENTRY_BYTES;
    }
    return r;
}

/*
 * True if the sequences counted by END, plus any number of flush records, can
 * fill the `bytes` between the header and LENGTHS.  Lists can have any length.
 */
static bool fits(const ps_schema *schema, uint64_t bytes,
                 const ps_token_end *sums)
{
    const ps_shape shape = ps_schema_shape(schema);
    const uint64_t fixed = 4 + ps_shape_bytes(&shape, 0);
    const uint64_t each = ps_shape_bytes(&shape, 1) - (fixed - 4);

    if (sums->sequences > bytes / fixed)
        return false;
    bytes -= sums->sequences * fixed;
    if (sums->tokens > bytes / each)
        return false;
    if (shape.n_lists > 0)
        return true;
    return (bytes - sums->tokens * each) % PS_TOKEN_CONTROL_BYTES == 0;
}

/*
 * Checks the stream with the header at `at` and a valid LENGTHS at `end`.  If
 * *schema is framed, it is the schema of the next stream.  It is replaced by
 * the schema of this stream.
 */
static ps_result check_stream(ps_random_input *in, uint64_t at, uint64_t end,
                              const ps_token_end *sums, ps_schema *schema,
                              ps_error *err)
{
    ps_schema own;
    ps_error why;
    size_t header;
    ps_result r = read_header(in, at, end, &own, &header, err);

    if (r != PS_OK)
        return r;
    if (!fits(&own, end - at - header, sums))
        return ps_lengths_blame(
            ps_fail(err, PS_ERR_CORRUPT,
                    "%" PRIu64 " sequences with %" PRIu64 " tokens cannot take "
                    "up the %" PRIu64 " bytes before it",
                    sums->sequences, sums->tokens, end - at),
            end, err);
    if (schema->framed && ps_schema_compare(schema, &own, &why) != PS_OK)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the stream at byte %" PRIu64 " cannot be joined to the "
                       "next: %s",
                       at, why.text);
    *schema = own;
    return PS_OK;
}

/* Adds the stream that ends at *end, and sets *end to its start. */
static ps_result add_stream(ps_histogram *h, ps_random_input *in,
                            uint64_t *end, ps_schema *schema, ps_error *err)
{
    const unsigned char *bytes = NULL;
    ps_token_end sums = {0};
    ps_lengths l;
    uint64_t size = 0;
    uint64_t at;
    ps_result r = read_end(in, *end, &sums, &size, err);

    if (r == PS_OK) {
        *end -= PS_TOKEN_END_BYTES;
        r = find_record(in, *end, size, &bytes, err);
    }
    if (r != PS_OK)
        return r;
    at = *end - size;
    r = ps_lengths_decode(&l, bytes, (size_t)size, err);
    if (r == PS_OK)
        r = ps_lengths_compare(&l, sums.sequences, sums.tokens, err);
    if (r == PS_OK && l.stream_bytes > at)
        r = ps_fail(err, PS_ERR_CORRUPT,
                    "it declares %" PRIu64 " bytes before it, but there are "
                    "%" PRIu64,
                    l.stream_bytes, at);
    if (r != PS_OK)
        return ps_lengths_blame(r, at, err);
    r = add_entries(h, bytes + PS_LENGTHS_HEAD_BYTES, l.n, err);
    *end = at - l.stream_bytes;
    return r == PS_OK ? check_stream(in, *end, at, &sums, schema, err) : r;
}

ps_result ps_histogram_read(ps_histogram **histogram, int fd, ps_error *err)
{
    ps_random_input *in = NULL;
    ps_histogram *h = NULL;
    ps_schema schema = {.framed = false};
    uint64_t end = 0;
    ps_result r;

    *histogram = NULL;
    r = ps_random_input_open(&in, fd, err);
    if (r == PS_OK && lseek(fd, 0, SEEK_CUR) != 0)
        r = ps_fail(err, PS_ERR_ARGUMENT,
                    "the file offset is not at the start of the file");
    if (r == PS_OK)
        r = check_magic(in, err);
    if (r == PS_OK) {
        end = ps_random_input_size(in);
        r = ps_histogram_open(&h, err);
    }
    while (r == PS_OK && end > 0)
        r = add_stream(h, in, &end, &schema, err);
    ps_random_input_free(in);
    if (r != PS_OK) {
        ps_histogram_free(h);
        return r;
    }
    *histogram = h;
    return PS_OK;
}
