/*
 * pack-file-hostile-t.c - damaged, cut and forged pack files are detected.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-file-fixture.h"

#include <string.h>
#include <unistd.h>

#include "format/block.h"
#include "format/pack_header.h"
#include "format/pack_layout.h"
#include "lib-alloc.h"
#include "stream/pack_file.h"

/* ------------------------------------------------------------------ damage */

static bool is_within(const unsigned char *byte, const unsigned char *part,
                      size_t n)
{
    return byte >= part && byte < part + n;
}

/* True if a byte is part of pack `i`. */
static bool is_of_pack(const bytes *b, const unsigned char *byte, size_t i)
{
    const size_t n_seq = get_u32(head_at(b, i, 12));

    return is_within(byte, row_at(b, i, 0), get_u32(b->data + 20)) ||
           is_within(byte, head_at(b, i, 0), PS_PACK_HEAD_BYTES) ||
           is_within(byte, seq_at(b, i, 0, 0),
                     n_seq * get_u32(b->data + 184));
}

/* A damaged sequence is not found in the wrong pack, and never just missed. */
static void check_location(ps_pack_file *file, const expected *e, uint64_t id,
                           size_t bit)
{
    ps_location *locations;
    uint32_t n;
    ps_error err;
    const ps_result r =
        ps_pack_file_locate(file, 0, id, &locations, &n, &err);

    if (r != PS_ERR_CORRUPT && (r != PS_OK || n == 0))
        fail_msg("bit %zu: sequence %u", bit, (unsigned)id);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(ps_pack_piece(&e->info, &e->packs[locations[i].pack],
                                       locations[i].slot).id, id);
    free(locations);
}

/* With a bad bit in the header or END, nothing opens; in a pack, only that pack
   is lost.  Damage to a block's head loses no pack: the index has the same
   numbers. */
static void test_plain_every_bit(void **state)
{
    bytes b = make_pack_stream(6, 3, 2);
    expected e = read_whole(&b);
    const size_t end = (size_t)(end_at(&b, 0) - b.data);
    int fd = open_bytes(&b);

    for (size_t bit = 0; bit < 8 * b.size; bit++) {
        size_t at = bit / 8;
        unsigned char changed = (unsigned char)(b.data[at] ^ 1u << bit % 8);
        ps_pack_file *file;
        ps_pack pack;
        ps_error err;
        ps_result r;

        assert_true(pwrite(fd, &changed, 1, (off_t)at) == 1);
        r = ps_pack_file_open(&file, fd, &err);
        if ((r != PS_OK) != (at < 4096 || at >= end))
            fail_msg("bit %zu: %s", bit, ps_result_text(r));
        for (uint64_t i = 0; r == PS_OK && i < e.n; i++) {
            bool hit = is_of_pack(&b, b.data + at, i);
            ps_result head = ps_pack_file_head(file, i, &pack, &err);

            if (head != PS_OK && !(hit && head == PS_ERR_CORRUPT))
                fail_msg("bit %zu: head %u", bit, (unsigned)i);
            if (ps_pack_file_read(file, i, &pack, &err) !=
                (hit ? PS_ERR_CORRUPT : PS_OK))
                fail_msg("bit %zu: pack %u", bit, (unsigned)i);
        }
        for (uint64_t id = 0; r == PS_OK && id < e.totals.input_sequences;
             id++)
            check_location(file, &e, id, bit);
        ps_pack_file_free(file);
        assert_true(pwrite(fd, b.data + at, 1, (off_t)at) == 1);
    }
    assert_int_equal(try_file(fd, &e, &(ps_error){0}), PS_OK);
}

/*
 * Some bits of a frame can flip without changing its content, and then the
 * packs are right; no bit of the seek table can.
 */
static void test_compressed_every_bit(void **state)
{
    bytes plain = make_pack_stream(12, 3, 2);
    expected e = read_whole(&plain);
    bytes b = compress_packs(&plain, 0);
    int fd = open_bytes(&b);
    size_t table = b.size - 17 - 8 * (size_t)get_u32(b.data + b.size - 9);
    unsigned unseen = 0;
    ps_error err;

    assert_int_equal(get_u32(b.data + table), 0x184D2A5E);
    for (size_t bit = 0; bit < 8 * b.size; bit++) {
        size_t at = bit / 8;
        unsigned char changed = (unsigned char)(b.data[at] ^ 1u << bit % 8);

        assert_true(pwrite(fd, &changed, 1, (off_t)at) == 1);
        if (try_file(fd, &e, &err) == PS_OK) {
            unseen++;
            if (at >= table)
                fail_msg("bit %zu, of the table, flips unseen", bit);
        }
        assert_true(pwrite(fd, b.data + at, 1, (off_t)at) == 1);
    }
    assert_in_range(unseen, 0, 8 * b.size / 50);
}

