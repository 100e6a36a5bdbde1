/*
 * input-skip-t.c - after bytes are skipped, an input delivers the bytes at its
 * new offset, whether the skipped ones were read or not.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <unistd.h>

#include <zstd.h>

#include "io/input.h"

#define SIZE ((size_t)3000000)

static bytes make_data(size_t n)
{
    uint64_t random = 5;
    bytes b = {0};

    for (size_t i = 0; i < n / 8; i++)
        put_u64(&b, random_next(&random));
    return b;
}

static ps_input *open_source(int fd)
{
    ps_input *s;
    ps_error err;

    assert_ok(ps_input_open(&s, fd, &err), &err);
    return s;
}

/* Compares `want` bytes at `at`, or as many as there are. */
static void check_bytes(ps_input *s, const bytes *b, size_t at, size_t want)
{
    const unsigned char *data;
    size_t got;
    ps_error err;

    assert_int_equal(s->taken, at);
    assert_ok(ps_input_peek(s, want, &data, &got, &err), &err);
    assert_int_equal(got, want < b->size - at ? want : b->size - at);
    assert_memory_equal(data, b->data + at, got);
}

/* Steps of any size, within a block and across many; larger records too. */
static void walk(const bytes *b, int fd, bool threaded, uint32_t longest,
                 uint64_t random)
{
    ps_input *s = open_source(fd);
    size_t at = 0;
    ps_error err;

    if (threaded)
        assert_ok(ps_input_read_ahead(s, &err), &err);
    while (at < b->size) {
        size_t n = random_below(&random, longest);
        size_t take = random_below(&random, (uint32_t)n + 1);
        size_t over = random_below(&random, longest);

        check_bytes(s, b, at, n);
        take = take < b->size - at ? take : b->size - at;
        ps_input_take(s, take);
        at += take;
        over = over < b->size - at ? over : b->size - at;
        assert_ok(ps_input_skip(s, over, &err), &err);
        at += over;
    }
    check_bytes(s, b, at, 1);
    ps_input_free(s);
    (void)close(fd);
}

static int open_packed(const bytes *b)
{
    size_t room = ZSTD_compressBound(b->size);
    unsigned char *packed = must_alloc(room);
    size_t n = ZSTD_compress(packed, room, b->data, b->size, 1);
    int fd;

    assert_false(ZSTD_isError(n));
    fd = open_data(packed, n);
    free(packed);
    return fd;
}

static void test_walks(void **state)
{
    bytes b = make_data(SIZE);

    for (uint32_t longest = 1000; longest < 2000000; longest *= 3)
        for (uint64_t seed = 1; seed < 6; seed++) {
            walk(&b, open_bytes(&b), false, longest, seed);
            walk(&b, open_bytes(&b), true, longest, seed);
            walk(&b, open_packed(&b), false, longest, seed);
        }
}

/* A block that is held keeps its bytes. */
static void test_held_block(void **state)
{
    bytes b = make_data(SIZE);
    int fd = open_bytes(&b);
    ps_input *s = open_source(fd);
    ps_block *block;
    const unsigned char *data;
    size_t got;
    ps_error err;

    assert_ok(ps_input_peek(s, 1000, &data, &got, &err), &err);
    block = s->block;
    assert_ptr_equal(ps_input_block(s), block);
    ps_block_hold(block);
    assert_ok(ps_input_skip(s, 1000000, &err), &err);
    check_bytes(s, &b, 1000000, 500000);
    assert_memory_equal(data, b.data, 1000);
    ps_block_release(block);
    ps_input_free(s);
}

/* To the end and past it, from within a file and after reading it all. */
static void test_end(void **state)
{
    bytes b = make_data(1000000);
    ps_error err;

    for (int i = 0; i < 8; i++) {
        size_t from = i & 1 ? 400000 : 0;
        bool is_read = i & 2;
        size_t beyond = i & 4 ? 1 : 0;
        bytes rest = {.data = b.data + from, .size = b.size - from};
        int fd = open_bytes(&b);
        ps_input *s;

        assert_int_equal(lseek(fd, (off_t)from, SEEK_SET), from);
        s = open_source(fd);
        check_bytes(s, &rest, 0, is_read ? SIZE : 100);
        assert_true(ps_input_can_skip(s));
        assert_result(ps_input_skip(s, rest.size + beyond, &err),
                      beyond > 0 ? PS_ERR_TRUNCATED : PS_OK, &err);
        if (beyond == 0)
            check_bytes(s, &rest, rest.size, 10);
        ps_input_free(s);
        (void)close(fd);
    }
}

/* A hole too large to have been read. */
static void test_hole(void **state)
{
    static const char last[] = "the end";
    const off_t size = (off_t)1 << 40;
    bytes b = make_data(1000);
    int fd = open_bytes(&b);
    ps_input *s = open_source(fd);
    const unsigned char *data;
    size_t got;
    ps_error err;

    if (pwrite(fd, last, 8, size) != 8)
        skip(); /* the file system has no files as large */
    check_bytes(s, &b, 0, 10);
    assert_ok(ps_input_skip(s, (uint64_t)size, &err), &err);
    assert_ok(ps_input_peek(s, 10, &data, &got, &err), &err);
    assert_int_equal(got, 8);
    assert_memory_equal(data, last, 8);
    ps_input_free(s);
}

/* A size larger than any file is past the end, too. */
static void test_too_far(void **state)
{
    static const uint64_t sizes[] = {UINT64_C(1) << 62, UINT64_C(1) << 63,
                                     UINT64_MAX};
    bytes b = make_data(1000);
    ps_error err;

    for (size_t i = 0; i < 3; i++) {
        int fd = open_bytes(&b);
        ps_input *s = open_source(fd);

        check_bytes(s, &b, 0, 10);
        assert_result(ps_input_skip(s, sizes[i], &err), PS_ERR_TRUNCATED,
                      &err);
        ps_input_free(s);
        (void)close(fd);
    }
}

static void check_cannot(const bytes *b, int fd, bool threaded)
{
    ps_input *s = open_source(fd);
    ps_error err;

    if (threaded)
        assert_ok(ps_input_read_ahead(s, &err), &err);
    check_bytes(s, b, 0, 100);
    assert_false(ps_input_can_skip(s));
    assert_ok(ps_input_skip(s, 500, &err), &err);
    check_bytes(s, b, 500, 100);
    assert_result(ps_input_skip(s, 501, &err), PS_ERR_TRUNCATED, &err);
    ps_input_free(s);
    (void)close(fd);
}

/* A pipe, a compressed file, and a file that a thread reads. */
static void test_cannot(void **state)
{
    bytes b = make_data(1000);
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], b.data, b.size), b.size);
    (void)close(ends[1]);
    check_cannot(&b, ends[0], false);
    check_cannot(&b, open_packed(&b), false);
    check_cannot(&b, open_bytes(&b), true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walks),
        cmocka_unit_test(test_held_block),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_hole),
        cmocka_unit_test(test_too_far),
        cmocka_unit_test(test_cannot),
    };

    (void)alarm(600); /* in case the bytes are read after all */
    return run_as_tap("source-skip", tests, NULL);
}
