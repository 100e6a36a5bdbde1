/*
 * block-t.c - input blocks are reused, and stay valid while they are held; and
 * pools and sinks that run out of memory.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <string.h>
#include <unistd.h>

#include "io/block.h"
#include "io/input.h"
#include "io/output.h"
#include "lib-alloc.h"

#define ALL (PS_BLOCK_HEADROOM + PS_BLOCK_BYTES)

static ps_pool *open_pool(void)
{
    ps_pool *pool;
    ps_error err;

    assert_ok(ps_pool_open(&pool, &err), &err);
    return pool;
}

static ps_block *take(ps_pool *pool)
{
    ps_block *b;
    ps_error err;

    assert_ok(ps_pool_take(pool, &b, &err), &err);
    return b;
}

static ps_block *take_held(ps_pool *pool)
{
    ps_block *b = take(pool);

    ps_block_hold(b);
    return b;
}

/* Writes the block and its headroom, so that a sanitizer checks the bounds. */
static void paint(ps_block *b, int color)
{
    memset(b->bytes - PS_BLOCK_HEADROOM, color, ALL);
}

static void assert_painted(const ps_block *b, int color)
{
    const unsigned char *all = b->bytes - PS_BLOCK_HEADROOM;

    for (size_t i = 0; i < ALL; i++)
        if (all[i] != color)
            fail_msg("byte %zu of a block changed", i);
}

static void test_last_released_first_taken(void **state)
{
    ps_pool *pool = open_pool();
    ps_block *a = take_held(pool);
    ps_block *b = take_held(pool);
    ps_block *c = take_held(pool);
    size_t in_use;

    assert_true(a != b && b != c && a != c);
    in_use = alloc_so_far().bytes;
    ps_block_release(a);
    ps_block_release(c);
    ps_block_release(b);
    assert_ptr_equal(take_held(pool), b);
    assert_ptr_equal(take_held(pool), c);
    ps_block_release(b);
    assert_ptr_equal(take_held(pool), b);
    assert_ptr_equal(take_held(pool), a);
    assert_int_equal(alloc_so_far().bytes, in_use);
    assert_int_equal(ps_pool_held(pool), 3);
    ps_block_release(a);
    ps_block_release(b);
    ps_block_release(c);
    ps_pool_close(pool);
}

static void test_every_holder_counts(void **state)
{
    ps_pool *pool = open_pool();
    ps_block *a = take_held(pool);
    ps_block *b;

    paint(a, 1);
    ps_block_hold(a);
    ps_block_hold(a);
    assert_int_equal(ps_pool_held(pool), 1);
    ps_block_release(a);
    ps_block_release(a);
    assert_int_equal(ps_pool_held(pool), 1);
    b = take_held(pool);
    assert_ptr_not_equal(b, a);
    paint(b, 2);
    assert_int_equal(ps_pool_held(pool), 2);
    assert_painted(a, 1);
    ps_block_release(a);
    assert_int_equal(ps_pool_held(pool), 1);
    assert_ptr_equal(take(pool), a);
    assert_int_equal(ps_pool_held(pool), 1);
    assert_painted(b, 2);
    ps_block_release(b);
    assert_int_equal(ps_pool_held(pool), 0);
    ps_pool_close(pool);
}

/* Each held block is freed by its last release, and then the pool. */
static void test_close_while_held(void **state)
{
    const size_t before = alloc_so_far().bytes;
    ps_pool *pool = open_pool();
    ps_block *a = take_held(pool);
    ps_block *b = take_held(pool);

    (void)take(pool);
    ps_block_release(take_held(pool));
    ps_block_hold(b);
    paint(a, 4);
    ps_pool_close(pool);
    assert_in_range(alloc_so_far().bytes - before, 2 * ALL, 3 * ALL - 1);
    paint(b, 5);
    ps_block_release(b);
    assert_in_range(alloc_so_far().bytes - before, 2 * ALL, 3 * ALL - 1);
    assert_painted(a, 4);
    ps_block_release(a);
    assert_in_range(alloc_so_far().bytes - before, ALL, 2 * ALL - 1);
    assert_painted(b, 5);
    ps_block_release(b);
    assert_int_equal(alloc_so_far().bytes, before);
}

