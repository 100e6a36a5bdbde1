/*
 * tfrecord-t.c - the checksums and frames of TFRecord files.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tap.h"

#include <string.h>

#include "common/bytes.h"
#include "wire/tfrecord.h"

/* The CRC in a checksum. */
static uint32_t crc32c(const void *bytes, size_t n)
{
    const uint32_t sum = tfrecord_checksum(bytes, n) - UINT32_C(0xa282ead8);

    return sum << 15 | sum >> 17;
}

/* The CRC once more, a bit at a time. */
static uint32_t slow_crc32c(const unsigned char *p, size_t n)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1) * UINT32_C(0x82f63b78);
    }
    return ~crc;
}

/* The check value of the polynomial, and what RFC 3720, B.4, lists. */
static void test_known_sums(void **state)
{
    unsigned char bytes[32];

    assert_int_equal(crc32c("", 0), 0);
    assert_int_equal(crc32c("123456789", 9), 0xe3069283);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(crc32c(bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(crc32c(bytes, 32), 0x62a8ab43);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    assert_int_equal(crc32c(bytes, 32), 0x46dd794e);
    for (unsigned i = 0; i < 32; i++)
        bytes[i] = (unsigned char)(31 - i);
    assert_int_equal(crc32c(bytes, 32), 0x113fdb5c);
}

/* Each entry of the table, and sums of any length. */
static void test_every_byte(void **state)
{
    unsigned char bytes[600];

    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 256);
    for (unsigned i = 0; i < 256; i++) {
        const unsigned char one = (unsigned char)i;

        assert_int_equal(crc32c(&one, 1), slow_crc32c(&one, 1));
    }
    for (size_t n = 0; n <= sizeof bytes; n++)
        assert_int_equal(crc32c(bytes, n), slow_crc32c(bytes, n));
}

/* A record of three bytes as TensorFlow writes it. */
static void test_frame(void **state)
{
    static const unsigned char head[] = {3,    0,    0,    0,    0,    0,
                                         0,    0,    0xb0, 0x99, 0x49, 0x0e};
    static const unsigned char tail[] = {0x6e, 0x57, 0xf1, 0x21};
    unsigned char made[TFRECORD_HEAD_BYTES];
    uint64_t n;

    tfrecord_make_head(3, made);
    assert_memory_equal(made, head, sizeof head);
    assert_true(tfrecord_take_head(head, &n));
    assert_int_equal(n, 3);
    assert_int_equal(tfrecord_checksum("abc", 3), load_u32(tail));
}

static void test_lengths(void **state)
{
    static const uint64_t lengths[] = {0, 1, 255, 256, UINT32_MAX,
                                       UINT64_C(1) << 40, UINT64_MAX};
    unsigned char head[TFRECORD_HEAD_BYTES];
    uint64_t n;

    for (size_t i = 0; i < COUNT(lengths); i++) {
        tfrecord_make_head(lengths[i], head);
        assert_true(tfrecord_take_head(head, &n));
        assert_true(n == lengths[i]);
    }
}

/* No changed bit of a frame goes unseen. */
static void test_damage(void **state)
{
    unsigned char head[TFRECORD_HEAD_BYTES];
    unsigned char body[20] = "some bytes";
    const uint32_t sum = tfrecord_checksum(body, sizeof body);
    uint64_t n;

    tfrecord_make_head(sizeof body, head);
    for (unsigned bit = 0; bit < 8 * sizeof head; bit++) {
        head[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_false(tfrecord_take_head(head, &n));
        head[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (unsigned bit = 0; bit < 8 * sizeof body; bit++) {
        body[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_not_equal(tfrecord_checksum(body, sizeof body), sum);
        body[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_int_equal(tfrecord_checksum(body, sizeof body), sum);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_sums), cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_frame),      cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_damage),
    };

    return run_as_tap("tfrecord", tests, NULL);
}
