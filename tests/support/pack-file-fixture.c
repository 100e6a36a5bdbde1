/*
 * pack-file-fixture.c - what the tests of files of packs share.
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

/* A stream of packs as small as can be, of `count` sequences. */
bytes make_pack_stream(uint32_t count, uint32_t window, uint64_t seed)
{
    const ps_packer_options o = {6, 3, window, 1,
                                 .overlong = PS_OVERLONG_SPLIT};
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

/* The header alone in a frame, then `n` bytes in each, then the table. */
bytes compress_packs(const bytes *plain, size_t n)
{
    bytes b = {0};
    ps_seek_table *table;
    ps_error err;
    size_t at = PS_PACK_HEADER_BYTES;

    assert_ok(ps_seek_table_open(&table, &err), &err);
    put_table_frame(&b, table, plain->data, at);
    for (; at < plain->size; at += n)
        put_table_frame(&b, table, plain->data + at,
                        n < plain->size - at ? n : plain->size - at);
    put_table(&b, table);
    ps_seek_table_free(table);
    return b;
}

size_t stride_of(const bytes *plain)
{
    return get_u32(plain->data + 20);
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
    e.packs = must_alloc(b->size);
    e.records = must_alloc(b->size);
    while ((r = ps_pack_reader_next(reader, &pack, &err)) == PS_OK) {
        size_t n = ps_pack_reader_info(reader)->record_bytes;

        e.packs[e.n] = pack;
        e.records[e.n] = must_alloc(n);
        memcpy(e.records[e.n++], pack.record, n);
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
        free(e->records[i]);
    free(e->records);
    free(e->packs);
}

/* True if a pack is the one that was expected. */
bool is_pack(const expected *e, uint64_t i, const ps_pack *pack)
{
    const ps_pack *wanted = &e->packs[i];

    return pack->index == wanted->index &&
           pack->watermark == wanted->watermark &&
           pack->n_seq == wanted->n_seq && pack->n_tok == wanted->n_tok &&
           pack->stream == wanted->stream &&
           pack->offset == wanted->offset &&
           memcmp(pack->record, e->records[i], e->info.record_bytes) == 0;
}

void check_pack(ps_pack_file *file, const expected *e, uint64_t i)
{
    ps_pack pack;
    ps_error err;

    assert_ok(ps_pack_file_read(file, i, &pack, &err), &err);
    assert_true(is_pack(e, i, &pack));
    assert_ok(ps_pack_file_head(file, i, &pack, &err), &err);
    assert_null(pack.record);
    pack.record = e->records[i];
    assert_true(is_pack(e, i, &pack));
}

/* Heads alone, and now and then a pack; large records and small ones. */
static void check_heads(ps_pack_file *file, const expected *e)
{
    ps_pack pack;
    ps_error err;

    for (uint64_t i = 0; i < e->n; i++) {
        assert_ok(ps_pack_file_head(file, i, &pack, &err), &err);
        assert_null(pack.record);
        pack.record = e->records[i];
        assert_true(is_pack(e, i, &pack));
        if (i % 7 == 3)
            check_pack(file, e, i - i % 4);
    }
}

/* All packs of a file, forwards, backwards, and here and there. */
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
    assert_int_equal(ps_pack_file_info(file)->window, e->info.window);
    assert_int_equal(ps_pack_file_info(file)->record_bytes,
                     e->info.record_bytes);
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
    assert_true(lseek(fd, 0, SEEK_CUR) == 17); /* never moved */
    (void)close(fd);
}

/*
 * Opens a file and reads all packs of it: the first failure, or PS_OK.  What
 * is given must be what was expected, unless that is NULL.
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

/* Opening `b` fails so, and the message holds `words`. */
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
