/*
 * pack-mark-t.c - marks that are damaged, forged or from another stream are
 * refused.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-mark-fixture.h"

#include <string.h>

#include "base/hash.h"

/* Offsets of numbers in a mark. */
#define AT_FIRST_HEADER 8
#define AT_HEADER 16
#define AT_LAST 24
#define AT_NEWEST 32
#define AT_STREAM 40
#define AT_WINDOW 44
#define AT_PACKS 48
#define AT_DIGEST 72
#define AT_BEFORE 164
#define AT_NO_DIGEST 188
#define AT_INDEX 280
#define AT_ZERO 320
#define AT_CHECKSUM (PS_PACK_MARK_BYTES - 8)

/* Updates the checksum of a mark. */
static void seal_mark(mark *m)
{
    set_u64(m->bytes + AT_CHECKSUM, XXH3_64bits(m->bytes, AT_CHECKSUM));
}

static ps_result try_mark(const given *g, input_kind kind, const mark *m,
                          ps_error *err)
{
    int fd;
    ps_pack_reader *r = open_packs(&g->b, kind, &fd);
    ps_result result = ps_pack_reader_resume(r, m->bytes, err);

    if (result != PS_OK)
        assert_result(result, result, err);
    close_packs(r, fd);
    return result;
}

/* Every bit flipped, and every cut, whatever bytes follow. */
static void test_damaged_marks(void **state)
{
    given g = make_streams((const uint32_t[]){12, 8, 0}, 9);
    const mark *whole = &g.marks[g.e.n - 2];
    ps_error err;

    for (size_t at = 0; at < sizeof *whole; at++) {
        ps_result wanted = at < 4 ? PS_ERR_MAGIC : PS_ERR_CORRUPT;
        mark m = *whole;

        for (int bit = 0; bit < 8; bit++) {
            m.bytes[at] = (unsigned char)(whole->bytes[at] ^ 1 << bit);
            assert_result(try_mark(&g, PLAIN_PIPE, &m, &err), wanted, &err);
        }
        for (int fill = 0; fill < 256; fill += 255) {
            m = *whole;
            memset(m.bytes + at, fill, sizeof m - at);
            if (memcmp(&m, whole, sizeof m) != 0)
                assert_result(try_mark(&g, PLAIN_PIPE, &m, &err), wanted,
                              &err);
        }
    }
}

/* A number that no reader would write. */
typedef struct lie {
    size_t at;
    size_t bytes;
    uint64_t value;
    ps_result in_pipe;
    ps_result in_file;
} lie;

static void check_lie(const given *g, mark m, const lie *l)
{
    ps_error err;

    if (l->bytes == 4)
        set_u32(m.bytes + l->at, (uint32_t)l->value);
    else
        set_u64(m.bytes + l->at, l->value);
    seal_mark(&m);
    assert_result(try_mark(g, PLAIN_PIPE, &m, &err), l->in_pipe, &err);
    assert_result(try_mark(g, PLAIN_FILE, &m, &err), l->in_file, &err);
}

/* Marks with a valid checksum that no reader has written. */
static void test_forged_marks(void **state)
{
    static const uint64_t large = UINT64_C(1) << 55;
    static const lie lies[] = {
        {4, 4, 1, PS_ERR_UNSUPPORTED, PS_ERR_UNSUPPORTED},
        {4, 4, 3, PS_ERR_UNSUPPORTED, PS_ERR_UNSUPPORTED},
        {AT_FIRST_HEADER, 8, 1, PS_ERR_ARGUMENT, PS_ERR_ARGUMENT},
        {AT_HEADER, 8, 0, PS_ERR_ARGUMENT, PS_ERR_ARGUMENT},
        {AT_LAST, 8, 0, PS_ERR_ARGUMENT, PS_ERR_ARGUMENT},
        {AT_PACKS, 8, 0, PS_ERR_CORRUPT, PS_ERR_CORRUPT},
        {AT_PACKS, 8, large, PS_ERR_ARGUMENT, PS_ERR_ARGUMENT},
        {AT_PACKS, 8, large + 1, PS_ERR_CORRUPT, PS_ERR_CORRUPT},
        {AT_PACKS, 8, UINT64_MAX, PS_ERR_CORRUPT, PS_ERR_CORRUPT},
        {AT_BEFORE, 8, 0, PS_ERR_ARGUMENT, PS_ERR_ARGUMENT},
        {AT_BEFORE, 8, large, PS_ERR_ARGUMENT, PS_ERR_ARGUMENT},
        {AT_BEFORE, 8, large + 1, PS_ERR_CORRUPT, PS_ERR_CORRUPT},
        {AT_BEFORE, 8, UINT64_MAX, PS_ERR_CORRUPT, PS_ERR_CORRUPT},
        {AT_NO_DIGEST, 8, 1, PS_ERR_CORRUPT, PS_ERR_CORRUPT},
        {AT_STREAM, 4, 0, PS_ERR_CORRUPT, PS_ERR_CORRUPT},
        {AT_STREAM, 4, UINT32_MAX, PS_ERR_ARGUMENT, PS_ERR_ARGUMENT},
        {AT_WINDOW, 4, 0, PS_ERR_CORRUPT, PS_ERR_CORRUPT},
        {AT_WINDOW, 4, PS_MAX_WINDOW + 1, PS_ERR_CORRUPT, PS_ERR_CORRUPT},
        {AT_INDEX, 4, 4097, PS_ERR_CORRUPT, PS_ERR_CORRUPT},
        {AT_INDEX, 4, UINT32_MAX - 1, PS_ERR_CORRUPT, PS_ERR_CORRUPT},
        {AT_INDEX, 4, UINT32_MAX, PS_OK, PS_OK}, /* blocks that were not seen */
        {AT_ZERO, 4, 1, PS_ERR_CORRUPT, PS_ERR_CORRUPT},
        {AT_CHECKSUM - 4, 4, 1, PS_ERR_CORRUPT, PS_ERR_CORRUPT},
    };
    static const size_t at_first[] = {AT_FIRST_HEADER, AT_HEADER, AT_LAST,
                                      AT_DIGEST,       AT_NEWEST, AT_BEFORE};
    given g = make_streams((const uint32_t[]){12, 8, 0}, 9);

    for (size_t i = 0; i < COUNT(lies); i++)
        check_lie(&g, g.marks[g.e.n - 2], &lies[i]);
    for (size_t i = 0; i < COUNT(at_first); i++) {
        lie l = {at_first[i], 8, 1, PS_ERR_CORRUPT, PS_ERR_CORRUPT};

        check_lie(&g, g.marks[0], &l);
    }
}

