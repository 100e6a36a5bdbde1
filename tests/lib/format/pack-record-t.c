/*
 * pack-record-t.c - the rules of a pack record: those the reader enforces, and
 * those of ps_pack_check, each broken in turn under a new seal.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <string.h>

/* Places in a record, rich_schema at a capacity of 20 and a depth of 6. */
enum {
    FLAGS = 12,
    INDEX = 16,
    SUM_LEN_SQ = 32,
    N_SEQ = 40,
    N_TOK = 44,
    MAX_SEQLEN = 48,
    ZERO = 52,
    CU = 64,
    SEQ_ID = 96,
    SCORE = 144,
    GROUP = 192,
    TOKENS = 256,
    LABELS = 304,
    TYPE_ID = 384,
    WEIGHT = 416,
    RECORD = 512
};

/* Two packs of sequences: of 5, 7 and 6 tokens, and of 10 and 1. */
static bytes make_packs(void)
{
    static const uint32_t lengths[] = {5, 6, 7, 10, 1};
    const ps_packer_options o = {20, 6, 3, 9, .overlong = PS_OVERLONG_ERROR};
    const ps_schema schema = rich_schema(PS_U16);
    corpus c = make_lengths(&schema, 5, lengths, 3);
    bytes b = corpus_packs(&c, &o, NULL);

    assert_int_equal(b.size, 4096 + 3 * RECORD);
    free_corpus(&c);
    return b;
}

/* Seals `b` and expects a reader, or else ps_pack_check, to refuse it. */
static void expect_refused(bytes *b, bool by_check)
{
    bool checked;
    ps_error err;

    seal_packs(b);
    assert_result(audit_packs(b, &checked, &err), PS_ERR_CORRUPT, &err);
    assert_int_equal(checked, by_check);
    free_bytes(b);
}

/* The stream as it is: what the tests below start from. */
static void test_good(void **state)
{
    bytes b = make_packs();
    bool checked;
    ps_error err;

    assert_result(audit_packs(&b, &checked, &err), PS_END, &err);
    seal_packs(&b);
    assert_result(audit_packs(&b, &checked, &err), PS_END, &err);
    assert_int_equal(get_u32(record_at(&b, 0, N_SEQ)), 3);
    assert_int_equal(get_u32(record_at(&b, 0, N_TOK)), 18);
    assert_int_equal(get_u32(record_at(&b, 0, CU + 12)), 18);
    assert_int_equal(get_u32(record_at(&b, 0, CU + 16)), 20);
    assert_int_equal(get_u32(record_at(&b, 0, LABELS + 18 * 4)),
                     0xffffff9c);
    assert_int_equal(*record_at(&b, 0, TYPE_ID + 19), 7);
    free_bytes(&b);
}

/* Each is written to record 0 by itself. */
static const struct {
    size_t at;
    uint64_t value;
    size_t bytes;
    bool by_check; /* it is not the reader that finds it */
} faults[] = {
    /* in the head */
    {8, 0, 1, false}, /* magic */
    {FLAGS, 2, 4, false}, /* unknown */
    {FLAGS, 1, 4, false}, /* END, too early */
    {INDEX, 1, 8, false},
    {INDEX, UINT64_MAX, 8, false},
    {SUM_LEN_SQ, 111, 8, true},
    {MAX_SEQLEN, 6, 4, false},
    {MAX_SEQLEN, 20, 4, false},
    {ZERO, 1, 1, true},
    {CU - 1, 1, 1, true},
    /* counts */
    {N_SEQ, 0, 4, false},
    {N_SEQ, 2, 4, false},
    {N_SEQ, 4, 4, false},
    {N_SEQ, 7, 4, false}, /* above the depth */
    {N_SEQ, UINT32_MAX, 4, false},
    {N_TOK, 0, 4, false},
    {N_TOK, 17, 4, false},
    {N_TOK, 19, 4, false},
    {N_TOK, 21, 4, false}, /* above the capacity */
    {N_TOK, UINT32_MAX, 4, false},
    /* boundaries: cu is 0 5 12 18 20 20 20 20 */
    {CU, 1, 4, false},
    {CU, UINT32_MAX, 4, false},
    {CU + 4, 0, 4, false}, /* an empty sequence */
    {CU + 4, 12, 4, false}, /* another */
    {CU + 4, 13, 4, false}, /* falls */
    {CU + 4, 0x80000005, 4, false},
    {CU + 12, 17, 4, false}, /* not n_tok */
    {CU + 12, 20, 4, false},
    {CU + 16, 18, 4, false}, /* not the capacity */
    {CU + 28, 0, 4, false},
    {CU + 28, 21, 4, false},
    /* unused elements */
    {SEQ_ID + 3 * 8, 0, 8, true},
    {SEQ_ID + 5 * 8 + 7, 0xfe, 1, true},
    {SCORE + 3 * 8, 1, 1, true},
    {GROUP + 3 * 2, 0, 2, true},
    {GROUP + 5 * 2 + 1, 0xfe, 1, true},
    {TOKENS + 18 * 2, 8, 2, true},
    {TOKENS + 19 * 2 + 1, 1, 1, true},
    {LABELS + 18 * 4, 0, 4, true},
    {LABELS + 19 * 4 + 3, 0, 1, true},
    {TYPE_ID + 18, 0, 1, true},
    {TYPE_ID + 19, 6, 1, true},
    {WEIGHT + 18 * 4, 0, 4, true},
    /* gaps between fields */
    {GROUP + 12, 1, 1, true},
    {TOKENS - 1, 1, 1, true},
    {TOKENS + 40, 1, 1, true},
    {LABELS - 1, 1, 1, true},
    {TYPE_ID + 20, 1, 1, true},
    {WEIGHT + 80, 1, 1, true},
    {RECORD - 1, 1, 1, true},
};

