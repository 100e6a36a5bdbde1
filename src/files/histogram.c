/*
 * histogram.c - read histograms from "length count" lines or from the LENGTHS
 * of token records (packstream(5)).
 *
 * Text is parsed byte by byte in one pass, so comments can have any length.
 * The parser is strict: "4e3" or a last line without a newline is an error.
 *
 * SPDX-License-Identifier: MIT
 */

#include "files/histogram.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"
#include "files/files.h"

#define BUFFER_BYTES 65536

/* Values of input.byte in addition to 0 to 255. */
#define END_OF_FILE (-1)
#define READ_ERROR (-2)

typedef struct input {
    length_counts *to; /* one per capacity; owned by the caller */
    unsigned n_to;     /* number of capacities */
    const char *name;
    int fd;
    const ps_error *why; /* reason LENGTHS cannot be used */
    /* current line, from 1; 0: before the first line, or not a text file */
    uint64_t line;
    int byte;   /* current byte, or one of the values above */
    size_t at;  /* index in `buffer` of the byte after it */
    size_t end; /* bytes in `buffer` */
    unsigned char buffer[BUFFER_BYTES];
} input;

/*
 * Makes sure that a byte is buffered.  Otherwise returns false and sets `byte`
 * to the reason.
 */
static bool has_next(input *in)
{
    struct pollfd p = {.fd = in->fd, .events = POLLIN};

    while (in->at == in->end) {
        const ssize_t got = read(in->fd, in->buffer, sizeof in->buffer);

        if (got > 0) {
            in->at = 0;
            in->end = (size_t)got;
        } else if (got == 0) {
            in->byte = END_OF_FILE;
            return false;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            (void)poll(&p, 1, -1);
        } else if (errno != EINTR) {
            in->byte = READ_ERROR;
            return false;
        }
    }
    return true;
}

/* Advances to the next byte.  CR LF counts as one newline. */
static void next(input *in)
{
    if (!has_next(in))
        return;
    in->byte = in->buffer[in->at++];
    if (in->byte == '\r' && has_next(in) && in->buffer[in->at] == '\n')
        in->byte = in->buffer[in->at++];
}

static bool is_blank(int byte)
{
    return byte == ' ' || byte == '\t';
}

static void skip_blanks(input *in)
{
    while (is_blank(in->byte))
        next(in);
}

/*
 * Reports "prog: FILE: line N: WHY", without the line if its number is 0.  If
 * the cause is a read error, reports the read error instead.
 */
static int bad(const input *in, const char *format, ...)
    MESSAGE_PRINTF(2, 3);

static int bad(const input *in, const char *format, ...)
{
    char why[256];
    va_list args;

    if (in->byte == READ_ERROR) {
        message_errno("%s", files_input_name(in->name));
        return STATUS_FAILURE;
    }
    va_start(args, format);
    (void)vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (in->line == 0)
        message_error("%s: %s", files_input_name(in->name), why);
    else
        message_error("%s: line %" PRIu64 ": %s", files_input_name(in->name),
                      in->line, why);
    return STATUS_DATA;
}

/* Hint for files that have to be read completely to find the lengths. */
#define REMEDY ": packstat --histogram prints its lengths"

/* Reports that a number is missing, and the file's format if it is known. */
static int bad_number(input *in, const char *what)
{
    const char *other = in->line == 1 && in->at <= PS_RECOGNIZE_BYTES
                            ? ps_recognize(in->buffer, in->end)
                            : NULL;

    /* A text file may be a malformed histogram, so do not name its format. */
    if (other == NULL || strncmp(other, "text", 4) == 0)
        return bad(in, "the %s is not a number", what);
    if (in->why->code == PS_ERR_UNSUPPORTED &&
        memcmp(in->buffer, "\x89TOK", 4) == 0) {
        in->line = 0;
        return bad(in, "%s" REMEDY, in->why->text);
    }
    return bad(in, "the %s is not a number; this looks like %s%s", what, other,
               in->buffer[0] == 0x89 /* first byte of our magics */ ||
                       strcmp(other, "zstd") == 0
                   ? REMEDY
                   : "");
}

/* Parses decimal digits up to a blank or the end of the line. */
static int read_number(input *in, const char *what, uint64_t *number)
{
    uint64_t value = 0;
    bool empty = true;

    for (; in->byte >= '0' && in->byte <= '9'; next(in)) {
        uint64_t digit = (uint64_t)(in->byte - '0');

        if (value > (UINT64_MAX - digit) / 10)
            return bad(in, "the %s does not fit 64 bits", what);
        value = value * 10 + digit;
        empty = false;
    }
    if (empty)
        return bad_number(in, what);
    if (in->byte >= 0 && !is_blank(in->byte) && in->byte != '\n')
        return bad(in, "the %s is not a number", what);
    *number = value;
    return STATUS_OK;
}

/*
 * Adds `count` sequences longer than the capacity, as the packer handles them.
 */
