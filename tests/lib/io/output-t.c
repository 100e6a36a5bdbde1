/*
 * output-t.c - bytes put into a sink are written in order, whichever threads
 * write and compress them; and failed writes are reported.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "io/fd.h"
#include "io/output.h"

#define LARGEST 3000
#define PUT_LARGEST PS_IO_BYTES /* of a frame of put bytes */

static void finalize(void *context, unsigned char *block);
static void follow(void *context, const unsigned char *block);

/* Number of committed blocks shown, and whether one was wrong. */
static uint32_t n_followed;
static bool is_wrong;
static const ps_output_finalizer finalizer = {finalize, follow, &n_followed};

#define PLAIN(n) {.largest = LARGEST, .threads = n, .finalizer = &finalizer}
#define PACKED(n, max)                                                  \
    {                                                                   \
        .largest = LARGEST, .threads = n, .compressed = true,           \
        .level = 1, .max_frames = max, .finalizer = &finalizer          \
    }

/* Every kind of sink. */
static const ps_output_options kinds[] = {
    PLAIN(0), PLAIN(1), PLAIN(3), /* one thread is enough */
    PACKED(0, 0), PACKED(1, 0), PACKED(3, 0),
    /* many frames, and more than a table can list */
    PACKED(0, 1000), PACKED(0, UINT32_MAX),
};
#define KINDS COUNT(kinds)

static ps_output *open_sink(int fd, const ps_output_options *o)
{
    ps_output *s;
    ps_error err;

    assert_ok(ps_output_open(&s, fd, o, &err), &err);
    return s;
}

/* -------------------------------------------------------------- finalizing */

/* A block begins with its size and its number among the committed ones. */
#define NUMBERED 8

static void finalize(void *context, unsigned char *block)
{
    const uint32_t n = get_u32(block);

    for (uint32_t i = NUMBERED; i < n; i++)
        block[i] ^= 0xa5;
}

static void follow(void *context, const unsigned char *block)
{
    uint32_t *number = context;

    /* In order, and finalized only once. */
    if (get_u32(block + 4) != *number || block[NUMBERED] != ('x' ^ 0xa5))
        is_wrong = true;
    ++*number;
}

/* Fills a block of `n` bytes, starting with `x`. */
static void fill_block(unsigned char *block, uint32_t n, uint32_t number,
                       uint64_t *random)
{
    set_u32(block, n);
    set_u32(block + 4, number);
    block[NUMBERED] = 'x';
    for (uint32_t i = NUMBERED + 1; i < n; i++)
        block[i] = (unsigned char)random_below(random, 20);
}

/* ----------------------------------------------------------------- output */

