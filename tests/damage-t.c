/*
 * damage-t.c - a pack stream with any one bit flipped, any tail cut off, or
 * its parts moved about is never read to a good end.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Five packs with channels and pieces, in records as small as can be. */
static bytes make_packs(void)
{
    static const uint32_t lengths[] = {3, 4, 9, 1, 4, 2, 2, 5};
    const ps_packer_options o = {6, 3, 3, 1, .overlong = PS_OVERLONG_SPLIT};
    const ps_schema schema = rich_schema(PS_U16);
    corpus c = make_lengths(&schema, 8, lengths, 12);
    bytes b = corpus_packs(&c, &o, NULL);

    free_corpus(&c);
    return b;
}

/* Reads the whole of `fd`; gives the result that ended it. */
static ps_result read_all(int fd)
{
    ps_pack_reader *reader;
    ps_pack pack;
    ps_result r;

    rewind_fd(fd);
    r = ps_pack_reader_open(&reader, fd, NULL);
    while (r == PS_OK)
        r = ps_pack_reader_next(reader, &pack, NULL);
    ps_pack_reader_free(reader);
    return r;
}

static void test_whole(void **state)
{
    bytes b = make_packs();
    int fd = open_bytes(&b);

    (void)state;
    assert_int_equal(read_all(fd), PS_END);
    assert_true(b.size < 8192);
    (void)close(fd);
    free_bytes(&b);
}

static void test_every_flipped_bit(void **state)
{
    bytes b = make_packs();
    int fd = open_bytes(&b);

    (void)state;
    for (size_t at = 0; at < b.size; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            unsigned char flipped =
                (unsigned char)(b.data[at] ^ 1u << bit);

            assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
            if (read_all(fd) <= PS_END)
                fail_msg("flipped bit %u of byte %zu", bit, at);
        }
        assert_int_equal(pwrite(fd, b.data + at, 1, (off_t)at), 1);
    }
    assert_int_equal(read_all(fd), PS_END);
    (void)close(fd);
    free_bytes(&b);
}

static void test_every_prefix(void **state)
{
    bytes b = make_packs();
    int fd = open_bytes(&b);

    (void)state;
    for (size_t size = b.size; size-- > 0;) {
        ps_result r;

        assert_int_equal(ftruncate(fd, (off_t)size), 0);
        r = read_all(fd);
        if (r != PS_ERR_TRUNCATED)
            fail_msg("cut to %zu bytes: %s", size, ps_result_text(r));
    }
    (void)close(fd);
    free_bytes(&b);
}

/* Writes `b` to a file and expects it not to be read to a good end. */
static void refuse(const bytes *b, const char *what)
{
    int fd = open_bytes(b);

    if (read_all(fd) <= PS_END)
        fail_msg("%s is not noticed", what);
    (void)close(fd);
}

/* Records moved, repeated or left out; each is good in itself. */
static void test_moved_records(void **state)
{
    const bytes good = make_packs();
    size_t stride = get_u32(good.data + 20);
    size_t n = (good.size - PS_PACK_HEADER_BYTES) / stride;

    (void)state;
    for (size_t i = 0; i < n; i++) {
        bytes b = {0};
        size_t at = PS_PACK_HEADER_BYTES + i * stride;

        put_bytes(&b, good.data, at);
        put_bytes(&b, good.data + at + stride, good.size - at - stride);
        refuse(&b, "a record left out");
        b.size = at;
        put_bytes(&b, good.data + at, stride);
        put_bytes(&b, good.data + at, good.size - at);
        refuse(&b, "a record repeated");
        b.size = 0;
        put_bytes(&b, good.data, good.size);
        for (size_t j = 0; j < i; j++) {
            memcpy(record_at(&b, i, 0), record_at(&good, j, 0), stride);
            memcpy(record_at(&b, j, 0), record_at(&good, i, 0), stride);
            refuse(&b, "two records exchanged");
            memcpy(record_at(&b, i, 0), record_at(&good, i, 0), stride);
            memcpy(record_at(&b, j, 0), record_at(&good, j, 0), stride);
        }
        free_bytes(&b);
    }
    free(good.data);
}

/* A record of another stream in the same place. */
static void test_foreign_records(void **state)
{
    bytes b = make_packs();
    bytes other = make_packs();
    size_t stride = get_u32(b.data + 20);
    size_t n = (b.size - PS_PACK_HEADER_BYTES) / stride;

    (void)state;
    other.data[128] ^= 1; /* its header has another seed */
    seal_packs(&other);
    for (size_t i = 0; i < n; i++)
        *record_at(&other, i, stride - 1) ^= i + 1 < n;
    seal_packs(&other);
    for (size_t i = 0; i < n; i++) {
        unsigned char *here = record_at(&b, i, 0);
        unsigned char *there = record_at(&other, i, 0);

        assert_memory_not_equal(here, there, 8);
        memcpy(here, there, stride);
        refuse(&b, "a record of another stream");
        free_bytes(&b);
        b = make_packs();
    }
    memcpy(b.data, other.data, PS_PACK_HEADER_BYTES);
    refuse(&b, "a header of another stream");
    free_bytes(&other);
    free_bytes(&b);
}

/* Something behind END that is no stream, or half of one. */
static void test_behind_end(void **state)
{
    const bytes good = make_packs();
    bytes b = {0};

    (void)state;
    put_bytes(&b, good.data, good.size);
    put_u8(&b, 0);
    refuse(&b, "a byte behind END");
    put_zeros(&b, 4095);
    refuse(&b, "zeros behind END");
    for (size_t n = 1; n < good.size; n += n < 9 ? 1 : 1000) {
        b.size = good.size;
        put_bytes(&b, good.data, n);
        refuse(&b, "half of a stream behind END");
    }
    free_bytes(&b);
    free(good.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_every_flipped_bit),
        cmocka_unit_test(test_every_prefix),
        cmocka_unit_test(test_moved_records),
        cmocka_unit_test(test_foreign_records),
        cmocka_unit_test(test_behind_end),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("damage", tests, NULL, NULL);
}
