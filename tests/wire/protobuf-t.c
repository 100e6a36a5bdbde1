/*
 * protobuf-t.c - reading and writing fields of Protocol Buffers' wire format.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tap.h"

#include <stdlib.h>
#include <string.h>

#include "wire/protobuf.h"

static const struct {
    uint64_t value;
    size_t n;
    unsigned char bytes[10];
} varints[] = {
    {0, 1, {0}},
    {1, 1, {1}},
    {127, 1, {0x7f}},
    {128, 2, {0x80, 1}},
    {300, 2, {0xac, 2}},
    {150, 2, {0x96, 1}},
    {UINT32_MAX, 5, {0xff, 0xff, 0xff, 0xff, 0x0f}},
    {UINT64_C(1) << 63, 10,
     {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1}},
    {UINT64_MAX, 10,
     {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}},
};

/* ---------------------------------------------------------------------
 * Reading
 */

/* Bytes in a separate allocation, so that reading past them is detected. */
static proto_in copy(const void *bytes, size_t n)
{
    unsigned char *p = malloc(n > 0 ? n : 1);

    assert_non_null(p);
    memcpy(p, bytes, n);
    return (proto_in){p, n};
}

static proto_result read_one(const void *bytes, size_t n, proto_field *f)
{
    proto_in in = copy(bytes, n);
    const unsigned char *p = in.at;
    const proto_result r = proto_next(&in, f);

    if (r == PROTO_OK)
        assert_true(in.at + in.left == p + n);
    free((void *)(uintptr_t)p);
    return r;
}

static void test_varints(void **state)
{
    for (size_t i = 0; i < COUNT(varints); i++) {
        for (size_t n = 0; n <= varints[i].n; n++) {
            proto_in in = copy(varints[i].bytes, n);
            const unsigned char *p = in.at;
            uint64_t value = 77;
            const proto_result r =
                proto_next_element(&in, PROTO_VARINT, &value);

            if (n == varints[i].n) {
                assert_int_equal(r, PROTO_OK);
                assert_true(value == varints[i].value);
                assert_int_equal(in.left, 0);
            } else {
                assert_int_equal(r, n == 0 ? PROTO_END : PROTO_BAD);
            }
            free((void *)(uintptr_t)p);
        }
    }
}

/* More than 64 bits, and more than ten bytes. */
static void test_long_varints(void **state)
{
    unsigned char bytes[12];
    proto_in in = {bytes, sizeof bytes};
    uint64_t value;

    memset(bytes, 0x80, sizeof bytes);
    assert_int_equal(proto_next_element(&in, PROTO_VARINT, &value), PROTO_BAD);
    bytes[9] = 2;
    in = (proto_in){bytes, sizeof bytes};
    assert_int_equal(proto_next_element(&in, PROTO_VARINT, &value), PROTO_BAD);
    bytes[9] = 0;
    in = (proto_in){bytes, sizeof bytes};
    assert_int_equal(proto_next_element(&in, PROTO_VARINT, &value), PROTO_OK);
    assert_int_equal(value, 0);
    assert_int_equal(in.left, 2);
}

static void test_fields(void **state)
{
    proto_field f;

    /* The examples of the encoding's documentation. */
    assert_int_equal(read_one("\x08\x96\x01", 3, &f), PROTO_OK);
    assert_int_equal(f.number, 1);
    assert_int_equal(f.wire, PROTO_VARINT);
    assert_int_equal(f.value, 150);
    assert_int_equal(read_one("\x12\x07testing", 9, &f), PROTO_OK);
    assert_int_equal(f.number, 2);
    assert_int_equal(f.wire, PROTO_BYTES);
    assert_int_equal(f.bytes.left, 7);
    assert_int_equal(read_one("\x09\1\2\3\4\5\6\7\x88", 9, &f), PROTO_OK);
    assert_int_equal(f.wire, PROTO_FIXED64);
    assert_true(f.value == UINT64_C(0x8807060504030201));
    assert_int_equal(read_one("\x7d\1\2\3\x84", 5, &f), PROTO_OK);
    assert_int_equal(f.number, 15);
    assert_int_equal(f.wire, PROTO_FIXED32);
    assert_true(f.value == UINT32_C(0x84030201));
    /* The highest field number. */
    assert_int_equal(read_one("\xf8\xff\xff\xff\x0f\5", 6, &f), PROTO_OK);
    assert_int_equal(f.number, (UINT32_C(1) << 29) - 1);
    assert_int_equal(read_one("\x0a\0", 2, &f), PROTO_OK);
    assert_int_equal(f.bytes.left, 0);
    assert_int_equal(read_one("", 0, &f), PROTO_END);
}