/* The content of frames, each decompressed alone; a seek table has none. */
static bytes unpack(const bytes *b)
{
    bytes plain = {0};
    unsigned char *content = must_alloc(PUT_LARGEST);

    for (size_t at = 0, n; at < b->size; at += n) {
        size_t size;

        n = ZSTD_findFrameCompressedSize(b->data + at, b->size - at);
        assert_false(ZSTD_isError(n));
        size = ZSTD_decompress(content, PUT_LARGEST, b->data + at, n);
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

/* A sink, and the bytes put into it. */
typedef struct stand {
    const ps_output_options *options;
    ps_output *output;
    int file; /* to which it goes, or -1 */
    uint32_t committed;
    bytes all;
    uint64_t random;
} stand;

/* One block in three is not committed. */
static void commit(stand *s)
{
    uint32_t n = NUMBERED + 1 + random_below(&s->random, LARGEST - NUMBERED);
    bool keep = random_below(&s->random, 3) > 0;
    unsigned char *block;
    size_t at = s->all.size;
    ps_error err;

    assert_ok(ps_output_cut(s->output, &err), &err);
    block = ps_output_block(s->output);
    fill_block(block, n, s->committed++, &s->random);
    if (keep) {
        put_bytes(&s->all, block, n);
        for (uint32_t i = NUMBERED; i < n; i++)
            s->all.data[at + i] ^= 0xa5;
    }
    assert_ok(ps_output_commit(s->output, n, keep, &err), &err);
}

/* Puts up to twice a plain block at a time. */
static void put(stand *s)
{
    static const uint32_t max[] = {1, 100, 3000, 20000, 2 * PUT_LARGEST};
    uint32_t size = max[random_below(&s->random, 5)];
    size_t n = 1 + random_below(&s->random, size);
    size_t before = s->all.size;
    ps_error err;

    for (size_t i = 0; i < n; i++)
        put_u8(&s->all, random_below(&s->random, 20));
    assert_ok(ps_output_put(s->output, s->all.data + before, n, &err), &err);
}

/* Everything put so far is in the file. */
static void flush(stand *s)
{
    ps_error err;
    bytes output;

    assert_ok(ps_output_flush(s->output, &err), &err);
    assert_int_equal(n_followed, s->committed);
    assert_false(is_wrong);
    if (s->file < 0)
        return;
    output = read_back(s->file);
    assert_int_equal(ps_output_written(s->output), output.size);
    assert_output(&output, &s->all, s->options->compressed);
    free_bytes(&output);
}

static void step(stand *s)
{
    uint32_t what = random_below(&s->random, 50);
    ps_error err;

    if (what < 24)
        commit(s);
    else if (what < 42)
        put(s);
    else if (what < 45)
        assert_ok(ps_output_push(s->output, &err), &err);
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

    n_followed = 0;
    s.output = open_sink(fd, o);
    for (int i = 0; i < 160; i++)
        step(&s);
    assert_ok(ps_output_finish(s.output, &err), &err);
    assert_int_equal(n_followed, s.committed);
    assert_false(is_wrong);
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

/* Frames depend neither on the number of threads nor on timing. */
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
    }
}

/* A committed block is one frame; put bytes fill frames. */
static void test_frames(void **state)
{
    static const size_t sizes[] = {9, LARGEST, LARGEST, 3, PUT_LARGEST, 1};
    static unsigned char data[PUT_LARGEST + 1];

    for (size_t i = 3; i < KINDS; i++) {
        int fd = open_empty();
        ps_output *s = open_sink(fd, &kinds[i]);
        uint64_t random = 3;
        size_t at = 0;
        ps_error err;
        bytes b;

        n_followed = 0;
        for (uint32_t k = 0; k < 5; k++) {
            const uint32_t n = k == 0 ? 9 : LARGEST;

            fill_block(ps_output_block(s), n, k, &random);
            assert_ok(ps_output_commit(s, n, k < 3, &err), &err);
        }
        assert_ok(ps_output_put(s, "ab", 2, &err), &err);
        assert_ok(ps_output_put(s, "c", 1, &err), &err);
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
        /* A table with that many entries. */
        assert_int_equal(b.size - at, 8 + 6 * 8 + 9);
        (void)close(fd);
    }
}

/* Another output continues where one stopped: the bytes are the same. */
static void test_where(void **state)
{
    for (size_t i = 0; i < KINDS; i++) {
        bytes b[2];

        for (int parts = 0; parts < 2; parts++) {
            ps_output_options o = kinds[i];
            int fd = open_empty();
            ps_output *s = open_sink(fd, &o);
            bytes table = {0};
            ps_error err;

            assert_ok(ps_output_put(s, "some bytes", 10, &err), &err);
            assert_ok(ps_output_cut(s, &err), &err);
            if (parts > 0) {
                ps_output_place place;

                assert_ok(ps_output_where(s, &place, &err), &err);
                assert_int_equal(place.written, size_of(fd));
                o.written = place.written;
                put_bytes(&table, place.table, place.table_bytes);
                o.table = place.table == NULL ? NULL : table.data;
                o.table_bytes = table.size;
                ps_output_free(s);
                o.written++; /* which is not where the table ends */
                if (o.compressed)
                    assert_result(ps_output_open(&s, fd, &o, &err),
                                  PS_ERR_CORRUPT, &err);
                o.written--;
                s = open_sink(fd, &o);
            }
            assert_ok(ps_output_put(s, "more", 4, &err), &err);
            assert_ok(ps_output_finish(s, &err), &err);
            assert_int_equal(ps_output_written(s), size_of(fd));
            ps_output_free(s);
            b[parts] = read_back(fd);
            (void)close(fd);
        }
        assert_same(&b[0], &b[1]);
    }
}

/* ------------------------------------------------------------------- push */

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 1) == 1;
}