/* A mark of a header with larger rows, after those of its own. */
static void test_forged_kind(void **state)
{
    const ps_packer_options o = {60, 3, 5, 1,
                                 .overlong = PS_OVERLONG_ERROR};
    const ps_schema schema = rich_schema(PS_U16);
    corpus c = make_corpus(&schema, 5, 9, 1);
    bytes other = corpus_packs(&c, &o, NULL);
    given g = make_given(make_pack_stream(12, 7, 9));
    mark m = g.marks[0];
    ps_error err;

    memcpy(m.bytes + AT_HEADER, other.data + PS_PACK_HEADER_BYTES - 8, 8);
    memcpy(m.bytes + AT_DIGEST, m.bytes + AT_HEADER, 8);
    set_u64(m.bytes + AT_BEFORE, g.e.n);
    set_u32(m.bytes + AT_STREAM, 1);
    seal_mark(&m);
    join_bytes(&g.b, other);
    assert_result(try_mark(&g, PLAIN_FILE, &m, &err), PS_ERR_CORRUPT, &err);
    assert_non_null(strstr(err.text, "capacity is 60, not 6"));
}

/*
 * Any number with any bit flipped: a reader of the packs before the mark
 * detects it; without them, reading does no harm and returns only existing
 * packs.
 */
static void test_forged_bits(void **state)
{
    given g = make_streams((const uint32_t[]){12, 8, 0}, 9);
    ps_pack pack;
    ps_error err;
    int fd;

    for (size_t bit = 0; bit < 8 * (size_t)AT_ZERO; bit++) {
        mark m = g.marks[g.e.n - 2];
        ps_pack_reader *r = open_packs(&g.b, PLAIN_FILE, &fd);
        ps_result result;
        uint64_t n = 0;

        m.bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        seal_mark(&m);
        assert_int_not_equal(try_mark(&g, ZSTD_PIPE, &m, &err), PS_OK);
        result = ps_pack_reader_resume(r, m.bytes, &err);
        while (result == PS_OK && n <= g.e.n) {
            result = ps_pack_reader_next(r, &pack, &err);
            n += result == PS_OK;
        }
        assert_true(n <= 2);
        close_packs(r, fd);
    }
}

/* Equal and different headers, with packs of another input. */
static void test_other_streams(void **state)
{
    static const uint32_t counts[] = {14, 9, 0};
    static const uint32_t shorter[] = {14, 2, 0};
    given a = make_streams(counts, 3);
    given others[4] = {make_streams(counts, 4), make_streams(shorter, 3),
                       make_streams(shorter + 1, 3),
                       make_given(make_pack_stream(20, 9, 3))};
    ps_error err;

    for (size_t k = 0; k < 4; k++)
        for (input_kind kind = PLAIN_FILE; kind < INPUT_KINDS; kind++) {
            uint64_t i = a.e.n;

            for (; k == 1 ? i > others[1].e.n : i > 0; i--)
                assert_int_not_equal(
                    try_mark(&others[k], kind, &a.marks[i], &err), PS_OK);
        }
    /* The kind must be known before anything is read. */
    assert_result(try_mark(&others[0], PLAIN_FILE, &a.marks[3], &err),
                  PS_ERR_ARGUMENT, &err);
    assert_result(try_mark(&others[0], PLAIN_PIPE, &a.marks[3], &err),
                  PS_ERR_ARGUMENT, &err);
    assert_result(try_mark(&others[3], PLAIN_PIPE, &a.marks[0], &err),
                  PS_ERR_ARGUMENT, &err);
    for (size_t k = 0; k < 4; k++)
        free_given(&others[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged_marks),
        cmocka_unit_test(test_forged_marks),
        cmocka_unit_test(test_forged_bits),
        cmocka_unit_test(test_forged_kind),
        cmocka_unit_test(test_other_streams),
    };

    return run_as_tap("pack-mark", tests, NULL);
}
