/*
 * pack-reader-resume-t.c - a reader is saved at every position of a stream, and
 * another one resumes there.  pack-mark-t.c has the marks that are refused.
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

/* Every position of one stream and of several, empty ones among them. */
static void test_every_place(void **state)
{
    static const uint32_t streams[][5] = {
        {15}, {12, 8}, {1, 9, 1, 6}, {9, 7, 8, 6}, {9, 1}, {1, 1}, {1}};

    for (size_t s = 0; s < COUNT(streams); s++) {
        given g = make_streams(streams[s], 3);

        for (input_kind kind = PLAIN_FILE; kind < INPUT_KINDS; kind++)
            for (uint64_t i = 0; i <= g.e.n; i++)
                check_resumed(&g, kind, i);
    }
}

/* Further streams may follow the END of the last one by now. */
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
}

/*
 * A file larger than a read, with nothing left before the mark except headers,
 * ENDs, the head of the first block, and the block of the last pack.
 */
static void test_moving_on(void **state)
{
    given g = make_streams((const uint32_t[]){9000, 6000, 0}, 5);

    assert_true(g.b.size > (size_t)1 << 20);
    for (uint64_t i = 1; i <= g.e.n; i += i < 6 ? 1 : g.e.n / 7) {
        bytes b = {0};
        ps_pack_reader *r;
        int fd;
        ps_error err;

        put_bytes(&b, g.b.data, g.b.size);
        for (uint64_t k = 0; k + 1 < i; k++) {
            const size_t at = g.e.packs[k].offset;
            const size_t kept = at == PS_PACK_HEADER_BYTES ? 64 : 0;

            if (at != g.e.packs[i - 1].offset)
                memset(b.data + at + kept, 'x',
                       block_bytes(g.b.data + at) - kept);
        }
        r = open_packs(&b, PLAIN_FILE, &fd);
        assert_ok(ps_pack_reader_resume(r, g.marks[i].bytes, &err), &err);
        check_rest(r, &g.e, g.marks, i, 0);
        close_packs(r, fd);
    }
}

/* A stream that starts within another file. */
static void test_within_file(void **state)
{
    given g = make_streams((const uint32_t[]){9, 7, 0}, 3);
    bytes b = {0};

    put_zeros(&b, 1000);
    put_bytes(&b, g.b.data, g.b.size);
    for (uint64_t i = 0; i <= g.e.n; i++) {
        int fd = open_bytes(&b);
        ps_pack_reader *r;
        ps_error err;

        assert_int_equal(lseek(fd, 1000, SEEK_SET), 1000);
        assert_ok(ps_pack_reader_open(&r, fd, &err), &err);
        assert_ok(ps_pack_reader_resume(r, g.marks[i].bytes, &err), &err);
        check_rest(r, &g.e, g.marks, i, 0);
        close_packs(r, fd);
    }
}

/* ------------------------------------ streams that start in the middle */

/*
 * The streams from `stream` on, whose first blocks are missing up to the one
 * that starts with pack `first`, or up to END; false without such a block.
 */
static bool make_late(const given *g, uint32_t stream, uint64_t first,
                      bytes *b, uint64_t *gap)
{
    bytes from = g->b;
    size_t k = 0;

    for (uint64_t i = 0; i < g->e.n; i++)
        if (g->e.packs[i].stream == stream && g->e.packs[i].index == 0)
            from.data = g->b.data + g->e.packs[i].offset -
                        PS_PACK_HEADER_BYTES;
    from.size -= (size_t)(from.data - g->b.data);
    while (get_u64(block_at(&from, k, 16)) < first)
        k++;
    *gap = (uint64_t)(block_at(&from, k, 0) - g->b.data) -
           PS_PACK_HEADER_BYTES;
    if (get_u64(block_at(&from, k, 16)) != first)
        return false;
    *b = (bytes){0};
    put_bytes(b, from.data, PS_PACK_HEADER_BYTES);
    put_bytes(b, block_at(&from, k, 0),
              g->b.size - PS_PACK_HEADER_BYTES - *gap);
    return true;
}

