/*
 * pack-reader-t.c - reading packs: the reader's results for a valid stream and
 * for several, and when it has to wait.  Refusals are tested in pack-t.c,
 * pack-header-t.c, pack-table-t.c and damage-t.c.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <string.h>
#include <unistd.h>

#include "format/totals.h"

static const ps_packer_options usual = {
    40, 6, 7, 5, .overlong = PS_OVERLONG_SPLIT, .block_packs = 4};

static ps_pack_reader *open_reader(int fd)
{
    ps_pack_reader *r;
    ps_error err;

    assert_ok(ps_pack_reader_open(&r, fd, &err), &err);
    return r;
}

static bytes rich_packs(uint32_t count, uint64_t seed, ps_totals *totals)
{
    const ps_schema schema = rich_schema(PS_U32);

    return packs_from(make_corpus(&schema, count, 60, seed), &usual, totals);
}

/* The header as the packer wrote it. */
static void test_info(void **state)
{
    const ps_schema schema = rich_schema(PS_U32);
    bytes b = rich_packs(3, 4, NULL);
    int fd = open_bytes(&b);
    ps_pack_reader *r = open_reader(fd);
    const ps_pack_info *info = ps_pack_reader_info(r);

    assert_int_equal(info->version_major, 2);
    assert_int_equal(info->version_minor, 0);
    assert_int_equal(info->capacity, 40);
    assert_int_equal(info->depth, 6);
    assert_int_equal(info->max_displacement, 14); /* twice 7 */
    assert_true(info->split);
    assert_int_equal(info->pad_id, 5);
    assert_true(ps_schema_equal(&info->schema, &schema));
    assert_true(info->n_packs == PS_UNKNOWN);
    assert_int_equal(info->row_bytes, 40 * (4 + 4 + 1 + 12));
    assert_int_equal(info->row_bytes, get_u32(b.data + 20));
    assert_int_equal(info->seq_bytes, 40);
    assert_int_equal(info->seq_bytes, get_u32(b.data + 184));
    assert_int_equal(info->block_packs, 4);
    assert_true(info->block_bytes == get_u64(b.data + 192));
    assert_int_equal(ps_max_sequences(info), 6);
    assert_ptr_equal(ps_pack_field(info, "tokens"),
                     &info->fields[PS_FIELD_TOKENS]);
    assert_int_equal(ps_pack_field(info, "full_len")->offset, 20);
    assert_int_equal(ps_pack_reader_offset(r), PS_PACK_HEADER_BYTES);
    ps_pack_reader_free(r);
}

/* Without a cap, only the END of a file states the depth of packs. */
static void test_depth(void **state)
{
    const ps_packer_options o = {40, 0, 30, 5, .align = 4};
    const ps_schema schema = rich_schema(PS_U32);
    ps_totals totals;
    bytes b = packs_from(make_corpus(&schema, 50, 30, 4), &o, &totals);
    const size_t whole = b.size;

    assert_in_range(totals.max_depth, 3, 9);
    join_bytes(&b, packs_from(make_corpus(&schema, 1, 30, 4), &o, NULL));
    for (int i = 0; i < 3; i++) {
        int fd = open_bytes(&b);
        ps_pack_reader *r = NULL;
        int ends[2];

        if (i == 2) {
            assert_int_equal(pipe(ends), 0);
            assert_int_equal(write(ends[1], b.data, b.size), b.size);
            (void)close(ends[1]);
        }
        r = open_reader(i == 2 ? ends[0] : fd);
        assert_int_equal(ps_pack_reader_info(r)->depth,
                         i == 2 ? 0 : totals.max_depth);
        assert_int_equal(ps_max_sequences(ps_pack_reader_info(r)),
                         i == 2 ? 10 : totals.max_depth);
        assert_int_equal(ps_pack_reader_stream(r)->depth, 0);
        ps_pack_reader_free(r);
        if (i == 2)
            (void)close(ends[0]);
        (void)close(fd);
        b.size = i == 0 ? whole : b.size;
    }
}

