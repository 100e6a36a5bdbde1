/*
 * pack-reader-resume-t.c - a reader is saved at every place of a stream, and
 * another one goes on there.  What is no mark is refused in pack-mark-t.c.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-mark-fixture.h"

#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------- resuming */

static void check_resumed(const given *g, input_kind kind, uint64_t i)
{
    int fd;
    ps_pack_reader *r = open_packs(&g->b, kind, &fd);
    ps_error err;

    assert_ok(ps_pack_reader_resume(r, g->marks[i].bytes, &err), &err);
    check_rest(r, &g->e, g->marks, i, 0);
    assert_int_equal(ps_pack_reader_offset(r), g->b.size);
    close_packs(r, fd);
}

/* From every place of one stream and of several, empty ones among them. */
static void test_every_place(void **state)
{
    static const uint32_t streams[][5] = {
        {15}, {12, 8}, {1, 9, 1, 6}, {9, 7, 8, 6}, {9, 1}, {1, 1}, {1}};

    for (size_t s = 0; s < COUNT(streams); s++) {
        given g = make_streams(streams[s], 3);

        for (input_kind kind = PLAIN_FILE; kind < INPUT_KINDS; kind++)
            for (uint64_t i = 0; i <= g.e.n; i++)
                check_resumed(&g, kind, i);
        free_given(&g);
    }
}

/* Behind END of the last stream others may stand by now. */
static void test_grown(void **state)
{
    given before = make_streams((const uint32_t[]){12, 8, 0}, 3);
    given after = make_streams((const uint32_t[]){12, 8, 6, 0}, 3);
    int fd;
    ps_error err;

    assert_true(before.e.n < after.e.n);
    for (input_kind kind = PLAIN_FILE; kind < INPUT_KINDS; kind++) {
        ps_pack_reader *r = open_packs(&after.b, kind, &fd);

        assert_ok(ps_pack_reader_resume(r, before.marks[before.e.n].bytes,
                                        &err), &err);
        check_rest(r, &after.e, after.marks, before.e.n, 0);
        close_packs(r, fd);
    }
    free_given(&after);
    free_given(&before);
}

/*
 * A file larger than what is read at once, of which nothing before the place
 * but headers, first and last pack is left.  It starts within another file.
 */
static void test_moving_on(void **state)
{
    given g = make_streams((const uint32_t[]){3000, 2000, 0}, 5);
    size_t size = stride_of(&g.b);

    assert_true(g.b.size > (size_t)1 << 20);
    for (uint64_t i = 1; i <= g.e.n; i += i < 3 ? 1 : g.e.n / 7) {
        bytes b = {0};
        ps_pack_reader *r;
        int fd;
        ps_error err;

        put_zeros(&b, 1000);
        put_bytes(&b, g.b.data, g.b.size);
        for (uint64_t k = 1; k + 1 < i; k++)
            memset(b.data + 1000 + g.e.packs[k].offset, 'x', size);
        fd = open_bytes(&b);
        assert_int_equal(lseek(fd, 1000, SEEK_SET), 1000);
        assert_ok(ps_pack_reader_open(&r, fd, &err), &err);
        assert_ok(ps_pack_reader_resume(r, g.marks[i].bytes, &err), &err);
        check_rest(r, &g.e, g.marks, i, 0);
        close_packs(r, fd);
        free_bytes(&b);
    }
    free_given(&g);
}

/* ---------------------------------------------- what starts in the middle */

/* The streams from `stream` on, with packs of it only from `first` on. */
static bytes make_late(const given *g, uint32_t stream, uint64_t first,
                       uint64_t *gap)
{
    size_t size = stride_of(&g->b);
    size_t at = 0;
    bytes b = {0};

    for (uint64_t i = 0; i < g->e.n; i++)
        if (g->e.packs[i].stream == stream && g->e.packs[i].index == 0)
            at = g->e.packs[i].offset - PS_PACK_HEADER_BYTES;
    put_bytes(&b, g->b.data + at, PS_PACK_HEADER_BYTES);
    *gap = at + first * size;
    at += PS_PACK_HEADER_BYTES + first * size;
    put_bytes(&b, g->b.data + at, g->b.size - at);
    return b;
}