/* Every output that a resumed packstream can write for mark `i`. */
static void check_late(const given *g, uint32_t stream, uint64_t packs,
                       uint64_t i, uint64_t index)
{
    ps_pack pack;
    ps_error err;
    int fd;

    for (uint64_t first = 1; first <= packs; first++)
        for (input_kind kind = PLAIN_FILE; kind < INPUT_KINDS; kind++) {
            const ps_result wanted = first > index ? PS_ERR_CORRUPT : PS_OK;
            uint64_t gap;
            bytes b;
            ps_pack_reader *r;

            if (!make_late(g, stream, first, &b, &gap))
                continue;
            r = open_packs(&b, kind, &fd);
            assert_result(ps_pack_reader_resume(r, g->marks[i].bytes, &err),
                          wanted, &err);
            if (wanted == PS_OK)
                check_rest(r, &g->e, g->marks, i, gap);
            close_packs(r, fd);
            r = open_packs(&b, kind, &fd); /* without a mark */
            assert_result(ps_pack_reader_next(r, &pack, &err), PS_ERR_CORRUPT,
                          &err);
            close_packs(r, fd);
            free_bytes(&b);
        }
}

static void test_late(void **state)
{
    given g = make_streams((const uint32_t[]){20, 24, 12, 0}, 7);
    uint64_t packs[3] = {0};
    uint64_t i = 0;

    while (i < g.e.n)
        packs[g.e.packs[i++].stream]++;
    i = 0;
    for (uint32_t s = 0; s < 3; s++) {
        assert_true(packs[s] > 4);
        for (uint64_t index = 1; index <= packs[s]; index++)
            check_late(&g, s, packs[s], i + index, index);
        i += packs[s];
    }
}

/*
 * If packs were skipped, only the header identifies the stream: here its seed
 * differs.  END may come before the mark.
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
        bytes b;
        ps_pack_reader *r;

        assert_true(make_late(&other, 0, other.e.n, &b, &gap));
        r = open_packs(&b, kind, &fd);
        assert_result(ps_pack_reader_resume(r, g.marks[other.e.n + 1].bytes,
                                            &err),
                      PS_ERR_ARGUMENT, &err);
        assert_non_null(strstr(err.text, "are missing"));
        close_packs(r, fd);
        free_bytes(&b);
        assert_true(make_late(&g, 0, 4, &b, &gap));
        b.data[128] ^= 1;
        seal_packs(&b);
        r = open_packs(&b, kind, &fd);
        assert_result(ps_pack_reader_resume(r, g.marks[4].bytes, &err),
                      PS_ERR_ARGUMENT, &err);
        close_packs(r, fd);
    }
}

/* A mark of a reader that began late is valid for the whole stream. */
static void test_late_marks(void **state)
{
    given g = make_streams((const uint32_t[]){20, 8, 0}, 7);
    ps_pack pack;
    ps_error err;

    for (input_kind kind = PLAIN_FILE; kind < INPUT_KINDS; kind++) {
        uint64_t gap;
        bytes b;
        ps_pack_reader *r;
        mark m;
        int fd;

        assert_true(make_late(&g, 0, 4, &b, &gap));
        r = open_packs(&b, kind, &fd);
        assert_ok(ps_pack_reader_resume(r, g.marks[5].bytes, &err), &err);
        assert_ok(ps_pack_reader_next(r, &pack, &err), &err);
        m = save_mark(r);
        close_packs(r, fd);
        r = open_packs(&g.b, kind, &fd);
        assert_ok(ps_pack_reader_resume(r, m.bytes, &err), &err);
        assert_true(is_mark(r, &m));
        for (uint64_t i = 6; i < g.e.n; i++) {
            assert_ok(ps_pack_reader_next(r, &pack, &err), &err);
            assert_true(is_pack(&g.e, i, &pack));
        }
        assert_result(ps_pack_reader_next(r, &pack, &err), PS_END, &err);
        close_packs(r, fd);
    }
}

