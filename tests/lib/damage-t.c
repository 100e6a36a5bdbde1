/*
 * damage-t.c - a pack stream, compressed or not, with any bit flipped, any
 * tail cut off, or its parts moved, is always refused.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <string.h>
#include <unistd.h>

#include "pack-file-fixture.h"

/* A few small packs with channels and pieces, in blocks of two. */
static bytes make_stream(bool compressed)
{
    static const uint32_t lengths[] = {3, 4, 9, 1, 4, 2, 2, 5};
    const ps_packer_options o = {6, 3, 3, 1, .overlong = PS_OVERLONG_SPLIT,
                                 .compressed = compressed, .level = 1,
                                 .block_packs = 2};
    const ps_schema schema = rich_schema(PS_U16);

    return packs_from(make_lengths(&schema, 8, lengths, 12), &o, NULL);
}

static bytes make_packs(void)
{
    return make_stream(false);
}

/*
 * Reads all of `fd`; returns the final result, and in *sum a checksum of the
 * packs.
 */
static ps_result sum_packs(int fd, uint64_t *sum)
{
    ps_pack_reader *reader;
    ps_pack pack;
    ps_result r;

    rewind_fd(fd);
    *sum = 0;
    r = ps_pack_reader_open(&reader, fd, NULL);
    while (r == PS_OK) {
        r = ps_pack_reader_next(reader, &pack, NULL);
        if (r == PS_OK)
            *sum = *sum * 31 + pack.checksum;
    }
    ps_pack_reader_free(reader);
    return r;
}

static ps_result read_all(int fd)
{
    uint64_t sum;

    return sum_packs(fd, &sum);
}

static void test_every_flipped_bit(void **state)
{
    bytes b = make_packs();
    int fd = open_bytes(&b);

    assert_int_equal(read_all(fd), PS_END);
    assert_true(b.size < 8192);
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
}

static void test_every_prefix(void **state)
{
    bytes b = make_packs();
    int fd = open_bytes(&b);

    for (size_t size = b.size; size-- > 0;) {
        ps_result r;

        assert_int_equal(ftruncate(fd, (off_t)size), 0);
        r = read_all(fd);
        if (r != PS_ERR_TRUNCATED)
            fail_msg("cut to %zu bytes: %s", size, ps_result_text(r));
    }
}

/* Writes `b` to a file and expects an error when it is read. */
static void refuse(const bytes *b, const char *what)
{
    int fd = open_bytes(b);

    if (read_all(fd) <= PS_END)
        fail_msg("%s is not noticed", what);
    (void)close(fd);
}

/* Number of blocks, END included. */
static size_t count_blocks(const bytes *b)
{
    size_t n = 0;

    while (block_at(b, n++, 0) != end_at(b, 0))
        continue;
    return n;
}

/* Adds blocks `from` to `to` - 1. */
static void put_blocks(bytes *b, const bytes *good, size_t from, size_t to)
{
    for (; from < to; from++)
        put_bytes(b, block_at(good, from, 0),
                  block_bytes(block_at(good, from, 0)));
}

/* Blocks moved, repeated or missing; each one is valid in itself. */
static void test_moved_blocks(void **state)
{
    const bytes good = make_packs();
    const size_t n = count_blocks(&good);
    bytes b = {0};

    put_bytes(&b, good.data, PS_PACK_HEADER_BYTES);
    for (size_t i = 0; i < n; i++) {
        b.size = PS_PACK_HEADER_BYTES;
        put_blocks(&b, &good, 0, i);
        put_blocks(&b, &good, i + 1, n);
        refuse(&b, "a block left out");
        b.size = PS_PACK_HEADER_BYTES;
        put_blocks(&b, &good, 0, i + 1);
        put_blocks(&b, &good, i, n);
        refuse(&b, "a block repeated");
        for (size_t j = 0; j < i; j++) {
            b.size = PS_PACK_HEADER_BYTES;
            put_blocks(&b, &good, 0, j);
            put_blocks(&b, &good, i, i + 1);
            put_blocks(&b, &good, j + 1, i);
            put_blocks(&b, &good, j, j + 1);
            put_blocks(&b, &good, i + 1, n);
            refuse(&b, "two blocks exchanged");
        }
    }
}

/* Replaces pack i by pack k of another stream, with as many sequences. */
static void put_pack(bytes *to, size_t i, const bytes *from, size_t k)
{
    const size_t n_seq = get_u32(head_at(from, k, 12));

    assert_int_equal(get_u32(head_at(to, i, 12)), n_seq);
    memcpy(row_at(to, i, 0), row_at(from, k, 0), get_u32(to->data + 20));
    memcpy(seq_at(to, i, 0, 0), seq_at(from, k, 0, 0),
           n_seq * get_u32(to->data + 184));
    memcpy(head_at(to, i, 0), head_at(from, k, 0), 8);
    memcpy(head_at(to, i, 12), head_at(from, k, 12), PS_PACK_HEAD_BYTES - 12);
}

