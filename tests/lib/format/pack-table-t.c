/*
 * pack-table-t.c - misleading field tables of pack streams, and those of later
 * versions.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdio.h>
#include <string.h>

#include "format/pack.h"
#include "format/pack_header.h"

enum {
    AT_MINOR = 14,
    AT_ROW_BYTES = 20,
    AT_SEQ_BYTES = 184,
    AT_N_FIELDS = 200,
    AT_TABLE = 256,
    AT_DTYPE = 2048,
    ENTRY = 64,
    /* in an entry */
    TYPE = 24,
    KIND = 25,
    ELEMENT = 26,
    SOURCE = 27,
    OFFSET = 28,
    COUNT = 32,
    FILL = 40
};

/* Of a sequence row: 28 vectors of 8-byte values. */
#define MAX_SEQ_BYTES (8 * PS_MAX_FIELDS * PS_MAX_VECTOR)

/* The fields of rich_info, in the order of the table. */
enum {
    TOKENS,
    LABELS,
    TYPE_ID,
    WEIGHT,
    ID,
    START,
    N_TOK,
    PIECE_OFF,
    FULL_LEN,
    SCORE,
    GROUP,
    N_FIELDS
};

static ps_pack_info rich_info(void)
{
    ps_pack_info info = {.version_major = 2,
                         .capacity = 20,
                         .depth = 6,
                         .max_displacement = 7,
                         .split = true,
                         .align = 1,
                         .schema = rich_schema(PS_U16),
                         .n_packs = PS_UNKNOWN,
                         .n_sequences = PS_UNKNOWN,
                         .n_tokens = PS_UNKNOWN,
                         .max_seqlen = PS_UNKNOWN,
                         .min_fill = PS_UNKNOWN};
    ps_error err;

    assert_ok(ps_layout(&info, &err), &err);
    assert_int_equal(info.n_fields, N_FIELDS);
    return info;
}

typedef struct header {
    unsigned char data[PS_PACK_HEADER_BYTES];
} header;

static header make_header(void)
{
    ps_pack_info info = rich_info();
    header h;

    ps_pack_header_encode(&info, h.data);
    return h;
}

static unsigned char *field(header *h, unsigned i)
{
    return h->data + AT_TABLE + (size_t)i * ENTRY;
}

static void decode(header *h, ps_pack_info *info, ps_result wanted)
{
    ps_error err;

    seal_header(h->data, PS_PACK_HEADER_BYTES);
    assert_result(ps_pack_header_decode(h->data, info, &err), wanted, &err);
}

/*
 * A header of a later version, whose dtype is not compared with the table,
 * gives `wanted`; in the current version it is refused until the dtype is
 * updated.
 */
static void expect(header *h, ps_result wanted)
{
    ps_pack_info info;

    decode(h, &info, PS_ERR_CORRUPT);
    h->data[AT_MINOR] = 1;
    decode(h, &info, wanted);
    h->data[AT_MINOR] = 0;
    if (wanted == PS_OK) {
        ps_error err;

        assert_ok(ps_layout(&info, &err), &err);
        memcpy(h->data + AT_DTYPE, info.dtype, sizeof info.dtype);
        decode(h, &info, PS_OK);
    }
}

/*
 * A layout that only a later version can have: the current version has one
 * way to lay out rows.
 */
static void expect_later(header *h)
{
    ps_pack_info info;

    h->data[AT_MINOR] = 1;
    decode(h, &info, PS_OK);
    h->data[AT_MINOR] = 0;
    decode(h, &info, PS_ERR_CORRUPT);
}

static void expect_later_offset(unsigned i, uint32_t offset)
{
    header h = make_header();

    set_u32(field(&h, i) + OFFSET, offset);
    expect_later(&h);
}

static void expect_later_count(unsigned i, uint32_t count)
{
    header h = make_header();

    set_u32(field(&h, i) + COUNT, count);
    expect_later(&h);
}

