/*
 * feed.c - functions shared by the fuzzing targets; see fuzz.h.
 *
 * The targets compile src/lib/io/fd.c, and the files of tokcat, once more with
 * read, write and poll renamed to the functions here.
 *
 * SPDX-License-Identifier: MIT
 */

/* memfd_create is specific to Linux. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"

/*
 * With the address sanitizer, up to this many bytes of a buffer after the data
 * of a read are poisoned.
 */
#define FENCE ((size_t)512)
#if defined(__SANITIZE_ADDRESS__)
#define GUARDED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GUARDED 1
#endif
#endif
#ifdef GUARDED
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

/* ----------------------------------------------------------------- checks */

void must_fail(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    abort();
}

ps_error no_error(void)
{
    return (ps_error){.code = PS_OK};
}

ps_result told(ps_result result, const ps_error *err)
{
    size_t n = strnlen(err->text, sizeof err->text);

    if (result == PS_OK || result == PS_END)
        return result;
    must(err->code == result);
    must(n > 0 && n < sizeof err->text);
    for (size_t i = 0; i < n; i++)
        must(err->text[i] >= ' ' && err->text[i] <= '~');
    return result;
}

/* ----------------------------------------------------------------- inputs */

unsigned take_u8(input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

unsigned take_u16(input *in)
{
    unsigned low = take_u8(in);

    return low | take_u8(in) << 8;
}

const unsigned char *take_bytes(input *in, size_t n, size_t *got)
{
    const unsigned char *p = in->at;

    *got = n < in->left ? n : in->left;
    if (*got > 0)
        in->at += *got;
    in->left -= *got;
    return p;
}

/* The sanitizer checks the reads of memcpy, but not those of xxhash. */
uint64_t hash_bytes(uint64_t hash, const unsigned char *p, size_t n)
{
    unsigned char *copy = malloc(n > 0 ? n : 1);

    must(copy != NULL);
    if (n > 0)
        memcpy(copy, p, n);
    hash = XXH3_64bits_withSeed(copy, n, hash);
    free(copy);
    return hash;
}

/* ------------------------------------------------------------ descriptors */

/* Static because read and write have no context. */
static struct {
    input in;
    unsigned manner;
    bool refused; /* the last read failed with EAGAIN or EINTR */
    bytes out;
} f;

/* FEED_FD is open, in case the caller checks its type. */
static void open_feed(void)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    must(null >= 0 && dup2(null, FEED_FD) == FEED_FD);
    must(close(null) == 0);
}

void feed(const unsigned char *data, size_t n, unsigned manner)
{
    if (fcntl(FEED_FD, F_GETFD) < 0)
        open_feed();
    f.in = (input){data, n};
    f.manner = manner;
    f.refused = false;
}

const bytes *feed_written(void)
{
    return &f.out;
}

void feed_clear(void)
{
    f.out.size = 0;
}

/* Bytes that the next read returns. */
static size_t piece(size_t n)
{
    size_t max = f.manner & FEED_PIECE;

    if ((f.manner & FEED_LARGE) != 0)
        max *= 64;
    return max == 0 || max > n ? n : max;
}

/* <unistd.h> and <poll.h> declare these instead of the real ones. */
ssize_t fake_read(int fd, void *buf, size_t n)
{
    const unsigned char *p;
    size_t got;

    must(fd == FEED_FD);
    if ((f.manner & (FEED_INTERRUPTS | FEED_LATE)) != 0 && !f.refused) {
        f.refused = true;
        errno = (f.manner & FEED_LATE) != 0 ? EAGAIN : EINTR;
        return -1;
    }
    f.refused = false;
    p = take_bytes(&f.in, piece(n), &got);
    ASAN_UNPOISON_MEMORY_REGION(buf, got > 0 ? got : n > 0);
    if (got > 0) {
        memcpy(buf, p, got);
        n = n - got < FENCE ? n - got : FENCE;
        ASAN_POISON_MEMORY_REGION((unsigned char *)buf + got, n);
    }
    return (ssize_t)got;
}

ssize_t fake_write(int fd, const void *buf, size_t n)
{
    (void)fd;
    n = piece(n);
    put_bytes(&f.out, buf, n);
    return (ssize_t)n;
}

int fake_poll(struct pollfd *fds, nfds_t n_fds, int timeout)
{
    must(n_fds == 1);
    fds->revents = POLLIN | POLLOUT;
    return timeout == 0 && (f.manner & FEED_LATE) != 0 ? 0 : 1;
}

/* A file in memory, where the system has them. */
static int open_nameless(void)
{
#ifdef MFD_CLOEXEC
    return memfd_create("fuzz", MFD_CLOEXEC);
#else
    FILE *file = tmpfile();

    must(file != NULL);
    return fileno(file);
#endif
}

int feed_file_of(unsigned which, const unsigned char *data, size_t n)
{
    /* The descriptor plus one, so that 0 means none. */
    static int fds[FEED_FILES];
    int fd;

    must(which < FEED_FILES);
    if (fds[which] == 0)
        fds[which] = open_nameless() + 1;
    fd = fds[which] - 1;
    must(fd >= 0 && ftruncate(fd, 0) == 0);
    must(pwrite(fd, data, n, 0) == (ssize_t)n);
    return fd;
}

int feed_file(const unsigned char *data, size_t n)
{
    return feed_file_of(0, data, n);
}