static void test_bad_fields(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {
        {"\x08", 1},                     /* no value */
        {"\x08\x80", 2},                 /* half of one */
        {"\x80", 1},                     /* half a key */
        {"\0\1", 2},                     /* number 0 */
        {"\2\0", 2},                     /* of that, too */
        {"\x0b", 1},                     /* a group begins */
        {"\x0c", 1},                     /* and ends */
        {"\x0e\0", 2},                   /* invalid wire types */
        {"\x0f\0", 2},
        {"\x09\1\2\3\4\5\6\7", 8},       /* a byte too few */
        {"\x0d\1\2\3", 4},
        {"\x0a\1", 2},
        {"\x0a\x80\1x", 4},
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\1x", 12},
        {"\xf8\xff\xff\xff\x1f\5", 6},   /* a number of 30 bits */
    };
    proto_field f;

    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(read_one(bad[i].bytes, bad[i].n, &f), PROTO_BAD);
}

static void test_fixed32(void **state)
{
    const unsigned char bytes[] = {1, 2, 3, 0x84, 5, 6, 7};
    proto_in in = {bytes, sizeof bytes};
    uint64_t value;

    assert_int_equal(proto_next_element(&in, PROTO_FIXED32, &value), PROTO_OK);
    assert_true(value == UINT32_C(0x84030201));
    assert_int_equal(proto_next_element(&in, PROTO_FIXED32, &value), PROTO_BAD);
    in.left = 0;
    assert_int_equal(proto_next_element(&in, PROTO_FIXED32, &value), PROTO_END);
}

/* ---------------------------------------------------------------------
 * Writing
 */

static void test_put_varints(void **state)
{
    proto_out out = {0};
    size_t at = 0;

    for (int turn = 0; turn < 50; turn++)
        for (size_t i = 0; i < COUNT(varints); i++)
            proto_put_varint(&out, varints[i].value);
    assert_false(out.failed);
    for (int turn = 0; turn < 50; turn++)
        for (size_t i = 0; i < COUNT(varints); i++) {
            assert_memory_equal(out.bytes + at, varints[i].bytes,
                                varints[i].n);
            at += varints[i].n;
        }
    assert_int_equal(out.n, at);
    proto_free(&out);
    assert_null(out.bytes);
}

static void test_put_fields(void **state)
{
    static const char wanted[] = "\x12\7testing\x1a\0\x22\7\1\2\3\x84\xac\2"
                                 "\0";
    proto_out out = {0};
    size_t list;

    proto_put_bytes(&out, 2, "testing", 7);
    proto_put_bytes(&out, 3, NULL, 0);
    list = proto_begin(&out, 4);
    proto_put_fixed32(&out, UINT32_C(0x84030201));
    proto_put_varint(&out, 300);
    proto_put_varint(&out, 0);
    proto_end(&out, list);
    assert_false(out.failed);
    assert_int_equal(out.n, sizeof wanted - 1);
    assert_memory_equal(out.bytes, wanted, out.n);
    proto_free(&out);
}

/* Nested messages, with lengths on both sides of a longer varint. */
static void test_nested(void **state)
{
    for (size_t n = 0; n < 300; n++) {
        proto_out out = {0};
        size_t outer = proto_begin(&out, 1);
        size_t inner = proto_begin(&out, 2);
        proto_field f;
        proto_in in;

        for (size_t i = 0; i < n; i++)
            proto_put_varint(&out, i % 100);
        proto_end(&out, inner);
        proto_end(&out, outer);
        in = (proto_in){out.bytes, out.n};
        assert_int_equal(proto_next(&in, &f), PROTO_OK);
        assert_int_equal(in.left, 0);
        assert_int_equal(f.number, 1);
        in = f.bytes;
        assert_int_equal(proto_next(&in, &f), PROTO_OK);
        assert_int_equal(in.left, 0);
        assert_int_equal(f.number, 2);
        assert_int_equal(f.bytes.left, n);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(f.bytes.at[i], i % 100);
        proto_free(&out);
    }
}

/* Too large to allocate; nothing is written after a failure. */
static void test_no_memory(void **state)
{
    proto_out out = {0};
    size_t list;

    list = proto_begin(&out, 1);
    proto_put_bytes(&out, 1, "x", SIZE_MAX / 2);
    assert_true(out.failed);
    list = proto_begin(&out, list > 0);
    proto_put_varint(&out, 1);
    proto_put_fixed32(&out, 1);
    proto_end(&out, list);
    assert_true(out.failed);
    proto_free(&out);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_varints),
        cmocka_unit_test(test_long_varints),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_bad_fields),
        cmocka_unit_test(test_fixed32),
        cmocka_unit_test(test_put_varints),
        cmocka_unit_test(test_put_fields),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_no_memory),
    };

    return run_as_tap("protobuf", tests, NULL);
}
