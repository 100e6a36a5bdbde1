/*
 * token-reader-memory-t.c - a reader's memory is limited by the bytes that
 * arrive and by a known bound, whatever the input.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <unistd.h>

#include <zstd.h>

#include "lib-alloc.h"

#define MIB ((size_t)1 << 20)

/* Reads to the end; skips or holds sequences of more than 1000 tokens. */
static ps_result read_all(int fd, bool hold, uint64_t *tokens, ps_error *err)
{
    ps_token_reader *r = NULL;
    ps_sequence s;
    ps_result result = ps_token_reader_open(&r, fd, PS_U16, NULL, err);

    *tokens = 0;
    while (result == PS_OK) {
        result = ps_token_reader_next(r, 1000, &s, err);
        if (result == PS_ERR_OVERLONG)
            result = hold ? ps_token_reader_hold(r, &s, err)
                          : ps_token_reader_skip(r, err);
        *tokens += result == PS_OK ? s.n_tok : 0;
    }
    ps_token_reader_free(r);
    return result;
}

/* Like read_all, from the start of `fd`; returns the peak memory. */
static size_t peak_of(int fd, bool hold, ps_result wanted, uint64_t tokens)
{
    size_t before = alloc_so_far().bytes;
    uint64_t n;
    ps_error err;

    rewind_fd(fd);
    alloc_watch();
    assert_result(read_all(fd, hold, &n, &err), wanted, &err);
    assert_int_equal(n, tokens);
    assert_int_equal(alloc_so_far().bytes, before);
    return alloc_so_far().peak - before;
}

/* A claimed length costs nothing: the longest valid one, and UINT32_MAX. */
static void test_false_lengths(void **state)
{
    static const uint32_t lengths[] = {
        PS_MAX_SEQUENCE_BYTES / 2, PS_MAX_SEQUENCE_BYTES / 2 + 1,
        0x7fffffff, 0x80000000, UINT32_MAX};

    for (size_t i = 0; i < COUNT(lengths); i++) {
        bytes b = {0};
        int fd;

        put_u32(&b, lengths[i]);
        put_zeros(&b, 100);
        fd = open_bytes(&b);
        assert_true(peak_of(fd, true,
                            i == 0 ? PS_ERR_TRUNCATED : PS_ERR_LIMIT,
                            0) < MIB);
        assert_true(peak_of(fd, false, PS_ERR_TRUNCATED, 0) < MIB);
        (void)close(fd);
    }
}

/* A file of one record of `n_tok` zeros, most of it a hole. */
static int open_hole(uint32_t n_tok)
{
    bytes b = {0};
    int fd;

    put_u32(&b, n_tok);
    fd = open_bytes(&b);
    assert_int_equal(ftruncate(fd, 4 + 2 * (off_t)n_tok), 0);
    return fd;
}

static void test_skip_in_bounded_memory(void **state)
{
    int fd = open_hole(60000000);

    assert_true(peak_of(fd, false, PS_END, 60000000) < MIB);
}

static void test_hold_takes_what_came(void **state)
{
    int fd = open_hole(5000000);

    assert_in_range(peak_of(fd, true, PS_END, 5000000), 9 * MIB, 40 * MIB);
    (void)close(fd);
    fd = open_hole(PS_MAX_SEQUENCE_BYTES / 2);
    assert_int_equal(ftruncate(fd, (off_t)(10 * MIB)), 0);
    assert_true(peak_of(fd, true, PS_ERR_TRUNCATED, 0) < 40 * MIB);
}

/* 100 MiB that zstd compresses to a few KiB. */
static int open_bomb(uint32_t records)
{
    static const unsigned char zeros[1 << 20];
    bytes b = {0};
    ZSTD_CStream *z = ZSTD_createCStream();
    static unsigned char out[1 << 20];
    unsigned char count[4];
    int fd;

    assert_non_null(z);
    set_u32(count, sizeof zeros / 2);
    for (uint32_t i = 0; i <= 2 * records; i++) {
        bool last = i == 2 * records;
        ZSTD_inBuffer from = {i % 2 ? zeros : count,
                              i % 2 ? sizeof zeros : sizeof count, 0};
        ZSTD_outBuffer to = {out, sizeof out, 0};
        size_t left;

        from.size = last ? 0 : from.size;
        left = ZSTD_compressStream2(z, &to, &from,
                                    last ? ZSTD_e_end : ZSTD_e_continue);
        assert_false(ZSTD_isError(left));
        assert_int_equal(from.pos, from.size);
        put_bytes(&b, out, to.pos);
        assert_true(!last || left == 0);
    }
    (void)ZSTD_freeCStream(z);
    assert_true(b.size < MIB);
    fd = open_bytes(&b);
    return fd;
}

static void test_compressed_zeros(void **state)
{
    int fd = open_bomb(100);

    assert_true(peak_of(fd, false, PS_END, 100 * MIB / 2) < 8 * MIB);
    assert_true(peak_of(fd, true, PS_END, 100 * MIB / 2) < 16 * MIB);
}

/* A lone frame header that asks for a window of 2^log bytes. */
static bytes wide_frame(unsigned log)
{
    bytes b = {0};

    put_u32(&b, 0xFD2FB528);
    put_u8(&b, 0);              /* a window descriptor follows, no size */
    put_u8(&b, (log - 10) << 3); /* of 2^log bytes */
    put_u8(&b, 1);              /* the last block, raw, empty */
    put_u16(&b, 0);
    return b;
}

static void test_giant_windows(void **state)
{
    for (unsigned log = 10; log <= 41; log++) {
        bytes b = wide_frame(log);
        int fd = open_bytes(&b);
        size_t peak = peak_of(fd, false, log <= 27 ? PS_END : PS_ERR_LIMIT,
                              0);

        assert_true(peak < (log <= 27 ? ((size_t)1 << log) + 2 * MIB : MIB));
        (void)close(fd);
    }
}

/* A pack stream can claim a block of more than 256 MiB. */
static void test_false_block_size(void **state)
{
    const ps_packer_options options = {
        100, 10, 4, 0, .overlong = PS_OVERLONG_ERROR, .block_packs = 1};
    const ps_schema schema = ps_schema_raw(PS_U16);
    corpus c = make_corpus(&schema, 20, 100, 3);
    bytes b = corpus_packs(&c, &options, NULL);
    size_t before;
    uint64_t n;
    ps_error err;

    set_u32(b.data + 20, PS_MAX_ROW_BYTES);
    set_u64(b.data + 192, (uint64_t)2 * PS_MAX_ROW_BYTES);
    b.data[14] = 1; /* so that the dtype may differ */
    n = 64 + PS_MAX_ROW_BYTES + 40 + 16 * get_u32(block_at(&b, 0, 12));
    set_u64(block_at(&b, 0, 24), (n + 63) / 64 * 64);
    seal_packs(&b);
    alloc_watch();
    before = alloc_so_far().bytes;
    assert_result(read_packs(&b, &n, &err), PS_ERR_TRUNCATED, &err);
    assert_true(alloc_so_far().peak - before < MIB);
    assert_int_equal(alloc_so_far().bytes, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_false_lengths),
        cmocka_unit_test(test_skip_in_bounded_memory),
        cmocka_unit_test(test_hold_takes_what_came),
        cmocka_unit_test(test_compressed_zeros),
        cmocka_unit_test(test_giant_windows),
        cmocka_unit_test(test_false_block_size),
    };

    return run_as_tap("reader-memory", tests, NULL);
}
