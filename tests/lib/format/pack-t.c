/*
 * pack-t.c - the rules of a pack, enforced by the reader or by ps_pack_check,
 * each broken in turn under a new seal.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <string.h>

/* Offsets in heads, rows and sequence rows: rich_schema, a capacity of 20. */
enum {
    FIRST_SEQ = 8,
    N_SEQ = 12,
    N_TOK = 16,
    MAX_SEQLEN = 20,
    SUM_LEN_SQ = 24,

    TOKENS = 0,
    LABELS = 40,
    TYPE_ID = 120,
    WEIGHT = 140,
    ROW = 384,

    START = 8,
    LENGTH = 12,
    GROUP = 24,
    SEQ = 32,

    BLOCK = 1088, /* 1072 of them are used */
    END = 256
};

/* Two packs in a block: sequences of 7, 6 and 5 tokens, and of 10 and 1. */
static bytes make_packs(void)
{
    static const uint32_t lengths[] = {7, 6, 5, 10, 1};
    const ps_packer_options o = {20, 6, 3, 9, .policy = PS_POLICY_NEXTFIT,
                                 .overlong = PS_OVERLONG_ERROR};
    const ps_schema schema = rich_schema(PS_U16);
    corpus c = make_lengths(&schema, 5, lengths, 3);
    bytes b = corpus_packs(&c, &o, NULL);

    assert_int_equal(b.size, 4096 + BLOCK + END);
    return b;
}

/* Seals `b` and expects the reader, or ps_pack_check, to refuse it. */
static void expect_refused(bytes *b, bool by_check)
{
    bool checked;
    ps_error err;

    seal_packs(b);
    assert_result(audit_packs(b, &checked, &err), PS_ERR_CORRUPT, &err);
    assert_int_equal(checked, by_check);
    free_bytes(b);
}

/* The unchanged stream, from which the tests below start. */
static void test_good(void **state)
{
    bytes b = make_packs();
    bool checked;
    ps_error err;

    assert_result(audit_packs(&b, &checked, &err), PS_END, &err);
    seal_packs(&b);
    assert_result(audit_packs(&b, &checked, &err), PS_END, &err);
    assert_int_equal(get_u32(head_at(&b, 0, FIRST_SEQ)), 0);
    assert_int_equal(get_u32(head_at(&b, 0, N_SEQ)), 3);
    assert_int_equal(get_u32(head_at(&b, 0, N_TOK)), 18);
    assert_int_equal(get_u32(head_at(&b, 0, MAX_SEQLEN)), 7);
    assert_int_equal(get_u64(head_at(&b, 0, SUM_LEN_SQ)), 25 + 49 + 36);
    assert_int_equal(get_u32(head_at(&b, 1, FIRST_SEQ)), 3);
    assert_int_equal(get_u32(seq_at(&b, 0, 1, START)), 7);
    assert_int_equal(get_u32(seq_at(&b, 0, 1, LENGTH)), 6);
    assert_int_equal(get_u32(seq_at(&b, 0, 2, START)), 13);
    assert_int_equal(get_u32(seq_at(&b, 1, 0, START)), 0);
    assert_int_equal(get_u32(row_at(&b, 0, LABELS + 18 * 4)), 0xffffff9c);
    assert_int_equal(*row_at(&b, 0, TYPE_ID + 19), 7);
}