/* All that a packstream which was resumed may write for mark `i`. */
static void check_late(const given *g, uint32_t stream, uint64_t packs,
                       uint64_t i, uint64_t index)
{
    ps_pack pack;
    ps_error err;
    int fd;

    for (uint64_t first = 1; first <= packs; first++)
        for (input_kind kind = PLAIN_FILE; kind < INPUT_KINDS; kind++) {
            uint64_t gap;
            bytes b = make_late(g, stream, first, &gap);
            ps_pack_reader *r = open_packs(&b, kind, &fd);
            ps_result wanted = first > index ? PS_ERR_CORRUPT : PS_OK;

            assert_result(ps_pack_reader_resume(r, g->marks[i].bytes, &err),
                          wanted, &err);
            if (wanted == PS_OK)
                check_rest(r, &g->e, g->marks, i, gap);
            close_packs(r, fd);
            r = open_packs(&b, kind, &fd); /* which is told nothing */
            assert_result(ps_pack_reader_next(r, &pack, &err), PS_ERR_CORRUPT,
                          &err);
            close_packs(r, fd);
            free_bytes(&b);
        }
}

static void test_late(void **state)
{
    given g = make_streams((const uint32_t[]){10, 12, 8, 0}, 7);
    uint64_t packs[3] = {0};
    uint64_t i = 0;

    while (i < g.e.n)
        packs[g.e.packs[i++].stream]++;
    i = 0;
    for (uint32_t s = 0; s < 3; s++) {
        assert_true(packs[s] > 2);
        for (uint64_t index = 1; index <= packs[s]; index++)
            check_late(&g, s, packs[s], i + index, index);
        i += packs[s];
    }
    free_given(&g);
}

/*
 * Where packs were skipped the header must do: a seed makes it another one.
 * END may come before the place, with the index that is due there.
 */
static void test_late_others(void **state)
{
    given g = make_streams((const uint32_t[]){20, 0}, 7);
    given other = make_streams((const uint32_t[]){12, 0}, 7);
    ps_error err;
    int fd;

    assert_true(other.e.n + 1 < g.e.n);
    for (input_kind kind = PLAIN_FILE; kind < INPUT_KINDS; kind++) {
        uint64_t gap;
        bytes b = make_late(&other, 0, other.e.n, &gap);
        ps_pack_reader *r = open_packs(&b, kind, &fd);

        assert_result(ps_pack_reader_resume(r, g.marks[other.e.n + 1].bytes,
                                            &err),
                      PS_ERR_ARGUMENT, &err);
        assert_non_null(strstr(err.text, "are not there"));
        close_packs(r, fd);
        free_bytes(&b);
        b = make_late(&g, 0, 2, &gap);
        b.data[128] ^= 1;
        seal_packs(&b);
        r = open_packs(&b, kind, &fd);
        assert_result(ps_pack_reader_resume(r, g.marks[2].bytes, &err),
                      PS_ERR_ARGUMENT, &err);
        close_packs(r, fd);
        free_bytes(&b);
    }
    free_given(&other);
    free_given(&g);
}

/* Those before the place are not there, or not all: END, a gap. */
static void test_late_gaps(void **state)
{
    given g = make_streams((const uint32_t[]){20, 0}, 7);
    size_t size = stride_of(&g.b);
    ps_error err;
    int fd;

    assert_true(g.e.n > 6);
    for (input_kind kind = PLAIN_FILE; kind < INPUT_KINDS; kind++)
        for (int end = 0; end < 2; end++) {
            uint64_t gap;
            bytes b = make_late(&g, 0, 2, &gap);
            size_t from = PS_PACK_HEADER_BYTES + size * (end ? g.e.n - 2 : 2);
            size_t to = PS_PACK_HEADER_BYTES + size;
            ps_pack_reader *r;

            memmove(b.data + to, b.data + from, b.size - from);
            b.size -= from - to;
            r = open_packs(&b, kind, &fd);
            assert_result(ps_pack_reader_resume(r, g.marks[5].bytes, &err),
                          end && kind == PLAIN_FILE ? PS_ERR_TRUNCATED
                                                    : PS_ERR_ARGUMENT,
                          &err);
            if (kind != PLAIN_FILE)
                assert_non_null(strstr(err.text, "are not there"));
            close_packs(r, fd);
            free_bytes(&b);
        }
    free_given(&g);
}