/* Waits for `n` bytes, for ever if they do not arrive. */
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

/* They arrive without another call, and none before. */
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
            assert_ok(ps_output_push(s, &err), &err);
            if (k % 50 == 0)
                assert_false(is_readable(ends[0]));
            assert_ok(ps_output_cut(s, &err), &err);
            assert_ok(ps_output_push(s, &err), &err);
            expect(ends[0], data, n);
            assert_ok(ps_output_push(s, &err), &err);
        }
        close_with_pipe(s, ends);
    }
}

/* A complete frame arrives without a push. */
static void test_cut_arrives(void **state)
{
    for (size_t i = 3; i < KINDS; i++) {
        int ends[2];
        ps_output *s = open_to_pipe(ends, &kinds[i]);
        unsigned char frame[100];
        uint64_t random = 3;
        ps_error err;

        assert_ok(ps_output_put(s, "abc", 3, &err), &err);
        assert_ok(ps_output_push(s, &err), &err);
        assert_false(is_readable(ends[0]));
        assert_ok(ps_output_cut(s, &err), &err);
        assert_true(ps_read(ends[0], frame, sizeof frame) > 3);
        n_followed = 0;
        for (uint32_t k = 0; k < 2; k++) {
            fill_block(ps_output_block(s), 20, k, &random);
            assert_ok(ps_output_commit(s, 20, k > 0, &err), &err);
        }
        assert_true(ps_read(ends[0], frame, sizeof frame) > 20);
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

/* Every call that waits for put bytes reports the error, repeatedly. */
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
    uint64_t random = 1;
    ps_output_place place;
    ps_error err;
    ps_result r = PS_OK;

    assert_ok(ps_output_where(s, &place, &err), &err);
    assert_null(place.table); /* no frames yet */
    /* A few bytes, which need not be written before the flush. */
    assert_ok(ps_output_put(s, data, 10, &err), &err);
    (void)ps_output_cut(s, NULL);
    expect_failure(s);
    assert_result(ps_output_where(s, &place, &err), PS_ERR_IO, &err);
    n_followed = 0;
    fill_block(ps_output_block(s), LARGEST, 0, &random);
    assert_result(ps_output_commit(s, LARGEST, true, &err), PS_ERR_IO, &err);
    ps_output_free(s);
    /* Many bytes, as fast as possible. */
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

/* A push does not wait, but the next one reports its result. */
static void test_push_tells_later(void **state)
{
    int fd = open_broken(false);
    ps_output *s = open_sink(fd, &kinds[1]);
    ps_error err;
    ps_result r;

    assert_ok(ps_output_put(s, "a", 1, &err), &err);
    r = ps_output_cut(s, &err);
    while (r == PS_OK)
        r = ps_output_push(s, &err);
    assert_result(r, PS_ERR_IO, &err);
    expect_failure(s);
    ps_output_free(s);
    ps_output_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_to_file),
        cmocka_unit_test(test_same_frames),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_where),
        cmocka_unit_test(test_push),
        cmocka_unit_test(test_cut_arrives),
        cmocka_unit_test(test_write_errors),
        cmocka_unit_test(test_push_tells_later),
    };

    (void)alarm(600); /* in case a wait never ends */
    (void)signal(SIGPIPE, SIG_IGN);
    return run_as_tap("sink", tests, NULL);
}
