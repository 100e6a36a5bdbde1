/*
 * output-t.c - what is put into a sink comes out, in its order, whoever writes
 * and compresses it; and what cannot be written is told.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "io/fd.h"
#include "io/output.h"

#define LARGEST 3000
#define FRAME 20000

#define PACKED(n)                                                       \
    {                                                                   \
        .largest = LARGEST, .threads = n, .compressed = true,           \
        .level = 1, .frame = FRAME                                      \
    }

/* All that a sink can be opened as. */
static const ps_output_options kinds[] = {
    {.largest = LARGEST},
    {.largest = LARGEST, .threads = 1},
    {.largest = LARGEST, .threads = 3}, /* one is enough for it */
    PACKED(0), PACKED(1), PACKED(3),
    /* frames enough, and more than a table can have */
    {.largest = LARGEST, .compressed = true, .level = 1, .frame = FRAME,
     .max_frames = 1000},
    {.largest = LARGEST, .compressed = true, .level = 1, .frame = FRAME,
     .max_frames = UINT32_MAX},
};
#define KINDS COUNT(kinds)

static ps_output *open_sink(int fd, const ps_output_options *o)
{
    ps_output *s;
    ps_error err;

    assert_ok(ps_output_open(&s, fd, o, &err), &err);
    return s;
}

/* ----------------------------------------------------------------- output */

/* A thread that reads a pipe to its end, not always at once. */
typedef struct drain {
    int ends[2];
    pthread_t thread;
    unsigned char *data;
    size_t size;
    size_t room;
} drain;

static void *run_drain(void *context)
{
    drain *d = context;
    ssize_t n = 1;

    for (unsigned i = 0; n > 0; i++) {
        size_t left = d->room - d->size;

        if (i % 64 == 0)
            (void)poll(NULL, 0, 1);
        n = ps_read(d->ends[0], d->data + d->size,
                    left < 20011 ? left : 20011);
        d->size += n > 0 ? (size_t)n : 0;
    }
    return NULL;
}

/* For less than `room` bytes. */
static void open_drain(drain *d, size_t room)
{
    *d = (drain){.data = must_alloc(room), .room = room};
    assert_int_equal(pipe(d->ends), 0);
    assert_int_equal(pthread_create(&d->thread, NULL, run_drain, d), 0);
}

/* All that came. */
static bytes close_drain(drain *d)
{
    (void)close(d->ends[1]);
    assert_int_equal(pthread_join(d->thread, NULL), 0);
    (void)close(d->ends[0]);
    assert_true(d->size < d->room);
    return (bytes){.data = d->data, .size = d->size, .room = d->room};
}

/* The content of frames, each unpacked by itself; a seek table has none. */
static bytes unpack(const bytes *b)
{
    bytes plain = {0};
    unsigned char *content = must_alloc(FRAME);

    for (size_t at = 0, n; at < b->size; at += n) {
        size_t size;

        n = ZSTD_findFrameCompressedSize(b->data + at, b->size - at);
        assert_false(ZSTD_isError(n));
        size = ZSTD_decompress(content, FRAME, b->data + at, n);
        assert_false(ZSTD_isError(size));
        put_bytes(&plain, content, size);
    }
    free(content);
    return plain;
}

static void assert_same(const bytes *a, const bytes *b)
{
    assert_int_equal(a->size, b->size);
    if (a->size > 0)
        assert_memory_equal(a->data, b->data, a->size);
}

static void assert_output(const bytes *output, const bytes *put,
                          bool compressed)
{
    bytes plain = {0};

    if (compressed)
        plain = unpack(output);
    assert_same(compressed ? &plain : output, put);
    free_bytes(&plain);
}

/* ---------------------------------------------------------- random orders */

/* A sink, and what was put into it. */
typedef struct stand {
    const ps_output_options *options;
    ps_output *output;
    int file; /* to which it goes, or -1 */
    bytes all;
    uint64_t random;
} stand;

static void add_random(stand *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_u8(&s->all, random_below(&s->random, 20));
}

static void reserve(stand *s)
{
    size_t n = random_below(&s->random, LARGEST + 1);
    size_t before = s->all.size;
    unsigned char *room;
    ps_error err;

    add_random(s, n);
    assert_ok(ps_output_reserve(s->output, n, &room, &err), &err);
    if (n > 0)
        memcpy(room, s->all.data + before, n);
}

/* Up to twice a plain block at a time. */
static void put(stand *s)
{
    static const uint32_t max[] = {1, 100, 3000, FRAME, 2 * PS_IO_BYTES};
    uint32_t size = max[random_below(&s->random, 5)];
    size_t n = 1 + random_below(&s->random, size);
    size_t before = s->all.size;
    ps_error err;

    add_random(s, n);
    assert_ok(ps_output_put(s->output, s->all.data + before, n, &err), &err);
}

