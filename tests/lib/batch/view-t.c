/*
 * view-t.c - the views of a pack agree with its pieces, whatever the input.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-mark-fixture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Full packs and others. */
static bytes make_aligned(uint32_t count, uint32_t depth, uint32_t align)
{
    const ps_packer_options o = {24, depth, 16, 0,
                                 .overlong = PS_OVERLONG_DROP,
                                 .align = align};
    const ps_schema schema = rich_schema(PS_U16);

    return packs_from(make_corpus(&schema, count, 24, 7), &o, NULL);
}

static bytes make_packs(uint32_t count, uint32_t depth)
{
    return make_aligned(count, depth, 1);
}

/* End of a pack's last sequence, with its gap. */
static uint32_t rows_of(const ps_pack_info *info, const ps_pack *pack)
{
    const ps_piece last = ps_pack_piece(info, pack, pack->n_seq - 1);

    return last.begin +
           (last.n_tok + info->align - 1) / info->align * info->align;
}

/* Compares span `i` of a view with the pieces of the pack. */
static void check_span(const ps_pack_info *info, const ps_pack *pack,
                       const ps_spans *spans, uint32_t i)
{
    const int32_t begin = spans->cu[i];
    const int32_t rows = spans->cu[i + 1] - begin;

    if (i < pack->n_seq) {
        const ps_piece piece = ps_pack_piece(info, pack, i);

        assert_int_equal(begin, piece.begin);
        assert_true((uint32_t)rows >= piece.n_tok &&
                    (uint32_t)rows - piece.n_tok < info->align);
        assert_int_equal(begin % (int32_t)info->align, 0);
        if (info->align > 1)
            assert_int_equal(spans->lengths[i], piece.n_tok);
    } else if (i == pack->n_seq) {
        assert_int_equal(begin, rows_of(info, pack));
        assert_int_equal(rows, (int32_t)info->capacity - begin);
    } else {
        assert_int_equal(begin, info->capacity);
        assert_int_equal(rows, 0);
    }
    assert_true(rows >= 0 && (uint32_t)rows <= spans->max_seqlen);
}

#define UNTOUCHED 77777

/* An array of `n` elements, with one more that must not be written. */
static int32_t *new_array(uint32_t n)
{
    int32_t *a = must_alloc(((size_t)n + 1) * sizeof *a);

    for (uint32_t i = 0; i <= n; i++)
        a[i] = UNTOUCHED;
    return a;
}

static void check_view(const ps_pack_info *info, const ps_pack *pack,
                       ps_view view)
{
    const uint32_t used = rows_of(info, pack);
    const uint32_t ghost = info->capacity - used;
    const uint32_t places =
        view == PS_VIEW_STATIC ? ps_max_sequences(info) : pack->n_seq;
    int32_t *cu = new_array(places + 2);
    int32_t *lengths = info->align > 1 ? new_array(places + 1) : NULL;
    uint32_t longest =
        (pack->max_seqlen + info->align - 1) / info->align * info->align;
    ps_spans spans;
    ps_error err;

    assert_ok(ps_pack_view(info, pack, view, cu, lengths, &spans, &err),
              &err);
    if (view != PS_VIEW_RAGGED && ghost > longest)
        longest = ghost;
    assert_int_equal(spans.view, view);
    assert_int_equal(spans.n_packs, 1);
    assert_int_equal(spans.n_seqs[0], pack->n_seq);
    assert_int_equal(spans.n_seq, pack->n_seq);
    assert_int_equal(spans.n_spans,
                     view == PS_VIEW_RAGGED ? pack->n_seq : places + 1);
    assert_int_equal(spans.n_rows,
                     view == PS_VIEW_RAGGED ? used : info->capacity);
    assert_ptr_equal(spans.cu, cu);
    assert_ptr_equal(spans.lengths, lengths);
    for (uint32_t i = pack->n_seq; lengths != NULL && i < places; i++)
        assert_int_equal(lengths[i], 0);
    assert_int_equal(spans.max_seqlen, longest);
    assert_int_equal(cu[spans.n_spans], spans.n_rows);
    for (uint32_t i = 0; i < spans.n_spans; i++)
        check_span(info, pack, &spans, i);
    assert_int_equal(cu[places + 2], UNTOUCHED);
    assert_true(lengths == NULL || lengths[places + 1] == UNTOUCHED);
    free(cu);
    free(lengths);
}

/* Elements of up to 8 bytes can be read in place. */
static void check_pack_views(const ps_pack_info *info, const ps_pack *pack)
{
    assert_int_equal((uintptr_t)pack->row % 8, 0);
    assert_int_equal((uintptr_t)pack->sequences % 8, 0);
    check_view(info, pack, PS_VIEW_RAGGED);
    check_view(info, pack, PS_VIEW_GHOST);
    check_view(info, pack, PS_VIEW_STATIC);
}

/* Checks the views of all remaining packs; returns how many were full. */
static uint64_t check_reader(ps_pack_reader *r)
{
    uint64_t full = 0;
    ps_pack pack;
    ps_error err;
    ps_result result;

    while ((result = ps_pack_reader_next(r, &pack, &err)) == PS_OK) {
        check_pack_views(ps_pack_reader_info(r), &pack);
        full += pack.n_tok == ps_pack_reader_info(r)->capacity;
    }
    assert_result(result, PS_END, &err);
    return full;
}