static void expect_u32(unsigned i, unsigned at, uint32_t value,
                       ps_result wanted)
{
    header h = make_header();

    set_u32(field(&h, i) + at, value);
    expect(&h, wanted);
}

static void expect_u8(unsigned i, unsigned at, unsigned value,
                      ps_result wanted)
{
    header h = make_header();

    field(&h, i)[at] = (unsigned char)value;
    expect(&h, wanted);
}

static void expect_name(unsigned i, const char *name, ps_result wanted)
{
    header h = make_header();

    memset(field(&h, i), 0, PS_NAME_BYTES);
    memcpy(field(&h, i), name, strnlen(name, PS_NAME_BYTES));
    expect(&h, wanted);
}

static void test_row_sizes(void **state)
{
    static const struct {
        size_t at;
        uint32_t bytes;
        ps_result wanted;
    } cases[] = {
        {AT_ROW_BYTES, 376, PS_ERR_CORRUPT}, /* weight would not fit */
        {AT_ROW_BYTES, 392, PS_OK},          /* larger than it has to be */
        {AT_ROW_BYTES, PS_MAX_ROW_BYTES, PS_OK},
        {AT_ROW_BYTES, PS_MAX_ROW_BYTES + 64, PS_ERR_CORRUPT},
        {AT_SEQ_BYTES, 32, PS_ERR_CORRUPT}, /* group would not fit */
        {AT_SEQ_BYTES, 48, PS_OK},
        {AT_SEQ_BYTES, MAX_SEQ_BYTES, PS_OK},
        {AT_SEQ_BYTES, MAX_SEQ_BYTES + 8, PS_ERR_CORRUPT},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        header h = make_header();

        set_u32(h.data + cases[i].at, cases[i].bytes);
        if (cases[i].wanted == PS_OK)
            expect_later(&h);
        else
            expect(&h, cases[i].wanted);
    }
}

/* The dtype and the field table differ. */
static void test_dtypes(void **state)
{
    header h = make_header();
    size_t n = strlen((char *)h.data + AT_DTYPE);
    ps_pack_info info;

    for (size_t i = 0; i < 2040; i++) {
        h = make_header();
        h.data[AT_DTYPE + i] ^= 1;
        decode(&h, &info, PS_ERR_CORRUPT);
    }
    h = make_header();
    h.data[AT_DTYPE + n] = ' ';
    decode(&h, &info, PS_ERR_CORRUPT);
    h.data[AT_MINOR] = 1; /* a later version may write it differently */
    decode(&h, &info, PS_OK);
    assert_int_equal(strlen(info.dtype), n + 1);
    memset(h.data + AT_DTYPE, 'x', 2040);
    decode(&h, &info, PS_OK);
    assert_int_equal(strlen(info.dtype), 2039);
}

/* A row is 384 bytes, with weight at 140..380; a sequence row 40. */
static void test_places(void **state)
{
    expect_u32(TOKENS, OFFSET, 4, PS_ERR_CORRUPT);
    expect_later_offset(WEIGHT, 144);
    expect_u32(WEIGHT, OFFSET, 148, PS_ERR_CORRUPT); /* ends at 388 */
    expect_u32(WEIGHT, OFFSET, 384, PS_ERR_CORRUPT);
    expect_u32(WEIGHT, OFFSET, 0xfffffffc, PS_ERR_CORRUPT);
    expect_u32(WEIGHT, OFFSET, 136, PS_ERR_CORRUPT); /* on type_id */
    expect_u32(WEIGHT, OFFSET, 142, PS_ERR_CORRUPT); /* unaligned */
    expect_u32(TYPE_ID, OFFSET, 119, PS_ERR_CORRUPT); /* on labels */
    expect_u32(ID, OFFSET, 8, PS_ERR_CORRUPT);
    expect_u32(START, OFFSET, 4, PS_ERR_CORRUPT); /* on id */
    expect_u32(PIECE_OFF, OFFSET, 20, PS_ERR_CORRUPT); /* full_len's place */
    expect_later_offset(GROUP, 34);
    expect_later_offset(GROUP, 38);
    expect_u32(GROUP, OFFSET, 40, PS_ERR_CORRUPT);
    expect_u32(GROUP, OFFSET, 33, PS_ERR_CORRUPT);
    expect_u32(GROUP, OFFSET, 30, PS_ERR_CORRUPT); /* on score */
    expect_u32(GROUP, OFFSET, 0xfffffffe, PS_ERR_CORRUPT);
}