/* Each is written to pack 0, or its block, alone. */
static const struct {
    enum { IN_BLOCK, IN_HEAD, IN_ROW, IN_SEQ_0, IN_SEQ_1, IN_SEQ_2 } where;
    size_t at;
    uint64_t value;
    size_t bytes;
    bool by_check; /* found by ps_pack_check, not by the reader */
} faults[] = {
    {IN_BLOCK, 0, 0, 1, false}, /* magic */
    {IN_BLOCK, 4, 1, 4, false}, /* END, too early */
    {IN_BLOCK, 4, 2, 4, false},
    {IN_BLOCK, 8, 1, 4, false}, /* packs */
    {IN_BLOCK, 12, 6, 4, false}, /* sequences: they would fit its bytes */
    {IN_BLOCK, 16, 1, 8, false}, /* index of the first pack */
    {IN_BLOCK, 16, UINT64_MAX, 8, false},
    {IN_BLOCK, 1072, 1, 1, false}, /* after the last sequence row */
    {IN_BLOCK, 1087, 1, 1, false},
    {IN_HEAD, FIRST_SEQ, 1, 4, false},
    {IN_HEAD, FIRST_SEQ, UINT32_MAX, 4, false},
    {IN_HEAD, N_SEQ, 0, 4, false},
    {IN_HEAD, N_SEQ, 2, 4, false},
    {IN_HEAD, N_SEQ, 4, 4, false},
    {IN_HEAD, N_SEQ, UINT32_MAX, 4, false},
    {IN_HEAD, N_TOK, 0, 4, false},
    {IN_HEAD, N_TOK, 17, 4, false},
    {IN_HEAD, N_TOK, 19, 4, false},
    {IN_HEAD, N_TOK, 21, 4, false}, /* above the capacity */
    {IN_HEAD, N_TOK, UINT32_MAX, 4, false},
    {IN_HEAD, MAX_SEQLEN, 6, 4, false},
    {IN_HEAD, MAX_SEQLEN, 20, 4, false},
    {IN_HEAD, SUM_LEN_SQ, 111, 8, true},
    /* sequences are at 0, 7 and 13, the last has 5 tokens */
    {IN_SEQ_0, START, 1, 4, false},
    {IN_SEQ_0, START, UINT32_MAX, 4, false},
    {IN_SEQ_0, LENGTH, 0, 4, false},
    {IN_SEQ_0, LENGTH, 6, 4, false},
    {IN_SEQ_0, LENGTH, 13, 4, false},
    {IN_SEQ_0, LENGTH, 0x80000007, 4, false},
    {IN_SEQ_1, START, 0, 4, false},
    {IN_SEQ_1, START, 8, 4, false},
    {IN_SEQ_1, START, 0x80000007, 4, false},
    {IN_SEQ_1, LENGTH, 0, 4, false},
    {IN_SEQ_2, START, 12, 4, false},
    {IN_SEQ_2, LENGTH, 4, 4, false}, /* not n_tok */
    {IN_SEQ_2, LENGTH, 7, 4, false},
    {IN_SEQ_2, LENGTH, 8, 4, false}, /* beyond the row */
    {IN_SEQ_2, LENGTH, UINT32_MAX - 12, 4, false}, /* ends at 0 */
    /* unused elements */
    {IN_ROW, TOKENS + 18 * 2, 8, 2, true},
    {IN_ROW, TOKENS + 19 * 2 + 1, 1, 1, true},
    {IN_ROW, LABELS + 18 * 4, 0, 4, true},
    {IN_ROW, LABELS + 19 * 4 + 3, 0, 1, true},
    {IN_ROW, TYPE_ID + 18, 0, 1, true},
    {IN_ROW, TYPE_ID + 19, 6, 1, true},
    {IN_ROW, WEIGHT + 19 * 12 + 8, 0, 4, true},
    /* gaps after fields */
    {IN_ROW, WEIGHT + 240, 1, 1, true},
    {IN_ROW, ROW - 1, 1, 1, true},
    {IN_SEQ_0, GROUP + 2, 1, 1, true},
    {IN_SEQ_2, SEQ - 1, 1, 1, true},
};

static unsigned char *fault_at(const bytes *b, size_t i)
{
    const size_t at = faults[i].at;

    switch (faults[i].where) {
    case IN_BLOCK:
        return block_at(b, 0, at);
    case IN_HEAD:
        return head_at(b, 0, at);
    case IN_ROW:
        return row_at(b, 0, at);
    default:
        return seq_at(b, 0, faults[i].where - IN_SEQ_0, at);
    }
}

static void test_faults(void **state)
{
    for (size_t i = 0; i < COUNT(faults); i++) {
        bytes b = make_packs();

        set_number(fault_at(&b, i), faults[i].value, faults[i].bytes);
        expect_refused(&b, faults[i].by_check);
    }
}

/* Counts that agree with the sequences but exceed the capacity. */
static void test_beyond_capacity(void **state)
{
    bytes b = make_packs();

    set_u32(seq_at(&b, 0, 2, LENGTH), 8);
    set_u32(head_at(&b, 0, N_TOK), 21);
    set_u32(head_at(&b, 0, MAX_SEQLEN), 8);
    expect_refused(&b, false);
}

/* Counts beyond the depth, with the block_bytes that follows from them. */
static void test_beyond_depth(void **state)
{
    for (uint32_t depth = 2; depth <= 3; depth++) {
        bytes b = make_packs();
        bool checked;
        ps_error err;

        set_u32(b.data + 52, depth);
        set_u64(b.data + 192,
                64 + 4096 * (ROW + PS_PACK_HEAD_BYTES + depth * SEQ));
        seal_packs(&b);
        assert_result(audit_packs(&b, &checked, &err),
                      depth < 3 ? PS_ERR_CORRUPT : PS_END, &err);
        if (depth < 3)
            assert_string_equal(err.text,
                                "pack 0 in the block at byte 4096: 3 "
                                "sequences exceed the depth, 2");
    }
}

