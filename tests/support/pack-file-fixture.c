/*
 * pack-file-fixture.c - shared by the tests of pack files.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-file-fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

#include "io/zstd_frame.h"

/* --------------------------------------------------------------- fixtures */

bytes make_blocks(uint32_t count, uint32_t window, uint64_t seed,
                  uint32_t block_packs)
{
    const ps_packer_options o = {6, 3, window, 1,
                                 .overlong = PS_OVERLONG_SPLIT,
                                 .block_packs = block_packs};
    const ps_schema schema = rich_schema(PS_U16);

    return packs_from(make_corpus(&schema, count, 9, seed), &o, NULL);
}

void put_frame(bytes *b, const void *data, size_t n, int level)
{
    size_t at = b->size;
    size_t size;

    put_zeros(b, ZSTD_compressBound(n));
    size = ZSTD_compress(b->data + at, b->size - at, data, n, level);
    assert_false(ZSTD_isError(size));
    b->size = at + size;
}

bytes compress(const bytes *b)
{
    bytes packed = {0};

    put_frame(&packed, b->data, b->size, 1);
    return packed;
}

/* A frame of `n` bytes, and its entry in the table. */
void put_table_frame(bytes *b, ps_seek_table *table, const void *data,
                     size_t n)
{
    ps_compressor *maker;
    const unsigned char *frame;
    size_t size;
    ps_error err;

    assert_ok(ps_compressor_open(&maker, 1, &err), &err);
    assert_ok(ps_compress_frame(maker, data, n, &frame, &size, &err), &err);
    put_bytes(b, frame, size);
    assert_ok(ps_seek_table_add(table, size, n, &err), &err);
    ps_compressor_free(maker);
}

void put_table(bytes *b, ps_seek_table *table)
{
    const unsigned char *data;
    size_t n;

    ps_seek_table_encode(table, &data, &n);
    put_bytes(b, data, n);
}

bytes make_pack_stream(uint32_t count, uint32_t window, uint64_t seed)
{
    return make_blocks(count, window, seed, 4);
}

bytes compress_packs(const bytes *plain, size_t n)
{
    bytes b = {0};
    ps_seek_table *table;
    ps_error err;
    size_t at = PS_PACK_HEADER_BYTES;

    assert_ok(ps_seek_table_open(&table, &err), &err);
    put_table_frame(&b, table, plain->data, at);
    while (at < plain->size) {
        size_t m = n > 0 ? n : block_bytes(plain->data + at);

        m = m < plain->size - at ? m : plain->size - at;
        put_table_frame(&b, table, plain->data + at, m);
        at += m;
    }
    put_table(&b, table);
    ps_seek_table_free(table);
    return b;
}

/* ------------------------------------------------------------------ checks */

expected read_whole(const bytes *b)
{
    int fd = open_bytes(b);
    expected e = {0};
    ps_pack_reader *reader;
    ps_pack pack;
    ps_error err;
    ps_result r;

    assert_ok(ps_pack_reader_open(&reader, fd, &err), &err);
    e.packs = regrow(NULL, 2 * b->size);
    while ((r = ps_pack_reader_next(reader, &pack, &err)) == PS_OK) {
        const ps_pack_info *info = ps_pack_reader_info(reader);
        const size_t n = (size_t)pack.n_seq * info->seq_bytes;
        unsigned char *copy = regrow(NULL, info->row_bytes + n);

        e.packs[e.n] = pack;
        e.packs[e.n].row = memcpy(copy, pack.row, info->row_bytes);
        e.packs[e.n++].sequences =
            memcpy(copy + info->row_bytes, pack.sequences, n);
    }
    assert_result(r, PS_END, &err);
    e.info = *ps_pack_reader_info(reader);
    e.totals = *ps_pack_reader_totals(reader);
    ps_pack_reader_free(reader);
    (void)close(fd);
    return e;
}

void free_expected(expected *e)
{
    for (uint64_t i = 0; i < e->n; i++)
        drop_memory((void *)(uintptr_t)e->packs[i].row);
    drop_memory(e->packs);
}

/* True if a head is the expected one. */
static bool is_head(const expected *e, uint64_t i, const ps_pack *pack)
{
    const ps_pack *wanted = &e->packs[i];

    return pack->index == wanted->index &&
           pack->checksum == wanted->checksum &&
           pack->watermark == wanted->watermark &&
           pack->sum_len_sq == wanted->sum_len_sq &&
           pack->n_seq == wanted->n_seq && pack->n_tok == wanted->n_tok &&
           pack->max_seqlen == wanted->max_seqlen &&
           pack->stream == wanted->stream && pack->offset == wanted->offset;
}

