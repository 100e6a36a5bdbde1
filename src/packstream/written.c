/*
 * written.c - what the job wrote to a regular file, and how to know it again.
 *
 * Not all of it is read again, only samples: where it begins, which is the
 * header, where the last record begins, which has its index and checksum, and
 * where it ends.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstream/written.h"

#include <errno.h>
#include <unistd.h>
#include <xxhash.h>

#include "cli/files.h"
#include "cli/message.h"

#define SAMPLE_BYTES 4096

static int failure(const char *name)
{
    message_errno("%s", files_output_name(name));
    return STATUS_FAILURE;
}

static int is_other(const char *name)
{
    message_error("%s: is not the output of the job of the state",
                  files_output_name(name));
    return STATUS_FAILURE;
}

int written_begin(written *w, const char *name, int out)
{
    *w = (written){.name = name, .fd = -1};
    if (!files_is_regular(out))
        return STATUS_OK;
    if (!files_place(out, &w->base))
        return failure(name);
    w->fd = files_reread_output(name, out);
    return w->fd < 0 ? STATUS_FAILURE : STATUS_OK;
}

/* What is there from `at` of `length` bytes on, or the start of it. */
static int add_sample(const written *w, uint64_t at, uint64_t length,
                      uint64_t *hash)
{
    unsigned char bytes[SAMPLE_BYTES];
    size_t wanted =
        length - at < sizeof bytes ? (size_t)(length - at) : sizeof bytes;
    size_t n = 0;

    while (n < wanted) {
        ssize_t part = pread(w->fd, bytes + n, wanted - n,
                             (off_t)(w->base + at + n));

        if (part < 0 && errno != EINTR)
            return failure(w->name);
        if (part == 0)
            return is_other(w->name);
        n += part > 0 ? (size_t)part : 0;
    }
    *hash = XXH3_64bits_withSeed(bytes, n, *hash);
    return STATUS_OK;
}

static uint64_t before_end(uint64_t length, uint64_t n)
{
    return n < length ? length - n : 0;
}

static int hash_of(const written *w, uint64_t record, uint64_t length,
                   uint64_t *hash)
{
    int status;

    *hash = 0;
    status = add_sample(w, 0, length, hash);
    if (status == STATUS_OK)
        status = add_sample(w, before_end(length, record), length, hash);
    if (status == STATUS_OK)
        status =
            add_sample(w, before_end(length, SAMPLE_BYTES), length, hash);
    return status;
}

bool written_length(const written *w, int out, uint64_t *length)
{
    uint64_t place;

    if (!files_place(out, &place))
        return failure(w->name) == STATUS_OK;
    if (place < w->base)
        return is_other(w->name) == STATUS_OK;
    *length = place - w->base;
    return true;
}

int written_take(const written *w, uint64_t length, uint64_t record,
                 written_mark *mark)
{
    *mark = (written_mark){
        .known = w->fd >= 0, .base = w->base, .record = record};
    return mark->known ? hash_of(w, record, length, &mark->hash) : STATUS_OK;
}

static int compare(const written *w, const written_mark *mark,
                   uint64_t length)
{
    uint64_t hash;
    int status = hash_of(w, mark->record, length, &hash);

    return status == STATUS_OK && hash != mark->hash ? is_other(w->name)
                                                     : status;
}

int written_reopen(written *w, const char *name, int in, int *out,
                   const written_mark *mark, uint64_t length)
{
    *w = (written){.name = name, .fd = -1, .base = mark->base};
    *out = -1;
    /* A pipe or a device goes on as it is. */
    if (!mark->known && !files_is_for_file(name)) {
        *out = files_reopen_output(name, in, 0);
        return *out < 0 ? STATUS_FAILURE : STATUS_OK;
    }
    if (!mark->known || length > INT64_MAX ||
        mark->base > INT64_MAX - length) {
        message_error("%s: the state is not of a job that wrote to a file",
                      files_output_name(name));
        return STATUS_USAGE;
    }
    *out = files_reopen_output(name, in, mark->base + length);
    if (*out < 0)
        return STATUS_FAILURE;
    if (!files_is_regular(*out))
        return is_other(name);
    w->fd = files_reread_output(name, *out);
    return w->fd < 0 ? STATUS_FAILURE : compare(w, mark, length);
}

int written_cut(const written *w, int out, uint64_t length)
{
    return files_cut(out, w->name, w->base + length) ? STATUS_OK
                                                     : STATUS_FAILURE;
}

void written_close(written *w)
{
    if (w->fd >= 0)
        (void)close(w->fd);
    w->fd = -1;
}
