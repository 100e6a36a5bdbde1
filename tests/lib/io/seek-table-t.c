/*
 * seek-table-t.c - encoded seek tables can be decoded, and altered ones are
 * refused.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "io/seek_table.h"

static ps_seek_table *open_table(void)
{
    ps_seek_table *table;
    ps_error err;

    assert_ok(ps_seek_table_open(&table, &err), &err);
    return table;
}

/* A table with random-looking sizes, some of them 0 when decompressed. */
static ps_seek_table *make_table(uint32_t frames)
{
    ps_seek_table *table = open_table();
    uint64_t random = frames + 1;
    ps_error err;

    for (uint32_t i = 0; i < frames; i++) {
        uint32_t n = 1 + random_below(&random, 900);
        uint32_t plain = random_below(&random, 5);

        assert_ok(ps_seek_table_add(table, n, plain, &err), &err);
    }
    return table;
}

/* Encodes a table into new memory. */
static bytes encode(ps_seek_table *table)
{
    const unsigned char *data;
    size_t n;
    bytes b = {0};

    ps_seek_table_encode(table, &data, &n);
    put_bytes(&b, data, n);
    return b;
}

/* Decodes a table that ends `before` bytes into a file, itself included. */
static ps_result decode(const bytes *b, uint64_t before,
                        ps_seek_table **table, ps_error *err)
{
    bytes copy = {0}; /* of exact size, for the sanitizer */
    ps_result r;

    copy.data = must_alloc(b->size);
    memcpy(copy.data, b->data, b->size);
    r = ps_seek_table_decode(table, copy.data, b->size, before, err);
    free(copy.data);
    return r;
}

/* Byte by byte, as the format's specification requires. */
static void test_table_bytes(void **state)
{
    static const unsigned char expected[] = {
        0x5e, 0x2a, 0x4d, 0x18, 25,   0,    0,    0,    /* skippable */
        0x22, 0x11, 0,    0,    0x00, 0x10, 0,    0,    /* frame 0 */
        0xff, 0xff, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff, /* frame 1 */
        2,    0,    0,    0,    0,                      /* footer */
        0xb1, 0xea, 0x92, 0x8f,
    };
    ps_seek_table *table = open_table();
    bytes b;
    ps_error err;

    assert_ok(ps_seek_table_add(table, 0x1122, 0x1000, &err), &err);
    assert_ok(ps_seek_table_add(table, UINT32_MAX, UINT32_MAX - 1, &err),
              &err);
    b = encode(table);
    assert_int_equal(b.size, sizeof expected);
    assert_memory_equal(b.data, expected, sizeof expected);
    assert_int_equal(table->end.at, 0x1122ull + UINT32_MAX);
    assert_int_equal(table->frames, 2);
    ps_seek_table_free(table);
}

/* Each plain byte is found in its frame; empty frames have none. */
static void check_places(const ps_seek_table *table, uint32_t frames)
{
    uint64_t random = frames + 1;
    uint64_t at = 0;
    uint64_t plain_at = 0;

    assert_int_equal(table->frames, frames);
    for (uint32_t i = 0; i < frames; i++) {
        uint32_t n = 1 + random_below(&random, 900);
        uint32_t plain = random_below(&random, 5);

        for (uint64_t k = 0; k < plain; k++) {
            ps_seek_frame f = ps_seek_table_find(table, plain_at + k);

            assert_int_equal(f.number, i);
            assert_int_equal(f.at, at);
            assert_int_equal(f.bytes, n);
            assert_int_equal(f.plain_at, plain_at);
            assert_int_equal(f.plain, plain);
        }
        at += n;
        plain_at += plain;
    }
    assert_int_equal(table->end.at, at);
    assert_int_equal(table->end.plain_at, plain_at);
}

static void test_table_round_trip(void **state)
{
    static const uint32_t counts[] = {1, 2, 63, 64, 65, 127, 128, 129, 5000};

    for (size_t i = 0; i < COUNT(counts); i++) {
        ps_seek_table *table = make_table(counts[i]);
        bytes b = encode(table);
        uint64_t before = table->end.at + b.size;
        ps_seek_table *back;
        ps_error err;
        bytes again;

        check_places(table, counts[i]);
        assert_ok(decode(&b, before, &back, &err), &err);
        check_places(back, counts[i]);
        again = encode(back);
        assert_same_bytes(&again, &b);
        free_bytes(&again);
        ps_seek_table_free(back);
        /* Another stream may come before it. */
        assert_ok(decode(&b, before + 1000, &back, &err), &err);
        ps_seek_table_free(back);
        assert_result(decode(&b, before - 1, &back, &err), PS_ERR_CORRUPT,
                      &err);
        assert_null(back);
        ps_seek_table_free(table);
    }
}