static ps_result add_overlong(length_counts *to, uint64_t length,
                              uint64_t count, ps_error *err)
{
    const uint32_t capacity = to->capacity;
    const bool cut = to->overlong == PS_OVERLONG_TRUNCATE;
    const uint64_t pieces = length / capacity;
    const uint32_t rest = (uint32_t)(length % capacity);
    uint64_t lost = 0;
    ps_result r;

    if (count > (uint64_t)INT64_MAX - to->long_sequences ||
        count > UINT64_MAX / pieces) {
        *err = (ps_error){.code = PS_ERR_LIMIT,
                          .text = "more than 2^63 - 1 sequences"};
        return PS_ERR_LIMIT;
    }
    to->long_sequences += count;

    if (to->overlong == PS_OVERLONG_DROP)
        lost = length;
    else if (cut)
        lost = length - capacity;
    if (lost > 0 && count > ((uint64_t)INT64_MAX - to->lost_tokens) / lost) {
        *err = (ps_error){.code = PS_ERR_LIMIT,
                          .text = "more than 2^63 - 1 tokens are lost"};
        return PS_ERR_LIMIT;
    }
    to->lost_tokens += lost * count;

    if (to->overlong == PS_OVERLONG_DROP)
        return PS_OK;
    r = ps_histogram_add(to->histogram, capacity, cut ? count : count * pieces,
                         err);
    return r == PS_OK && !cut && rest > 0
               ? ps_histogram_add(to->histogram, rest, count, err)
               : r;
}

/* Adds `count` sequences of this length at every capacity. */
static int add(const input *in, uint64_t length, uint64_t count)
{
    if (length == 0)
        return bad(in, "a length must be at least 1");
    if (length > UINT32_MAX && in->to[0].overlong != PS_OVERLONG_ERROR)
        return bad(in, "length %" PRIu64 " exceeds the maximum, %" PRIu32,
                   length,
                   UINT32_MAX);
    for (unsigned i = 0; i < in->n_to; i++) {
        length_counts *to = &in->to[i];
        const bool is_long = length > to->capacity;
        ps_error err;
        ps_result r = PS_OK;

        if (is_long && to->overlong == PS_OVERLONG_ERROR)
            return bad(in,
                       "length %" PRIu64 " exceeds the capacity, %" PRIu32 ": "
                       "use --overlong=split, truncate or drop",
                       length, to->capacity);
        if (count > 0)
            r = is_long ? add_overlong(to, length, count, &err)
                        : ps_histogram_add(to->histogram, (uint32_t)length,
                                           count, &err);
        if (r == PS_ERR_LIMIT)
            return bad(in, "%s", err.text);
        if (r != PS_OK)
            return message_failure(files_input_name(in->name), &err);
    }
    return STATUS_OK;
}

/*
 * Parses one line.  Skips blank lines and comments, which also have to end with
 * a newline.
 */
static int read_line(input *in)
{
    static const int bom[] = {0xef, 0xbb, 0xbf};
    uint64_t length = 0;
    uint64_t count = 0;
    int status = STATUS_OK;
    int i = 0;

    /* The file may start with a complete UTF-8 byte order mark. */
    for (; in->line == 0 && i < 3 && in->byte == bom[i]; i++)
        next(in);
    in->line++;
    if (i != 0 && i != 3)
        return bad_number(in, "length");
    skip_blanks(in);
    if (in->byte == '#')
        while (in->byte >= 0 && in->byte != '\n')
            next(in);
    if (in->byte == '\n')
        return STATUS_OK;

    if (in->byte != END_OF_FILE)
        status = read_number(in, "length", &length);
    skip_blanks(in);
    if (status == STATUS_OK && in->byte == '\n')
        return bad(in, "missing count after the length");
    if (status == STATUS_OK && in->byte != END_OF_FILE)
        status = read_number(in, "count", &count);
    if (status != STATUS_OK)
        return status;
    skip_blanks(in);
    if (in->byte == END_OF_FILE)
        return bad(in, "truncated: no newline at the end");
    if (in->byte != '\n')
        return bad(in, "more than two numbers: a line is `length count`");

    return add(in, length, count);
}

/* Parses all lines of a file from its start. */
static int read_lines(input *in)
{
    int status = STATUS_OK;

    for (next(in); status == STATUS_OK && in->byte != END_OF_FILE; next(in))
        status = read_line(in);
    return status;
}

static int add_all(const input *in, const ps_histogram *h)
{
    int status = STATUS_OK;

    for (size_t i = 0; status == STATUS_OK && i < ps_histogram_size(h); i++)
        status = add(in, ps_histogram_length(h, i), ps_histogram_count(h, i));
    return status;
}

/* Adds the lengths of a file in either format. */
static int read_file(input *in)
{
    ps_error err = {.code = PS_OK};
    ps_histogram *h;
    int status;

    switch (ps_histogram_read(&h, in->fd, &err)) {
    case PS_OK:
        status = add_all(in, h);
        ps_histogram_free(h);
        /* Leave stdin at its end, as if everything had been read. */
        (void)lseek(in->fd, 0, SEEK_END);
        return status;
    case PS_ERR_MAGIC:
    case PS_ERR_ARGUMENT:
    case PS_ERR_UNSUPPORTED:
        in->why = &err;
        return read_lines(in);
    default:
        return message_failure(files_input_name(in->name), &err);
    }
}

int histogram_read(length_counts *to, unsigned n_to, const char *const *names,
                   int n)
{
    input in = {.to = to, .n_to = n_to};
    int status = STATUS_OK;

    for (int i = 0; status == STATUS_OK && i < n; i++) {
        in.name = names[i];
        in.line = 0;
        in.at = in.end = 0;
        in.fd = files_open_input(names[i]);
        if (in.fd < 0)
            return STATUS_FAILURE;
        status = read_file(&in);
        files_close_input(in.fd);
    }
    return status;
}