/* Packs exchanged or repeated, within their block too. */
static void test_moved_packs(void **state)
{
    const bytes good = make_packs();
    const size_t n = get_u64(end_at(&good, 64));
    size_t moved = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            bytes b = {0};

            if (i == k || get_u32(head_at(&good, i, 12)) !=
                              get_u32(head_at(&good, k, 12)))
                continue;
            moved++;
            put_bytes(&b, good.data, good.size);
            put_pack(&b, i, &good, k);
            refuse(&b, "a pack repeated");
            put_pack(&b, k, &good, i);
            refuse(&b, "two packs exchanged");
        }
    assert_true(moved > 4);
}

/* A pack or END replaced by another stream's. */
static void test_foreign_packs(void **state)
{
    bytes b = make_packs();
    bytes other = make_packs();
    const size_t n = get_u64(end_at(&b, 64));

    other.data[128] ^= 1; /* its header has another seed */
    for (size_t i = 0; i < n; i++)
        *row_at(&other, i, 0) ^= 1;
    seal_packs(&other);
    for (size_t i = 0; i <= n; i++) {
        if (i < n)
            put_pack(&b, i, &other, i);
        else
            memcpy(end_at(&b, 0), end_at(&other, 0),
                   block_bytes(end_at(&b, 0)));
        refuse(&b, "a part of another stream");
        b = make_packs();
    }
    memcpy(b.data, other.data, PS_PACK_HEADER_BYTES);
    refuse(&b, "a header of another stream");
}

/* Flips some bits in the index of a long stream, and every bit in END. */
static void test_index(void **state)
{
    const ps_packer_options o = {1, 1, 9, 1, .block_packs = 1};
    const ps_schema schema = ps_schema_raw(PS_U16);
    bytes b = packs_from(make_corpus(&schema, 4099, 1, 12), &o, NULL);
    const size_t index = (size_t)(block_at(&b, 4096, 0) - b.data);
    const size_t end = (size_t)(end_at(&b, 0) - b.data);
    int fd = open_bytes(&b);
    size_t at = index;

    assert_int_equal(get_u32(b.data + index + 4), 2);
    assert_int_equal(read_all(fd), PS_END);
    while (at < b.size) {
        const unsigned bit = at % 8;
        unsigned char flipped = (unsigned char)(b.data[at] ^ 1u << bit);

        assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
        if (read_all(fd) <= PS_END)
            fail_msg("flipped bit %u of byte %zu", bit, at);
        assert_int_equal(pwrite(fd, b.data + at, 1, (off_t)at), 1);
        at += at < index + 64 || at >= end ? 1 : 997;
    }
    assert_int_equal(read_all(fd), PS_END);
}

/* Bytes after END that are not a stream, or only half of one. */
static void test_behind_end(void **state)
{
    const bytes good = make_packs();
    bytes b = make_packs();

    put_u8(&b, 0);
    refuse(&b, "a byte behind END");
    put_zeros(&b, 4095);
    refuse(&b, "zeros behind END");
    for (size_t n = 1; n < good.size; n += n < 9 ? 1 : 1000) {
        b.size = good.size;
        put_bytes(&b, good.data, n);
        refuse(&b, "half of a stream behind END");
    }
}

/* ---- Compressed, followed by the seek table ---- */

/* Start of the table. */
static size_t table_at(const bytes *b)
{
    size_t at = b->size - 17 - 8 * (size_t)get_u32(b->data + b->size - 9);

    assert_int_equal(get_u32(b->data + at), 0x184D2A5E);
    return at;
}

/* Start of frame `i` of a stream that has one table. */
static size_t frame_at(const bytes *b, size_t i)
{
    const unsigned char *entries = b->data + table_at(b) + 8;
    size_t at = 0;

    while (i-- > 0)
        at += get_u32(entries + 8 * i);
    return at;
}

static size_t count_frames(const bytes *b)
{
    return get_u32(b->data + b->size - 9);
}

/* As the packer writes it, or with frames of 500 or 1000 bytes. */
static bytes make_compressed(size_t n)
{
    bytes plain = make_stream(n == 0);
    bytes b;

    if (n == 0)
        return plain;
    b = compress_packs(&plain, n * 500);
    return b;
}

/*
 * Some bits of a frame can flip without changing its content, because zstd has
 * several encodings for it: then the packs must be right.  No bit of the table
 * can flip.
 */
