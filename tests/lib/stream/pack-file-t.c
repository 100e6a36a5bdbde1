/*
 * pack-file-t.c - packs at any position of a file equal those that a reader of
 * the whole file returns.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-file-fixture.h"

#include <string.h>
#include <unistd.h>

#include "lib-alloc.h"
#include "stream/pack_file.h"

/* ------------------------------------------------------------- good files */

static void test_plain(void **state)
{
    static const struct {
        uint32_t count;
        uint32_t block_packs;
    } cases[] = {{1, 1}, {2, 4}, {100, 1}, {100, 4}, {4000, 64}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        bytes b = make_blocks(cases[i].count, 5, i + 1, cases[i].block_packs);
        expected e = read_whole(&b);

        assert_true(e.n > 0);
        check_packs(&b, &e);
    }
}

/* More blocks than an INDEX block lists. */
static void test_index(void **state)
{
    bytes plain = make_blocks(9000, 5, 4, 1);
    bytes b = compress_packs(&plain, 0);
    expected e = read_whole(&plain);

    assert_int_equal(get_u32(block_at(&plain, 4096, 4)), 2);
    assert_int_equal(get_u32(end_at(&plain, 184)), 1);
    check_packs(&plain, &e);
    check_packs(&b, &e);
}

/* A frame per block, and frames cut without regard to blocks. */
static void test_compressed(void **state)
{
    static const size_t sizes[] = {0, 70000, 100, 333, 1000, 3000};
    bytes plain = make_pack_stream(200, 5, 3);
    expected e = read_whole(&plain);

    for (size_t i = 0; i < COUNT(sizes); i++) {
        bytes b = compress_packs(&plain, sizes[i]);
        expected through = read_whole(&b); /* a filter reads it, too */

        check_packs(&b, &e);
        assert_int_equal(through.n, e.n);
    }
}

/* Empty frames, and several frames that are one entry of the table. */
static void test_odd_frames(void **state)
{
    bytes plain = make_pack_stream(30, 5, 3);
    expected e = read_whole(&plain);
    bytes b = {0};
    ps_seek_table *table;
    ps_seek_table *unused;
    size_t before;
    ps_error err;

    assert_ok(ps_seek_table_open(&table, &err), &err);
    assert_ok(ps_seek_table_open(&unused, &err), &err);
    put_u32(&b, 0x184D2A53); /* to be skipped */
    put_u32(&b, 3);
    put_bytes(&b, "abc", 3);
    assert_ok(ps_seek_table_add(table, b.size, 0, &err), &err);
    put_table_frame(&b, table, plain.data, 4000);
    put_table_frame(&b, table, plain.data, 0);
    before = b.size;
    put_table_frame(&b, unused, plain.data + 4000, 500);
    put_table_frame(&b, unused, plain.data + 4500, plain.size - 4500);
    assert_ok(ps_seek_table_add(table, b.size - before, plain.size - 4000,
                                &err),
              &err);
    put_table_frame(&b, table, plain.data, 0);
    put_table(&b, table);
    check_packs(&b, &e);
    ps_seek_table_free(unused);
    ps_seek_table_free(table);
}

/* One, several and many streams, some of them without packs. */
static bytes make_streams(uint32_t n, bool compressed)
{
    bytes b = {0};

    for (uint32_t i = 0; i < n; i++) {
        bytes one = make_pack_stream(i % 3 == 1 ? 0 : 1 + i % 20, 1 + i % 7,
                                     i + 1);

        if (compressed)
            join_bytes(&b, compress_packs(&one, i % 2 == 0 ? 0 : 700));
        else
            put_bytes(&b, one.data, one.size);
        free_bytes(&one);
    }
    return b;
}

static void test_streams(void **state)
{
    static const uint32_t counts[] = {2, 3, 5, 70};

    for (size_t i = 0; i < COUNT(counts); i++) {
        bytes plain = make_streams(counts[i], false);
        bytes packed = make_streams(counts[i], true);
        expected e = read_whole(&plain);
        int fd = open_bytes(&packed);
        ps_pack_file *file;
        ps_error err;

        check_packs(&plain, &e);
        check_packs(&packed, &e);
        assert_ok(ps_pack_file_open(&file, fd, &err), &err);
        assert_int_equal(ps_pack_file_streams(file), counts[i]);
        ps_pack_file_free(file);
        (void)close(fd);
    }
}

