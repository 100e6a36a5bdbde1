/*
 * resumable_output.c - verify that a regular file is the output of the job
 * being resumed.
 *
 * Only three samples are hashed: the bytes before the stream, the first bytes
 * of the stream, which contain the header, and its last bytes, which contain
 * checksums of packs.
 *
 * SPDX-License-Identifier: MIT
 */

#include "files/resumable_output.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "files/files.h"

#define SAMPLE_BYTES 4096
#define LAST_BYTES_MAX ((uint64_t)4 << 20)

static int failure(const char *name)
{
    message_errno("%s", files_output_name(name));
    return STATUS_FAILURE;
}

static int fail_other_output(const char *name)
{
    message_error("%s: not the output that was written with this state",
                  files_output_name(name));
    return STATUS_FAILURE;
}

int resumable_output_begin(resumable_output *o, const char *name, int out)
{
    struct stat st;

    *o = (resumable_output){.name = name, .fd = -1};
    if (fstat(out, &st) != 0)
        return failure(name);
    if (!S_ISREG(st.st_mode))
        return STATUS_OK;
    if (!files_offset(out, &o->base))
        return failure(name);
    o->fd = files_reread_output(name, out);
    return o->fd >= 0 && files_sync_name(name) ? STATUS_OK : STATUS_FAILURE;
}

/* Reads `n` bytes at offset `at` of the file. */
static int read_sample(const resumable_output *o, uint64_t at, size_t n,
                       unsigned char *bytes)
{
    size_t done = 0;

    while (done < n) {
        ssize_t part = pread(o->fd, bytes + done, n - done,
                             (off_t)(at + done));

        if (part < 0 && errno != EINTR)
            return failure(o->name);
        if (part == 0)
            return fail_other_output(o->name);
        done += part > 0 ? (size_t)part : 0;
    }
    return STATUS_OK;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/*
 * Hashes the samples of the first `length` bytes.  `last` is the requested size
 * of the last sample in bytes, before limits apply.
 */
static int hash_samples(const resumable_output *o, uint64_t last,
                        uint64_t length, uint64_t *hash)
{
    const uint64_t start = o->base;
    const uint64_t end = start + length;
    const uint64_t wanted =
        last < SAMPLE_BYTES ? SAMPLE_BYTES : least(last, LAST_BYTES_MAX);
    const struct {
        uint64_t at;
        uint64_t end;
    } samples[] = {{start - least(start, SAMPLE_BYTES), start},
                   {start, start + least(length, SAMPLE_BYTES)},
                   {end - least(length, wanted), end}};
    int status = STATUS_OK;

    *hash = 0;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        uint64_t at = samples[i].at;

        for (size_t n; status == STATUS_OK && at < samples[i].end; at += n) {
            unsigned char bytes[SAMPLE_BYTES];

            n = (size_t)least(samples[i].end - at, sizeof bytes);
            status = read_sample(o, at, n, bytes);
            if (status == STATUS_OK)
                *hash = XXH3_64bits_withSeed(bytes, n, *hash);
        }
    }
    return status;
}

int resumable_output_length(const resumable_output *o, int out,
                            uint64_t *length)
{
    uint64_t offset;

    *length = 0;
    if (!files_offset(out, &offset))
        return failure(o->name);
    if (offset < o->base)
        return fail_other_output(o->name);
    *length = offset - o->base;
    return STATUS_OK;
}

int resumable_output_fingerprint(const resumable_output *o, uint64_t length,
                                 uint64_t last, output_fingerprint *fingerprint)
{
    *fingerprint = (output_fingerprint){
        .known = o->fd >= 0, .base = o->base, .last = last};
    return fingerprint->known
               ? hash_samples(o, last, length, &fingerprint->hash)
               : STATUS_OK;
}

int resumable_output_check(const resumable_output *o, int out, uint64_t length,
                           uint64_t written)
{
    if (length == written)
        return files_check_length(out, o->name, o->base + length);
    message_error("%s: has %" PRIu64 " bytes, but %" PRIu64 " were written: "
                  "changed by another program",
                  files_output_name(o->name), o->base + length,
                  o->base + written);
    return STATUS_FAILURE;
}

bool resumable_output_is_gone(const char *name,
                              const output_fingerprint *fingerprint)
{
    struct stat st;

    return fingerprint->base == 0 && !files_is_standard(name) &&
           stat(name, &st) != 0 && errno == ENOENT;
}

int resumable_output_start(const resumable_output *o, int out,
                           resumable_output_test *is_start)
{
    unsigned char first[RESUMABLE_OUTPUT_FIRST];
    size_t n = sizeof first;
    struct stat st;
    int status;

    if (o->fd < 0)
        return STATUS_OK;
    if (fstat(out, &st) != 0)
        return failure(o->name);
    if ((uint64_t)st.st_size - o->base < n)
        n = (size_t)((uint64_t)st.st_size - o->base);
    status = read_sample(o, o->base, n, first);
    /* After a power failure the data may read as zeros. */
    if (status == STATUS_OK && !is_start(first, n) && !all_zero(first, n))
        return fail_other_output(o->name);
    return status;
}

int resumable_output_reopen(resumable_output *o, const char *name, int in,
                            int *out, const output_fingerprint *fingerprint,
                            uint64_t length)
{
    struct stat st;
    uint64_t hash;
    int status;

    *o = (resumable_output){.name = name, .fd = -1, .base = fingerprint->base};
    *out = -1;
    /* Pipes and devices cannot be checked. */
    if (!fingerprint->known && !files_is_for_file(name)) {
        *out = files_reopen_output(name, in, 0);
        return *out < 0 ? STATUS_FAILURE : STATUS_OK;
    }
    if (!fingerprint->known || length > INT64_MAX ||
        fingerprint->base > INT64_MAX - length) {
        message_error("%s: the state was saved by a job that did not write to "
                      "a regular file, so it cannot be resumed",
                      files_output_name(name));
        return STATUS_USAGE;
    }
    if (!files_is_standard(name) && stat(name, &st) != 0 && errno == ENOENT) {
        message_error("%s: does not exist, but its state does: remove the "
                      "state to start again", message_name(name));
        return STATUS_FAILURE;
    }
    *out = files_reopen_output(name, in, fingerprint->base + length);
    if (*out < 0)
        return STATUS_FAILURE;
    if (!files_is(FILES_REGULAR, *out))
        return fail_other_output(name);
    o->fd = files_reread_output(name, *out);
    if (o->fd < 0)
        return STATUS_FAILURE;
    status = hash_samples(o, fingerprint->last, length, &hash);
    return status == STATUS_OK && hash != fingerprint->hash
               ? fail_other_output(name)
               : status;
}

int resumable_output_seek_end(const resumable_output *o, int out,
                              uint64_t length)
{
    if (o->fd < 0 ||
        lseek(out, (off_t)(o->base + length), SEEK_SET) != -1)
        return STATUS_OK;
    return failure(o->name);
}

int resumable_output_cut(const resumable_output *o, int out, uint64_t length)
{
    return files_cut(out, o->name, o->base + length) ? STATUS_OK
                                                     : STATUS_FAILURE;
}

void resumable_output_close(resumable_output *o)
{
    if (o->fd >= 0)
        (void)close(o->fd);
    o->fd = -1;
}
