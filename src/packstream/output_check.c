/*
 * output_check.c - what the job wrote to a regular file, and how to know it
 * again.
 *
 * Not all of it is read again, only samples: what is before it, where it
 * begins, which is the header, where the last record begins, which has its
 * index and checksum, and where it ends.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstream/output_check.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
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

int output_check_begin(written *w, const char *name, int out)
{
    struct stat st;

    *w = (written){.name = name, .fd = -1};
    if (fstat(out, &st) != 0)
        return failure(name);
    if (!S_ISREG(st.st_mode))
        return STATUS_OK;
    if (!files_place(out, &w->base))
        return failure(name);
    w->fd = files_reread_output(name, out);
    return w->fd < 0 ? STATUS_FAILURE : STATUS_OK;
}

/* Reads `n` bytes, at most SAMPLE_BYTES, of the file from `at` on. */
static int read_sample(const written *w, uint64_t at, size_t n,
                       unsigned char bytes[SAMPLE_BYTES])
{
    size_t done = 0;

    while (done < n) {
        ssize_t part = pread(w->fd, bytes + done, n - done,
                             (off_t)(at + done));

        if (part < 0 && errno != EINTR)
            return failure(w->name);
        if (part == 0)
            return is_other(w->name);
        done += part > 0 ? (size_t)part : 0;
    }
    return STATUS_OK;
}

/* What is there from `at` up to `end`, or the start of it. */
static int add_sample(const written *w, uint64_t at, uint64_t end,
                      uint64_t *hash)
{
    unsigned char bytes[SAMPLE_BYTES];
    size_t n = end - at < sizeof bytes ? (size_t)(end - at) : sizeof bytes;
    int status = read_sample(w, at, n, bytes);

    if (status == STATUS_OK)
        *hash = XXH3_64bits_withSeed(bytes, n, *hash);
    return status;
}

/* The place `n` bytes before the end, or where it all begins. */
static uint64_t before_end(uint64_t start, uint64_t end, uint64_t n)
{
    return n < end - start ? end - n : start;
}

static int hash_of(const written *w, uint64_t record, uint64_t length,
                   uint64_t *hash)
{
    uint64_t start = w->base;
    uint64_t end = start + length;
    int status;

    *hash = 0;
    status = add_sample(w, before_end(0, start, SAMPLE_BYTES), start, hash);
    if (status == STATUS_OK)
        status = add_sample(w, start, end, hash);
    if (status == STATUS_OK)
        status = add_sample(w, before_end(start, end, record), end, hash);
    if (status == STATUS_OK)
        status =
            add_sample(w, before_end(start, end, SAMPLE_BYTES), end, hash);
    return status;
}

bool output_check_length(const written *w, int out, uint64_t *length)
{
    uint64_t place;

    *length = 0;
    if (!files_place(out, &place)) {
        (void)failure(w->name);
        return false;
    }
    if (place < w->base) {
        (void)is_other(w->name);
        return false;
    }
    *length = place - w->base;
    return true;
}

int output_check_take(const written *w, uint64_t length, uint64_t record,
                      output_check_mark *mark)
{
    *mark = (output_check_mark){
        .known = w->fd >= 0, .base = w->base, .record = record};
    return mark->known ? hash_of(w, record, length, &mark->hash) : STATUS_OK;
}

static int compare(const written *w, const output_check_mark *mark,
                   uint64_t length)
{
    uint64_t hash;
    int status = hash_of(w, mark->record, length, &hash);

    return status == STATUS_OK && hash != mark->hash ? is_other(w->name)
                                                     : status;
}

/*
 * Of a job that was stopped before its first state nothing is known but where
 * it began; what is there must begin as its output, for it is to be cut.
 */
static int compare_start(const written *w, int out)
{
    static const unsigned char plain[] = {0x89, 'P', 'K', 'S'};
    static const unsigned char compressed[] = {0x28, 0xb5, 0x2f, 0xfd};
    static const unsigned char unwritten[] = {0, 0, 0, 0}; /* a power cut */
    unsigned char first[SAMPLE_BYTES];
    size_t n = sizeof plain;
    struct stat st;
    int status;

    if (fstat(out, &st) != 0)
        return failure(w->name);
    if ((uint64_t)st.st_size - w->base < n)
        n = (size_t)((uint64_t)st.st_size - w->base);
    status = read_sample(w, w->base, n, first);
    if (status == STATUS_OK && memcmp(first, plain, n) != 0 &&
        memcmp(first, compressed, n) != 0 && memcmp(first, unwritten, n) != 0)
        return is_other(w->name);
    return status;
}

int output_check_reopen(written *w, const char *name, int in, int *out,
                        const output_check_mark *mark, uint64_t length)
{
    int status;

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
    if (w->fd < 0)
        return STATUS_FAILURE;
    status = compare(w, mark, length);
    return status == STATUS_OK && length == 0 ? compare_start(w, *out)
                                              : status;
}

int output_check_go_to_end(const written *w, int out, uint64_t length)
{
    if (w->fd < 0 ||
        lseek(out, (off_t)(w->base + length), SEEK_SET) != -1)
        return STATUS_OK;
    return failure(w->name);
}

int output_check_cut(const written *w, int out, uint64_t length)
{
    return files_cut(out, w->name, w->base + length) ? STATUS_OK
                                                     : STATUS_FAILURE;
}

void output_check_close(written *w)
{
    if (w->fd >= 0)
        (void)close(w->fd);
    w->fd = -1;
}
