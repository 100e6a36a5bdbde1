/*
 * runs.c - sorted runs of records in a temporary file.
 *
 * A file that is kept with a state starts with a magic number, which identifies
 * a file that a killed job left and that may be overwritten.
 *
 * SPDX-License-Identifier: MIT
 */

/* for O_TMPFILE */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "tokshuf/runs.h"

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

#define MAGIC "\x89RUN\r\n\x1a\n"

#define WRITE_BYTES ((size_t)256 << 10)
#define MIN_READ_BYTES ((size_t)4 << 10)
#define MAX_READ_BYTES ((size_t)1 << 20)

/* Number of bytes before each payload, for the key and the number of tokens. */
#define HEAD_BYTES 16

static int fail(const runs *r)
{
    message_errno("%s", r->kept.name == NULL ? "temporary file"
                                             : message_name(r->kept.name));
    return STATUS_FAILURE;
}

/* ---------------------------------------------------------------------
 * The file
 */

int runs_open(runs *r, const char *folder)
{
    char name[FILES_MAX_NAME];
    bool named = true;

    *r = (runs){.fd = -1};
#ifdef O_TMPFILE
    r->fd = files_openat(AT_FDCWD, folder, O_TMPFILE | O_RDWR);
    named = r->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR);
#endif
    /* Without O_TMPFILE, create a named file and unlink it immediately. */
    if (named && snprintf(name, sizeof name, "%s/tokshuf.XXXXXX", folder) >=
                     (int)sizeof name) {
        errno = ENAMETOOLONG;
    } else if (named) {
        r->fd = mkstemp(name);
        if (r->fd >= 0)
            (void)unlink(name);
    }
    if (r->fd >= 0)
        return STATUS_OK;
    message_errno("%s: cannot create a temporary file", message_name(folder));
    return STATUS_FAILURE;
}

/* Appends all bytes to the file. */
static int append(runs *r, const unsigned char *bytes, size_t n)
{
    while (n > 0) {
        const ssize_t done = pwrite(r->fd, bytes, n, (off_t)r->size);

        if (done < 0 && errno == EINTR)
            continue;
        if (done == 0)
            errno = ENOSPC;
        if (done <= 0)
            return fail(r);
        if (r->digest != NULL)
            (void)XXH3_64bits_update(r->digest, bytes, (size_t)done);
        bytes += done;
        n -= (size_t)done;
        r->size += (uint64_t)done;
    }
    return STATUS_OK;
}

