/*
 * input.c - read input files in bounded memory.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/input.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/files.h"

#define BOM_BYTES (sizeof INPUT_BOM - 1)

/* ---------------------------------------------------------------------
 * Opening and closing
 */

/* Resets all members except the buffer and the members set by the owner. */
static void rewind_state(input_file *in)
{
    in->borrowed = in->regular = in->ended = false;
    in->next = in->bytes = in->line = 0;
    in->begin = in->end = in->searched = in->n_first = 0;
    in->known = in->as_it_is || in->max_line == 0;
    in->form = COMPRESSION_UNKNOWN;
}

int input_open(input_file *in, const char *name)
{
    rewind_state(in);
    in->name = name;
    in->fd = files_open_input(name);
    in->open = in->fd >= 0;
    return in->open ? STATUS_OK : STATUS_FAILURE;
}

char *input_name_beside(const char *stem, size_t cut, const char *ending)
{
    const size_t n = strlen(stem) - cut;
    char *name = malloc(n + strlen(ending) + 1);

    if (name == NULL) {
        message_errno("%s", message_name(stem));
        return NULL;
    }
    memcpy(name, stem, n);
    memcpy(name + n, ending, strlen(ending) + 1);
    return name;
}

int input_open_beside(input_file *in, const char *stem, size_t cut,
                      const char *ending)
{
    char *name = input_name_beside(stem, cut, ending);
    int status = STATUS_FAILURE;
    struct stat st;

    if (name != NULL)
        status = input_open(in, name);
    in->own_name = name;
    if (status != STATUS_OK)
        return status;
    if (fstat(in->fd, &st) != 0) {
        message_errno("%s", input_name(in));
        return STATUS_FAILURE;
    }
    if (!S_ISREG(st.st_mode)) {
        message_error("%s: not a regular file: this form cannot be read as a "
                      "stream",
                      input_name(in));
        return STATUS_FAILURE;
    }
    in->regular = true;
    in->bytes = (uint64_t)st.st_size;
    return STATUS_OK;
}

void input_share(input_file *in, const input_file *other, uint64_t offset)
{
    rewind_state(in);
    in->name = other->own_name != NULL ? other->own_name : other->name;
    in->fd = other->fd;
    in->open = in->borrowed = true;
    in->regular = other->regular;
    in->bytes = other->bytes;
    in->next = offset;
}

void input_close(input_file *in)
{
    if (in->open && !in->borrowed)
        files_close_input(in->fd);
    in->open = false;
    free(in->own_name);
    in->own_name = NULL;
    decompress_free(in->packed);
    in->packed = NULL;
}

void input_free(input_file *in)
{
    input_close(in);
    free(in->buffer);
    free(in->raw);
    in->buffer = in->raw = NULL;
}

/* ---------------------------------------------------------------------
 * Reading
 */

ssize_t input_read(int fd, void *to, size_t n)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    for (;;) {
        const ssize_t got = read(fd, to, n);

        if (got >= 0)
            return got;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            return -1;
        if (poll(&p, 1, -1) < 0 && errno != EINTR)
            return -1;
    }
}

/* Doubles the buffer, up to the size of the longest line and its newline. */
static int grow(input_file *in)
{
    const size_t max = in->max_line > 0 ? in->max_line + 1 : SIZE_MAX - 1;
    size_t size = in->size == 0 ? INPUT_BLOCK : 2 * in->size;
    unsigned char *buffer;

    if (in->size >= max) {
        in->line++;
        return input_bad_line(in, 0, "the line exceeds %zu bytes",
                              in->max_line);
    }
    if (size > max)
        size = max;
    /* One extra byte: a newline is added if the last line lacks one. */
    buffer = realloc(in->buffer, size + 1);
    if (buffer == NULL) {
        if (in->max_line > 0)
            message_errno("%s: line %" PRIu64, input_name(in), in->line + 1);
        else
            message_errno("%s: byte %" PRIu64, input_name(in),
                          input_offset(in));
        return STATUS_FAILURE;
    }
    in->buffer = buffer;
    in->size = size;
    return STATUS_OK;
}