static void test_has(void **state)
{
    ps_pool *pool = open_pool();
    const ps_block *b = take(pool);
    const unsigned char *begin = b->bytes - PS_BLOCK_HEADROOM;
    const unsigned char *end = b->bytes + PS_BLOCK_BYTES;

    assert_true(ps_block_has(b, begin, ALL));
    assert_true(ps_block_has(b, begin, 0));
    assert_true(ps_block_has(b, begin + 1, ALL - 1));
    assert_true(ps_block_has(b, b->bytes, PS_BLOCK_BYTES));
    assert_true(ps_block_has(b, end - 1, 1));
    assert_true(ps_block_has(b, end, 0));
    assert_false(ps_block_has(b, begin, ALL + 1));
    assert_false(ps_block_has(b, begin + 1, ALL));
    assert_false(ps_block_has(b, b->bytes, PS_BLOCK_BYTES + 1));
    assert_false(ps_block_has(b, end, 1));
    assert_false(ps_block_has(b, begin, SIZE_MAX));
    assert_false(ps_block_has(b, end, SIZE_MAX));
    ps_pool_close(pool);
}

/* A block taken for the end of an input serves the next one. */
static void test_reopened_source(void **state)
{
    bytes b = {0};
    ps_input *s;
    ps_error err;
    size_t first = 0;
    int fd;

    put_zeros(&b, PS_BLOCK_BYTES);
    fd = open_bytes(&b);
    assert_ok(ps_input_open(&s, fd, &err), &err);
    for (int i = 0; i < 10; i++) {
        const unsigned char *data;
        size_t got;

        assert_ok(ps_input_peek(s, b.size + 1, &data, &got, &err), &err);
        assert_int_equal(got, b.size);
        rewind_fd(fd);
        assert_ok(ps_input_reopen(s, fd, &err), &err);
        if (i == 0)
            first = alloc_so_far().bytes;
    }
    assert_int_equal(alloc_so_far().bytes, first);
    ps_input_free(s);
}

/* ------------------------------------------------------------- no memory */

/* A failed call returns nothing and leaves the pool unchanged. */
static void test_pool_without_memory(void **state)
{
    const size_t before = alloc_so_far().blocks;
    ps_pool *pool;
    ps_block *held;
    ps_error err;

    alloc_fail(1, false);
    assert_result(ps_pool_open(&pool, &err), PS_ERR_MEMORY, &err);
    pool = open_pool();
    held = take_held(pool);
    for (uint64_t nth = 1; nth <= 2; nth++) {
        ps_block *none = held;
        size_t blocks = alloc_so_far().blocks;

        alloc_fail(nth, false);
        assert_result(ps_pool_take(pool, &none, &err), PS_ERR_MEMORY, &err);
        assert_null(none);
        assert_int_equal(alloc_so_far().blocks, blocks);
    }
    alloc_fail(0, false);
    ps_block_release(held);
    assert_ptr_equal(take(pool), held);
    ps_pool_close(pool);
    assert_int_equal(alloc_so_far().blocks, before);
}

/* Retries until the sink opens; every allocation fails once. */
static uint64_t open_stubbornly(const ps_output_options *o, int fd)
{
    const size_t before = alloc_so_far().blocks;
    uint64_t failures = 0;
    ps_output *output;
    ps_result r;

    do {
        ps_error err;

        alloc_fail(failures + 1, false);
        r = ps_output_open(&output, fd, o, &err);
        alloc_fail(0, false);
        assert_result(r, r == PS_OK ? PS_OK : PS_ERR_MEMORY, &err);
        assert_true((output != NULL) == (r == PS_OK));
        ps_output_free(output);
        assert_int_equal(alloc_so_far().blocks, before);
        failures += r != PS_OK;
    } while (r != PS_OK);
    return failures;
}

static void test_sink_without_memory(void **state)
{
    int fd = open_empty();

    for (uint32_t threads = 0; threads <= 3; threads++) {
        ps_output_options o = {.largest = 1000, .threads = threads};

        /* The sink, the list of blocks, and at least one block. */
        assert_true(open_stubbornly(&o, fd) >= 3 + threads);
        o = (ps_output_options){.largest = 1000,
                              .threads = threads,
                              .compressed = true,
                              .level = 1};
        assert_true(open_stubbornly(&o, fd) >= 5 + 2 * threads);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_released_first_taken),
        cmocka_unit_test(test_every_holder_counts),
        cmocka_unit_test(test_close_while_held),
        cmocka_unit_test(test_has),
        cmocka_unit_test(test_reopened_source),
        cmocka_unit_test(test_pool_without_memory),
        cmocka_unit_test(test_sink_without_memory),
    };

    (void)alarm(600);
    return run_as_tap("block", tests, NULL);
}