/* Vectors of impossible lengths, and vectors that do not fit. */
static void test_counts(void **state)
{
    static const uint32_t bad[] = {0, PS_MAX_VECTOR + 1, 0x40000001,
                                   UINT32_MAX};

    for (unsigned i = 0; i < N_FIELDS; i++)
        for (size_t b = 0; b < COUNT(bad); b++)
            expect_u32(i, COUNT, bad[b], PS_ERR_CORRUPT);
    for (unsigned i = 0; i < GROUP; i++)
        if (i != WEIGHT)
            /* Built in, or overlaps. */
            expect_u32(i, COUNT, 20, PS_ERR_CORRUPT);
    expect_u32(GROUP, COUNT, 2, PS_OK);
    expect_later_count(WEIGHT, 1);
    expect_u32(WEIGHT, COUNT, 4, PS_ERR_CORRUPT); /* beyond its row */
}

static void test_kinds_and_types(void **state)
{
    for (unsigned i = 0; i < N_FIELDS; i++) {
        expect_u8(i, KIND, 0, PS_ERR_CORRUPT);
        expect_u8(i, KIND, 3, PS_ERR_CORRUPT);
        expect_u8(i, TYPE, 0, PS_ERR_CORRUPT);
        expect_u8(i, TYPE, 9, PS_ERR_CORRUPT);
        expect_u8(i, ELEMENT, 3, PS_ERR_CORRUPT);
        expect_u8(i, KIND, i < ID ? PS_PER_SEQUENCE : PS_PER_TOKEN,
                  PS_ERR_CORRUPT);
    }
    expect_u8(ID, TYPE, PS_I64, PS_ERR_CORRUPT);
    expect_u8(START, TYPE, PS_U32, PS_ERR_CORRUPT);
    expect_u8(N_TOK, TYPE, PS_F32, PS_ERR_CORRUPT);
    expect_u8(TYPE_ID, FILL + 1, 1, PS_ERR_CORRUPT); /* 0x107 in a u8 */
}

/* Valid in itself, but not the known piece_off. */
static void test_built_in_of_another_type(void **state)
{
    header h = make_header();
    ps_pack_info info;

    field(&h, PIECE_OFF)[TYPE] = PS_I32;
    h.data[AT_MINOR] = 1;
    decode(&h, &info, PS_OK);
    assert_false(info.split);
}

/* Built-in fields have no unused positions. */
static void test_fills(void **state)
{
    for (unsigned i = ID; i <= FULL_LEN; i++) {
        header h = make_header();
        ps_pack_info info;

        field(&h, i)[FILL] ^= 1;
        decode(&h, &info, PS_ERR_CORRUPT);
        field(&h, i)[FILL] ^= 1;
        decode(&h, &info, PS_OK);
    }
}

/* Reserved bytes are zero, except in a later version. */
static void test_unused_bytes(void **state)
{
    static const struct {
        unsigned at;
        unsigned end;
    } unused[] = {
        {123, 124}, {180, 184}, {204, 208}, {240, 256},
        {AT_TABLE + 36, AT_TABLE + 40}, {AT_TABLE + 48, AT_TABLE + 64},
        {AT_TABLE + N_FIELDS * ENTRY, AT_DTYPE},
    };

    for (size_t i = 0; i < COUNT(unused); i++)
        for (unsigned at = unused[i].at; at < unused[i].end; at++) {
            header h = make_header();
            ps_pack_info info;

            h.data[at] = 1;
            decode(&h, &info, PS_ERR_CORRUPT);
            h.data[AT_MINOR] = 1;
            decode(&h, &info, PS_OK);
        }
}