static void test_faults(void **state)
{
    for (size_t i = 0; i < COUNT(faults); i++) {
        bytes b = make_packs();

        set_number(record_at(&b, 0, faults[i].at), faults[i].value,
                   faults[i].bytes);
        expect_refused(&b, faults[i].by_check);
    }
}

/*
 * Counts that agree with the boundaries, which rise as they should, but not
 * within depth or capacity.
 */
static void test_boundaries_beyond(void **state)
{
    static const struct {
        uint32_t cu[8];
        uint32_t n_seq;
        uint32_t n_tok;
    } cases[] = {
        {{0, 1, 2, 3, 4, 5, 6, 7}, 7, 7},
        {{0, 5, 12, 21, 20, 20, 20, 20}, 3, 21},
    };

    for (size_t k = 0; k < 2; k++) {
        bytes b = make_packs();

        for (uint32_t i = 0; i < 8; i++)
            set_u32(record_at(&b, 0, CU + 4 * i), cases[k].cu[i]);
        set_u32(record_at(&b, 0, N_SEQ), cases[k].n_seq);
        set_u32(record_at(&b, 0, N_TOK), cases[k].n_tok);
        expect_refused(&b, false);
    }
}

/* Adds a field as a later version may, behind the last one; says where. */
static uint32_t add_novelty(bytes *b, uint32_t depth)
{
    enum { AT_MINOR = 14, AT_N_FIELDS = 200, AT_TABLE = 256, ENTRY = 64 };
    const uint32_t n = get_u32(b->data + AT_N_FIELDS);
    unsigned char *entry = b->data + AT_TABLE + (size_t)n * ENTRY;
    const unsigned char *last = entry - ENTRY;
    const uint32_t end = get_u32(last + 28) + get_u32(last + 32) * last[26];

    memcpy(entry, "novelty", 7);
    entry[24] = PS_U8;
    entry[25] = PS_PER_SEQUENCE;
    entry[26] = 1;
    set_u32(entry + 28, (end + 15) / 16 * 16);
    set_u32(entry + 32, depth);
    set_u32(b->data + AT_N_FIELDS, n + 1);
    b->data[AT_MINOR] = 1;
    return (end + 15) / 16 * 16;
}

/*
 * Unused places of a field that a later version has added are its own affair;
 * those of the fields that we know are not.
 */
static void test_later_version(void **state)
{
    const ps_overlong overlong[] = {PS_OVERLONG_ERROR, PS_OVERLONG_SPLIT};
    const ps_schema schema = rich_schema(PS_U16);

    for (size_t i = 0; i < 4; i++) {
        const ps_packer_options o = {20, 6, 3, 9, .overlong = overlong[i / 2]};
        bytes b = packs_from(make_corpus(&schema, 3, 5, 1), &o, NULL);
        const uint32_t novelty = add_novelty(&b, 6);
        bool checked;
        ps_error err;

        *record_at(&b, 0, i % 2 == 0 ? novelty + 5 : SEQ_ID + 5 * 8) ^= 1;
        seal_packs(&b);
        assert_result(audit_packs(&b, &checked, &err),
                      i % 2 == 0 ? PS_END : PS_ERR_CORRUPT, &err);
        free_bytes(&b);
    }
}

/* The tokens themselves are anybody's, unless there is a vocabulary. */
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
    free_bytes(&b);
    set_u32(c.samples[0].payload + 8, 300);
    b = corpus_packs(&c, &o, NULL);
    assert_result(audit_packs(&b, &checked, &err), PS_ERR_RANGE, &err);
    assert_non_null(strstr(err.text, "token 2 is 300"));
    free_bytes(&b);
    free_corpus(&c);
}

/* Every number in END that the records, or the others, contradict. */
static void test_end(void **state)
{
    static const size_t places[] = {
        INDEX, 24 /* watermark */, SUM_LEN_SQ, N_SEQ, N_TOK, MAX_SEQLEN,
        ZERO,
        64, 72, 80,        /* packs, sequences, tokens */
        96, 104, 112, 120, /* input_sequences to rejected_tokens */
        152, 160,          /* extra_pieces, max_displacement */
        168, 172, 176,     /* max_seqlen, max_depth, min_fill */
        180, RECORD - 1};  /* unused */

    for (size_t i = 0; i < COUNT(places); i++) {
        bytes b = make_packs();

        ++*record_at(&b, 2, places[i]);
        expect_refused(&b, false);
    }
}

/* seal_packs would mend the digest; here only END itself is sealed. */
static void test_false_digest(void **state)
{
    bytes b = make_packs();
    bytes other = make_packs();
    bool checked;
    ps_error err;

    *record_at(&other, 0, TOKENS) ^= 1;
    seal_packs(&other);
    memcpy(record_at(&b, 2, 0), record_at(&other, 2, 0), RECORD);
    assert_result(audit_packs(&b, &checked, &err), PS_ERR_CORRUPT, &err);
    assert_non_null(strstr(err.text, "digest"));
    free_bytes(&other);
    free_bytes(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_boundaries_beyond),
        cmocka_unit_test(test_later_version),
        cmocka_unit_test(test_vocabulary),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_false_digest),
    };

    return run_as_tap("pack", tests, NULL);
}