/* Reads up to `n` bytes of the file as stored.  *got is 0 at the end. */
static int read_file(input_file *in, unsigned char *to, size_t n, size_t *got)
{
    struct pollfd p = {.fd = in->fd, .events = POLLIN};
    ssize_t result;

    if (!in->regular && poll(&p, 1, 0) == 0) {
        const int status = in->on_wait(in->context);

        if (status != STATUS_OK)
            return status;
    }
    if (in->regular)
        do
            result = pread(in->fd, to, n, (off_t)in->next);
        while (result < 0 && errno == EINTR);
    else
        result = input_read(in->fd, to, n);
    if (result < 0) {
        message_errno("%s: cannot read", input_name(in));
        return STATUS_FAILURE;
    }
    *got = (size_t)result;
    return STATUS_OK;
}

/* Reads up to `n` decompressed bytes.  *got is 0 at the end. */
static int read_packed(input_file *in, unsigned char *to, size_t n,
                       size_t *got)
{
    const char *form = in->form == COMPRESSION_GZIP ? "gzip" : "zstd";
    bool ended = false;

    for (*got = 0; *got == 0 && !ended;) {
        decompress_buffers b = {in->raw + in->raw_begin,
                                in->raw_end - in->raw_begin, to, n};
        const char *why = decompress_step(in->packed, &b);

        in->raw_begin = in->raw_end - b.n_in;
        *got = n - b.n_out;
        if (why != NULL && *got == 0)
            return input_bad(in, in->next, "%s: %s", form, why);
        if (*got == 0 && b.n_in == 0) {
            const int status =
                read_file(in, in->raw, in->raw_size, &in->raw_end);

            if (status != STATUS_OK)
                return status;
            in->raw_begin = 0;
            ended = in->raw_end == 0;
        }
    }
    if (ended && !decompress_is_whole(in->packed))
        return input_bad(in, in->next, "the %s data is truncated", form);
    return STATUS_OK;
}

/*
 * Detects compression from the first bytes of a text, which must be the only
 * bytes in the buffer.  If the text is compressed, the buffer becomes `raw`,
 * and the text is read again from its start.
 */
static int recognize(input_file *in)
{
    in->form = in->end > 0 ? compression_of(in->buffer, in->end)
                           : COMPRESSION_UNKNOWN;
    in->known = in->form != COMPRESSION_UNKNOWN || in->ended;
    if (in->form != COMPRESSION_GZIP && in->form != COMPRESSION_ZSTD)
        return STATUS_OK;
    in->packed = decompress_open(in->form);
    if (in->packed == NULL) {
        message_errno("%s", input_name(in));
        return STATUS_FAILURE;
    }
    free(in->raw);
    in->raw = in->buffer;
    in->raw_size = in->size;
    in->raw_begin = 0;
    in->raw_end = in->end;
    in->buffer = NULL;
    in->size = in->end = in->n_first = 0;
    in->next = 0;
    in->ended = false;
    return STATUS_OK;
}

/* Moves unread bytes to the front of the buffer and reads more. */
static int fill(input_file *in)
{
    size_t got = 0;
    int status = STATUS_OK;

    if (in->begin > 0 && in->end > in->begin)
        memmove(in->buffer, in->buffer + in->begin, in->end - in->begin);
    in->end -= in->begin;
    in->begin = 0;
    if (in->end == in->size)
        status = grow(in);
    if (status != STATUS_OK)
        return status;

    status = (in->packed != NULL ? read_packed : read_file)(
        in, in->buffer + in->end, in->size - in->end, &got);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; in->n_first < PS_RECOGNIZE_BYTES && i < got; i++)
        in->first[in->n_first++] = in->buffer[in->end + i];
    in->ended = got == 0;
    in->end += got;
    in->next += got;
    return in->known ? STATUS_OK : recognize(in);
}

int input_need(input_file *in, size_t n, size_t *ready)
{
    int status = STATUS_OK;

    while (status == STATUS_OK && in->end - in->begin < n && !in->ended)
        status = fill(in);
    *ready = in->end - in->begin;
    return status;
}

int input_require(input_file *in, size_t n, const char *within)
{
    size_t ready;
    const int status = input_need(in, n, &ready);

    if (status == STATUS_OK && ready < n)
        return input_bad(in, in->next, "the file ends within %s", within);
    return status;
}

