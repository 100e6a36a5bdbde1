/*
 * pack-block-t.c - blocks of packs, INDEX and END: byte by byte, encoded and
 * decoded, and refused when anything in them is wrong.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <string.h>

#include <xxhash.h>

#include "format/block.h"
#include "format/pack.h"

/* Offsets in the head of a block. */
enum {
    KIND = 4,
    N_PACKS = 8,
    N_SEQS = 12,
    FIRST = 16,
    BYTES = 24,
    ZERO = 32,
    BODY = 48,
    CHECKSUM = 56,
    HEAD = 64
};

/* Raw tokens: rows of 24 bytes, sequence rows of 16, blocks of 4 packs. */
static ps_pack_info make_info(void)
{
    ps_pack_info info = {.version_major = 2,
                         .capacity = 10,
                         .max_displacement = 8,
                         .align = 1,
                         .schema = ps_schema_raw(PS_U16),
                         .block_packs = 4};
    ps_error err;

    assert_ok(ps_layout(&info, &err), &err);
    assert_int_equal(info.row_bytes, 24);
    assert_int_equal(info.seq_bytes, 16);
    assert_int_equal(info.block_bytes, 960);
    return info;
}

static void put_head(bytes *b, uint32_t kind, uint32_t n_packs,
                     uint32_t n_seqs, uint64_t first, uint64_t size)
{
    put_bytes(b, "PKSB", 4);
    put_u32(b, kind);
    put_u32(b, n_packs);
    put_u32(b, n_seqs);
    put_u64(b, first);
    put_u64(b, size);
    put_zeros(b, HEAD - ZERO);
}

/* New checksums for a block that is not a block of packs. */
static void seal_block(bytes *b)
{
    set_u64(b->data + BODY, XXH3_64bits(b->data + HEAD, b->size - HEAD));
    set_u64(b->data + CHECKSUM, XXH3_64bits(b->data, CHECKSUM));
}

static void put_entry(bytes *b, uint64_t offset, uint64_t first,
                      uint64_t watermark)
{
    put_u64(b, offset);
    put_u64(b, first);
    put_u64(b, watermark);
}

/* ------------------------------------------------------------------ heads */

static void decode_head(const unsigned char *data, unsigned minor,
                        ps_result wanted)
{
    ps_pack_info info = make_info();
    ps_block_head head;
    ps_error err;

    info.version_minor = (uint16_t)minor;
    assert_result(ps_block_head_decode(&info, data, &head, &err), wanted,
                  &err);
    assert_int_equal(ps_block_head_decode(&info, data, &head, NULL), wanted);
}

