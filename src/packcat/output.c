/*
 * output.c - the output of packcat, collected into large writes.
 *
 * SPDX-License-Identifier: MIT
 */

#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/files.h"
#include "cli/message.h"

static bool fail_errno(output *out)
{
    out->err.code = PS_ERR_IO;
    out->err.sys_errno = errno;
    (void)snprintf(out->err.text, sizeof out->err.text, "cannot write: %s",
                   strerror(errno));
    return false;
}

/* True if a write that failed with `errno` is worth another try. */
static bool try_again(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLOUT};

    if (errno == EINTR)
        return true;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        return false;
    return poll(&wait, 1, -1) >= 0 || errno == EINTR;
}

static bool write_all(output *out, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t n = write(out->fd, bytes, size);

        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        } else if (n == 0) {
            /* A device that takes nothing would keep us here for ever. */
            errno = ENOSPC;
            return fail_errno(out);
        } else if (!try_again(out->fd)) {
            return fail_errno(out);
        }
    }
    return true;
}

/* Makes it one that is not open yet. */
static bool prepare(output *out, const char *name)
{
    *out = (output){.fd = -1, .name = name};
    out->buffer = malloc(OUTPUT_ROOM);
    if (out->buffer == NULL) {
        message_errno("output buffer");
        out->status = STATUS_FAILURE;
    }
    return out->buffer != NULL;
}

bool output_begin(output *out, const char *name, bool binary, int input_fd)
{
    if (!prepare(out, name))
        return false;
    out->fd = files_open_output(name, binary, input_fd);
    if (out->fd < 0)
        out->status = STATUS_FAILURE;
    return out->fd >= 0;
}

/* What lies under the name of a file may be anything else, such as a pipe. */
static bool is_file(int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return false;
    errno = EEXIST;
    return S_ISREG(st.st_mode);
}

bool output_begin_file(output *out, const char *name, const char *file)
{
    if (!prepare(out, name))
        return false;
    do {
        out->fd = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC |
                       O_NOCTTY | O_NOFOLLOW | O_NONBLOCK, 0666);
    } while (out->fd < 0 && errno == EINTR);
    if (out->fd >= 0 && is_file(out->fd))
        return true;
    message_errno("%s", message_name(file));
    out->status = STATUS_FAILURE;
    return false;
}

bool output_flush(output *out)
{
    const size_t size = out->used;

    if (out->err.code != PS_OK)
        return false;
    if (out->writer != NULL)
        return ps_token_writer_flush(out->writer, &out->err) == PS_OK;
    out->used = 0;
    return write_all(out, out->buffer, size);
}

ps_result output_pass_on(void *context, ps_error *err)
{
    output *out = context;

    if (!output_flush(out))
        *err = out->err;
    return out->err.code;
}

char *output_room(output *out, size_t size)
{
    if (out->err.code != PS_OK)
        return NULL;
    if (OUTPUT_ROOM - out->used < size && !output_flush(out))
        return NULL;
    return out->buffer + out->used;
}

void output_took(output *out, const char *end)
{
    out->used = (size_t)(end - out->buffer);
}

bool output_put(output *out, const void *bytes, size_t size)
{
    if (out->err.code != PS_OK)
        return false;
    if (size > OUTPUT_ROOM - out->used && !output_flush(out))
        return false;
    if (size >= OUTPUT_ROOM)
        return write_all(out, bytes, size);
    memcpy(out->buffer + out->used, bytes, size);
    out->used += size;
    return true;
}

bool output_text(output *out, const char *text)
{
    return output_put(out, text, strlen(text));
}

off_t output_patchable(const output *out)
{
    const int flags = fcntl(out->fd, F_GETFL);
    struct stat st;

    /* In append mode Linux adds to the end, whatever pwrite asks for. */
    if (flags < 0 || (flags & O_APPEND) != 0)
        return -1;
    if (fstat(out->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return -1;
    return lseek(out->fd, 0, SEEK_CUR);
}

bool output_patch(output *out, off_t offset, const void *bytes, size_t size)
{
    const char *p = bytes;

    while (size > 0) {
        const ssize_t n = pwrite(out->fd, p, size, offset);

        if (n > 0) {
            p += n;
            size -= (size_t)n;
            offset += n;
        } else if (n == 0 || errno != EINTR) {
            return fail_errno(out);
        }
    }
    return true;
}

bool output_get(output *out, off_t offset, void *bytes, size_t size)
{
    char *p = bytes;

    if (out->err.code != PS_OK)
        return false;
    while (size > 0) {
        const ssize_t n = pread(out->fd, p, size, offset);

        if (n > 0) {
            p += n;
            size -= (size_t)n;
            offset += n;
        } else if (n == 0 || errno != EINTR) {
            /* Somebody else has cut it. */
            errno = n == 0 ? EIO : errno;
            return fail_errno(out);
        }
    }
    return true;
}

int output_end(output *out)
{
    const int fd = out->fd;

    free(out->buffer);
    out->buffer = NULL;
    out->fd = -1;
    if (out->err.code != PS_OK)
        out->status = message_failure(files_output_name(out->name),
                                      &out->err);
    if (fd >= 0 && !files_close_output(fd, out->name) &&
        out->status == STATUS_OK)
        out->status = STATUS_FAILURE;
    return out->status;
}
