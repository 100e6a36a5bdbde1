/*
 * zstd-frame-t.c - frames from our compressor can be decompressed, and altered
 * ones are refused.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "io/zstd_frame.h"

/* Bytes that compress well, but not to nothing. */
static bytes make_plain(size_t n, uint64_t seed)
{
    bytes b = {0};

    for (size_t i = 0; i < n; i++)
        put_u8(&b, random_below(&seed, 4) == 0 ? random_below(&seed, 256)
                                               : (unsigned)(i % 7));
    return b;
}

static ps_compressor *open_maker(int level)
{
    ps_compressor *maker;
    ps_error err;

    assert_ok(ps_compressor_open(&maker, level, &err), &err);
    return maker;
}

/* A copy of the frame that `maker` makes of `b`. */
static bytes make_frame(ps_compressor *maker, const bytes *b)
{
    const unsigned char *frame;
    size_t n;
    bytes copy = {0};
    ps_error err;

    assert_ok(ps_compress_frame(maker, b->data, b->size, &frame, &n, &err),
              &err);
    put_bytes(&copy, frame, n);
    return copy;
}

/* Decompresses a frame with a new decompressor. */
static ps_result open_frame(const bytes *frame, unsigned char *to,
                            size_t plain, ps_error *err)
{
    ZSTD_DCtx *zstd = ZSTD_createDCtx();
    ps_result r;

    assert_non_null(zstd);
    r = ps_decompress_frame(zstd, frame->data, frame->size, to, plain,
                            err);
    (void)ZSTD_freeDCtx(zstd);
    return r;
}

static void check_frame(ps_compressor *maker, size_t n)
{
    bytes plain = make_plain(n, n + 1);
    bytes frame = make_frame(maker, &plain);
    unsigned char *back = must_alloc(n + 1);
    ps_error err;

    assert_int_equal(ZSTD_getFrameContentSize(frame.data, frame.size), n);
    assert_int_equal(ZSTD_findFrameCompressedSize(frame.data, frame.size),
                     frame.size);
    assert_ok(open_frame(&frame, back, n, &err), &err);
    if (n > 0)
        assert_memory_equal(back, plain.data, n);
    if (n > 0) /* the given buffer is never overrun */
        assert_result(open_frame(&frame, back, n - 1, &err), PS_ERR_CORRUPT,
                      &err);
    assert_result(open_frame(&frame, back, n + 1, &err), PS_ERR_CORRUPT,
                  &err);
    free(back);
    free_bytes(&frame);
    free_bytes(&plain);
}

static void test_frames(void **state)
{
    static const size_t sizes[] = {0,   1,    100,     4096, 65536,
                                   300, 7777, 1000000, 5,    131072};
    static const int levels[] = {-7, 1, 3, 9, 19};

    for (size_t i = 0; i < COUNT(levels); i++) {
        ps_compressor *maker = open_maker(levels[i]);

        for (size_t j = 0; j < COUNT(sizes); j++)
            check_frame(maker, sizes[j]);
        ps_compressor_free(maker);
    }
}

/* The frame has a checksum, so a flipped bit is never returned as data. */
static void test_frame_checksum(void **state)
{
    ps_compressor *maker = open_maker(1);
    bytes plain = make_plain(3000, 8);
    bytes frame = make_frame(maker, &plain);
    unsigned char *back = must_alloc(plain.size);

    assert_true((frame.data[4] & 4) != 0); /* its flag in the header */
    for (size_t bit = 0; bit < 8 * frame.size; bit++) {
        frame.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        if (open_frame(&frame, back, plain.size, NULL) == PS_OK &&
            memcmp(back, plain.data, plain.size) != 0)
            fail_msg("bit %zu changes the data unseen", bit);
        frame.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    free(back);
    ps_compressor_free(maker);
}

/* A compressor's earlier frames do not affect its next one. */
static void test_frames_know_no_history(void **state)
{
    for (int level = -1; level <= 19; level += is_short() ? 5 : 1) {
        ps_compressor *old = open_maker(level);
        uint64_t random = 5;

        for (uint64_t i = 0; i < 6; i++) {
            ps_compressor *fresh = open_maker(level);
            bytes plain = make_plain(random_below(&random, 80000), i / 2 + 1);
            bytes a = make_frame(old, &plain);
            bytes b = make_frame(fresh, &plain);

            assert_same_bytes(&a, &b);
            ps_compressor_free(fresh);
        }
        ps_compressor_free(old);
    }
}

static void test_levels(void **state)
{
    const ZSTD_bounds levels = ZSTD_cParam_getBounds(ZSTD_c_compressionLevel);
    const int min = levels.lowerBound;
    const int max = levels.upperBound;
    ps_compressor *maker;
    ps_error err;

    assert_true(min < 0 && max >= 19);
    ps_compressor_free(open_maker(min));
    ps_compressor_free(open_maker(max));
    assert_result(ps_compressor_open(&maker, min - 1, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_null(maker);
    assert_result(ps_compressor_open(&maker, max + 1, &err),
                  PS_ERR_ARGUMENT, &err);
    ps_compressor_free(NULL);
}

static void test_no_frame(void **state)
{
    unsigned char to[8] = "garbage";
    bytes none = {.data = to};
    bytes garbage = {.data = to, .size = 7};
    ps_error err;

    assert_result(open_frame(&garbage, to, 8, &err), PS_ERR_CORRUPT, &err);
    assert_result(open_frame(&none, to, 8, &err), PS_ERR_CORRUPT, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_frame_checksum),
        cmocka_unit_test(test_frames_know_no_history),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_no_frame),
    };

    return run_as_tap("frame", tests, NULL);
}
