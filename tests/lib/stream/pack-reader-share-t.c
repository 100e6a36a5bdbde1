/*
 * pack-reader-share-t.c - ranks that read the same input get each pack once
 * between them, also after resuming with the same or another number of ranks.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-mark-fixture.h"

/* Two streams, because pack numbers continue across streams. */
static bytes make_two(void)
{
    bytes b = make_pack_stream(17, 5, 3);

    join_bytes(&b, make_pack_stream(12, 9, 4));
    return b;
}

/* One of several ranks. */
typedef struct worker {
    ps_pack_reader *reader;
    int fd;
} worker;

static worker start_worker(const bytes *b, uint32_t rank, uint32_t ranks,
                           const mark *from)
{
    worker w;
    ps_error err;

    w.reader = open_packs(b, rank % 2 == 0 ? PLAIN_FILE : ZSTD_PIPE, &w.fd);
    /* In either order. */
    if (from != NULL && rank % 3 == 0)
        assert_ok(ps_pack_reader_resume(w.reader, from->bytes, &err), &err);
    assert_ok(ps_pack_reader_share(w.reader, rank, ranks, &err), &err);
    if (from != NULL && rank % 3 != 0)
        assert_ok(ps_pack_reader_resume(w.reader, from->bytes, &err), &err);
    return w;
}

/* From pack `i` on a rank gets its own packs, and all of them. */
static void check_worker(const worker *w, const expected *e, uint64_t i,
                         uint32_t rank, uint32_t ranks)
{
    ps_pack pack;
    ps_error err;

    for (; i < e->n; i++) {
        if (i % ranks != rank)
            continue;
        assert_ok(ps_pack_reader_next(w->reader, &pack, &err), &err);
        assert_true(is_pack(e, i, &pack));
    }
    assert_result(ps_pack_reader_next(w->reader, &pack, &err), PS_END, &err);
    assert_totals(ps_pack_reader_totals(w->reader), &e->totals);
}

static void test_every_rank(void **state)
{
    bytes b = make_two();
    expected e = read_whole(&b);

    assert_true(e.n > 10 && e.n < 60);
    for (uint32_t ranks = 1; ranks <= 60; ranks += ranks < 6 ? 1 : 27)
        for (uint32_t rank = 0; rank < ranks; rank++) {
            worker w = start_worker(&b, rank, ranks, NULL);

            check_worker(&w, &e, 0, rank, ranks);
            close_packs(w.reader, w.fd);
        }
}

/* The mark of a rank after `steps` packs, or all. */
static mark mark_after(const bytes *b, uint32_t rank, uint32_t ranks,
                       uint64_t steps)
{
    worker w = start_worker(b, rank, ranks, NULL);
    ps_result r = PS_OK;
    ps_pack pack;
    ps_error err;
    mark m;

    for (; r == PS_OK && steps > 0; steps--)
        r = ps_pack_reader_next(w.reader, &pack, &err);
    assert_in_range(r, PS_OK, PS_END);
    m = save_mark(w.reader);
    close_packs(w.reader, w.fd);
    return m;
}

/*
 * Other ranks resume with the mark of the last one: a mark is a position, and
 * does not depend on the rank.
 */
static void test_other_ranks(void **state)
{
    bytes b = make_two();
    expected e = read_whole(&b);
    mark *marks = read_marks(&b, &e);

    for (uint32_t before = 1; before <= 4; before++)
        for (uint64_t steps = 1; steps <= e.n / before + 1; steps++) {
            mark m = mark_after(&b, before - 1, before, steps);
            uint64_t done = steps * before < e.n ? steps * before : e.n;

            assert_memory_equal(&m, &marks[done], sizeof m);
            for (uint32_t after = 1; after <= 5; after++)
                for (uint32_t rank = 0; rank < after; rank++) {
                    worker w = start_worker(&b, rank, after, &m);

                    check_worker(&w, &e, done, rank, after);
                    close_packs(w.reader, w.fd);
                }
        }
}

/* Every rank detects damage in a pack of one rank. */
static void test_damage(void **state)
{
    bytes b = make_two();
    expected e = read_whole(&b);
    ps_pack pack;
    ps_error err;

    b.data[e.packs[5].offset + 64 + 5 % 4 * e.info.row_bytes] ^= 4;
    for (uint32_t rank = 0; rank < 4; rank++) {
        worker w = start_worker(&b, rank, 4, NULL);

        assert_ok(ps_pack_reader_next(w.reader, &pack, &err), &err);
        if (rank == 0)
            assert_ok(ps_pack_reader_next(w.reader, &pack, &err), &err);
        assert_result(ps_pack_reader_next(w.reader, &pack, &err),
                      PS_ERR_CORRUPT, &err);
        close_packs(w.reader, w.fd);
    }
}

static void test_arguments(void **state)
{
    bytes b = make_two();
    int fd;
    ps_pack_reader *r = open_packs(&b, PLAIN_FILE, &fd);
    ps_error err;

    assert_result(ps_pack_reader_share(r, 0, 0, &err), PS_ERR_ARGUMENT, &err);
    assert_result(ps_pack_reader_share(r, 3, 3, &err), PS_ERR_ARGUMENT, &err);
    assert_result(ps_pack_reader_share(r, UINT32_MAX, 3, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_ok(ps_pack_reader_share(r, UINT32_MAX - 1, UINT32_MAX, &err),
              &err);
    close_packs(r, fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rank),
        cmocka_unit_test(test_other_ranks),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_arguments),
    };

    return run_as_tap("pack-reader-share", tests, NULL);
}