static void test_plain_every_cut(void **state)
{
    bytes b = make_pack_stream(6, 3, 2);
    int fd = open_bytes(&b);
    ps_error err;

    for (size_t n = b.size; n-- > 0;) {
        assert_int_equal(ftruncate(fd, (off_t)n), 0);
        assert_result(try_file(fd, NULL, &err), PS_ERR_TRUNCATED, &err);
    }
}

static void test_compressed_every_cut(void **state)
{
    bytes plain = make_pack_stream(6, 3, 2);
    bytes b = compress_packs(&plain, 0);
    int fd = open_bytes(&b);
    ps_error err;

    for (size_t n = b.size; n-- > 0;) {
        ps_result wanted = n >= 4   ? PS_ERR_UNSUPPORTED
                           : n == 0 ? PS_ERR_TRUNCATED
                                    : PS_ERR_MAGIC;

        assert_int_equal(ftruncate(fd, (off_t)n), 0);
        assert_result(try_file(fd, NULL, &err), wanted, &err);
    }
}

/*
 * A head has no checksum of its own: values beyond its limits are refused, and
 * others when the pack is read.
 */
static void test_heads(void **state)
{
    enum { FIRST_SEQ = 8, N_SEQ = 12, N_TOK = 16, MAX_SEQLEN = 20,
           SUM_LEN_SQ = 24, WATERMARK = 32 };
    static const struct {
        size_t at;
        uint32_t value;
        ps_result head;
    } cases[] = {
        {FIRST_SEQ, 0, PS_OK},          {N_SEQ, 0, PS_ERR_CORRUPT},
        {N_SEQ, 4, PS_ERR_CORRUPT},     {N_TOK, 7, PS_ERR_CORRUPT},
        {N_TOK, 1, PS_OK},              {MAX_SEQLEN, 1, PS_OK},
        {SUM_LEN_SQ, 9999, PS_OK},      {WATERMARK, 9999, PS_OK},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        bytes b = make_pack_stream(9, 3, 2); /* a depth of 3, packs of 6 */
        ps_pack_file *file;
        ps_pack pack;
        ps_error err;
        int fd;

        set_u32(head_at(&b, 1, cases[i].at), cases[i].value);
        fd = open_bytes(&b);
        assert_ok(ps_pack_file_open(&file, fd, &err), &err);
        assert_result(ps_pack_file_head(file, 1, &pack, &err), cases[i].head,
                      &err);
        assert_result(ps_pack_file_read(file, 1, &pack, &err),
                      PS_ERR_CORRUPT, &err);
        assert_ok(ps_pack_file_head(file, 4, &pack, &err), &err);
        ps_pack_file_free(file);
        (void)close(fd);
    }
}

/* The second of two streams can be missing as a whole, but not in part. */
static void test_second_stream_cut(void **state)
{
    bytes b = make_pack_stream(6, 3, 2);
    size_t first = b.size;
    int fd;
    ps_error err;

    join_bytes(&b, make_pack_stream(3, 3, 4));
    fd = open_bytes(&b);
    for (size_t n = b.size; n-- > first - 1;) {
        assert_int_equal(ftruncate(fd, (off_t)n), 0);
        assert_int_equal(try_file(fd, NULL, &err),
                         n == first ? PS_OK : PS_ERR_TRUNCATED);
    }
}

static void test_bytes_behind_end(void **state)
{
    bytes b = make_pack_stream(6, 3, 2);

    for (int i = 0; i < 300; i++) {
        put_u8(&b, 0);
        refuse_file(&b, PS_ERR_TRUNCATED, "no complete END before byte");
    }
}

/* ---------------------------------------------------------------- forgery */

