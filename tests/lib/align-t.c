/*
 * align-t.c - packs whose sequences start at multiples of a number: header
 * and blocks byte by byte, and the streams that are refused.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

/* Offsets in the header. */
enum {
    AT_ROW_BYTES = 20,
    AT_DEPTH = 52,
    AT_INCOMPAT = 80,
    AT_ALIGN = 180,
    AT_SEQ_BYTES = 184
};

/* Offsets in a row of 12 tokens, a pack's head and a sequence row. */
enum {
    TOKENS = 0,   /* 12 of 2 bytes */
    TYPE_ID = 24, /* 12 bytes */
    ROW = 40,
    N_SEQ = 12,
    N_TOK = 16,
    MAX_SEQLEN = 20,
    START = 8,
    LENGTH = 12,
    SEQUENCE = 16
};

enum { PAD = 77, TYPE_FILL = 7 };

static ps_schema make_schema(void)
{
    ps_schema s = ps_schema_raw(PS_U16);

    s.framed = true;
    s.n_channels = 1;
    s.channels[0] = (ps_channel){"type_id", PS_U8, PS_PER_TOKEN, TYPE_FILL, 0};
    return s;
}

/* One pack: sequences of 3 and 5 tokens; the second one occupies 8. */
static bytes make_packs(void)
{
    static const uint32_t lengths[] = {3, 5};
    const ps_packer_options o = {12, 9, 4, PAD, .align = 4,
                                 .policy = PS_POLICY_NEXTFIT};
    const ps_schema schema = make_schema();
    corpus c = make_lengths(&schema, 2, lengths, 5);
    bytes b = corpus_packs(&c, &o, NULL);

    return b;
}

static void test_bytes(void **state)
{
    bytes b = make_packs();
    bool checked;
    ps_error err;

    assert_result(audit_packs(&b, &checked, &err), PS_END, &err);
    assert_int_equal(get_u32(b.data + AT_INCOMPAT), 1);
    assert_int_equal(get_u32(b.data + AT_ALIGN), 4);
    assert_int_equal(get_u32(b.data + AT_ROW_BYTES), ROW);
    assert_int_equal(get_u32(b.data + AT_SEQ_BYTES), SEQUENCE);
    /* At most three fit, whatever the options request. */
    assert_int_equal(get_u32(b.data + AT_DEPTH), 3);
    assert_int_equal(get_u32(head_at(&b, 0, N_SEQ)), 2);
    assert_int_equal(get_u32(head_at(&b, 0, N_TOK)), 8);
    assert_int_equal(get_u32(head_at(&b, 0, MAX_SEQLEN)), 5);
    assert_int_equal(get_u32(seq_at(&b, 0, 0, START)), 0);
    assert_int_equal(get_u32(seq_at(&b, 0, 0, LENGTH)), 3);
    assert_int_equal(get_u32(seq_at(&b, 0, 1, START)), 4);
    assert_int_equal(get_u32(seq_at(&b, 0, 1, LENGTH)), 5);
    for (size_t t = 0; t < 12; t++)
        if (t == 3 || t > 8) {
            assert_int_equal(*row_at(&b, 0, TOKENS + 2 * t), PAD);
            assert_int_equal(*row_at(&b, 0, TOKENS + 2 * t + 1), 0);
            assert_int_equal(*row_at(&b, 0, TYPE_ID + t), TYPE_FILL);
        }
}

/* With an alignment of zero or one the stream has no trace of the option. */
static void test_one(void **state)
{
    const ps_schema schema = make_schema();
    ps_packer_options o = {12, 3, 4, PAD, .align = 0};
    corpus c = make_corpus(&schema, 30, 12, 8);
    bytes a = corpus_packs(&c, &o, NULL);
    bytes b;

    o.align = 1;
    b = corpus_packs(&c, &o, NULL);
    assert_same_bytes(&a, &b);
    assert_int_equal(get_u32(a.data + AT_INCOMPAT), 0);
    assert_int_equal(get_u32(a.data + AT_ALIGN), 0);
}

/* ---------------------------------------------------------------------
 * Packs
 */

/* The pack's head; other values are indexes of sequence rows. */
enum { HEAD = -1 };

/* Up to three numbers written to pack 0, and the check that must fail. */
typedef struct fault {
    struct {
        int sequence;
        size_t at; /* 0 ends the list */
        uint32_t value;
    } writes[3];
    bool by_check; /* found by ps_pack_check, not by the reader */
} fault;