static void test_views(void **state)
{
    static const struct {
        uint32_t depth;
        uint32_t align;
    } cases[] = {{1, 1}, {2, 1}, {3, 1}, {4, 1}, {24, 1}, {5, 2},
                 {5, 3}, {5, 8}, {5, 12}, {5, 24}, {0, 1}, {0, 3}};

    for (size_t i = 0; i < COUNT(cases); i++)
        for (input_kind kind = PLAIN_FILE; kind <= ZSTD_FILE; kind += 2) {
            bytes b = make_aligned(300, cases[i].depth, cases[i].align);
            int fd;
            ps_pack_reader *r = open_packs(&b, kind, &fd);
            uint64_t full = check_reader(r);

            assert_true(full > 0 || cases[i].align > 1);
            close_packs(r, fd);
        }
}

/* ---------------------------------------------------------------------
 * Where packs are stored
 */

/* Bytes sent to a pipe in pieces of odd sizes. */
typedef struct drip {
    const bytes *b;
    int fd;
    size_t max;
} drip;

static void *run_drip(void *context)
{
    const drip *d = context;
    uint64_t random = 11;

    for (size_t at = 0; at < d->b->size;) {
        size_t n = 1 + random_below(&random, (uint32_t)d->max);
        ssize_t put;

        n = n < d->b->size - at ? n : d->b->size - at;
        put = write(d->fd, d->b->data + at, n);
        if (put <= 0)
            break;
        at += (size_t)put;
    }
    (void)close(d->fd);
    return NULL;
}

/* Reads `b` from a pipe that delivers pieces of up to `max` bytes. */
static void check_drip(const bytes *b, size_t max)
{
    int ends[2];
    drip d = {b, -1, max};
    pthread_t thread;
    ps_pack_reader *r;
    ps_error err;

    assert_int_equal(pipe(ends), 0);
    d.fd = ends[1];
    assert_int_equal(pthread_create(&thread, NULL, run_drip, &d), 0);
    assert_ok(ps_pack_reader_open(&r, ends[0], &err), &err);
    (void)check_reader(r);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close_packs(r, ends[0]);
}

static void test_odd_pieces(void **state)
{
    bytes b = make_packs(6000, 5);

    assert_true(b.size > 3 << 18); /* more than some blocks */
    check_drip(&b, 5000);
    check_drip(&b, 60000);
}

/* A file that grows after it was opened, cut at an odd offset. */
static ps_pack_reader *open_growing(const bytes *b, int *fd)
{
    const size_t first = 5001;
    ps_pack_reader *r;
    ps_error err;

    *fd = open_empty();
    assert_int_equal(pwrite(*fd, b->data, first, 0), first);
    assert_ok(ps_pack_reader_open(&r, *fd, &err), &err);
    assert_int_equal(pwrite(*fd, b->data + first, b->size - first,
                            (off_t)first),
                     b->size - first);
    return r;
}

/* Bytes skipped on the way to a mark do not shift the next packs. */
static void test_behind_a_mark(void **state)
{
    bytes b = make_packs(9000, 5);
    expected e = read_whole(&b);
    mark *marks = read_marks(&b, &e);

    for (uint64_t i = 0; i < e.n; i += 911) {
        int fd;
        ps_pack_reader *r = i % 2 == 0 ? open_packs(&b, PLAIN_FILE, &fd)
                                       : open_growing(&b, &fd);
        ps_error err;

        assert_ok(ps_pack_reader_resume(r, marks[i].bytes, &err), &err);
        (void)check_reader(r);
        close_packs(r, fd);
    }
}

static void test_refused(void **state)
{
    bytes b = make_packs(10, 5);
    expected e = read_whole(&b);
    const ps_pack *pack = &e.packs[0];
    int32_t cu[7];
    ps_spans spans;
    ps_error err;

    assert_ok(ps_pack_view(&e.info, pack, PS_VIEW_STATIC, cu, NULL, &spans,
                           &err),
              &err);
    assert_result(ps_pack_view(&e.info, pack, (ps_view)3, cu, NULL, &spans,
                               &err),
                  PS_ERR_ARGUMENT, &err);
    assert_result(ps_pack_view(&e.info, pack, (ps_view)3, cu, NULL, &spans,
                               NULL),
                  PS_ERR_ARGUMENT, NULL);
    /* A pack of a later stream can be deeper than the first header says. */
    e.info.depth = pack->n_seq - 1;
    assert_true(e.info.depth > 0);
    assert_ok(ps_pack_view(&e.info, pack, PS_VIEW_GHOST, cu, NULL, &spans,
                           &err),
              &err);
    assert_result(ps_pack_view(&e.info, pack, PS_VIEW_STATIC, cu, NULL,
                               &spans, &err),
                  PS_ERR_LIMIT, &err);
    assert_non_null(strstr(err.text, "pack 0 in the block at byte 4096: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_odd_pieces),
        cmocka_unit_test(test_behind_a_mark),
        cmocka_unit_test(test_refused),
    };

    return run_as_tap("view", tests, NULL);
}