static void test_names(void **state)
{
    expect_name(TOKENS, "token", PS_ERR_CORRUPT);
    expect_name(ID, "seq", PS_ERR_CORRUPT);
    expect_name(START, "begin", PS_ERR_CORRUPT);
    expect_name(N_TOK, "length", PS_ERR_CORRUPT);
    expect_name(LABELS, "other", PS_OK);
    expect_name(LABELS, "", PS_ERR_CORRUPT);
    expect_name(LABELS, "a'b", PS_ERR_CORRUPT);
    expect_name(LABELS, "abcdefghijklmnopqrstuvwxyz", PS_ERR_CORRUPT);
    expect_name(LABELS, "input_ids", PS_ERR_CORRUPT);
    expect_name(LABELS, "first_seq", PS_ERR_CORRUPT);
    /* Two fields with the same name, built in or not. */
    expect_name(LABELS, "weight", PS_ERR_CORRUPT);
    expect_name(LABELS, "group", PS_ERR_CORRUPT);
    expect_name(PIECE_OFF, "labels", PS_ERR_CORRUPT);
    expect_name(PIECE_OFF, "full_len", PS_ERR_CORRUPT);
    expect_name(FULL_LEN, "seq_tok", PS_ERR_CORRUPT);
    expect_name(FULL_LEN, "tokens", PS_ERR_CORRUPT);
}

static void test_sources(void **state)
{
    expect_u8(LABELS, SOURCE, 2, PS_ERR_CORRUPT);  /* that is score's */
    expect_u8(LABELS, SOURCE, 6, PS_ERR_CORRUPT);  /* leaves a hole */
    expect_u8(LABELS, SOURCE, 23, PS_ERR_CORRUPT); /* the last that exists */
    expect_u8(LABELS, SOURCE, 24, PS_ERR_CORRUPT); /* beyond it */
    expect_u8(LABELS, SOURCE, 255, PS_ERR_CORRUPT);
    expect_u8(TOKENS, SOURCE, 6, PS_ERR_CORRUPT);  /* no user's channel */
    expect_u8(ID, SOURCE, 6, PS_ERR_CORRUPT);
}

static void test_numbers_of_fields(void **state)
{
    static const uint32_t bad[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 29, 255,
                                   UINT32_MAX};
    header h;

    for (size_t b = 0; b < COUNT(bad); b++) {
        h = make_header();
        set_u32(h.data + AT_N_FIELDS, bad[b]);
        expect(&h, PS_ERR_CORRUPT);
    }
    h = make_header();
    set_u32(h.data + AT_N_FIELDS, N_FIELDS + 1); /* an empty entry */
    expect(&h, PS_ERR_CORRUPT);
}

/* Turns the last field, `i`, into one that only a later version knows. */
static void add_field(header *h, unsigned i, const char *name)
{
    unsigned char *entry = field(h, i);

    memset(entry, 0, ENTRY);
    memcpy(entry, name, strlen(name));
    entry[TYPE] = PS_U8;
    entry[KIND] = PS_PER_TOKEN;
    entry[ELEMENT] = 1;
    set_u32(entry + OFFSET, 384 + 32 * (i - N_FIELDS));
    set_u32(entry + COUNT, 1);
    set_u32(h->data + AT_N_FIELDS, i + 1);
    h->data[AT_MINOR] = 1;
}

/* The table has 28 entries; a 29th would overlap the dtype. */
static void test_max_fields(void **state)
{
    header h = make_header();
    ps_pack_info info;

    set_u32(h.data + AT_ROW_BYTES, 4096);
    for (unsigned i = N_FIELDS; i <= PS_MAX_FIELDS; i++) {
        const char name[] = {'a', 'a', (char)('a' + i - N_FIELDS), '\0'};

        add_field(&h, i, name);
        decode(&h, &info, i < PS_MAX_FIELDS ? PS_OK : PS_ERR_CORRUPT);
    }
}