/* Checks the blocks of a stream: indexes and offsets of their packs. */
static uint64_t check_blocks(ps_pack_reader *r, const bytes *b, size_t start,
                             uint32_t stream)
{
    const bytes one = {.data = b->data + start, .size = b->size - start};
    uint64_t index = 0;
    ps_pack pack;
    ps_error err;

    for (size_t k = 0; block_at(&one, k, 0) != end_at(&one, 0); k++) {
        const unsigned char *block = block_at(&one, k, 0);
        const size_t at = (size_t)(block - b->data);

        for (uint32_t i = get_u32(block + 8); i > 0; i--) {
            assert_ok(ps_pack_reader_next(r, &pack, &err), &err);
            assert_int_equal(pack.stream, stream);
            assert_int_equal(pack.index, index++);
            assert_int_equal(pack.offset, at);
            /* A block is consumed with its last pack. */
            assert_int_equal(ps_pack_reader_offset(r), at);
        }
    }
    return index;
}

/* Indexes, offsets and totals over two streams; then the end, for good. */
static void test_two_streams(void **state)
{
    ps_totals totals[2];
    bytes all = rich_packs(50, 4, &totals[0]);
    const size_t size = all.size;
    int fd;
    ps_pack_reader *r;
    ps_pack pack;
    ps_error err;

    join_bytes(&all, rich_packs(80, 5, &totals[1]));
    fd = open_bytes(&all);
    r = open_reader(fd);
    assert_int_equal(check_blocks(r, &all, 0, 0), totals[0].packs);
    assert_int_equal(check_blocks(r, &all, size, 1), totals[1].packs);
    assert_int_equal(ps_pack_reader_totals(r)->packs, totals[0].packs);
    for (int i = 0; i < 3; i++)
        assert_result(ps_pack_reader_next(r, &pack, &err), PS_END, &err);
    assert_true(ps_totals_add(&totals[0], &totals[1]));
    assert_totals(ps_pack_reader_totals(r), &totals[0]);
    assert_int_equal(ps_pack_reader_offset(r), all.size);
    ps_pack_reader_free(r);
}

/* Counts in the header, if any, must be right. */
static void test_counts_in_header(void **state)
{
    static const size_t places[] = {24, 32, 40, 64, 72};
    ps_totals t;
    bytes b = rich_packs(20, 4, &t);
    const uint64_t right[] = {t.packs, t.sequences, t.tokens, t.max_seqlen,
                              t.min_fill};
    uint64_t n;
    ps_error err;

    for (size_t i = 0; i < 5; i++) {
        set_u64(b.data + places[i], right[i]);
        seal_packs(&b);
        assert_result(read_packs(&b, &n, &err), PS_END, &err);
        set_u64(b.data + places[i], right[i] + 1);
        seal_packs(&b);
        assert_result(read_packs(&b, &n, &err), PS_ERR_CORRUPT, &err);
        set_u64(b.data + places[i], right[i]);
    }
}

/* Each END is valid alone, but together they exceed 64 bits. */
static void test_totals_beyond_64_bits(void **state)
{
    const uint64_t rejected = UINT64_C(1) << 63;
    ps_totals t;
    bytes b = rich_packs(20, 4, &t);
    bytes all = {0};
    uint64_t n;
    ps_error err;

    set_u64(end_at(&b, 64 + 5 * 8), t.tokens + rejected);
    set_u64(end_at(&b, 64 + 7 * 8), rejected);
    seal_packs(&b);
    put_bytes(&all, b.data, b.size);
    assert_result(read_packs(&all, &n, &err), PS_END, &err);
    put_bytes(&all, b.data, b.size);
    assert_result(read_packs(&all, &n, &err), PS_ERR_CORRUPT, &err);
    assert_int_equal(n, 2 * t.packs);
}

/* Bytes that a later version adds to each row, of 40 tokens. */
#define NOVELTY 40