/* A stream in which block `k` replaces block `i`. */
static bytes replace_block(const bytes *good, size_t i, size_t k)
{
    const unsigned char *here = block_at(good, i, 0);
    const unsigned char *there = block_at(good, k, 0);
    const unsigned char *rest = here + block_bytes(here);
    bytes b = {0};

    put_bytes(&b, good->data, (size_t)(here - good->data));
    put_bytes(&b, there, block_bytes(there));
    put_bytes(&b, rest, good->size - (size_t)(rest - good->data));
    return b;
}

/* A block replaced by another, by END, or END by a block. */
static void test_moved_blocks(void **state)
{
    const bytes good = make_blocks(20, 3, 2, 1);
    const size_t n = get_u64(end_at(&good, 64)) + 1;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            bytes b = replace_block(&good, i, k);
            ps_error err;
            ps_result r = try_file_bytes(&b, NULL, &err);

            if (i == k)
                assert_int_equal(r, PS_OK);
            else if (b.size != good.size)
                assert_true(r > PS_END);
            else
                assert_result(r, i + 1 == n ? PS_ERR_TRUNCATED
                                            : PS_ERR_CORRUPT, &err);
        }
}

/* END claims more or fewer packs. */
static void test_lying_end(void **state)
{
    bytes b = make_pack_stream(20, 3, 2);
    unsigned char *end = end_at(&b, 0);
    size_t n = get_u64(end + 64);
    const uint64_t lies[] = {0, 1, n - 1, n + 1, n + 17, UINT64_MAX,
                             UINT64_MAX / 72, UINT64_C(1) << 56};
    ps_error err;

    for (size_t i = 0; i < COUNT(lies); i++) {
        set_u64(end + 16, lies[i]);
        set_u64(end + 64, lies[i]);
        seal_packs(&b);
        assert_result(try_file_bytes(&b, NULL, &err), PS_ERR_CORRUPT, &err);
        if (lies[i] > n + 1)
            refuse_file(&b, PS_ERR_CORRUPT, "END declares");
    }
    /* Its head and its totals differ. */
    set_u64(end + 16, n);
    seal_packs(&b);
    refuse_file(&b, PS_ERR_CORRUPT, "END's head");
}

/* Totals that do not balance, or that contradict the header. */
static void test_lying_totals(void **state)
{
    bytes b = make_pack_stream(20, 3, 2);
    size_t n = get_u64(end_at(&b, 64));
    bytes twice = {0};

    set_u64(b.data + 24, n);
    seal_packs(&b);
    assert_int_equal(try_file_bytes(&b, NULL, &(ps_error){0}), PS_OK);
    set_u64(b.data + 24, n + 1);
    seal_packs(&b);
    refuse_file(&b, PS_ERR_CORRUPT, "the header declares n_packs as");
    set_u64(b.data + 24, n);
    set_u64(end_at(&b, 104), 5); /* input_tokens */
    seal_packs(&b);
    refuse_file(&b, PS_ERR_CORRUPT, "does not account for every");
    b = make_pack_stream(20, 3, 2);
    for (size_t at = 96; at < 128; at += 8)
        end_at(&b, at)[7] |= 0x80; /* all but those of the packs rejected */
    seal_packs(&b);
    put_bytes(&twice, b.data, b.size);
    put_bytes(&twice, b.data, b.size);
    refuse_file(&twice, PS_ERR_CORRUPT, "exceed 64 bits");
}

