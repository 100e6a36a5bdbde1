/*
 * seek-table-check-t.c - the frames of an input are compared with the seek
 * table after them: missing, different and extra frames are detected, and
 * every flipped bit of the table.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "format/pack_header.h"
#include "io/seek_table_check.h"

#define HEADER PS_PACK_HEADER_BYTES
#define MAGIC "\x89PKS\r\n\x1a\n"

enum { UNCHECKED = 1, SKIPPED = 2, NO_MAGIC = 4 }; /* kinds of frame, ORed */

/* A fake frame: only its first and last bytes matter. */
typedef struct frame {
    uint32_t size;
    uint64_t plain;
    unsigned kind;
} frame;

static const frame header = {200, HEADER, 0};
static const frame few[] = {{200, HEADER, 0}, {9, 1, 0}, {4000, 70000, 0},
                            {9, 0, 0}};
#define N_FEW COUNT(few)

static bytes make_frame(const frame *f, uint32_t checksum)
{
    bytes b = {0};

    put_u32(&b, (f->kind & SKIPPED) != 0 ? 0x184D2A50 : 0xFD2FB528);
    put_u8(&b, (f->kind & UNCHECKED) != 0 ? 0x60 : 0x64);
    put_zeros(&b, f->size - 9);
    put_u32(&b, checksum);
    return b;
}

/* Passes bytes to the check in pieces of `piece` bytes. */
static void see(ps_seek_check *c, const bytes *b, size_t piece)
{
    size_t n;

    for (size_t at = 0; at < b->size; at += n) {
        unsigned char *copy = must_alloc(piece); /* for the sanitizer */

        n = b->size - at < piece ? b->size - at : piece;
        memcpy(copy, b->data + at, n);
        ps_seek_check_see(c, copy, n, (const unsigned char *)"", 0,
                          at + n == b->size);
        free(copy);
    }
}

/* The same for a frame, with its content in between, in pieces as well. */
static void see_frame(ps_seek_check *c, const frame *f, uint32_t checksum,
                      size_t piece)
{
    const unsigned char *none = (const unsigned char *)"";
    const char *text = (f->kind & NO_MAGIC) != 0 ? "PKS no." : MAGIC;
    bytes b = make_frame(f, checksum);
    bytes rest = {.data = b.data + 8, .size = b.size - 8};
    size_t n;

    ps_seek_check_see(c, b.data, 5, none, 0, false);
    ps_seek_check_see(c, b.data + 5, 3, none, 0, false);
    for (uint64_t at = 0; at < f->plain; at += n) {
        n = piece < 8 ? piece : 8;
        n = at >= 8 || f->plain - at < n ? (size_t)(f->plain - at) : n;
        ps_seek_check_see(c, none, 0,
                          (const unsigned char *)text + (at < 8 ? at : 0),
                          n, false);
    }
    see(c, &rest, piece);
    free_bytes(&b);
}

static void see_frames(ps_seek_check *c, const frame *frames, size_t n,
                       size_t piece)
{
    for (size_t i = 0; i < n; i++)
        see_frame(c, &frames[i], 77 + (uint32_t)i, piece);
}

/* The seek table of these frames; see packstream(5). */
static bytes make_table(const frame *frames, size_t n, bool checksums)
{
    bytes b = {0};

    put_u32(&b, 0x184D2A5E);
    put_u32(&b, (uint32_t)(9 + n * (checksums ? 12 : 8)));
    for (size_t i = 0; i < n; i++) {
        put_u32(&b, frames[i].size);
        put_u32(&b, (uint32_t)(frames[i].plain & UINT32_MAX));
        if (checksums)
            put_u32(&b, 77 + (uint32_t)i);
    }
    put_u32(&b, (uint32_t)n);
    put_u8(&b, checksums ? 0x80 : 0);
    put_u32(&b, 0x8F92EAB1);
    return b;
}

static void see_table(ps_seek_check *c, const frame *frames, size_t n,
                      bool checksums)
{
    bytes b = make_table(frames, n, checksums);

    see(c, &b, b.size);
}

/* The result of checking the frames and then this table. */
static ps_result result_of(const frame *frames, size_t n, const bytes *table,
                           ps_error *err)
{
    ps_seek_check c = {.is_head = ps_is_pack_head};

    see_frames(&c, frames, n, 5000);
    see(&c, table, 5000);
    return ps_seek_check_result(&c, true, err);
}