/* An unknown field of a later version does not change the sequences. */
static void test_later_version(void **state)
{
    header h = make_header();
    ps_pack_info now = rich_info();
    ps_pack_info info;
    ps_payload_column columns[PS_MAX_FIELDS];

    set_u32(h.data + AT_ROW_BYTES, 416);
    add_field(&h, N_FIELDS, "novelty");
    decode(&h, &info, PS_OK);
    assert_int_equal(info.version_minor, 1);
    assert_int_equal(info.n_fields, N_FIELDS + 1);
    assert_int_equal(info.fields[N_FIELDS].source, PS_BUILT_IN);
    assert_ptr_equal(ps_pack_field(&info, "novelty"),
                     &info.fields[N_FIELDS]);
    assert_null(ps_pack_field(&info, "novel"));
    assert_int_equal(ps_payload_columns(&info, columns), 6);
    assert_true(ps_schema_equal(&info.schema, &now.schema));
    assert_true(info.split);
}

/* Without piece_off or full_len, sequences are not split. */
static void test_half_of_split(void **state)
{
    header h = make_header();
    ps_pack_info info;

    memcpy(field(&h, FULL_LEN), "ignored", 8);
    expect_later(&h);
    h.data[AT_MINOR] = 1;
    decode(&h, &info, PS_OK);
    assert_false(info.split);
}

/* Compares the description of how `a` differs from `b`. */
static void expect_text(const ps_pack_info *a, const ps_pack_info *b,
                        const char *text)
{
    ps_error err;

    assert_result(ps_pack_info_compare(a, b, &err), PS_ERR_ARGUMENT, &err);
    assert_string_equal(err.text, text);
}

static void test_equality(void **state)
{
    const ps_pack_info a = rich_info();
    ps_pack_info b = a;
    ps_error err;
    char text[80];

#define EXPECT_NUMBER(member, other)                                      \
    do {                                                                  \
        b = a;                                                            \
        b.member = (other);                                               \
        (void)snprintf(text, sizeof text, #member " is %u, not %u",       \
                       (unsigned)a.member, (unsigned)b.member);           \
        expect_text(&a, &b, text);                                        \
    } while (0)

    EXPECT_NUMBER(capacity, a.capacity + 1);
    EXPECT_NUMBER(align, a.align + 1);
    EXPECT_NUMBER(pad_id, a.pad_id + 1);
    EXPECT_NUMBER(split, !a.split);
    EXPECT_NUMBER(share, !a.share);
    EXPECT_NUMBER(row_bytes, a.row_bytes + 8);
    EXPECT_NUMBER(seq_bytes, a.seq_bytes + 8);
    EXPECT_NUMBER(n_fields, a.n_fields - 1);

    b = a;
    b.schema.channels[0].name[0] = 'x';
    expect_text(&a, &b, "channel 'xabels' is missing");
    b = a;
    b.fields[PIECE_OFF].channel.name[0] = 'x';
    expect_text(&a, &b, "field 7 is 'piece_off', not 'xiece_off'");
    b = a;
    b.fields[LABELS].offset += 16;
    (void)snprintf(text, sizeof text, "field 'labels' is at byte %u, not %u",
                   (unsigned)a.fields[LABELS].offset,
                   (unsigned)b.fields[LABELS].offset);
    expect_text(&a, &b, text);

    b = a;
    b.n_packs = 3; /* each stream has its own */
    b.n_tokens = 9;
    b.max_displacement++;
    b.depth = 0;
    b.block_packs = 1;
    b.block_bytes = 64;
    assert_ok(ps_pack_info_compare(&a, &b, &err), &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row_sizes),
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_kinds_and_types),
        cmocka_unit_test(test_built_in_of_another_type),
        cmocka_unit_test(test_fills),
        cmocka_unit_test(test_unused_bytes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_numbers_of_fields),
        cmocka_unit_test(test_max_fields),
        cmocka_unit_test(test_later_version),
        cmocka_unit_test(test_half_of_split),
        cmocka_unit_test(test_equality),
    };

    return run_as_tap("pack-table", tests, NULL);
}