/* Several streams before one seek table. */
static void test_streams_compressed_as_one(void **state)
{
    bytes plain = make_streams(6, false);
    bytes b = compress_packs(&plain, 5000);
    expected e = read_whole(&plain);

    check_packs(&b, &e);
}

/* ---------------------------------------------------------------- by id */

/* Checks where a sequence is found, given all packs. */
static void check_location(ps_pack_file *file, const expected *e,
                           uint32_t stream, uint64_t id)
{
    ps_location *locations;
    uint32_t n;
    uint32_t found = 0;
    ps_error err;

    assert_ok(ps_pack_file_locate(file, stream, id, &locations, &n, &err),
              &err);
    for (uint64_t i = 0; i < e->n; i++)
        for (uint32_t k = 0; k < e->packs[i].n_seq; k++) {
            const ps_piece piece = ps_pack_piece(&e->info, &e->packs[i], k);

            if (e->packs[i].stream != stream || piece.id != id)
                continue;
            assert_true(found < n);
            assert_int_equal(locations[found].pack, i);
            assert_int_equal(locations[found].slot, k);
            assert_memory_equal(&locations[found].piece, &piece,
                                sizeof piece);
            found++;
        }
    assert_int_equal(n, found);
    assert_true((locations == NULL) == (n == 0));
    free(locations);
}

/* Looks up every `step`-th id of each stream, and ids that do not exist. */
static void check_locations(const bytes *b, const expected *e, uint64_t step)
{
    int fd = open_bytes(b);
    ps_pack_file *file;
    ps_pack_info info;
    ps_totals totals;
    ps_location *locations;
    uint32_t n;
    ps_error err;

    assert_ok(ps_pack_file_open(&file, fd, &err), &err);
    for (uint32_t i = 0; i < ps_pack_file_streams(file); i++) {
        assert_ok(ps_pack_file_stream(file, i, &info, &totals, &err), &err);
        for (uint64_t id = 0; id < totals.input_sequences; id += step)
            check_location(file, e, i, id);
        check_location(file, e, i, totals.input_sequences);
        check_location(file, e, i, UINT64_MAX);
    }
    assert_result(ps_pack_file_locate(file, ps_pack_file_streams(file), 0,
                                      &locations, &n, &err),
                  PS_ERR_ARGUMENT, &err);
    ps_pack_file_free(file);
    (void)close(fd);
}

static void test_locate(void **state)
{
    bytes plain = make_blocks(300, 50, 3, 4);
    bytes indexed = make_blocks(9000, 5, 4, 1);
    bytes streams = make_streams(20, false);
    bytes b;
    expected e = read_whole(&plain);

    check_locations(&plain, &e, 1);
    b = compress_packs(&plain, 0);
    check_locations(&b, &e, 1);
    e = read_whole(&indexed);
    check_locations(&indexed, &e, 97);
    e = read_whole(&streams);
    check_locations(&streams, &e, 1);
}

/* Watermarks of 0 are allowed: all packs are then searched. */
static void test_locate_without_watermarks(void **state)
{
    bytes b = make_blocks(300, 50, 3, 4);
    expected e = read_whole(&b);
    const ps_pack_writer_options options = {.shuffled = true};
    int fd = open_empty();
    ps_pack_writer *w;
    ps_error err;

    assert_ok(ps_pack_writer_open(&w, fd, &e.info, &options, &err), &err);
    for (uint64_t i = e.n; i-- > 0;)
        assert_ok(ps_pack_writer_put(w, &e.packs[i], &err), &err);
    assert_ok(ps_pack_writer_end(w, &e.totals, NULL, &err), &err);
    assert_ok(ps_pack_writer_finish(w, &err), &err);
    ps_pack_writer_free(w);
    b = read_back(fd);
    e = read_whole(&b);
    check_locations(&b, &e, 1);
}

/* ------------------------------------------------ without a descriptor */

/* A file in memory, of which only bytes `at` up to `end` can be read. */
typedef struct store {
    const bytes *b;
    uint64_t at;
    uint64_t end;
} store;

