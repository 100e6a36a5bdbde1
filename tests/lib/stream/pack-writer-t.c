/*
 * pack-writer-t.c - copying packs: a share is a valid stream of exactly these
 * packs, and its END accounts for the whole input.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-mark-fixture.h"

#include <string.h>
#include <unistd.h>

/* Packs of a stream that go to the share: one bit each, repeated. */
#define ALL UINT32_C(1)
#define EVERY(n) (ALL | (n) << 8)

static bool goes(uint32_t which, uint64_t i)
{
    const uint32_t n = which >> 8;

    return which != 0 && (n == 0 || i % n == 0);
}

static void put_packs(ps_pack_writer *w, const expected *e, uint32_t which)
{
    ps_error err;

    for (uint64_t i = 0; i < e->n; i++) {
        if (goes(which, i))
            assert_ok(ps_pack_writer_put(w, &e->packs[i], &err), &err);
        if (i % 7 == 3)
            assert_ok(ps_pack_writer_push(w, &err), &err);
    }
}

/* Writes packs of an expected stream to `fd`. */
static void write_share(int fd, const expected *e, uint32_t which,
                        const ps_pack_writer_options *options)
{
    ps_pack_writer *w;
    ps_error err;

    assert_ok(ps_pack_writer_open(&w, fd, &e->info, options, &err), &err);
    put_packs(w, e, which);
    assert_ok(ps_pack_writer_end(w, &e->totals, NULL, &err), &err);
    assert_ok(ps_pack_writer_finish(w, &err), &err);
    ps_pack_writer_free(w);
}

/* The pack is unchanged, except for index and checksum. */
static void check_copy(const ps_pack_info *info, const ps_pack *a,
                       const ps_pack *b)
{
    assert_true(a->watermark == b->watermark);
    assert_true(a->sum_len_sq == b->sum_len_sq);
    assert_int_equal(a->n_seq, b->n_seq);
    assert_int_equal(a->n_tok, b->n_tok);
    assert_int_equal(a->max_seqlen, b->max_seqlen);
    assert_memory_equal(a->row, b->row, info->row_bytes);
    assert_memory_equal(a->sequences, b->sequences,
                        (size_t)a->n_seq * info->seq_bytes);
}

/* END counts the share's own packs, and the input of the whole stream. */
static void check_end(const ps_totals *t, const ps_totals *whole)
{
    const uint64_t begun = t->sequences - t->extra_pieces;

    assert_true(ps_totals_balance(t));
    assert_int_equal(t->input_sequences, whole->input_sequences);
    assert_int_equal(t->input_tokens, whole->input_tokens);
    assert_int_equal(t->truncated_sequences, whole->truncated_sequences);
    assert_int_equal(t->truncated_tokens, whole->truncated_tokens);
    assert_int_equal(t->rejected_sequences, whole->input_sequences - begun);
}