const unsigned char *input_at(const input_file *in)
{
    return in->buffer + in->begin;
}

void input_take(input_file *in, size_t n)
{
    in->begin += n;
}

uint64_t input_offset(const input_file *in)
{
    return in->next - (in->end - in->begin);
}

/* Keeps the buffer if it contains the offset, as is often the case. */
void input_seek(input_file *in, uint64_t offset)
{
    const uint64_t at = input_offset(in);

    if (offset >= at && offset - at <= in->end - in->begin) {
        in->begin += (size_t)(offset - at);
        return;
    }
    in->next = offset;
    in->begin = in->end = 0;
    in->ended = false;
}

int input_next_line(input_file *in, input_line *line)
{
    for (;;) {
        const size_t ready = in->end - in->begin;
        unsigned char *end = NULL;
        int status;

        if (ready > in->searched)
            end = memchr(in->buffer + in->begin + in->searched, '\n',
                         ready - in->searched);
        line->newline = end != NULL;
        if (end == NULL && in->ended && ready > 0) {
            end = in->buffer + in->end;
            *end = '\n';
        }
        if (end != NULL) {
            line->bytes = input_at(in);
            line->n = (size_t)(end - line->bytes);
            in->begin += line->n + line->newline;
            in->searched = 0;
            in->line++;
            /* A byte order mark at the start is not part of the text. */
            if (in->skip_bom && in->line == 1 && line->n >= BOM_BYTES &&
                memcmp(line->bytes, INPUT_BOM, BOM_BYTES) == 0) {
                line->bytes += BOM_BYTES;
                line->n -= BOM_BYTES;
            }
            return STATUS_OK;
        }
        line->bytes = NULL;
        if (in->ended)
            return STATUS_OK;
        in->searched = ready;
        status = fill(in);
        if (status != STATUS_OK)
            return status;
    }
}

bool input_is_blank(const input_line *line)
{
    for (size_t i = 0; i < line->n; i++)
        if (line->bytes[i] != ' ' && line->bytes[i] != '\t' &&
            line->bytes[i] != '\r')
            return false;
    return true;
}

/* ---------------------------------------------------------------------
 * Messages
 */

const char *input_name(const input_file *in)
{
    return files_input_name(in->own_name != NULL ? in->own_name : in->name);
}

const char *input_seems(const input_file *in)
{
    const char *seems = ps_recognize(in->first, in->n_first);

    return seems == NULL || strncmp(seems, "text", 4) == 0 ||
                   strncmp(seems, "JSON", 4) == 0
               ? NULL
               : seems;
}

const char *input_hint(const input_file *in, char text[INPUT_HINT_BYTES])
{
    const char *seems = ps_recognize(in->first, in->n_first);

    text[0] = '\0';
    if (in->expected != NULL && seems != NULL &&
        strncmp(seems, in->expected, strlen(in->expected)) != 0 &&
        strncmp(seems, "text", 4) != 0)
        (void)snprintf(text, INPUT_HINT_BYTES, "; this looks like %s", seems);
    return text;
}

int input_bad(const input_file *in, uint64_t offset, const char *format, ...)
{
    const bool at_start = offset == 0 || input_offset(in) == 0;
    char why[512];
    char text[INPUT_HINT_BYTES];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(why, sizeof why, format, args);
    va_end(args);
    message_error("%s: byte %" PRIu64 ": %s%s", input_name(in), offset, why,
                  at_start ? input_hint(in, text) : "");
    return STATUS_DATA;
}

int input_bad_line(const input_file *in, uint64_t column,
                   const char *format, ...)
{
    char where[48] = "";
    char why[512];
    char text[INPUT_HINT_BYTES];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (column > 0)
        (void)snprintf(where, sizeof where, ", column %" PRIu64, column);
    message_error("%s: line %" PRIu64 "%s: %s%s", input_name(in), in->line,
                  where, why, in->line == 1 ? input_hint(in, text) : "");
    return STATUS_DATA;
}

int input_bad_bom(const input_file *in, uint64_t column)
{
    return input_bad_line(in, column, "a byte order mark (bytes EF BB BF) in "
                          "the middle of the text: remove it");
}