/* Sets a number, seals, and opens the file: that fails, or block `k` does. */
static void refuse_index(const bytes *good, size_t at, uint64_t value,
                         uint64_t k, const char *words)
{
    bytes b = {0};
    ps_pack_file *file;
    ps_pack_extent x;
    ps_error err;
    ps_result r;

    put_bytes(&b, good->data, good->size);
    set_u64(b.data + at, value);
    seal_packs(&b);
    r = ps_pack_file_open(&file, open_bytes(&b), &err);
    if (r == PS_OK)
        r = ps_pack_file_extent(file, k, &x, &err);
    assert_result(r, PS_ERR_CORRUPT, &err);
    if (strstr(err.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    ps_pack_file_free(file);
}

/* END or INDEX lists blocks that are not there, or is another block. */
static void test_lying_index(void **state)
{
    enum { HEAD_BYTES = 24, N_BLOCKS = 188, ENTRIES = 192, ENTRY = 24 };
    bytes b = make_blocks(20, 3, 2, 1);
    size_t end = (size_t)(end_at(&b, 0) - b.data);
    const uint32_t last = get_u32(b.data + end + N_BLOCKS) - 1;
    unsigned char *index;
    ps_error err;

    refuse_index(&b, end + ENTRIES + ENTRY * last, end - 64, last,
                 "has no block with pack");
    refuse_index(&b, end + ENTRIES + ENTRY, PS_PACK_HEADER_BYTES + 64, 0,
                 "the index declares 64 bytes");
    refuse_index(&b, end + HEAD_BYTES, b.size - end + 64, 0, "not an END of");
    refuse_index(&b, b.size - 24,
                 b.size - get_u64(b.data + end + ENTRIES + ENTRY * last), 0,
                 "not an END of");
    b = make_blocks(6000, 4, 3, 1);
    end = (size_t)(end_at(&b, 0) - b.data);
    refuse_index(&b, end + ENTRIES, PS_PACK_HEADER_BYTES, 0,
                 "incomplete part of the index");
    index = block_at(&b, 4096, 0);
    index[100] ^= 1; /* and no new checksum */
    assert_result(try_file_bytes(&b, NULL, &err), PS_ERR_CORRUPT, &err);
    for (uint64_t i = 0; i < 4096; i++)
        set_u64(index + 64 + ENTRY * i + 8, i + 1);
    refuse_index(&b, 0, get_u64(b.data), 0, "is not the one that END lists");
    b = make_blocks(9, 3, 2, 64);
    memset(end_at(&b, N_BLOCKS), 0, 4 + ENTRY);
    seal_packs(&b);
    refuse_file(&b, PS_ERR_CORRUPT, "but the file starts with pack 0");
}

/* Two streams whose packs differ in kind. */
static void test_streams_of_other_kinds(void **state)
{
    bytes b = make_pack_stream(9, 3, 2);
    bytes other = make_pack_stream(9, 3, 2);

    set_u32(other.data + 96, 3); /* a special id */
    seal_packs(&other);
    put_bytes(&b, other.data, other.size);
    refuse_file(&b, PS_ERR_CORRUPT,
                "cannot be joined to the first: the pad id is 3, not none");
}

/* A complete zstd file without a table; two of them, one with a table. */
static void test_no_table(void **state)
{
    bytes plain = make_pack_stream(9, 3, 2);
    bytes b = {0};
    ps_seek_table *table;
    ps_error err;

    assert_ok(ps_seek_table_open(&table, &err), &err);
    put_table_frame(&b, table, plain.data, plain.size);
    refuse_file(&b, PS_ERR_UNSUPPORTED, "zstd -d");
    join_bytes(&b, compress_packs(&plain, 3000));
    refuse_file(&b, PS_ERR_UNSUPPORTED, "no seek table ends at byte");
    ps_seek_table_free(table);
}

/* Moves `by` bytes from the size at `from` in the table to that at `to`. */
static void shift_size(bytes *b, size_t from, size_t to, uint32_t by)
{
    set_u32(b->data + from, get_u32(b->data + from) - by);
    set_u32(b->data + to, get_u32(b->data + to) + by);
}

/*
 * Two entries have wrong sizes but the right sum, so the table itself looks
 * valid: frames overlap or have gaps.
 */
static void test_lying_table(void **state)
{
    bytes plain = make_pack_stream(60, 3, 2);
    bytes b = compress_packs(&plain, 0);
    uint32_t frames = get_u32(b.data + b.size - 9);
    size_t entries = b.size - 9 - 8 * (size_t)frames;

    assert_true(frames > 5);
    for (uint32_t i = 0; i < frames; i++)
        for (size_t what = 0; what <= 4; what += 4)
            for (uint32_t by = 1; by < 100; by += 7) {
                size_t from = entries + 8 * (size_t)i + what;
                size_t to = entries + 8 * (size_t)((i + 1) % frames) + what;
                ps_error err;

                if (get_u32(b.data + from) <= by)
                    continue;
                shift_size(&b, from, to, by);
                assert_result(try_file_bytes(&b, NULL, &err), PS_ERR_CORRUPT,
                              &err);
                shift_size(&b, to, from, by);
            }
    assert_int_equal(try_file_bytes(&b, NULL, &(ps_error){0}), PS_OK);
}

/* Two frames with equally many packs are exchanged. */
static void test_frames_exchanged(void **state)
{
    bytes plain = make_blocks(60, 3, 2, 1);
    unsigned char *one = block_at(&plain, 1, 0), *two;
    size_t k = 2;
    bytes b;
    ps_error err;

    while (block_bytes(block_at(&plain, k, 0)) != block_bytes(one))
        k++;
    two = block_at(&plain, k, 0);
    for (size_t n = block_bytes(one); n-- > 0;) {
        unsigned char other = one[n];

        one[n] = two[n];
        two[n] = other;
    }
    b = compress_packs(&plain, 0);
    assert_result(try_file_bytes(&b, NULL, &err), PS_ERR_CORRUPT, &err);
}

/*
 * A few bytes claim to be large: allocations stay in proportion to the file,
 * not to the claim.
 */
static void test_no_memory_for_promises(void **state)
{
    const size_t held = alloc_so_far().bytes;
    bytes b = {0};
    ps_seek_table *table;
    ps_error err;

    for (uint32_t plain = 1; plain != 0; plain <<= 1) {
        assert_ok(ps_seek_table_open(&table, &err), &err);
        put_table_frame(&b, table, "promise", 7);
        ps_seek_table_free(table);
        assert_ok(ps_seek_table_open(&table, &err), &err);
        assert_ok(ps_seek_table_add(table, b.size, plain, &err), &err);
        put_table(&b, table);
        ps_seek_table_free(table);
        alloc_watch();
        assert_true(try_file_bytes(&b, NULL, &err) > PS_END);
        assert_in_range(alloc_so_far().peak - held, 0, 4u << 20);
        free_bytes(&b);
    }
    /* A table that would exceed the file. */
    put_u32(&b, 0xFD2FB528);
    put_u32(&b, 1u << 27);
    put_u8(&b, 0);
    put_u32(&b, 0x8F92EAB1);
    alloc_watch();
    refuse_file(&b, PS_ERR_CORRUPT, "seek table cannot have");
    assert_in_range(alloc_so_far().peak - held, 0, 1u << 20);
}

/* The same for a reader, with a block of the largest rows. */
static void test_no_memory_for_a_block(void **state)
{
    ps_pack_info info = {.capacity = PS_MAX_CAPACITY,
                         .max_displacement = 1,
                         .align = 1,
                         .schema = ps_schema_raw(PS_U32)};
    const size_t held = alloc_so_far().bytes;
    unsigned char block[PS_BLOCK_HEAD_BYTES];
    ps_block_head head = {.n_packs = 1, .n_seqs = PS_MAX_DEPTH};
    bytes b = {0};
    ps_pack_reader *r;
    ps_pack pack;
    ps_error err;
    int fd;

    assert_ok(ps_layout(&info, &err), &err);
    put_zeros(&b, PS_PACK_HEADER_BYTES);
    ps_pack_header_encode(&info, b.data);
    head.bytes = ps_block_layout_of(&info, 1, head.n_seqs).bytes;
    assert_true(head.bytes > (64u << 20));
    ps_block_head_encode(&head, block);
    put_bytes(&b, block, sizeof block);
    put_zeros(&b, 1000);
    fd = open_bytes(&b);
    alloc_watch();
    assert_ok(ps_pack_reader_open(&r, fd, &err), &err);
    assert_result(ps_pack_reader_next(r, &pack, &err), PS_ERR_TRUNCATED,
                  &err);
    assert_in_range(alloc_so_far().peak - held, 0, 4u << 20);
    ps_pack_reader_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_every_bit),
        cmocka_unit_test(test_compressed_every_bit),
        cmocka_unit_test(test_plain_every_cut),
        cmocka_unit_test(test_compressed_every_cut),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_second_stream_cut),
        cmocka_unit_test(test_bytes_behind_end),
        cmocka_unit_test(test_moved_blocks),
        cmocka_unit_test(test_lying_end),
        cmocka_unit_test(test_lying_totals),
        cmocka_unit_test(test_lying_index),
        cmocka_unit_test(test_streams_of_other_kinds),
        cmocka_unit_test(test_no_table),
        cmocka_unit_test(test_lying_table),
        cmocka_unit_test(test_frames_exchanged),
        cmocka_unit_test(test_no_memory_for_promises),
        cmocka_unit_test(test_no_memory_for_a_block),
    };

    return run_as_tap("pack file, hostile", tests, NULL);
}