static ps_result read_store(void *context, void *to, size_t n,
                            uint64_t offset, ps_error *err)
{
    const store *s = context;

    assert_true(n > 0 && offset + n <= s->b->size);
    if (offset < s->at || offset + n > s->end) {
        if (err != NULL)
            *err = (ps_error){.code = PS_ERR_IO, .text = "out of reach"};
        return PS_ERR_IO;
    }
    memcpy(to, s->b->data + offset, n);
    return PS_OK;
}

/* With the index in memory, a pack needs only the bytes of its extent. */
static void check_extents(const bytes *b, const expected *e, bool compressed)
{
    store s = {b, 0, b->size};
    const ps_random_source source = {b->size, read_store, &s};
    ps_pack_file *file;
    ps_pack_extent x;
    ps_pack pack;
    ps_error err;

    assert_ok(ps_pack_file_open_source(&file, &source, &err), &err);
    assert_int_equal(ps_pack_file_packs(file), e->n);
    for (uint64_t i = 0; i < e->n; i++) {
        s = (store){b, 0, b->size};
        assert_ok(ps_pack_file_extent(file, i, &x, &err), &err);
        assert_true(x.n > 0 && x.n < b->size / 2);
        assert_int_equal(x.row == 0, compressed);
        s = (store){b, x.at, x.at + x.n};
        check_pack(file, e, i);
        if (!compressed) {
            assert_memory_equal(b->data + x.row, e->packs[i].row,
                                e->info.row_bytes);
            s = (store){b, x.tables, x.at + x.n};
            assert_ok(ps_pack_file_head(file, i, &pack, &err), &err);
        }
    }
    s.end = s.at;
    assert_result(ps_pack_file_read(file, 0, &pack, &err), PS_ERR_IO, &err);
    assert_string_equal(err.text, "out of reach");
    s = (store){b, 0, b->size};
    assert_result(ps_pack_file_extent(file, e->n, &x, &err), PS_ERR_ARGUMENT,
                  &err);
    ps_pack_file_free(file);
}

static void test_source(void **state)
{
    static const size_t sizes[] = {0, 333, 2000};
    bytes plain = make_blocks(9000, 5, 4, 1); /* more than an INDEX lists */
    bytes few = make_pack_stream(200, 5, 3);
    expected e = read_whole(&plain);

    check_extents(&plain, &e, false);
    e = read_whole(&few);
    check_extents(&few, &e, false);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        bytes b = compress_packs(&few, sizes[i]);

        check_extents(&b, &e, true);
    }
}

/* The index lists a block of 64 bytes, fewer than its packs need. */
static void test_wrong_extent(void **state)
{
    bytes b = make_pack_stream(200, 5, 3);
    store s = {&b, 0, b.size};
    const ps_random_source source = {b.size, read_store, &s};
    ps_pack_file *file;
    ps_pack_extent x;
    ps_error err;

    set_u64(end_at(&b, 192 + 24), get_u64(end_at(&b, 192)) + 64);
    seal_packs(&b);
    assert_ok(ps_pack_file_open_source(&file, &source, &err), &err);
    assert_result(ps_pack_file_extent(file, 0, &x, &err), PS_ERR_CORRUPT,
                  &err);
    assert_non_null(strstr(err.text, "the index declares 64 bytes"));
    ps_pack_file_free(file);
}

/* ---------------------------------------------------------------- the rest */

static void test_no_packs_at_all(void **state)
{
    bytes b = {0};

    refuse_file(&b, PS_ERR_TRUNCATED, "the input is empty");
    put_u8(&b, 0x89);
    refuse_file(&b, PS_ERR_TRUNCATED, "inside the header");
    put_bytes(&b, "PNG", 3);
    refuse_file(&b, PS_ERR_MAGIC, "not a pack stream");
    put_zeros(&b, 9000);
    refuse_file(&b, PS_ERR_MAGIC, "not a pack stream");
}

static void test_no_regular_file(void **state)
{
    int ends[2];
    ps_pack_file *file;
    ps_error err;

    assert_int_equal(pipe(ends), 0);
    assert_result(ps_pack_file_open(&file, ends[0], &err), PS_ERR_ARGUMENT,
                  &err);
    assert_null(file);
    (void)close(ends[0]);
    (void)close(ends[1]);
    assert_result(ps_pack_file_open(&file, -1, &err), PS_ERR_IO, &err);
    assert_true(err.sys_errno != 0);
    ps_pack_file_free(NULL);
}