/* Whatever was put is in the file; of frames those that were ended. */
static void flush(stand *s)
{
    ps_error err;
    bytes output;

    if (s->options->compressed)
        assert_ok(ps_output_cut(s->output, &err), &err);
    assert_ok(ps_output_flush(s->output, &err), &err);
    if (s->file < 0)
        return;
    output = read_back(s->file);
    assert_int_equal(lseek(s->file, 0, SEEK_END), output.size);
    assert_output(&output, &s->all, s->options->compressed);
    free_bytes(&output);
}

static void step(stand *s)
{
    uint32_t what = random_below(&s->random, 50);
    ps_error err;

    if (what < 24)
        reserve(s);
    else if (what < 42)
        put(s);
    else if (what < 45)
        assert_ok(ps_output_push(s->output, &err), &err);
    else if (what < 47)
        assert_ok(ps_output_flush(s->output, &err), &err);
    else if (what < 49)
        assert_ok(ps_output_cut(s->output, &err), &err);
    else
        flush(s);
}

static bytes run_steps(const ps_output_options *o, int fd, int file,
                       uint64_t seed)
{
    stand s = {.options = o, .file = file, .random = seed};
    ps_error err;

    s.output = open_sink(fd, o);
    for (int i = 0; i < 160; i++)
        step(&s);
    assert_ok(ps_output_finish(s.output, &err), &err);
    ps_output_free(s.output);
    return s.all;
}

static void test_to_file(void **state)
{
    for (size_t i = 0; i < KINDS; i++) {
        int fd = open_empty();
        bytes all = run_steps(&kinds[i], fd, fd, 5);
        bytes output = read_back(fd);

        assert_output(&output, &all, kinds[i].compressed);
        free_bytes(&output);
        free_bytes(&all);
        (void)close(fd);
    }
}

static void test_to_pipe(void **state)
{
    for (size_t i = 0; i < 2 * KINDS; i++) {
        const ps_output_options *o = &kinds[i % KINDS];
        drain d;
        bytes all;
        bytes output;

        open_drain(&d, 16u << 20);
        all = run_steps(o, d.ends[1], -1, 77 + i);
        output = close_drain(&d);
        assert_output(&output, &all, o->compressed);
        free_bytes(&output);
        free_bytes(&all);
    }
}

/* Neither the number of threads nor the time shows in the frames. */
static void test_same_frames(void **state)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        bytes first = {0};

        for (size_t i = 3; i < KINDS; i++) {
            int fd = open_empty();
            bytes all = run_steps(&kinds[i], fd, -1, seed);
            bytes output = read_back(fd);

            if (i == 3)
                put_bytes(&first, output.data, output.size);
            assert_same(&output, &first);
            free_bytes(&all);
            free_bytes(&output);
            (void)close(fd);
        }
        free_bytes(&first);
    }
}

/* What was reserved lies in one frame; what was put fills them. */
static void test_frames(void **state)
{
    static const size_t sizes[] = {18000, 18000, FRAME, 10000};
    static unsigned char data[FRAME + 10000];

    for (size_t i = 3; i < KINDS; i++) {
        int fd = open_empty();
        ps_output *s = open_sink(fd, &kinds[i]);
        size_t at = 0;
        ps_error err;
        bytes b;

        for (int k = 0; k < 12; k++) {
            unsigned char *room;

            assert_ok(ps_output_reserve(s, LARGEST, &room, &err), &err);
            memset(room, k, LARGEST);
        }
        assert_ok(ps_output_cut(s, &err), &err);
        assert_ok(ps_output_cut(s, &err), &err);
        assert_ok(ps_output_put(s, data, sizeof data, &err), &err);
        assert_ok(ps_output_finish(s, &err), &err);
        ps_output_free(s);
        b = read_back(fd);
        for (size_t k = 0; k < COUNT(sizes); k++) {
            assert_int_equal(
                ZSTD_getFrameContentSize(b.data + at, b.size - at), sizes[k]);
            at += ZSTD_findFrameCompressedSize(b.data + at, b.size - at);
        }
        /* A table of as many entries. */
        assert_int_equal(b.size - at, 8 + 4 * 8 + 9);
        free_bytes(&b);
        (void)close(fd);
    }
}

/* ------------------------------------------------------------------- push */

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 1) == 1;
}

/* Waits for `n` bytes; without an end if they do not come. */
static void expect(int fd, const unsigned char *data, size_t n)
{
    unsigned char got[LARGEST];

    for (size_t at = 0; at < n;) {
        ssize_t part = ps_read(fd, got, n - at);

        assert_true(part > 0);
        assert_memory_equal(got, data + at, (size_t)part);
        at += (size_t)part;
    }
}