static void assert_so(const ps_seek_check *c, bool at_end, ps_result wanted,
                      const char *words)
{
    ps_error err;

    assert_result(ps_seek_check_result(c, at_end, &err), wanted, &err);
    assert_int_equal(ps_seek_check_result(c, at_end, NULL), wanted);
    if (wanted != PS_OK && strstr(err.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

/* Pieces of any size; one table, or two in a row. */
static void test_right_tables(void **state)
{
    for (size_t piece = 1; piece < 60; piece++) {
        ps_seek_check c = {.is_head = ps_is_pack_head};

        for (size_t n = 1; n <= N_FEW; n++)
            for (int sums = 0; sums < 2; sums++) {
                bytes table = make_table(few, n, sums);

                see_frames(&c, few, n, piece);
                assert_so(&c, false, PS_OK, NULL);
                assert_so(&c, true, PS_ERR_TRUNCATED, "without");
                see(&c, &table, piece);
                assert_so(&c, false, PS_OK, NULL);
                assert_so(&c, true, PS_OK, NULL);
            }
    }
}

static void test_every_bit(void **state)
{
    for (int sums = 0; sums < 2; sums++) {
        bytes table = make_table(few, N_FEW, sums);
        ps_error err;

        assert_ok(result_of(few, N_FEW, &table, &err), &err);
        for (size_t bit = 0; bit < 8 * table.size; bit++) {
            /* With another magic number it is not a table. */
            ps_result wanted = bit < 32 ? PS_ERR_TRUNCATED : PS_ERR_CORRUPT;

            table.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
            if (result_of(few, N_FEW, &table, &err) != wanted)
                fail_msg("bit %zu flips unseen", bit);
            table.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
    }
}

/* Cut, too long, or shorter than a prefix, but a complete frame to zstd. */
static void test_every_size(void **state)
{
    bytes table = make_table(few, N_FEW, false);
    size_t whole = table.size;
    ps_error err;

    put_zeros(&table, 30);
    for (table.size = 8; table.size < whole + 30; table.size++) {
        set_u32(table.data + 4, (uint32_t)table.size - 8);
        assert_result(result_of(few, N_FEW, &table, &err),
                      table.size == whole ? PS_OK : PS_ERR_CORRUPT, &err);
    }
}

/*
 * A table is required from the first frame that is a header alone, and covers
 * later frames of that size as well.
 */
static void test_when_it_is_wanted(void **state)
{
    static const frame others[] = {{300, 0, 0}, {300, HEADER - 1, 0},
                                   {300, HEADER + 1, 0}, {300, 7, 0},
                                   {300, 2 * HEADER, 0},
                                   {300, HEADER, NO_MAGIC}};
    static const frame f[] = {{200, HEADER, 0}, {300, HEADER, 0}};

    for (size_t i = 0; i < COUNT(others); i++) {
        ps_seek_check c = {.is_head = ps_is_pack_head};

        assert_so(&c, true, PS_OK, NULL);
        see_frames(&c, &others[i], 1, 1 + i);
        assert_so(&c, true, PS_OK, NULL);
        see_table(&c, few, N_FEW, true); /* another's */
        assert_so(&c, true, PS_OK, NULL);
        see_frames(&c, &others[i], 1, 1 + i);
        see_frames(&c, f, 2, 1 + i);
        assert_so(&c, true, PS_ERR_TRUNCATED, "");
        see_table(&c, f, 2, true);
        assert_so(&c, true, PS_OK, NULL);
    }
}

/* A wrong table is refused even if a right one follows. */
static void test_joined(void **state)
{
    ps_seek_check c = {.is_head = ps_is_pack_head};

    see_frames(&c, &header, 1, 7);
    see_table(&c, &header, 1, false);
    see_frames(&c, &header, 1, 7);
    assert_so(&c, true, PS_ERR_TRUNCATED,
              "ends at byte 425, without the seek table of its 1 frames");
    see_table(&c, few, N_FEW, false);
    assert_so(&c, false, PS_ERR_CORRUPT, "seek table at byte 425 ");
    see_frames(&c, &header, 1, 7);
    see_table(&c, &header, 1, false);
    see_frames(&c, &header, 1, 7);
    see_table(&c, few, N_FEW, false);
    assert_so(&c, true, PS_ERR_CORRUPT, "seek table at byte 425 ");
}

/*
 * The table's checksum cannot be compared if the frame has none of its own;
 * everything else can.  Skippable bytes count as a frame.
 */
static void test_without_checksums(void **state)
{
    static const frame sets[][3] = {
        {{200, HEADER, 0}, {900, 1, UNCHECKED}, {50, 7, 0}},
        {{200, HEADER, 0}, {50, 0, SKIPPED}, {50, 7, 0}},
        {{200, HEADER, UNCHECKED}, {9, 1, 0}, {900, 1, 0}}};

    for (size_t i = 0; i < 6; i++) {
        const frame *f = sets[i / 2];
        size_t n = 2 + i % 2;
        bytes table = make_table(f, n, true);
        ps_error err;

        set_u32(table.data + 16, 5);
        assert_ok(result_of(f, n, &table, &err), &err);
        for (size_t bit = 32; bit < 8 * table.size; bit++) {
            size_t at = bit / 8;
            bool sum = at < 8 + 12 * n && at >= 8 && (at - 8) % 12 >= 8;

            table.data[at] ^= (unsigned char)(1u << bit % 8);
            assert_result(result_of(f, n, &table, &err),
                          sum ? PS_OK : PS_ERR_CORRUPT, &err);
            table.data[at] ^= (unsigned char)(1u << bit % 8);
        }
    }
}

/* A frame without a checksum does not affect the next stream. */
static void test_with_checksums_again(void **state)
{
    static const frame without = {200, HEADER, UNCHECKED};
    bytes table = make_table(&header, 1, true);
    ps_seek_check c = {.is_head = ps_is_pack_head};

    set_u32(table.data + 16, 5);
    see_frames(&c, &without, 1, 99);
    see(&c, &table, 99);
    assert_so(&c, true, PS_OK, NULL);
    see_frames(&c, &header, 1, 99);
    see(&c, &table, 99);
    assert_so(&c, true, PS_ERR_CORRUPT, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_tables),
        cmocka_unit_test(test_every_bit),
        cmocka_unit_test(test_every_size),
        cmocka_unit_test(test_when_it_is_wanted),
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_without_checksums),
        cmocka_unit_test(test_with_checksums_again),
    };

    return run_as_tap("frame-check", tests, NULL);
}