/* Reads exactly `n` bytes at offset `at`. */
static int read_at(const runs *r, uint64_t at, unsigned char *bytes, size_t n)
{
    while (n > 0) {
        const ssize_t done = pread(r->fd, bytes, n, (off_t)at);

        if (done < 0 && errno == EINTR)
            continue;
        if (done == 0)
            errno = EIO; /* these bytes have been written */
        if (done <= 0)
            return fail(r);
        bytes += done;
        n -= (size_t)done;
        at += (uint64_t)done;
    }
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Files kept with a state
 */

int runs_failed(const runs_name *kept, temp_file_result r)
{
    if (r == TEMP_FILE_ERRNO || r == TEMP_FILE_UNOPENED)
        message_errno("%s", message_name(kept->name));
    else
        message_error("%s: %s", message_name(kept->name),
                      r == TEMP_FILE_LOCKED
                          ? "locked: another job is writing it"
                          : "needed as a temporary file, but exists and is not "
                            "a temporary file: rename or remove it");
    return STATUS_FAILURE;
}

static temp_file kept_file(const runs_name *kept)
{
    return (temp_file){.folder = kept->folder,
                       .name = kept->base,
                       .magic = MAGIC,
                       .fd = -1};
}

static int fail_other_file(const runs_name *kept)
{
    message_error("%s: not the temporary file that was written with this state",
                  message_name(kept->name));
    return STATUS_FAILURE;
}

/* Computes the digest of everything that an earlier job wrote. */
static int read_all(runs *r)
{
    int status = STATUS_OK;

    r->buffer = malloc(WRITE_BYTES);
    if (r->buffer == NULL)
        return fail(r);
    for (uint64_t at = 0; status == STATUS_OK && at < r->size;) {
        const size_t n = r->size - at < WRITE_BYTES ? (size_t)(r->size - at)
                                                    : WRITE_BYTES;

        status = read_at(r, at, r->buffer, n);
        (void)XXH3_64bits_update(r->digest, r->buffer, n);
        at += n;
    }
    return status;
}

int runs_open_kept(runs *r, const runs_name *kept, uint64_t size,
                   uint64_t digest)
{
    temp_file file = kept_file(kept);
    const temp_file_result opened = temp_file_open(&file, size == 0);
    struct stat st;
    int status;

    *r = (runs){.fd = file.fd, .kept = *kept};
    if (opened != TEMP_FILE_OK)
        return size > 0 && opened >= TEMP_FILE_SPECIAL
                   ? fail_other_file(kept)
                   : runs_failed(kept, opened);
    r->digest = XXH3_createState();
    if (r->digest == NULL || fstat(r->fd, &st) != 0)
        return fail(r);
    (void)XXH3_64bits_reset(r->digest);
    if (size == 0)
        return STATUS_OK;
    if ((uint64_t)st.st_size < size)
        return fail_other_file(kept);
    r->start = RUNS_START;
    r->size = size;
    status = read_all(r);
    return status == STATUS_OK && runs_digest(r) != digest
               ? fail_other_file(kept)
               : status;
}

int runs_start(runs *r)
{
    const int status = runs_trim(r);

    if (status != STATUS_OK || r->size > 0)
        return status;
    r->start = RUNS_START;
    return append(r, (const unsigned char *)MAGIC, RUNS_START);
}

int runs_sync(const runs *r)
{
    return files_sync(r->fd, r->kept.name) ? STATUS_OK : STATUS_FAILURE;
}

uint64_t runs_digest(const runs *r)
{
    return XXH3_64bits_digest(r->digest);
}

void runs_store(const runs *r, checkpoint *to)
{
    for (size_t i = 0; i < r->n; i++) {
        uint64_t numbers[] = {r->of[i].end, r->of[i].at - r->of[i].left};

        /* During a merge, the head of the next record has been read already. */
        for (size_t k = r->given ? 1 : 0; k < r->n_heap; k++)
            numbers[1] -= r->heap[k] == i ? HEAD_BYTES : 0;
        checkpoint_put(to, numbers, 2);
    }
}

int runs_load(runs *r, const unsigned char *numbers, size_t n, bool *fits)
{
    uint64_t start = r->start;

    *fits = n > 0 || start == r->size;
    if (n == 0)
        return STATUS_OK;
    r->of = malloc(n * sizeof *r->of);
    if (r->of == NULL)
        return fail(r);
    r->reserved = n;
    for (r->n = 0; *fits && r->n < n; r->n++) {
        run *one = &r->of[r->n];

        *one = (run){.end = load_u64(numbers + RUNS_BYTES * r->n),
                     .at = load_u64(numbers + RUNS_BYTES * r->n + 8)};
        *fits = start <= one->end && start <= one->at && one->at <= one->end;
        start = one->end;
    }
    *fits = *fits && start == r->size;
    return STATUS_OK;
}

temp_file_result runs_remove(const runs_name *kept)
{
    temp_file file = kept_file(kept);
    temp_file_result r = temp_file_open(&file, false);

    if (r == TEMP_FILE_OK)
        r = temp_file_discard(&file);
    return r >= TEMP_FILE_SPECIAL || (r == TEMP_FILE_ERRNO && errno == ENOENT)
               ? TEMP_FILE_OK
               : r;
}

/* ---------------------------------------------------------------------
 * Writing
 */

static int flush(runs *r)
{
    const size_t n = r->used;

    r->used = 0;
    return append(r, r->buffer, n);
}

int runs_begin(runs *r)
{
    if (r->buffer == NULL)
        r->buffer = malloc(WRITE_BYTES);
    if (r->n == r->reserved) {
        const size_t more = 2 * r->n + 8;
        run *of = realloc(r->of, more * sizeof *of);

        if (of == NULL)
            return fail(r);
        r->of = of;
        r->reserved = more;
    }
    if (r->buffer == NULL)
        return fail(r);
    r->of[r->n++] = (run){.at = r->size};
    return STATUS_OK;
}

int runs_put(runs *r, const record *one)
{
    const size_t bytes = one->bytes;
    int status = STATUS_OK;

    if (WRITE_BYTES - r->used < HEAD_BYTES ||
        WRITE_BYTES - r->used - HEAD_BYTES < bytes)
        status = flush(r);
    store_u64(r->buffer + r->used, one->key);
    store_u32(r->buffer + r->used + 8, one->n_tok);
    store_u32(r->buffer + r->used + 12, one->bytes);
    r->used += HEAD_BYTES;
    if (status != STATUS_OK)
        return status;
    if (WRITE_BYTES - r->used >= bytes) {
        memcpy(r->buffer + r->used, one->payload, bytes);
        r->used += bytes;
        return STATUS_OK;
    }
    status = flush(r);
    return status == STATUS_OK ? append(r, one->payload, bytes) : status;
}

int runs_end(runs *r)
{
    const int status = flush(r);

    r->of[r->n - 1].end = r->size;
    return status;
}

/* ---------------------------------------------------------------------
 * Reading
 */

/* Reads until the buffer of a run has `n` unread bytes, which must fit it. */
static int fill(const runs *r, run *one, size_t n)
{
    const uint64_t rest = one->end - one->at;
    size_t more;
    int status;

    if (one->left >= n)
        return STATUS_OK;
    memmove(one->buffer, one->buffer + one->first, one->left);
    one->first = 0;
    more = r->buffer_bytes - one->left;
    if (more > rest)
        more = (size_t)rest;
    if (one->left + more < n) {
        errno = EIO;
        return fail(r);
    }
    status = read_at(r, one->at, one->buffer + one->left, more);
    one->at += more;
    one->left += more;
    return status;
}

/* Reads the key and token count of the next record, if there is one. */
static int read_head(const runs *r, run *one, bool *more)
{
    int status;

    *more = one->left > 0 || one->at < one->end;
    if (!*more)
        return STATUS_OK;
    status = fill(r, one, HEAD_BYTES);
    if (status != STATUS_OK)
        return status;
    one->key = load_u64(one->buffer + one->first);
    one->n_tok = load_u32(one->buffer + one->first + 8);
    one->bytes = load_u32(one->buffer + one->first + 12);
    one->first += HEAD_BYTES;
    one->left -= HEAD_BYTES;
    if (one->bytes <= one->left + (one->end - one->at))
        return STATUS_OK;
    errno = EIO;
    return fail(r);
}

/*
 * Reads the payload of the next record, into the run's buffer if it fits,
 * otherwise into r->payload.
 */
static int read_payload(runs *r, run *one, const unsigned char **payload)
{
    const size_t n = one->bytes;
    const size_t here = one->left < n ? one->left : n;
    int status;

    if (n <= r->buffer_bytes) {
        status = fill(r, one, n);
        *payload = one->buffer + one->first;
        one->first += n;
        one->left -= n;
        return status;
    }
    if (r->payload_bytes < n) {
        free(r->payload);
        r->payload = malloc(n);
        r->payload_bytes = r->payload == NULL ? 0 : n;
        if (r->payload == NULL)
            return fail(r);
    }
    memcpy(r->payload, one->buffer + one->first, here);
    one->first += here;
    one->left -= here;
    status = read_at(r, one->at, r->payload + here, n - here);
    one->at += n - here;
    *payload = r->payload;
    return status;
}

/* ---------------------------------------------------------------------
 * Merging
 */

static bool is_before(const runs *r, size_t a, size_t b)
{
    return r->of[a].key < r->of[b].key ||
           (r->of[a].key == r->of[b].key && a < b);
}

/* Restores the heap order below a node. */
static void sift(const runs *r, size_t place)
{
    size_t *heap = r->heap;

    for (;;) {
        size_t least = 2 * place + 1;
        const size_t moved = heap[place];

        if (least >= r->n_heap)
            return;
        if (least + 1 < r->n_heap &&
            is_before(r, heap[least + 1], heap[least]))
            least++;
        if (is_before(r, moved, heap[least]))
            return;
        heap[place] = heap[least];
        heap[least] = moved;
        place = least;
    }
}

int runs_merge(runs *r, size_t first, size_t n, uint64_t memory)
{
    const uint64_t each = memory / n;
    int status = STATUS_OK;

    r->buffer_bytes = each < MIN_READ_BYTES   ? MIN_READ_BYTES
                      : each > MAX_READ_BYTES ? MAX_READ_BYTES
                                              : (size_t)each;
    r->n_heap = 0;
    r->heap = malloc(n * sizeof *r->heap);
    if (r->heap == NULL)
        return fail(r);
    for (size_t i = first; status == STATUS_OK && i < first + n; i++) {
        bool more = false;

        r->of[i].buffer = malloc(r->buffer_bytes);
        if (r->of[i].buffer == NULL)
            return fail(r);
        status = read_head(r, &r->of[i], &more);
        if (more)
            r->heap[r->n_heap++] = i;
    }
    for (size_t place = r->n_heap / 2; place-- > 0;)
        sift(r, place);
    return status;
}

int runs_next(runs *r, record *one, bool *more)
{
    run *least;

    /* Advance the run whose record was returned last. */
    if (r->given) {
        bool left = false;
        const int status = read_head(r, &r->of[r->heap[0]], &left);

        r->given = false;
        if (!left)
            r->heap[0] = r->heap[--r->n_heap];
        sift(r, 0);
        *more = false;
        if (status != STATUS_OK)
            return status;
    }

    *more = r->n_heap > 0;
    if (!*more)
        return STATUS_OK;
    least = &r->of[r->heap[0]];
    *one = (record){
        .key = least->key, .n_tok = least->n_tok, .bytes = least->bytes};
    r->given = true;
    return read_payload(r, least, &one->payload);
}

void runs_stop(runs *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->of[i].buffer);
        r->of[i].buffer = NULL;
    }
    free(r->heap);
    r->heap = NULL;
    r->given = false;
    r->n_heap = 0;
}

void runs_forget(runs *r)
{
    runs_stop(r);
    r->n = 0;
    r->size = r->start;
    if (r->digest != NULL) {
        (void)XXH3_64bits_reset(r->digest);
        (void)XXH3_64bits_update(r->digest, MAGIC, RUNS_START);
    }
}

int runs_trim(const runs *r)
{
    int status;

    do {
        status = ftruncate(r->fd, (off_t)r->size);
    } while (status != 0 && errno == EINTR);
    return status == 0 ? STATUS_OK : fail(r);
}

void runs_close(runs *r)
{
    runs_stop(r);
    if (r->fd >= 0)
        (void)close(r->fd);
    free(r->buffer);
    free(r->payload);
    free(r->of);
    (void)XXH3_freeState(r->digest);
    *r = (runs){.fd = -1};
}