/* Adds a field of a later version, with one number per token. */
static void add_novelty(bytes *b, uint32_t offset)
{
    enum { AT_MINOR = 14, AT_N_FIELDS = 200, AT_TABLE = 256, ENTRY = 64 };
    const uint32_t n = get_u32(b->data + AT_N_FIELDS);
    unsigned char *entry = b->data + AT_TABLE + (size_t)n * ENTRY;

    memcpy(entry, "novelty", 7);
    entry[24] = PS_U8;
    entry[25] = PS_PER_TOKEN;
    entry[26] = 1;
    set_u32(entry + 28, offset);
    set_u32(entry + 32, 1);
    set_u32(b->data + AT_N_FIELDS, n + 1);
    b->data[AT_MINOR] = 1;
}

/*
 * A later version defines the unused positions of its own fields, and the
 * gaps; in known fields they are checked.
 */
static void test_later_version(void **state)
{
    static const struct {
        size_t at;
        bool in_sequence;
        ps_result wanted;
    } cases[] = {
        {76 + 3, false, PS_END},        /* novelty */
        {24 + 3, false, PS_ERR_CORRUPT}, /* type_id */
        {28 + 3 * 12, false, PS_ERR_CORRUPT}, /* weight */
        {39, true, PS_END},
    };
    const ps_schema schema = rich_schema(PS_U16);
    const uint32_t length = 3;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const ps_packer_options o = {4, 1, 3, 9,
                                     .overlong = PS_OVERLONG_SPLIT};
        bytes b = packs_from(make_lengths(&schema, 1, &length, 1), &o, NULL);
        bool checked;
        ps_error err;

        add_novelty(&b, 76);
        *(cases[i].in_sequence ? seq_at(&b, 0, 0, cases[i].at)
                               : row_at(&b, 0, cases[i].at)) ^= 1;
        seal_packs(&b);
        assert_result(audit_packs(&b, &checked, &err), cases[i].wanted, &err);
    }
}

/* Any token is valid, unless the stream has a vocabulary. */
static void test_vocabulary(void **state)
{
    const ps_packer_options o = {20, 6, 3, 500, .overlong = PS_OVERLONG_ERROR};
    ps_schema schema = ps_schema_raw(PS_U32);
    uint32_t length = 3;
    corpus c;
    bytes b;
    bool checked;
    ps_error err;

    schema.vocab_size = 300;
    c = make_lengths(&schema, 1, &length, 3);
    for (uint32_t i = 0; i < 3; i++)
        set_u32(c.samples[0].payload + 4 * i, 297 + i);
    b = corpus_packs(&c, &o, NULL); /* the pad id is outside: it may be */
    assert_result(audit_packs(&b, &checked, &err), PS_END, &err);
    set_u32(c.samples[0].payload + 8, 300);
    b = corpus_packs(&c, &o, NULL);
    assert_result(audit_packs(&b, &checked, &err), PS_ERR_RANGE, &err);
    assert_non_null(strstr(err.text, "token 2 is 300"));
}

/* Every number in END that contradicts packs, blocks or other numbers. */
static void test_end(void **state)
{
    static const size_t places[] = {
        8,  12, 16,        /* packs and sequences in it, packs before it */
        24, 32, 40,        /* its bytes, zeros */
        64, 72, 80,        /* packs, sequences, tokens */
        96, 104, 112, 120, /* input_sequences to rejected_tokens */
        136,               /* truncated_tokens */
        152, 160,          /* extra_pieces, max_displacement */
        168, 172, 176,     /* max_seqlen, max_depth, min_fill */
        180, 184, 188,     /* zero, n_parts, n_blocks */
        192, 193, 200, 208, /* the block: its offset, first, watermark */
        216, 231,          /* unused */
        232, 240, 248, END - 1}; /* the trailer */

    for (size_t i = 0; i < COUNT(places); i++) {
        bytes b = make_packs();

        ++*end_at(&b, places[i]);
        expect_refused(&b, false);
    }
}

/* seal_packs would correct the digest, so only END itself is sealed. */
static void test_false_digest(void **state)
{
    bytes b = make_packs();
    bytes other = make_packs();
    bool checked;
    ps_error err;

    *row_at(&other, 0, TOKENS) ^= 1;
    seal_packs(&other);
    memcpy(end_at(&b, 0), end_at(&other, 0), END);
    assert_result(audit_packs(&b, &checked, &err), PS_ERR_CORRUPT, &err);
    assert_non_null(strstr(err.text, "digest"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_beyond_capacity),
        cmocka_unit_test(test_beyond_depth),
        cmocka_unit_test(test_later_version),
        cmocka_unit_test(test_vocabulary),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_false_digest),
    };

    return run_as_tap("pack", tests, NULL);
}