/* ------------------------------------------------------- damaged streams */

/* What to expect of mark `i` where pack `k` is damaged. */
static void check_damaged(const given *g, const bytes *b, input_kind kind,
                          uint64_t k, uint64_t i)
{
    bool is_read = kind != PLAIN_FILE || k + 1 == i;
    int fd;
    ps_pack_reader *r = open_packs(b, kind, &fd);
    ps_pack pack;
    ps_error err;
    ps_result result = ps_pack_reader_resume(r, g->marks[i].bytes, &err);

    /* To look at what comes first a reader has to open it. */
    if (k == 0 || (k < i && is_read)) {
        assert_result(result, PS_ERR_CORRUPT, &err);
    } else {
        assert_ok(result, &err);
        for (uint64_t at = i; k >= i && at < k; at++)
            assert_ok(ps_pack_reader_next(r, &pack, &err), &err);
        if (k >= i)
            assert_result(ps_pack_reader_next(r, &pack, &err), PS_ERR_CORRUPT,
                          &err);
        else
            check_rest(r, &g->e, g->marks, i, 0);
    }
    close_packs(r, fd);
}

static void test_damaged_packs(void **state)
{
    given g = make_streams((const uint32_t[]){9, 7, 0}, 3);

    for (uint64_t k = 0; k < g.e.n; k++) {
        bytes b = {0};

        put_bytes(&b, g.b.data, g.b.size);
        b.data[g.e.packs[k].offset + 100] ^= 1;
        for (input_kind kind = PLAIN_FILE; kind < INPUT_KINDS; kind++)
            for (uint64_t i = 0; i <= g.e.n; i++)
                check_damaged(&g, &b, kind, k, i);
        free_bytes(&b);
    }
    free_given(&g);
}

/* A file cut anywhere is never taken for whole. */
static void test_cut_streams(void **state)
{
    given g = make_streams((const uint32_t[]){9, 7, 0}, 3);
    const mark *m = &g.marks[g.e.n - 2];
    size_t first = PS_PACK_HEADER_BYTES; /* else it would not open */
    ps_pack pack;
    ps_error err;
    int fd;

    for (size_t n = first; n < g.b.size; n += 40)
        for (input_kind kind = PLAIN_FILE; kind <= PLAIN_PIPE; kind++) {
            bytes b = {.data = g.b.data, .size = n};
            ps_pack_reader *r = open_packs(&b, kind, &fd);
            ps_result result = ps_pack_reader_resume(r, m->bytes, &err);

            while (result == PS_OK)
                result = ps_pack_reader_next(r, &pack, &err);
            assert_int_not_equal(result, PS_END);
            close_packs(r, fd);
        }
    free_given(&g);
}

/* Once a pack was read it is too late. */
static void test_not_fresh(void **state)
{
    given g = make_streams((const uint32_t[]){9, 0}, 3);
    int fd;
    ps_pack_reader *r = open_packs(&g.b, PLAIN_FILE, &fd);
    ps_pack pack;
    ps_error err;

    assert_ok(ps_pack_reader_next(r, &pack, &err), &err);
    assert_result(ps_pack_reader_resume(r, g.marks[1].bytes, &err),
                  PS_ERR_ARGUMENT, &err);
    close_packs(r, fd);
    free_given(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_place),
        cmocka_unit_test(test_grown),
        cmocka_unit_test(test_moving_on),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_late_others),
        cmocka_unit_test(test_late_gaps),
        cmocka_unit_test(test_damaged_packs),
        cmocka_unit_test(test_cut_streams),
        cmocka_unit_test(test_not_fresh),
    };

    return run_as_tap("pack-reader-resume", tests, NULL);
}