/* Checksums in tables of other programs are skipped. */
static void test_table_with_checksums(void **state)
{
    bytes b = {0};
    ps_seek_table *table;
    uint64_t n;
    ps_error err;

    put_u32(&b, 0x184D2A5E);
    put_u32(&b, 2 * 12 + 9);
    for (uint32_t i = 1; i <= 2; i++) {
        put_u32(&b, 100 * i);
        put_u32(&b, 1000 * i);
        put_u32(&b, 0x12345678);
    }
    put_u32(&b, 2);
    put_u8(&b, 0x80);
    put_u32(&b, 0x8F92EAB1);
    assert_true(ps_is_seek_footer(b.data + b.size - 9));
    assert_ok(ps_seek_footer_decode(b.data + b.size - 9, 999, &n, &err),
              &err);
    assert_int_equal(n, b.size);
    assert_ok(decode(&b, 300 + b.size, &table, &err), &err);
    assert_int_equal(table->end.at, 300);
    assert_int_equal(table->end.plain_at, 3000);
    assert_int_equal(ps_seek_table_find(table, 1000).at, 100);
    ps_seek_table_free(table);
}

static void test_table_every_cut(void **state)
{
    ps_seek_table *table = make_table(9);
    bytes b = encode(table);
    uint64_t before = table->end.at + b.size;
    ps_seek_table *back;

    for (size_t n = 0; n < b.size; n++) {
        bytes head = {.data = b.data, .size = n};
        bytes tail = {.data = b.data + b.size - n, .size = n};

        assert_true(decode(&head, before - b.size + n, &back, NULL) > PS_END);
        assert_true(decode(&tail, before, &back, NULL) > PS_END);
    }
    ps_seek_table_free(table);
}

/* A frame count that exceeds the file is refused. */
static void test_hostile_footer(void **state)
{
    static const uint32_t frames[] = {0, 500, (1u << 27) + 1, UINT32_MAX};
    ps_error err;
    uint64_t n;

    for (size_t i = 0; i < COUNT(frames); i++) {
        bytes b = {0};

        put_u32(&b, frames[i]);
        put_u8(&b, 0);
        put_u32(&b, 0x8F92EAB1);
        assert_result(ps_seek_footer_decode(b.data, 4000, &n, &err),
                      PS_ERR_CORRUPT, &err);
    }
}

/* Sizes of 0, beyond the file, or too large to allocate. */
static void test_hostile_sizes(void **state)
{
    static const struct {
        uint32_t bytes;
        uint32_t plain;
        ps_result result;
    } cases[] = {
        {0, 10, PS_ERR_CORRUPT},
        {UINT32_MAX, 10, PS_ERR_CORRUPT},
        {501, 10, PS_ERR_CORRUPT},
        {1, (1u << 15) - 1, PS_OK},
        {1, 1u << 16, PS_ERR_CORRUPT}, /* more than zstd can make of it */
        {500, PS_FRAME_BYTES_MAX, PS_ERR_CORRUPT},
        {500, PS_FRAME_BYTES_MAX + 1, PS_ERR_LIMIT},
        {500, UINT32_MAX, PS_ERR_LIMIT},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        ps_seek_table *table = make_table(0);
        ps_seek_table *back;
        bytes b;
        ps_error err;

        assert_ok(ps_seek_table_add(table, 7, 8, &err), &err);
        assert_ok(ps_seek_table_add(table, cases[i].bytes, cases[i].plain,
                                    &err),
                  &err);
        b = encode(table);
        assert_result(decode(&b, 507 + b.size, &back, &err),
                      cases[i].result, &err);
        ps_seek_table_free(back);
        ps_seek_table_free(table);
    }
}

static void test_table_limits(void **state)
{
    ps_seek_table *table = open_table();
    ps_error err;

    assert_result(ps_seek_table_add(table, UINT64_C(1) << 32, 1, &err),
                  PS_ERR_LIMIT, &err);
    assert_result(ps_seek_table_add(table, 1, UINT64_C(1) << 32, &err),
                  PS_ERR_LIMIT, &err);
    assert_int_equal(table->frames, 0);
    ps_seek_table_free(table);
    ps_seek_table_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_bytes),
        cmocka_unit_test(test_table_round_trip),
        cmocka_unit_test(test_table_with_checksums),
        cmocka_unit_test(test_table_every_cut),
        cmocka_unit_test(test_hostile_footer),
        cmocka_unit_test(test_hostile_sizes),
        cmocka_unit_test(test_table_limits),
    };

    return run_as_tap("seekable", tests, NULL);
}