/* A block of packs with larger rows and a meaning for reserved zeros. */
static void put_later_block(bytes *later, const bytes *b,
                            const unsigned char *block)
{
    const size_t row_bytes = get_u32(b->data + 20);
    const size_t seq_bytes = get_u32(b->data + 184);
    const uint32_t packs = get_u32(block + 8), n_seqs = get_u32(block + 12);
    const unsigned char *from = block + 64;
    const size_t at = later->size;

    put_bytes(later, block, 64);
    for (uint32_t i = 0; i < packs; i++, from += row_bytes) {
        put_bytes(later, from, row_bytes);
        put_zeros(later, NOVELTY);
        memset(later->data + later->size - NOVELTY, 'n', NOVELTY);
    }
    put_bytes(later, from, packs * PS_PACK_HEAD_BYTES);
    from += packs * PS_PACK_HEAD_BYTES;
    for (uint32_t i = 0; i < n_seqs; i++, from += seq_bytes) {
        put_bytes(later, from, seq_bytes);
        later->data[later->size - 1] = 1; /* after the last field */
    }
    put_zeros(later, -(later->size - at) % 64);
    set_u64(later->data + at + 24, later->size - at);
    later->data[at + 32] = 1; /* in the head */
}

/* A header with the later version's number. */
static void put_later_header(bytes *later, const bytes *b)
{
    const uint32_t row_bytes = get_u32(b->data + 20);
    const uint32_t n_fields = get_u32(b->data + 200);
    unsigned char *header, *entry;

    put_bytes(later, b->data, PS_PACK_HEADER_BYTES);
    header = later->data;
    header[14] = 1;
    set_u32(header + 20, row_bytes + NOVELTY);
    set_u64(header + 192, get_u64(header + 192) + 4 * NOVELTY);
    set_u32(header + 200, n_fields + 1);
    entry = header + 256 + 64 * (size_t)n_fields;
    memcpy(entry, "novelty", 7);
    entry[24] = PS_U8;
    entry[25] = PS_PER_TOKEN;
    entry[26] = 1;
    set_u32(entry + 28, row_bytes);
    set_u32(entry + 32, 1);
}

/* The stream as a later minor version might write it. */
static bytes make_later(const bytes *b)
{
    bytes later = {0};
    size_t n = 0;
    unsigned char *end;

    put_later_header(&later, b);
    while (block_at(b, n, 0) != end_at(b, 0))
        put_later_block(&later, b, block_at(b, n++, 0));
    put_bytes(&later, end_at(b, 0), block_bytes(end_at(b, 0)));
    end = end_at(&later, 0);
    for (size_t i = 0; i < n; i++)
        set_u64(end + 192 + 24 * i,
                (uint64_t)(block_at(&later, i, 0) - later.data));
    set_u64(later.data + later.size - 16, later.size);
    /* Reserved in our version: bytes in a head, after a block, and in END. */
    set_u64(block_at(&later, 0, 0) + 48, 1);
    block_at(&later, 1, 0)[-1] = 2;
    set_u32(end + 180, 3);
    seal_packs(&later);
    return later;
}

/* It can be read, and the known rules still apply. */
static void test_later_version(void **state)
{
    ps_totals t;
    bytes b = rich_packs(30, 4, &t);
    bytes later = make_later(&b);
    int fd = open_bytes(&later);
    ps_pack_reader *r = open_reader(fd);
    const ps_pack_info *info = ps_pack_reader_info(r);
    ps_pack pack;
    ps_error err;
    uint64_t n;

    for (n = 0; ps_pack_reader_next(r, &pack, &err) == PS_OK; n++)
        assert_ok(ps_pack_check(info, &pack, &err), &err);
    assert_int_equal(n, t.packs);
    assert_result(ps_pack_reader_next(r, &pack, &err), PS_END, &err);
    ps_pack_reader_free(r);
    (void)close(fd);
    later.data[14] = 0; /* as ours it would be damaged */
    seal_packs(&later);
    assert_result(read_packs(&later, &n, &err), PS_ERR_CORRUPT, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_two_streams),
        cmocka_unit_test(test_counts_in_header),
        cmocka_unit_test(test_totals_beyond_64_bits),
        cmocka_unit_test(test_later_version),
    };

    return run_as_tap("pack-reader", tests, NULL);
}