/* Consecutive heads: those before the cut are returned, the others are not. */
static void try_shrunk(size_t into)
{
    bytes b = make_pack_stream(3000, 3, 2);
    expected e = read_whole(&b);
    const uint64_t left = e.n / 12 * 4;
    const off_t cut = (off_t)(e.packs[left].offset + into);
    int fd = open_bytes(&b);
    ps_pack_file *file;
    ps_pack pack;
    ps_error err;

    assert_ok(ps_pack_file_open(&file, fd, &err), &err);
    assert_ok(ps_pack_file_head(file, e.n - 1, &pack, &err), &err);
    assert_int_equal(ftruncate(fd, cut), 0);
    for (int again = 0; again < 2; again++) {
        for (uint64_t i = 0; i < left; i++) {
            assert_ok(ps_pack_file_head(file, i, &pack, &err), &err);
            assert_int_equal(pack.checksum, e.packs[i].checksum);
        }
        for (uint64_t i = 0; i < 4; i++)
            assert_int_equal(
                ps_pack_file_head(file, left + i, &pack, &err),
                into < 64 + 4 * 120 + 40 * (i + 1) ? PS_ERR_TRUNCATED : PS_OK);
    }
    /* The missing bytes are written again. */
    assert_int_equal(pwrite(fd, b.data + cut, b.size - (size_t)cut, cut),
                     b.size - (size_t)cut);
    for (uint64_t i = left - 1; i < e.n; i++)
        assert_ok(ps_pack_file_head(file, i, &pack, &err), &err);
    ps_pack_file_free(file);
    (void)close(fd);
}

static void test_file_shrinks_among_heads(void **state)
{
    try_shrunk(63);
    try_shrunk(64 + 4 * 120);
    try_shrunk(64 + 4 * (120 + 40) - 1);
}

/* Any allocation of a lookup can fail; the next lookup works again. */
static void locate_without_memory(int fd, const expected *e)
{
    unsigned failures = 0;
    ps_result r;

    do {
        ps_pack_file *file;
        ps_location *locations;
        uint32_t n;
        ps_error err;

        assert_ok(ps_pack_file_open(&file, fd, &err), &err);
        alloc_fail(failures + 1, false);
        r = ps_pack_file_locate(file, 0, 7, &locations, &n, &err);
        alloc_fail(0, false);
        assert_true(r == PS_OK || r == PS_ERR_MEMORY);
        assert_true(r == PS_OK || locations == NULL);
        free(locations);
        check_location(file, e, 0, 7);
        ps_pack_file_free(file);
        failures += r != PS_OK;
    } while (r != PS_OK);
    assert_true(failures >= 3);
}

static void try_without_memory(int fd, const expected *e)
{
    const size_t before = alloc_so_far().blocks;
    unsigned failures = 0;
    ps_result r;

    do {
        ps_error err;

        alloc_fail(failures + 1, false);
        r = try_file(fd, e, &err);
        alloc_fail(0, false);
        assert_true(r == PS_OK || r == PS_ERR_MEMORY);
        assert_int_equal(alloc_so_far().blocks, before);
        failures += r != PS_OK;
    } while (r != PS_OK);
    assert_true(failures >= 4);
}

static void test_without_memory(void **state)
{
    bytes plain = make_pack_stream(20, 3, 2);
    bytes packed = compress_packs(&plain, 1000);
    expected e = read_whole(&plain);
    int fd = open_bytes(&plain);

    try_without_memory(fd, &e);
    locate_without_memory(fd, &e);
    (void)close(fd);
    fd = open_bytes(&packed);
    try_without_memory(fd, &e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_odd_frames),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_streams_compressed_as_one),
        cmocka_unit_test(test_locate),
        cmocka_unit_test(test_locate_without_watermarks),
        cmocka_unit_test(test_source),
        cmocka_unit_test(test_wrong_extent),
        cmocka_unit_test(test_no_packs_at_all),
        cmocka_unit_test(test_no_regular_file),
        cmocka_unit_test(test_file_shrinks_among_heads),
        cmocka_unit_test(test_without_memory),
    };

    return run_as_tap("pack file", tests, NULL);
}