static void check_share(const bytes *b, const expected *e, uint32_t which)
{
    expected got = read_whole(b);
    ps_error err;
    uint64_t n = 0;

    assert_true(got.info.share);
    assert_result(ps_pack_info_compare(&got.info, &e->info, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_string_equal(err.text, "share is 1, not 0");
    got.info.share = false;
    assert_ok(ps_pack_info_compare(&got.info, &e->info, &err), &err);
    assert_true(got.info.n_packs == PS_UNKNOWN);
    assert_true(got.info.min_fill == PS_UNKNOWN);
    assert_int_equal(got.info.max_displacement, e->info.max_displacement);
    assert_int_equal(got.info.seed, e->info.seed);
    for (uint64_t i = 0; i < e->n; i++)
        if (goes(which, i)) {
            assert_in_range(n, 0, got.n - 1);
            assert_int_equal(got.packs[n].index, n);
            check_copy(&e->info, &got.packs[n++], &e->packs[i]);
        }
    assert_int_equal(got.n, n);
    check_end(&got.totals, &e->totals);
    if (which == ALL)
        assert_totals(&got.totals, &e->totals);
    free_expected(&got);
}

static void try_shares(const bytes *whole)
{
    static const ps_pack_writer_options options[] = {
        {0}, {.threads = 1}, {.compressed = true, .level = 1},
        {.compressed = true, .level = 3, .threads = 2}};
    static const uint32_t which[] = {0, ALL, EVERY(2), EVERY(5), EVERY(1000)};
    expected e = read_whole(whole);

    for (size_t i = 0; i < COUNT(which); i++) {
        bytes plain = {0};

        for (size_t k = 0; k < COUNT(options); k++) {
            int fd = open_empty();
            bytes b;

            write_share(fd, &e, which[i], &options[k]);
            b = read_back(fd);
            check_share(&b, &e, which[i]);
            if (k == 0)
                plain = b;
            else if (k == 1)
                assert_same_bytes(&b, &plain);
            else
                assert_memory_not_equal(b.data, plain.data, 4);
            if (k > 0)
                free_bytes(&b);
            (void)close(fd);
        }
        free_bytes(&plain);
    }
}

static void test_pieces(void **state)
{
    bytes b = make_pack_stream(400, 50, 3);

    try_shares(&b);
}

static void test_truncated(void **state)
{
    const ps_schema schema = rich_schema(PS_U16);
    const ps_packer_options o = {40, 5, 30, 1, .align = 4,
                                 .overlong = PS_OVERLONG_TRUNCATE};
    ps_totals totals;
    bytes b = packs_from(make_corpus(&schema, 300, 60, 7), &o, &totals);

    assert_true(totals.truncated_sequences > 9);
    try_shares(&b);
}

static void test_no_packs(void **state)
{
    bytes b = make_pack_stream(0, 5, 3);

    try_shares(&b);
}

/* ---------------------------------------------------------- joined streams */

/* Writes the streams of a file as one share. */
static bytes write_joined(ps_pack_file *file, const expected *e, uint32_t n,
                          const ps_pack_writer_options *options)
{
    const int fd = open_empty();
    ps_pack_writer *w = NULL;
    ps_pack_info info;
    ps_totals totals;
    ps_error err;
    bytes b;

    assert_ok(ps_pack_file_stream(file, 0, &info, &totals, &err), &err);
    assert_ok(ps_pack_writer_open(&w, fd, &info, options, &err), &err);
    for (uint32_t k = 0; k < n; k++) {
        const bool last = k + 1 == n;
        ps_totals next = {0};

        put_packs(w, &e[k], EVERY(2));
        if (!last)
            assert_ok(ps_pack_file_stream(file, k + 1, &info, &next, &err),
                      &err);
        assert_ok(ps_pack_writer_end(w, &totals, last ? NULL : &info, &err),
                  &err);
        totals = next;
    }
    assert_ok(ps_pack_writer_finish(w, &err), &err);
    ps_pack_writer_free(w);
    b = read_back(fd);
    (void)close(fd);
    return b;
}

/* Each stream of a file has its own header and totals; so does its share. */
static void test_streams(void **state)
{
    static const uint32_t windows[] = {9, 4, 5};
    static const ps_pack_writer_options options[] = {
        {0}, {.threads = 1}, {.compressed = true, .level = 1},
        {.compressed = true, .level = 1, .threads = 1}};
    expected e[COUNT(windows)];
    bytes all = {0};
    ps_pack_file *file;
    ps_error err;
    int fd;

    for (uint32_t i = 0; i < COUNT(windows); i++) {
        bytes one = make_pack_stream(i == 1 ? 0 : 60, windows[i], i + 1);

        e[i] = read_whole(&one);
        join_bytes(&all, one);
    }
    fd = open_bytes(&all);
    assert_ok(ps_pack_file_open(&file, fd, &err), &err);
    assert_int_equal(ps_pack_file_info(file)->max_displacement, 18);
    for (uint32_t i = 0; i < COUNT(windows); i++) {
        ps_pack_info info;
        ps_totals totals;

        assert_ok(ps_pack_file_stream(file, i, &info, &totals, &err), &err);
        assert_int_equal(info.max_displacement, 2 * windows[i]);
        assert_totals(&totals, &e[i].totals);
    }
    assert_result(ps_pack_file_stream(file, COUNT(windows), &e[0].info,
                                      &e[0].totals, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_string_equal(err.text, "stream 3 is out of range: the file has 3 "
                                  "streams, numbered from 0");

    /* The same as the shares of the single streams, joined. */
    all.size = 0;
    for (uint32_t i = 0; i < COUNT(windows); i++) {
        int one = open_empty();

        write_share(one, &e[i], EVERY(2), &options[0]);
        join_bytes(&all, read_back(one));
        (void)close(one);
    }
    for (size_t k = 0; k < COUNT(options); k++) {
        bytes b = write_joined(file, e, COUNT(windows), &options[k]);
        expected got = read_whole(&b);

        if (!options[k].compressed)
            assert_same_bytes(&b, &all);
        assert_int_equal(got.n, (e[0].n + 1) / 2 + (e[2].n + 1) / 2);
        assert_int_equal(got.packs[got.n - 1].stream, 2);
    }
    for (uint32_t i = 0; i < COUNT(windows); i++)
        free_expected(&e[i]);
    ps_pack_file_free(file);
}

/* A file that has been replaced is refused. */
static void test_stream_changes(void **state)
{
    bytes b = make_blocks(20, 9, 3, 64);
    unsigned char *end = end_at(&b, 0);
    int fd = open_bytes(&b);
    ps_pack_info info;
    ps_totals totals;
    ps_pack_file *file;
    ps_pack pack;
    ps_error err;

    assert_ok(ps_pack_file_open(&file, fd, &err), &err);
    set_u64(end + 16, get_u64(end + 16) - 1); /* one pack less */
    set_u64(end + 64, get_u64(end + 64) - 1);
    seal_packs(&b);
    assert_int_equal(pwrite(fd, b.data, b.size, 0), b.size);
    assert_result(ps_pack_file_stream(file, 0, &info, &totals, &err),
                  PS_ERR_CORRUPT, &err);
    assert_string_equal(err.text, "the stream at byte 0 has changed");
    for (int i = 0; i < 2; i++) {
        assert_result(ps_pack_file_read(file, 0, &pack, &err),
                      PS_ERR_CORRUPT, &err);
        assert_string_equal(err.text, "the stream at byte 0 has changed");
        set_u64(end + 16, get_u64(end + 16) + 1); /* all, of a longer one */
        set_u64(end + 64, get_u64(end + 64) + 1);
        set_u64(b.data + b.size - 16, b.size + 64);
        seal_packs(&b);
        assert_int_equal(pwrite(fd, b.data, b.size, 0), b.size);
    }
    assert_int_equal(ftruncate(fd, 5000), 0);
    assert_int_not_equal(
        ps_pack_file_stream(file, 0, &info, &totals, &err), PS_OK);
    ps_pack_file_free(file);
}

/* An END at the old offset is not taken for that of the new header. */
static void test_stream_grows(void **state)
{
    const ps_packer_options wide = {1 << 18, 3, 9, 1,
                                    .overlong = PS_OVERLONG_SPLIT};
    const ps_schema schema = rich_schema(PS_U16);
    bytes b = make_pack_stream(20, 9, 3);
    bytes other = packs_from(make_corpus(&schema, 1, 9, 3), &wide, NULL);
    int fd = open_bytes(&b);
    ps_pack_info info;
    ps_totals totals;
    ps_pack_file *file;
    ps_error err;

    assert_ok(ps_pack_file_open(&file, fd, &err), &err);
    assert_int_equal(pwrite(fd, other.data, PS_PACK_HEADER_BYTES, 0),
                     PS_PACK_HEADER_BYTES);
    assert_result(ps_pack_file_stream(file, 0, &info, &totals, &err),
                  PS_ERR_CORRUPT, &err);
    assert_string_equal(err.text, "the stream at byte 0 has changed");
    ps_pack_file_free(file);
}

/* ----------------------------------------------------------------- refused */

static void test_refused(void **state)
{
    const ps_pack_writer_options plain = {0};
    const ps_pack_writer_options joined = {.joined = true};
    bytes b = make_pack_stream(40, 5, 3);
    expected e = read_whole(&b);
    ps_pack pack = e.packs[0];
    int fd = open_empty();
    ps_pack_writer *w;
    ps_error err;

    e.info.version_minor++;
    assert_result(ps_pack_writer_open(&w, fd, &e.info, &plain, &err),
                  PS_ERR_UNSUPPORTED, &err);
    assert_null(w);
    e.info.version_minor--;
    e.info.capacity++; /* not a multiple of align */
    e.info.align = 2;
    assert_result(ps_pack_writer_open(&w, fd, &e.info, &plain, &err),
                  PS_ERR_ARGUMENT, &err);
    e.info.capacity--;
    e.info.align = 1;
    assert_ok(ps_pack_writer_open(&w, fd, &e.info, &plain, &err), &err);
    pack.n_seq = 4;
    assert_result(ps_pack_writer_put(w, &pack, &err), PS_ERR_ARGUMENT, &err);
    assert_non_null(strstr(err.text, "more sequences than the header's"));
    pack.row = NULL;
    assert_result(ps_pack_writer_put(w, &pack, &err), PS_ERR_ARGUMENT, &err);
    assert_string_equal(err.text, "a pack has no row");
    e.info.pad_id++;
    assert_result(ps_pack_writer_end(w, &e.totals, &e.info, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_string_equal(err.text, "pad_id is 2, not 1");
    e.info.pad_id--;
    e.info.version_minor++;
    assert_result(ps_pack_writer_end(w, &e.totals, &e.info, &err),
                  PS_ERR_UNSUPPORTED, &err);
    assert_result(ps_pack_writer_finish(w, &err), PS_ERR_ARGUMENT, &err);
    assert_string_equal(err.text, "the stream has not ended");
    assert_ok(ps_pack_writer_end(w, &e.totals, NULL, &err), &err);
    assert_result(ps_pack_writer_end(w, &e.totals, NULL, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_ok(ps_pack_writer_push(w, &err), &err);
    assert_ok(ps_pack_writer_finish(w, &err), &err);
    assert_result(ps_pack_writer_put(w, &e.packs[0], &err), PS_ERR_ARGUMENT,
                  &err);
    assert_string_equal(err.text, "the stream has ended");
    ps_pack_writer_free(w);

    e.info.version_minor--;
    assert_ok(ps_pack_writer_open(&w, fd, &e.info, &joined, &err), &err);
    assert_result(ps_pack_writer_end(w, &e.totals, &e.info, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_string_equal(err.text, "joined streams have a single END");
    ps_pack_writer_free(w);
    ps_pack_writer_free(NULL);
}

/* The packs exceed the totals given for the whole stream. */
static void test_wrong_totals(void **state)
{
    const ps_pack_writer_options plain = {0};
    bytes b = make_pack_stream(40, 5, 3);
    expected e = read_whole(&b);
    ps_totals wrong[4];

    for (size_t i = 0; i < COUNT(wrong); i++)
        wrong[i] = e.totals;
    wrong[0].input_sequences--;
    wrong[1].input_tokens--;
    wrong[2].truncated_tokens = 1;
    wrong[3].truncated_tokens = UINT64_MAX;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        int fd = open_empty();
        ps_pack_writer *w;
        ps_error err;

        assert_ok(ps_pack_writer_open(&w, fd, &e.info, &plain, &err), &err);
        for (uint64_t k = 0; k < e.n; k++)
            assert_ok(ps_pack_writer_put(w, &e.packs[k], &err), &err);
        assert_result(ps_pack_writer_end(w, &wrong[i], NULL, &err),
                      PS_ERR_CORRUPT, &err);
        assert_result(ps_pack_writer_finish(w, &err), PS_ERR_ARGUMENT, &err);
        ps_pack_writer_free(w);
        (void)close(fd);
    }
}

/* The descriptor refuses writes: at the first push, or the first full block. */
static void test_no_output(void **state)
{
    bytes b = make_pack_stream(4000, 50, 3);
    expected e = read_whole(&b);
    const ps_pack_writer_options options[] = {
        {0}, {.compressed = true, .level = 1}};

    for (size_t i = 0; i < COUNT(options); i++) {
        ps_result r = PS_OK;
        ps_pack_writer *w;
        ps_error err;

        r = ps_pack_writer_open(&w, -1, &e.info, &options[i], &err);
        for (uint64_t k = 0; r == PS_OK && k < e.n; k++)
            r = ps_pack_writer_put(w, &e.packs[k], &err);
        if (r == PS_OK)
            r = ps_pack_writer_push(w, &err);
        if (r == PS_OK)
            r = ps_pack_writer_end(w, &e.totals, NULL, &err);
        if (r == PS_OK)
            r = ps_pack_writer_finish(w, &err);
        assert_result(r, PS_ERR_IO, &err);
        ps_pack_writer_free(w);
    }
}

/* Sequences that may lack pieces are not joined again. */
static void test_unpacked(void **state)
{
    const ps_pack_writer_options plain = {0};
    bytes b = make_pack_stream(40, 5, 3);
    expected e = read_whole(&b);
    int fd = open_empty();
    ps_pack_reader *r;
    ps_unpacker *u;
    ps_sequence sequence;
    ps_error err;

    write_share(fd, &e, EVERY(2), &plain);
    rewind_fd(fd);
    assert_ok(ps_pack_reader_open(&r, fd, &err), &err);
    assert_result(ps_unpacker_open(&u, r, PS_ORDER_INPUT, &err),
                  PS_ERR_UNSUPPORTED, &err);
    assert_null(u);
    assert_ok(ps_unpacker_open(&u, r, PS_ORDER_PACK, &err), &err);
    assert_ok(ps_unpacker_next(u, &sequence, &err), &err);
    ps_unpacker_free(u);
    ps_pack_reader_free(r);
}

/* Any order, and ids that continue from another stream. */
static void test_shuffled(void **state)
{
    const ps_pack_writer_options options = {.shuffled = true};
    bytes b = make_pack_stream(400, 50, 3);
    expected e = read_whole(&b);
    int fd = open_empty();
    ps_pack_writer *w;
    expected got;
    ps_error err;

    assert_true(e.n > 20);
    assert_ok(ps_pack_writer_open(&w, fd, &e.info, &options, &err), &err);
    for (uint64_t i = e.n; i-- > 0;) {
        ps_pack_writer_raise_ids(w, i % 2 ? 5000 : 0);
        assert_ok(ps_pack_writer_put(w, &e.packs[i], &err), &err);
    }
    e.totals.input_sequences += 5000;
    assert_ok(ps_pack_writer_end(w, &e.totals, NULL, &err), &err);
    assert_ok(ps_pack_writer_finish(w, &err), &err);
    ps_pack_writer_free(w);

    b = read_back(fd);
    got = read_whole(&b);
    assert_int_equal(got.info.max_displacement, PS_MAX_WINDOW);
    assert_int_equal(got.n, e.n);
    for (uint64_t i = 0; i < e.n; i++) {
        const ps_pack *pack = &got.packs[i];
        const ps_pack *old = &e.packs[e.n - 1 - i];

        assert_int_equal(pack->index, i);
        assert_int_equal(pack->watermark, 0);
        assert_int_equal(pack->n_tok, old->n_tok);
        for (uint32_t k = 0; k < old->n_seq; k++)
            assert_int_equal(ps_pack_piece(&got.info, pack, k).id,
                             ps_pack_piece(&e.info, old, k).id +
                                 ((e.n - 1 - i) % 2 ? 5000 : 0));
    }
    assert_true(got.totals.max_displacement >= 5000);
    check_end(&got.totals, &e.totals);
}

/* Omits every third sequence, or all sequences of a pack. */
static void write_without(int fd, const expected *e, bool all)
{
    const ps_pack_writer_options options = {0};
    ps_pack_writer *w;
    ps_error err;

    assert_ok(ps_pack_writer_open(&w, fd, &e->info, &options, &err), &err);
    for (uint64_t i = 0; i < e->n; i++) {
        bool *omitted = calloc(e->packs[i].n_seq, sizeof *omitted);

        for (uint32_t k = 0; k < e->packs[i].n_seq; k++)
            omitted[k] =
                all || ps_pack_piece(&e->info, &e->packs[i], k).id % 3 == 0;
        assert_ok(ps_pack_writer_put_without(w, &e->packs[i], omitted, &err),
                  &err);
        free(omitted);
    }
    assert_ok(ps_pack_writer_end(w, &e->totals, NULL, &err), &err);
    assert_ok(ps_pack_writer_finish(w, &err), &err);
    ps_pack_writer_free(w);
}

/* Checks that sequence `k` of a pack equals sequence `old` of another. */
static void check_same(const expected *e, const ps_pack *pack, uint32_t k,
                       const ps_pack *from, uint32_t old)
{
    const ps_piece a = ps_pack_piece(&e->info, pack, k);
    const ps_piece b = ps_pack_piece(&e->info, from, old);

    assert_int_equal(a.id, b.id);
    assert_int_equal(a.n_tok, b.n_tok);
    assert_int_equal(a.seq_off, b.seq_off);
    assert_int_equal(a.seq_len, b.seq_len);
    for (uint32_t f = 0; f < e->info.n_fields; f++) {
        const ps_field *field = &e->info.fields[f];
        const size_t size = ps_channel_bytes(&field->channel);

        if (field->channel.kind == PS_PER_TOKEN)
            assert_memory_equal(
                pack->row + field->offset + a.begin * size,
                from->row + field->offset + b.begin * size, a.n_tok * size);
    }
}

static void test_without(void **state)
{
    bytes b = make_pack_stream(400, 50, 3);
    expected e = read_whole(&b);
    ps_error err;

    for (int all = 0; all <= 1; all++) {
        int fd = open_empty();
        expected got;

        write_without(fd, &e, all);
        b = read_back(fd);
        got = read_whole(&b);
        assert_int_equal(got.n, e.n);
        for (uint64_t i = 0; i < e.n; i++) {
            const ps_pack *pack = &got.packs[i];
            uint32_t n = 0;

            assert_ok(ps_pack_check(&got.info, pack, &err), &err);
            assert_int_equal(pack->watermark, e.packs[i].watermark);
            for (uint32_t k = 0; !all && k < e.packs[i].n_seq; k++)
                if (ps_pack_piece(&e.info, &e.packs[i], k).id % 3 != 0)
                    check_same(&e, pack, n++, &e.packs[i], k);
            if (n == 0) {
                assert_int_equal(pack->n_tok, 1);
                assert_int_equal(ps_pack_piece(&got.info, pack, 0).id,
                                 ps_pack_piece(&e.info, &e.packs[i], 0).id);
                n = 1;
            }
            assert_int_equal(pack->n_seq, n);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_no_packs),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_stream_changes),
        cmocka_unit_test(test_stream_grows),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_wrong_totals),
        cmocka_unit_test(test_no_output),
        cmocka_unit_test(test_unpacked),
        cmocka_unit_test(test_shuffled),
        cmocka_unit_test(test_without),
    };

    return run_as_tap("pack-writer", tests, NULL);
}