static void test_compressed_every_bit(void **state)
{
    for (size_t n = 0; n < 3; n++) {
        bytes b = make_compressed(n);
        int fd = open_bytes(&b);
        size_t table = table_at(&b);
        unsigned same = 0;
        uint64_t wanted;

        assert_int_equal(sum_packs(fd, &wanted), PS_END);
        for (size_t bit = 0; bit < 8 * b.size; bit += is_short() ? 5 : 1) {
            size_t at = bit / 8;
            unsigned char flipped =
                (unsigned char)(b.data[at] ^ 1u << bit % 8);
            uint64_t sum;
            ps_result r;

            assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
            r = sum_packs(fd, &sum);
            if (r <= PS_END && (at >= table || sum != wanted))
                fail_msg("flipped bit %zu of byte %zu", bit % 8, at);
            same += r <= PS_END;
            assert_int_equal(pwrite(fd, b.data + at, 1, (off_t)at), 1);
        }
        assert_in_range(same, 0, 8 * b.size / 50);
        (void)close(fd);
    }
}

/* The second of two streams can be missing as a whole, but not in part. */
static void test_compressed_every_prefix(void **state)
{
    for (size_t n = 0; n < 3; n++) {
        bytes b = make_compressed(n);
        size_t one = b.size;
        int fd;

        join_bytes(&b, make_compressed(2));
        fd = open_bytes(&b);
        assert_int_equal(read_all(fd), PS_END);
        for (size_t size = b.size; size-- > 0;) {
            ps_result wanted = size == one             ? PS_END
                               : size > 0 && size < 4 ? PS_ERR_MAGIC
                                                       : PS_ERR_TRUNCATED;
            ps_result r;

            assert_int_equal(ftruncate(fd, (off_t)size), 0);
            r = read_all(fd);
            if (r != wanted)
                fail_msg("cut to %zu bytes: %s", size, ps_result_text(r));
        }
        (void)close(fd);
    }
}

/* The frames of `b` before `from` and from `to` on, with the table. */
static bytes without_frames(const bytes *b, size_t from, size_t to)
{
    size_t at = frame_at(b, to);
    bytes some = {0};

    put_bytes(&some, b->data, frame_at(b, from));
    put_bytes(&some, b->data + at, b->size - at);
    return some;
}

/* Frames moved, repeated or missing; each one is valid in itself. */
static void test_moved_frames(void **state)
{
    const bytes good = make_compressed(0);
    size_t n = count_frames(&good);

    for (size_t i = 0; i < n; i++) {
        bytes b = without_frames(&good, i, i + 1);
        bytes rest = without_frames(&good, 0, i);

        refuse(&b, "a frame left out");
        b.size = 0;
        put_bytes(&b, good.data, frame_at(&good, i + 1));
        join_bytes(&b, rest);
        refuse(&b, "a frame repeated");
    }
}

/* The table of a stream with other frame boundaries, or with other packs. */
static void test_foreign_tables(void **state)
{
    for (size_t n = 0; n < 9; n++) {
        bytes b = make_compressed(n % 3);
        bytes other = make_compressed(n / 3);
        size_t at = table_at(&other);

        b.size = table_at(&b);
        put_bytes(&b, other.data + at, other.size - at);
        if (n % 3 != n / 3)
            refuse(&b, "a table of another stream");
    }
}

/* Two streams, the first without a table: the second lists its frames. */
static void test_table_between_streams(void **state)
{
    bytes b = make_compressed(1);

    b.size = table_at(&b);
    join_bytes(&b, make_compressed(1));
    refuse(&b, "a missing table between two streams");
}

/*
 * A plain stream compressed by zstd(1) has no table, and needs none; a stream
 * after it does.
 */
static void test_not_seekable(void **state)
{
    bytes plain = make_packs();
    size_t cuts[] = {plain.size, 1000, PS_PACK_HEADER_BYTES - 1};

    for (size_t i = 0; i < 3; i++) {
        bytes b = {0};
        ps_seek_table *table;
        int fd;

        assert_int_equal(ps_seek_table_open(&table, NULL), PS_OK);
        put_table_frame(&b, table, plain.data, cuts[i]);
        if (cuts[i] < plain.size)
            put_table_frame(&b, table, plain.data + cuts[i],
                            plain.size - cuts[i]);
        ps_seek_table_free(table);
        fd = open_bytes(&b);
        assert_int_equal(read_all(fd), PS_END);
        (void)close(fd);
        join_bytes(&b, make_compressed(1));
        fd = open_bytes(&b);
        assert_int_equal(read_all(fd), PS_END);
        (void)close(fd);
        b.size -= 17 + 8 * count_frames(&b);
        refuse(&b, "a missing table behind what needs none");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_flipped_bit),
        cmocka_unit_test(test_every_prefix),
        cmocka_unit_test(test_moved_blocks),
        cmocka_unit_test(test_moved_packs),
        cmocka_unit_test(test_foreign_packs),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_behind_end),
        cmocka_unit_test(test_compressed_every_bit),
        cmocka_unit_test(test_compressed_every_prefix),
        cmocka_unit_test(test_moved_frames),
        cmocka_unit_test(test_foreign_tables),
        cmocka_unit_test(test_table_between_streams),
        cmocka_unit_test(test_not_seekable),
    };

    return run_as_tap("damage", tests, NULL);
}