bool is_pack(const expected *e, uint64_t i, const ps_pack *pack)
{
    const ps_pack *wanted = &e->packs[i];

    return is_head(e, i, pack) &&
           memcmp(pack->row, wanted->row, e->info.row_bytes) == 0 &&
           memcmp(pack->sequences, wanted->sequences,
                  (size_t)pack->n_seq * e->info.seq_bytes) == 0;
}

static void check_head(ps_pack_file *file, const expected *e, uint64_t i)
{
    ps_pack pack;
    ps_error err;

    assert_ok(ps_pack_file_head(file, i, &pack, &err), &err);
    assert_null(pack.row);
    assert_null(pack.sequences);
    assert_true(is_head(e, i, &pack));
}

void check_pack(ps_pack_file *file, const expected *e, uint64_t i)
{
    ps_pack pack;
    ps_error err;

    assert_ok(ps_pack_file_read(file, i, &pack, &err), &err);
    assert_true(is_pack(e, i, &pack));
    check_head(file, e, i);
}

/* Reads heads, and occasionally a pack. */
static void check_heads(ps_pack_file *file, const expected *e)
{
    for (uint64_t i = 0; i < e->n; i++) {
        check_head(file, e, i);
        if (i % 7 == 3)
            check_pack(file, e, i - i % 4);
    }
}

/* Reads all packs of a file forwards, backwards and at random. */
void check_packs(const bytes *b, const expected *e)
{
    int fd = open_bytes(b);
    ps_pack_file *file;
    ps_pack pack;
    uint64_t random = 7;
    ps_error err;

    assert_true(lseek(fd, 17, SEEK_SET) == 17);
    assert_ok(ps_pack_file_open(&file, fd, &err), &err);
    assert_int_equal(ps_pack_file_packs(file), e->n);
    assert_totals(ps_pack_file_totals(file), &e->totals);
    assert_int_equal(ps_pack_file_info(file)->max_displacement,
                     e->info.max_displacement);
    assert_int_equal(ps_pack_file_info(file)->row_bytes, e->info.row_bytes);
    assert_int_equal(ps_pack_file_info(file)->depth, e->info.depth);
    check_heads(file, e);
    for (uint64_t i = 0; i < e->n; i++)
        check_pack(file, e, i);
    for (uint64_t i = e->n; i-- > 0;)
        check_pack(file, e, i);
    for (int k = 0; k < 100 && e->n > 0; k++)
        check_pack(file, e, random_below(&random, (uint32_t)e->n));
    assert_result(ps_pack_file_read(file, e->n, &pack, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_result(ps_pack_file_read(file, UINT64_MAX, &pack, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_result(ps_pack_file_head(file, e->n, &pack, &err),
                  PS_ERR_ARGUMENT, &err);
    ps_pack_file_free(file);
    assert_true(lseek(fd, 0, SEEK_CUR) == 17); /* unchanged */
    (void)close(fd);
}

/*
 * Opens a file and reads all packs; returns the first failure, or PS_OK.  The
 * packs must equal the expected ones, unless `e` is NULL.
 */
ps_result try_file(int fd, const expected *e, ps_error *err)
{
    ps_pack_file *file;
    ps_pack pack;
    ps_result r = ps_pack_file_open(&file, fd, err);

    if (r != PS_OK) {
        assert_null(file);
        assert_int_equal(err->code, r);
        return r;
    }
    if (e != NULL && ps_pack_file_packs(file) != e->n)
        fail_msg("%u packs are to be there", (unsigned)e->n);
    for (uint64_t i = 0; i < ps_pack_file_packs(file); i++) {
        ps_result one = ps_pack_file_read(file, i, &pack, err);

        if (one == PS_OK && e != NULL && !is_pack(e, i, &pack))
            fail_msg("pack %u is another one", (unsigned)i);
        if (one != PS_OK)
            assert_int_equal(err->code, one);
        r = r == PS_OK ? one : r;
    }
    ps_pack_file_free(file);
    return r;
}

ps_result try_file_bytes(const bytes *b, const expected *e, ps_error *err)
{
    int fd = open_bytes(b);
    ps_result r = try_file(fd, e, err);

    (void)close(fd);
    return r;
}

/* Opening `b` must fail with this result, and a message with `words`. */
void refuse_file(const bytes *b, ps_result wanted, const char *words)
{
    int fd = open_bytes(b);
    ps_pack_file *file;
    ps_error err;

    assert_result(ps_pack_file_open(&file, fd, &err), wanted, &err);
    if (strstr(err.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    (void)close(fd);
}