static ps_output *open_to_pipe(int ends[2], const ps_output_options *o)
{
    assert_int_equal(pipe(ends), 0);
    return open_sink(ends[1], o);
}

static void close_with_pipe(ps_output *s, const int ends[2])
{
    ps_output_free(s);
    assert_false(is_readable(ends[0]));
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* They arrive with no further call, and nothing before. */
static void test_push(void **state)
{
    for (size_t i = 0; i < 2; i++) {
        int ends[2];
        unsigned char data[LARGEST];
        ps_output *s = open_to_pipe(ends, &kinds[i]);
        ps_error err;

        for (uint32_t k = 0; k < 300; k++) {
            size_t n = 1 + 10 * k % LARGEST;

            memset(data, (int)k, n);
            assert_ok(ps_output_put(s, data, n, &err), &err);
            if (k % 50 == 0)
                assert_false(is_readable(ends[0]));
            assert_ok(ps_output_push(s, &err), &err);
            expect(ends[0], data, n);
            assert_ok(ps_output_push(s, &err), &err);
        }
        close_with_pipe(s, ends);
    }
}

/* Of frames a whole one arrives, and without a flush. */
static void test_cut_arrives(void **state)
{
    for (size_t i = 3; i < KINDS; i++) {
        int ends[2];
        ps_output *s = open_to_pipe(ends, &kinds[i]);
        unsigned char frame[100];
        ps_error err;

        assert_ok(ps_output_put(s, "abc", 3, &err), &err);
        assert_ok(ps_output_push(s, &err), &err);
        assert_ok(ps_output_flush(s, &err), &err);
        assert_false(is_readable(ends[0]));
        assert_ok(ps_output_cut(s, &err), &err);
        assert_true(ps_read(ends[0], frame, sizeof frame) > 3);
        close_with_pipe(s, ends);
    }
}

/* ----------------------------------------------------------------- errors */

/* A pipe that nobody reads, or a full disk. */
static int open_broken(bool full)
{
    int ends[2];

    if (full)
        return open("/dev/full", O_WRONLY);
    assert_int_equal(pipe(ends), 0);
    (void)close(ends[0]);
    return ends[1];
}

/* Every call that waits for what was put tells it, however often. */
static void expect_failure(ps_output *s)
{
    ps_error err;

    for (int again = 0; again < 2; again++) {
        assert_result(ps_output_flush(s, &err), PS_ERR_IO, &err);
        assert_non_null(strstr(err.text, "cannot write"));
        assert_result(ps_output_push(s, &err), PS_ERR_IO, &err);
    }
    assert_result(ps_output_finish(s, &err), PS_ERR_IO, &err);
}

static void break_it(const ps_output_options *o, bool full)
{
    static unsigned char data[PS_IO_BYTES + 1];
    int fd = open_broken(full);
    ps_output *s = open_sink(fd, o);
    ps_error err;
    ps_result r = PS_OK;

    /* A few bytes, which nobody need write before they are flushed. */
    assert_ok(ps_output_put(s, data, 10, &err), &err);
    (void)ps_output_cut(s, NULL);
    expect_failure(s);
    ps_output_free(s);
    /* Much, as fast as it goes. */
    s = open_sink(fd, o);
    for (int i = 0; i < 100 && r == PS_OK; i++)
        r = ps_output_put(s, data, sizeof data, &err);
    assert_result(r, PS_ERR_IO, &err);
    assert_result(ps_output_put(s, data, sizeof data, &err), PS_ERR_IO, &err);
    expect_failure(s);
    ps_output_free(s);
    (void)close(fd);
}

static void test_write_errors(void **state)
{
    for (size_t i = 0; i < KINDS; i++) {
        break_it(&kinds[i], false);
        break_it(&kinds[i], true);
    }
}

/* A push does not wait, but one after it tells what became of it. */
static void test_push_tells_later(void **state)
{
    int fd = open_broken(false);
    ps_output *s = open_sink(fd, &kinds[1]);
    ps_error err;
    ps_result r;

    /* One byte: more could fill a block, and then a put would tell it. */
    assert_ok(ps_output_put(s, "a", 1, &err), &err);
    do
        r = ps_output_push(s, &err);
    while (r == PS_OK);
    assert_result(r, PS_ERR_IO, &err);
    expect_failure(s);
    ps_output_free(s);
    (void)close(fd);
    ps_output_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_to_file),
        cmocka_unit_test(test_to_pipe),
        cmocka_unit_test(test_same_frames),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_push),
        cmocka_unit_test(test_cut_arrives),
        cmocka_unit_test(test_write_errors),
        cmocka_unit_test(test_push_tells_later),
    };

    (void)alarm(600); /* for what would wait without an end */
    (void)signal(SIGPIPE, SIG_IGN);
    return run_as_tap("sink", tests, NULL);
}
