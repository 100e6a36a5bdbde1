/*
 * binary.c - input files that are no text.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/binary.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/files.h"

/* ---------------------------------------------------------------------
 * Open and closed
 */

/* Keeps the buffer and the hook. */
static void start(binary *b)
{
    b->borrowed = b->regular = b->ended = false;
    b->next = b->bytes = 0;
    b->begin = b->end = 0;
}

int binary_open(binary *b, const char *name)
{
    start(b);
    b->name = name;
    b->fd = files_open_input(name);
    b->open = b->fd >= 0;
    return b->open ? STATUS_OK : STATUS_FAILURE;
}

char *binary_name_beside(const char *stem, size_t cut, const char *ending)
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

static int find_size(binary *b)
{
    struct stat st;

    if (fstat(b->fd, &st) != 0) {
        message_errno("%s", binary_name(b));
        return STATUS_FAILURE;
    }
    if (!S_ISREG(st.st_mode)) {
        message_error("%s: not a regular file, as it has to be where files "
                      "belong together", binary_name(b));
        return STATUS_FAILURE;
    }
    b->regular = true;
    b->bytes = (uint64_t)st.st_size;
    return STATUS_OK;
}

int binary_open_beside(binary *b, const char *stem, size_t cut,
                       const char *ending)
{
    char *name = binary_name_beside(stem, cut, ending);
    int status = STATUS_FAILURE;

    if (name != NULL)
        status = binary_open(b, name);
    b->own_name = name;
    return status == STATUS_OK ? find_size(b) : status;
}

void binary_share(binary *b, const binary *other, uint64_t offset)
{
    start(b);
    b->name = other->own_name != NULL ? other->own_name : other->name;
    b->fd = other->fd;
    b->open = b->borrowed = true;
    b->regular = other->regular;
    b->bytes = other->bytes;
    b->next = offset;
}

void binary_close(binary *b)
{
    if (b->open && !b->borrowed)
        files_close_input(b->fd);
    b->open = false;
    free(b->own_name);
    b->own_name = NULL;
}

void binary_free(binary *b)
{
    binary_close(b);
    free(b->buffer);
    b->buffer = NULL;
}

/* ---------------------------------------------------------------------
 * Reading
 */

static int grow(binary *b)
{
    size_t size = b->size == 0 ? BINARY_BLOCK : 2 * b->size;
    unsigned char *buffer = realloc(b->buffer, size);

    if (buffer == NULL) {
        message_errno("%s: byte %" PRIu64, binary_name(b),
                      binary_offset(b));
        return STATUS_FAILURE;
    }
    b->buffer = buffer;
    b->size = size;
    return STATUS_OK;
}

/* What is ready comes to the front before more is read. */
static int make_room(binary *b)
{
    if (b->begin > 0 && b->end > b->begin)
        memmove(b->buffer, b->buffer + b->begin, b->end - b->begin);
    b->end -= b->begin;
    b->begin = 0;
    return b->end == b->size ? grow(b) : STATUS_OK;
}

static bool would_wait(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 0;
}

static ssize_t read_place(const binary *b, void *to, size_t n)
{
    ssize_t got;

    do
        got = pread(b->fd, to, n, (off_t)b->next);
    while (got < 0 && errno == EINTR);
    return got;
}

static int fill(binary *b)
{
    int status = make_room(b);
    ssize_t n;

    if (status == STATUS_OK && !b->regular && would_wait(b->fd))
        status = b->on_wait(b->context);
    if (status != STATUS_OK)
        return status;
    n = b->regular
            ? read_place(b, b->buffer + b->end, b->size - b->end)
            : text_read(b->fd, b->buffer + b->end, b->size - b->end);
    if (n < 0) {
        message_errno("%s: cannot read", binary_name(b));
        return STATUS_FAILURE;
    }
    b->ended = n == 0;
    b->end += (size_t)n;
    b->next += (uint64_t)n;
    return STATUS_OK;
}

int binary_need(binary *b, size_t n, size_t *ready)
{
    int status = STATUS_OK;

    while (status == STATUS_OK && b->end - b->begin < n && !b->ended)
        status = fill(b);
    *ready = b->end - b->begin;
    return status;
}

const unsigned char *binary_at(const binary *b)
{
    return b->buffer + b->begin;
}

void binary_take(binary *b, size_t n)
{
    b->begin += n;
}

uint64_t binary_offset(const binary *b)
{
    return b->next - (b->end - b->begin);
}

/* What is behind a place near by is often read already. */
void binary_seek(binary *b, uint64_t offset)
{
    const uint64_t at = binary_offset(b);

    if (offset >= at && offset - at <= b->end - b->begin) {
        b->begin += (size_t)(offset - at);
        return;
    }
    b->next = offset;
    b->begin = b->end = 0;
    b->ended = false;
}

/* ---------------------------------------------------------------------
 * Messages
 */

const char *binary_name(const binary *b)
{
    return files_input_name(b->own_name != NULL ? b->own_name : b->name);
}

int binary_bad(const binary *b, uint64_t offset, const char *format, ...)
{
    char why[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(why, sizeof why, format, args);
    va_end(args);
    message_error("%s: byte %" PRIu64 ": %s", binary_name(b), offset, why);
    return STATUS_DATA;
}

int binary_cut(const binary *b, const char *within)
{
    return binary_bad(b, b->next, "the file ends within %s", within);
}
