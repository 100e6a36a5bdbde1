/*
 * output.c - one output stream, or a set of files.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packcat/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "files/files.h"

/* ---- Bytes ---- */

static bool fail_errno(output *out)
{
    out->err.code = PS_ERR_IO;
    out->err.sys_errno = errno;
    (void)snprintf(out->err.text, sizeof out->err.text, "cannot write: %s",
                   strerror(errno));
    return false;
}

static bool check_end(output *out)
{
    if (file_end_holds(&out->end, out->fd))
        return true;
    out->err.code = PS_ERR_IO;
    (void)snprintf(out->err.text, sizeof out->err.text, FILE_END_CUT,
                   out->end.size, out->end.at);
    return false;
}

static bool write_all(output *out, const char *bytes, size_t size)
{
    if (!check_end(out))
        return false;
    if (!files_write(out->fd, bytes, size))
        return fail_errno(out);
    file_end_add(&out->end, out->fd, size);
    return true;
}

bool output_flush(output *out)
{
    const size_t size = out->used;

    if (out->err.code != PS_OK)
        return false;
    if (out->writer != NULL)
        return ps_token_writer_flush(out->writer, &out->err) == PS_OK;
    if (out->packs != NULL)
        return ps_pack_writer_push(out->packs, &out->err) == PS_OK;
    out->used = 0;
    return write_all(out, out->buffer, size);
}

ps_result output_flush_before_wait(void *context, ps_error *err)
{
    output *out = context;

    /* Blocks of a pack stream must not depend on the timing of the input. */
    if (out->packs == NULL && !output_flush(out))
        *err = out->err;
    return out->err.code;
}

char *output_reserve(output *out, size_t size)
{
    if (out->err.code != PS_OK)
        return NULL;
    if (OUTPUT_BUFFER_BYTES - out->used < size && !output_flush(out))
        return NULL;
    return out->buffer + out->used;
}

bool output_put(output *out, const void *bytes, size_t size)
{
    if (out->err.code != PS_OK)
        return false;
    if (size > OUTPUT_BUFFER_BYTES - out->used && !output_flush(out))
        return false;
    if (size >= OUTPUT_BUFFER_BYTES)
        return write_all(out, bytes, size);
    memcpy(out->buffer + out->used, bytes, size);
    out->used += size;
    return true;
}

bool output_text(output *out, const char *text)
{
    return output_put(out, text, strlen(text));
}

bool output_u64(output *out, uint64_t value)
{
    unsigned char bytes[8];

    store_u64(bytes, value);
    return output_put(out, bytes, sizeof bytes);
}

off_t output_patchable(const output *out)
{
    const int flags = fcntl(out->fd, F_GETFL);
    struct stat st;

    /* In append mode, Linux appends even with pwrite. */
    if (flags < 0 || (flags & O_APPEND) != 0)
        return -1;
    if (fstat(out->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return -1;
    return lseek(out->fd, 0, SEEK_CUR);
}

bool output_patch(output *out, off_t offset, const void *bytes, size_t size)
{
    const char *p = bytes;

    if (out->err.code != PS_OK)
        return false;
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

bool output_read(output *out, off_t offset, void *bytes, size_t size)
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
            /* Another process has truncated the file. */
            errno = n == 0 ? EIO : errno;
            return fail_errno(out);
        }
    }
    return true;
}

/* ---- All outputs of a form ---- */

bool outputs_can_have_name(const char *name)
{
    const size_t n = strlen(name);
    struct stat st;

    /*
     * The user probably expects the output in this directory, or in a device
     * such as /dev/null.
     */
    if (stat(name, &st) == 0 && !S_ISREG(st.st_mode)) {
        message_error("%s: exists and is not a regular file, so the output "
                      "files cannot be named after it", message_name(name));
        return false;
    }
    if (n == 0 || name[n - 1] == '/') {
        message_error("%s: not a name that output files can be named after",
                      n == 0 ? "-o" : message_name(name));
        return false;
    }
    return true;
}

/* Initialises an output that is not open yet. */
static bool prepare(output *out, const char *name)
{
    *out = (output){.fd = -1, .name = name};
    out->buffer = malloc(OUTPUT_BUFFER_BYTES);
    if (out->buffer == NULL) {
        message_errno("cannot allocate the output buffer");
        out->status = STATUS_FAILURE;
    }
    return out->buffer != NULL;
}

bool outputs_begin(outputs *outs, const output_options *options,
                   const input *in)
{
    output *const first = &outs->parts[0];
    bool begun = true;

    if (options->namer != NULL) {
        const output_names names = options->namer(options->name, &in->first);

        outs->several = true;
        /* Create each file under a temporary name, for writing and reading. */
        for (size_t i = 0; begun && i < names.n; i++) {
            output *out = &outs->parts[outs->n++];
            const int fd = file_set_add(&outs->set, options->name, names.stem,
                                        names.endings[i], in->options.names,
                                        in->options.n_names);

            *out = (output){.fd = -1};
            begun = fd >= 0 && prepare(out, file_set_name(&outs->set));
            if (begun)
                out->fd = fd;
            else if (fd >= 0)
                (void)close(fd);
        }
    } else {
        outs->n = 1;
        begun = prepare(first, options->name);
        if (begun) {
            first->fd = file_set_open(&outs->set, options->name,
                                      options->binary, in->options.names,
                                      in->options.n_names);
            begun = first->fd >= 0 && files_begin(first->fd, options->name);
        }
    }
    if (!begun)
        first->status = STATUS_FAILURE;
    first->predictions = options->predictions;
    first->zstd_level = options->zstd_level;
    return begun;
}

int outputs_end(outputs *outs, int input_status)
{
    int status = STATUS_OK;

    for (size_t i = 0; i < outs->n; i++) {
        output *out = &outs->parts[i];

        free(out->buffer);
        if (out->err.code == PS_OK && out->fd >= 0)
            (void)check_end(out);
        if (status == STATUS_OK)
            status = out->err.code == PS_OK
                         ? out->status
                         : message_failure(files_output_name(out->name),
                                           &out->err);
        status = files_end_output(out->fd, out->name, status);
    }
    if (status == STATUS_OK && input_status == STATUS_OK &&
        !file_set_publish(&outs->set))
        status = STATUS_FAILURE;
    file_set_free(&outs->set);
    *outs = (outputs){0};
    return status;
}