static void test_heads(void **state)
{
    static const ps_block_head heads[] = {
        {PS_BLOCK_PACKS, 2, 3, 7, 256, 0},
        {PS_BLOCK_PACKS, 4, 40, UINT64_MAX - 4, 960, 0},
        {PS_BLOCK_END, 0, 0, 9, 256, UINT64_C(0x1122334455667788)},
        {PS_BLOCK_INDEX, 0, 0, 4096, 98368, 1},
    };
    const ps_pack_info info = make_info();

    for (size_t i = 0; i < COUNT(heads); i++) {
        const ps_block_head *h = &heads[i];
        unsigned char data[HEAD];
        ps_block_head back;
        bytes b = {0};
        ps_error err;

        put_head(&b, h->kind, h->n_packs, h->n_seqs, h->first, h->bytes);
        set_u64(b.data + BODY, h->body);
        set_u64(b.data + CHECKSUM, XXH3_64bits(b.data, CHECKSUM));
        ps_block_head_encode(h, data);
        assert_memory_equal(data, b.data, HEAD);
        assert_ok(ps_block_head_decode(&info, data, &back, &err), &err);
        ps_block_head_encode(&back, data);
        assert_memory_equal(data, b.data, HEAD);
        for (size_t bit = 0; bit < 8 * sizeof data; bit++) {
            data[bit / 8] ^= (unsigned char)(1 << bit % 8);
            decode_head(data, 1, PS_ERR_CORRUPT);
            data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
    }
}

/* Inconsistent numbers, under a valid checksum. */
static void test_head_numbers(void **state)
{
    static const struct {
        uint32_t kind, n_packs, n_seqs;
        uint64_t bytes;
        ps_result wanted;
    } cases[] = {
        {0, 2, 3, 256, PS_OK},
        {0, 2, 3, 192, PS_ERR_CORRUPT},
        {0, 2, 3, 240, PS_ERR_CORRUPT}, /* not rounded up */
        {0, 2, 3, 320, PS_ERR_CORRUPT},
        {0, 2, 4, 256, PS_OK},
        {0, 2, 5, 256, PS_ERR_CORRUPT},
        {0, 2, 1, 256, PS_ERR_CORRUPT}, /* a pack without a sequence */
        {0, 0, 0, 64, PS_ERR_CORRUPT},
        {0, 0, 12, 256, PS_ERR_CORRUPT},
        {0, 1, 1, 192, PS_OK},
        {0, 4, 40, 960, PS_OK},
        {0, 4, 44, 1024, PS_ERR_CORRUPT}, /* above block_bytes */
        {0, 5, 5, 512, PS_ERR_CORRUPT},   /* above block_packs */
        {0, 4, UINT32_MAX, 960, PS_ERR_CORRUPT},
        {0, 4, 0x1000000c, 512, PS_ERR_CORRUPT}, /* 512, modulo 2^32 */
        {0, 4, 40, UINT64_MAX, PS_ERR_CORRUPT},
        {1, 0, 0, 256, PS_OK},
        {1, 0, 0, 192, PS_ERR_CORRUPT},
        {1, 0, 0, 257, PS_ERR_CORRUPT},
        {1, 1, 0, 256, PS_ERR_CORRUPT},
        {1, 0, 1, 256, PS_ERR_CORRUPT},
        {1, 0, 0, 24 * ((1 << 20) + 4096) + 256, PS_OK},
        {1, 0, 0, 24 * ((1 << 20) + 4096) + 320, PS_ERR_CORRUPT},
        {1, 0, 0, UINT64_MAX - 63, PS_ERR_CORRUPT},
        {2, 0, 0, 98368, PS_OK},
        {2, 0, 0, 98304, PS_ERR_CORRUPT},
        {2, 0, 0, 98432, PS_ERR_CORRUPT},
        {2, 4096, 0, 98368, PS_ERR_CORRUPT},
        {2, 0, 1, 98368, PS_ERR_CORRUPT},
        {3, 0, 0, 256, PS_ERR_CORRUPT},
        {UINT32_MAX, 0, 0, 256, PS_ERR_CORRUPT},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        bytes b = {0};

        put_head(&b, cases[i].kind, cases[i].n_packs, cases[i].n_seqs, 0,
                 cases[i].bytes);
        set_u64(b.data + CHECKSUM, XXH3_64bits(b.data, CHECKSUM));
        decode_head(b.data, 0, cases[i].wanted);
    }
}

/* Zero bytes, and a zero instead of the packs' hash, are reserved. */
static void test_head_zeros(void **state)
{
    for (size_t at = ZERO; at < CHECKSUM; at++) {
        bytes b = {0};

        put_head(&b, 0, 2, 3, 0, 256);
        b.data[at] = 1;
        set_u64(b.data + CHECKSUM, XXH3_64bits(b.data, CHECKSUM));
        decode_head(b.data, 0, PS_ERR_CORRUPT);
        decode_head(b.data, 1, PS_OK);
    }
}

/* ------------------------------------------------------------------ packs */

enum {
    HEADS = HEAD + 2 * 24,
    SEQUENCES = HEADS + 2 * PS_PACK_HEAD_BYTES,
    USED = SEQUENCES + 3 * 16
};

static void put_pack_head(bytes *b, uint64_t checksum, uint32_t first_seq,
                          uint32_t n_seq, uint32_t n_tok, uint32_t longest,
                          uint64_t squares, uint64_t watermark)
{
    put_u64(b, checksum);
    put_u32(b, first_seq);
    put_u32(b, n_seq);
    put_u32(b, n_tok);
    put_u32(b, longest);
    put_u64(b, squares);
    put_u64(b, watermark);
}

/*
 * Two packs: ids 0 and 2, with 3 and 4 tokens, and id 1, with 10.  The three
 * checksums are those that tests/support/packwrite.py computes.
 */
static bytes make_block(void)
{
    bytes b = {0};

    put_head(&b, 0, 2, 3, 0, 256);
    set_u64(b.data + CHECKSUM, UINT64_C(0x4db6cb18c2a7bc0b));
    for (unsigned i = 1; i <= 7; i++)
        put_u16(&b, i);
    put_zeros(&b, 10);
    for (unsigned i = 10; i < 20; i++)
        put_u16(&b, i);
    put_zeros(&b, 4);
    put_pack_head(&b, UINT64_C(0x3248676ac3349cac), 0, 2, 7, 4, 25, 1);
    put_pack_head(&b, UINT64_C(0xbd3024955f62e6db), 2, 1, 10, 10, 100, 3);
    for (uint32_t i = 0; i < 3; i++) {
        put_u64(&b, i == 0 ? 0 : 3 - i);
        put_u32(&b, i == 1 ? 3 : 0);
        put_u32(&b, i == 2 ? 10 : 3 + i);
    }
    put_zeros(&b, 256 - USED);
    assert_int_equal(b.size, 256);
    return b;
}

static void test_packs(void **state)
{
    const ps_pack_info info = make_info();
    bytes wanted = make_block();
    bytes b = make_block();
    ps_block_head head;
    ps_error err;

    assert_ok(ps_block_head_decode(&info, b.data, &head, &err), &err);
    assert_int_equal(ps_block_n_packs(b.data), 2);
    assert_int_equal(ps_block_watermark(&info, &head, b.data), 3);
    assert_ok(ps_block_check(&info, &head, b.data, &err), &err);
    memset(b.data + HEADS, 0xee, 8);
    memset(b.data + HEADS + PS_PACK_HEAD_BYTES, 0, 8);
    ps_block_finalize(&info, b.data);
    assert_same_bytes(&b, &wanted);
}

/* Sequences in two packs or in none, and bytes after the packs. */
static void test_tiles(void **state)
{
    static const struct {
        size_t at;
        uint32_t value;
    } cases[] = {
        {HEADS + 8, 1},
        {HEADS + 12, 1},
        {HEADS + 12, 3},
        {HEADS + 40 + 8, 1},
        {HEADS + 40 + 8, 3},
        {HEADS + 40 + 8, UINT32_MAX},
        {HEADS + 40 + 12, 0},
        {HEADS + 40 + 12, 2},
        {HEADS + 40 + 12, UINT32_MAX},
        {USED, 1},
        {252, 0x01000000},
    };
    const ps_pack_info info = make_info();
    const ps_block_head head = {.n_packs = 2, .n_seqs = 3, .bytes = 256};
    bytes b;
    ps_error err;

    for (size_t i = 0; i < COUNT(cases); i++) {
        b = make_block();
        set_u32(b.data + cases[i].at, cases[i].value);
        assert_result(ps_block_check(&info, &head, b.data, &err),
                      PS_ERR_CORRUPT, &err);
        free_bytes(&b);
    }
    /* Numbers that are correct modulo 2^32. */
    b = make_block();
    set_u32(b.data + HEADS + 12, UINT32_MAX);
    set_u32(b.data + HEADS + 40 + 8, UINT32_MAX);
    set_u32(b.data + HEADS + 40 + 12, 4);
    assert_result(ps_block_check(&info, &head, b.data, &err), PS_ERR_CORRUPT,
                  &err);
}

/* ------------------------------------------------------------------ index */

static void test_entries(void **state)
{
    static const struct {
        ps_entry entries[2];
        ps_result wanted;
    } cases[] = {
        {{{4096, 0, 9}, {4160, 1, 0}}, PS_OK},
        {{{4096, 7, 9}, {8128, 8, 0}}, PS_OK}, /* of a resumed stream */
        {{{4032, 0, 0}, {4160, 1, 0}}, PS_ERR_CORRUPT}, /* in the header */
        {{{4096, 0, 0}, {4096, 1, 0}}, PS_ERR_CORRUPT},
        {{{4160, 0, 0}, {4096, 1, 0}}, PS_ERR_CORRUPT},
        {{{4096, 0, 0}, {4161, 1, 0}}, PS_ERR_CORRUPT},
        {{{4096, 0, 0}, {8192, 1, 0}}, PS_ERR_CORRUPT}, /* at the end */
        {{{4096, 0, 0}, {UINT64_MAX - 63, 1, 0}}, PS_ERR_CORRUPT},
        {{{4096, 0, 0}, {4160, 0, 0}}, PS_ERR_CORRUPT},
        {{{4096, 1, 0}, {4160, 0, 0}}, PS_ERR_CORRUPT},
        {{{4096, 0, 0}, {4160, 9, 0}}, PS_ERR_CORRUPT}, /* no such pack */
        {{{4096, 9, 0}, {4160, 8, 0}}, PS_ERR_CORRUPT},
    };
    const ps_index_end end = {8192, 9};

    for (size_t i = 0; i < COUNT(cases); i++) {
        unsigned char encoded[2 * PS_ENTRY_BYTES];
        bytes b = {0};
        ps_error err;

        for (size_t k = 0; k < 2; k++) {
            const ps_entry *e = &cases[i].entries[k];
            ps_entry back;

            put_entry(&b, e->offset, e->first, e->watermark);
            ps_entry_encode(e, encoded + k * PS_ENTRY_BYTES);
            back = ps_entry_decode(encoded + k * PS_ENTRY_BYTES);
            assert_memory_equal(&back, e, sizeof back);
        }
        assert_int_equal(b.size, sizeof encoded);
        assert_memory_equal(encoded, b.data, b.size);
        assert_result(ps_entries_check(encoded, 2, end, &err),
                      cases[i].wanted, &err);
        assert_ok(ps_entries_check(encoded, 0, end, &err), &err);
    }
}

static void test_index(void **state)
{
    bytes b = {0};
    unsigned char *data = must_alloc(98368);

    assert_int_equal(PS_INDEX_BYTES, 98368);
    put_head(&b, 2, 0, 0, 5000, 98368);
    for (uint32_t i = 0; i < 4096; i++)
        put_entry(&b, 4096 + 64 * i, i, 3 * i);
    seal_block(&b);
    memset(data, 0xee, 98368);
    ps_index_encode(b.data + HEAD, 5000, data);
    assert_memory_equal(data, b.data, 98368);
    free(data);
}

/* -------------------------------------------------------------------- END */

/* END of 9 packs in 3 blocks after 2 parts, at byte 8192. */
static bytes make_end(void)
{
    bytes b = {0};

    put_head(&b, 1, 0, 0, 9, 384);
    put_u64(&b, 9);
    for (unsigned i = 1; i < 13; i++)
        put_u64(&b, 100 + i); /* the digest is 103 */
    for (unsigned i = 13; i < 16; i++)
        put_u32(&b, 100 + i);
    put_u32(&b, 0);
    put_u32(&b, 2);
    put_u32(&b, 3);
    put_entry(&b, 4160, 0, 1);
    put_entry(&b, 4288, 2, 3);
    for (unsigned i = 0; i < 3; i++)
        put_entry(&b, 4352 + 64 * i, 4 + i, 5 + i);
    put_zeros(&b, 384 - 24 - b.size);
    put_u64(&b, 384);
    put_u64(&b, 8192 + 384);
    put_bytes(&b, "\x89PKE\r\n\x1a\n", 8);
    seal_block(&b);
    return b;
}

static void expect_end(const bytes *b, ps_result wanted)
{
    const ps_block_head head = {.kind = PS_BLOCK_END,
                                .first = get_u64(b->data + FIRST),
                                .bytes = b->size,
                                .body = get_u64(b->data + BODY)};
    const ps_pack_info info = make_info();
    ps_end end;
    ps_error err;

    assert_result(ps_end_decode(&info, b->data, &head, &end, &err), wanted,
                  &err);
}

static void test_end(void **state)
{
    static const ps_totals t = {9,   101, 102, 104, 105, 106, 107, 108,
                                109, 110, 111, 112, 113, 114, 115};
    bytes b = make_end();
    bytes got = {0};
    const ps_block_head head = {PS_BLOCK_END, 0, 0, 9, 384,
                                get_u64(b.data + BODY)};
    const ps_pack_info info = make_info();
    ps_end end;
    uint64_t end_bytes;
    uint64_t stream_bytes;
    ps_error err;

    assert_int_equal(ps_end_bytes(2, 3), 384);
    put_zeros(&got, 384);
    memset(got.data, 0xee, 384);
    ps_end_encode(&t, 103, b.data + 192, 2, b.data + 240, 3, 8192, got.data);
    assert_same_bytes(&got, &b);
    assert_ok(ps_end_decode(&info, b.data, &head, &end, &err), &err);
    assert_totals(&end.totals, &t);
    assert_int_equal(end.digest, 103);
    assert_int_equal(end.n_parts, 2);
    assert_int_equal(end.n_blocks, 3);
    assert_ptr_equal(end.entries, b.data + 192);
    assert_int_equal(end.stream_bytes, 8192 + 384);
    assert_true(ps_trailer_decode(b.data + 360, &end_bytes, &stream_bytes));
    assert_int_equal(end_bytes, 384);
    assert_int_equal(stream_bytes, 8192 + 384);
    for (size_t bit = 8 * HEAD; bit < 8 * b.size; bit++) {
        b.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        expect_end(&b, PS_ERR_CORRUPT);
        b.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

/* Each is detected under a valid checksum. */
static void test_end_numbers(void **state)
{
    static const struct {
        size_t at;
        uint64_t value;
        size_t bytes;
    } cases[] = {
        {FIRST, 10, 8}, /* not the packs in the totals */
        {64, 8, 8},
        {180, 1, 4},
        {184, 1, 4}, /* another number of entries */
        {184, 3, 4},
        {184, UINT32_MAX, 4},
        {184, (1 << 20) + 1, 4},
        {188, 2, 4},
        {188, 4, 4},
        {188, 4096, 4},
        {188, UINT32_MAX, 4},
        {192, 4032, 8}, /* parts */
        {192, 4288, 8},
        {192 + 8, 2, 8},
        {192 + 24, 8192, 8}, /* where END is */
        {240, 4353, 8},      /* blocks */
        {240, 4416, 8},
        {240 + 48, 8192, 8},
        {240 + 56, 9, 8},
        {312, 1, 1}, /* unused */
        {359, 1, 1},
        {360, 320, 8},       /* the trailer */
        {360, 448, 8},
        {368, 4352 + 384, 8}, /* a block would be after END */
        {368, 4095 + 384, 8},
        {368, 0, 8},
        {376, 0x88, 1},
        {383, 0, 1},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        bytes b = make_end();

        expect_end(&b, PS_OK);
        set_number(b.data + cases[i].at, cases[i].value, cases[i].bytes);
        seal_block(&b);
        expect_end(&b, PS_ERR_CORRUPT);
    }
}

/* The longest END, and entries beyond that, all in order. */
static void test_longest_end(void **state)
{
    static const struct {
        uint32_t n_parts;
        uint32_t n_blocks;
        ps_result wanted;
    } cases[] = {
        {0, 4095, PS_OK},
        {0, 4096, PS_ERR_CORRUPT},
        {1 << 20, 0, PS_OK},
        {(1 << 20) + 1, 0, PS_ERR_CORRUPT},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const uint32_t n = cases[i].n_parts + cases[i].n_blocks;
        const uint64_t size = ps_end_bytes(n, 0);
        bytes b = {0};

        put_head(&b, 1, 0, 0, n, size);
        put_u64(&b, n);
        put_zeros(&b, 112);
        put_u32(&b, cases[i].n_parts);
        put_u32(&b, cases[i].n_blocks);
        for (uint32_t k = 0; k < n; k++)
            put_entry(&b, 4096 + 64 * (uint64_t)k, k, 0);
        put_zeros(&b, (size_t)size - 24 - b.size);
        put_u64(&b, size);
        put_u64(&b, 4096 + 64 * (uint64_t)n + size);
        put_bytes(&b, "\x89PKE\r\n\x1a\n", 8);
        seal_block(&b);
        expect_end(&b, cases[i].wanted);
    }
}

static void test_trailers(void **state)
{
    static const struct {
        uint64_t end_bytes;
        uint64_t stream_bytes;
        bool wanted;
    } cases[] = {
        {256, 4096 + 256, true},
        {256, 4096 + 255, false},
        {256, UINT64_MAX, true},
        {192, 8192, false},
        {260, 8192, false},
        {24 * ((1 << 20) + 4096) + 256, UINT64_MAX, true},
        {24 * ((1 << 20) + 4096) + 320, UINT64_MAX, false},
        {0, 4096, false},
        {UINT64_MAX - 63, 4096, false},
        {256, 100, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t end_bytes;
        uint64_t stream_bytes;
        bytes b = {0};

        put_u64(&b, cases[i].end_bytes);
        put_u64(&b, cases[i].stream_bytes);
        put_bytes(&b, "\x89PKE\r\n\x1a\n", 8);
        assert_int_equal(
            ps_trailer_decode(b.data, &end_bytes, &stream_bytes),
            cases[i].wanted);
        b.data[16] ^= 1;
        assert_false(ps_trailer_decode(b.data, &end_bytes, &stream_bytes));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_head_numbers),
        cmocka_unit_test(test_head_zeros),
        cmocka_unit_test(test_packs),
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_end_numbers),
        cmocka_unit_test(test_longest_end),
        cmocka_unit_test(test_trailers),
    };

    return run_as_tap("pack-block", tests, NULL);
}