static const fault faults[] = {
    /* lengths are 3 and 5, n_tok is 8 */
    {{{0, LENGTH, 0}}, false},
    {{{0, LENGTH, 4}}, false}, /* n_tok disagrees */
    {{{0, LENGTH, UINT32_MAX}}, false},
    {{{1, LENGTH, 9}}, false},
    {{{1, LENGTH, 0}}, false},
    {{{HEAD, N_TOK, 7}}, false},
    {{{HEAD, N_TOK, 12}}, false},
    {{{0, LENGTH, 0}, {HEAD, N_TOK, 5}}, false},  /* empty */
    {{{0, LENGTH, 5}, {HEAD, N_TOK, 10}}, false}, /* beyond the next start */
    {{{1, LENGTH, 9}, {HEAD, N_TOK, 12}, {HEAD, MAX_SEQLEN, 9}}, false},
    {{{1, LENGTH, 4}, {HEAD, N_TOK, 7}}, false}, /* max_seqlen is 5 */
    {{{0, LENGTH, 0x80000003}, {1, LENGTH, 0x80000005}}, false},
    {{{0, LENGTH, 4}, {HEAD, N_TOK, 9}}, true}, /* sum_len_sq is 34 */
    {{{1, LENGTH, 8}, {HEAD, N_TOK, 11}, {HEAD, MAX_SEQLEN, 8}}, true},
    {{{HEAD, MAX_SEQLEN, 8}}, false},
    {{{HEAD, N_SEQ, 1}}, false},
    {{{HEAD, N_SEQ, 3}}, false},
    /* starts are 0 and 4 */
    {{{0, START, 4}}, false},
    {{{0, START, 1}}, false},
    {{{1, START, 3}}, false}, /* not aligned */
    {{{1, START, 5}}, false},
    {{{1, START, 8}}, false}, /* 3 tokens take up 4 */
    {{{1, START, 0}}, false},
    {{{1, START, 16}}, false},
    {{{1, START, UINT32_MAX}}, false},
    {{{0, START, 4}, {1, START, 8}}, false},
    {{{0, START, 4}, {1, START, 0}}, false},
};

static void test_faults(void **state)
{
    for (size_t i = 0; i < COUNT(faults); i++) {
        bytes b = make_packs();
        bool by_check;
        ps_error err;

        for (size_t k = 0; k < 3 && faults[i].writes[k].at > 0; k++) {
            const int s = faults[i].writes[k].sequence;
            const size_t at = faults[i].writes[k].at;

            set_u32(s == HEAD ? head_at(&b, 0, at)
                              : seq_at(&b, 0, (size_t)s, at),
                    faults[i].writes[k].value);
        }
        seal_packs(&b);
        assert_result(audit_packs(&b, &by_check, &err), PS_ERR_CORRUPT, &err);
        assert_int_equal(by_check, faults[i].by_check);
    }
}

static void test_gaps(void **state)
{
    bytes b = make_packs();
    static const size_t places[] = {TOKENS + 6, TOKENS + 7, TOKENS + 18,
                                    TOKENS + 23, TYPE_ID + 3, TYPE_ID + 9};
    bool checked;
    ps_error err;

    for (size_t i = 0; i < COUNT(places); i++) {
        *row_at(&b, 0, places[i]) ^= 1;
        seal_packs(&b);
        assert_result(audit_packs(&b, &checked, &err), PS_ERR_CORRUPT, &err);
        assert_true(checked);
        *row_at(&b, 0, places[i]) ^= 1;
    }
}

/* ---------------------------------------------------------------------
 * Options
 */

static void check_options(uint32_t capacity, uint32_t align,
                          ps_result wanted)
{
    const ps_packer_options o = {capacity, 4, 4, 0, .align = align};
    const ps_schema schema = make_schema();
    ps_error err;

    assert_result(ps_packer_check(&schema, &o, &err), wanted, &err);
    assert_int_equal(ps_packer_memory(&schema, &o) == UINT64_MAX,
                     wanted != PS_OK);
}

static void test_options(void **state)
{
    check_options(12, 0, PS_OK);
    check_options(12, 1, PS_OK);
    check_options(12, 12, PS_OK);
    check_options(12, 5, PS_ERR_ARGUMENT);
    check_options(12, 24, PS_ERR_ARGUMENT);
    check_options(12, UINT32_MAX, PS_ERR_ARGUMENT);
    check_options(0, 4, PS_ERR_ARGUMENT);
}

/* The table fits all channels, but not together with the split fields. */
static void test_many_channels(void **state)
{
    ps_packer_options o = {12, 4, 4, 0, .align = 4};
    ps_schema schema = ps_schema_raw(PS_U16);
    ps_error err;

    schema.framed = true;
    for (uint32_t i = 0; i < PS_MAX_CHANNELS; i++) {
        schema.channels[i] = (ps_channel){"a", PS_U8, PS_PER_TOKEN, 0, 0};
        schema.channels[i].name[0] = (char)('a' + i);
    }
    schema.n_channels = PS_MAX_CHANNELS;
    assert_ok(ps_packer_check(&schema, &o, &err), &err);
    o.overlong = PS_OVERLONG_SPLIT;
    assert_result(ps_packer_check(&schema, &o, &err), PS_ERR_LIMIT, &err);
    schema.n_channels--;
    assert_ok(ps_packer_check(&schema, &o, &err), &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_many_channels),
    };

    return run_as_tap("align", tests, NULL);
}