/* Some or all blocks between the first one and the mark are missing. */
static void test_late_gaps(void **state)
{
    given g = make_streams((const uint32_t[]){30, 0}, 7);
    ps_error err;
    int fd;

    assert_true(g.e.n > 16);
    for (input_kind kind = PLAIN_FILE; kind < INPUT_KINDS; kind++)
        for (int end = 0; end < 2; end++) {
            uint64_t gap;
            bytes b;
            ps_pack_reader *r;
            unsigned char *to;
            size_t n;

            assert_true(make_late(&g, 0, 4, &b, &gap));
            to = block_at(&b, 1, 0);
            n = (size_t)((end ? end_at(&b, 0) : block_at(&b, 2, 0)) - to);
            memmove(to, to + n, b.size - n - (size_t)(to - b.data));
            b.size -= n;
            r = open_packs(&b, kind, &fd);
            assert_result(ps_pack_reader_resume(r, g.marks[10].bytes, &err),
                          end ? PS_ERR_ARGUMENT : PS_ERR_CORRUPT, &err);
            assert_non_null(strstr(err.text, end ? "are missing"
                                                 : "packs are missing"));
            close_packs(r, fd);
        }
}

/* Around an INDEX block, and in a stream with INDEX but not its blocks. */
static void test_index(void **state)
{
    static const uint64_t places[] = {1, 4095, 4096, 4097};
    given g = make_given(make_blocks(6000, 4, 3, 1));
    uint64_t gap;
    bytes late;
    ps_error err;

    assert_true(g.e.n > 4100);
    assert_int_equal(get_u32(block_at(&g.b, 4096, 4)), 2);
    assert_true(make_late(&g, 0, 100, &late, &gap));
    for (input_kind kind = PLAIN_FILE; kind < INPUT_KINDS; kind += 2) {
        for (size_t k = 0; k < COUNT(places); k++) {
            int fd;
            ps_pack_reader *r = open_packs(&late, kind, &fd);

            check_resumed(&g, kind, places[k]);
            assert_result(ps_pack_reader_resume(r, g.marks[places[k]].bytes,
                                                &err),
                          places[k] < 100 ? PS_ERR_CORRUPT : PS_OK, &err);
            if (places[k] >= 100)
                check_rest(r, &g.e, g.marks, places[k], gap);
            close_packs(r, fd);
        }
        check_resumed(&g, kind, g.e.n);
    }
}

/* ------------------------------------------------------- damaged streams */

/*
 * Expected results for mark `i` if pack `k`, or the head of the block that
 * starts with it, is damaged.
 */
static void check_damaged(const given *g, const bytes *b, input_kind kind,
                          uint64_t k, bool is_block, uint64_t i)
{
    const ps_pack *packs = g->e.packs;
    bool is_read = kind != PLAIN_FILE ||
                   (i > 0 && packs[k].offset == packs[i - 1].offset);
    int fd;
    ps_pack_reader *r = open_packs(b, kind, &fd);
    ps_pack pack;
    ps_error err;
    ps_result result = ps_pack_reader_resume(r, g->marks[i].bytes, &err);

    /* The head of the first block identifies the start of the input. */
    if ((k == 0 && is_block) || (k < i && is_read)) {
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
    const uint32_t row_bytes = g.e.info.row_bytes;

    for (uint64_t k = 0; k < g.e.n; k++)
        for (int is_block = 0; is_block < 2; is_block++) {
            const uint64_t place = g.e.packs[k].index % 4;
            bytes b = {0};

            if (is_block && place > 0)
                continue;
            put_bytes(&b, g.b.data, g.b.size);
            b.data[g.e.packs[k].offset +
                   (is_block ? 12 : 64 + place * row_bytes)] ^= 1;
            for (input_kind kind = PLAIN_FILE; kind < INPUT_KINDS; kind++)
                for (uint64_t i = 0; i <= g.e.n; i++)
                    check_damaged(&g, &b, kind, k, is_block, i);
        }
}

/* A mark is refused once a pack was read. */
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
    while (ps_pack_reader_next(r, &pack, &err) != PS_END)
        continue;
    assert_result(ps_pack_reader_resume(r, g.marks[1].bytes, &err),
                  PS_ERR_ARGUMENT, &err);
    close_packs(r, fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_place),
        cmocka_unit_test(test_grown),
        cmocka_unit_test(test_moving_on),
        cmocka_unit_test(test_within_file),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_late_others),
        cmocka_unit_test(test_late_marks),
        cmocka_unit_test(test_late_gaps),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_damaged_packs),
        cmocka_unit_test(test_not_fresh),
    };

    return run_as_tap("pack-reader-resume", tests, NULL);
}
