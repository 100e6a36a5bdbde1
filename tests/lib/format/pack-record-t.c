/*
 * pack-record-t.c - the rules of a pack record: those the reader enforces, and
 * those of ps_pack_check, each broken in turn under a new seal.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Reads `b`, checking each pack; gives what went wrong first. */
static ps_result audit(const bytes *b, bool *checked, ps_error *err)
{
    int fd = open_bytes(b);
    ps_pack_reader *reader;
    ps_pack pack;
    ps_result r = ps_pack_reader_open(&reader, fd, err);

    *checked = false;
    while (r == PS_OK) {
        r = ps_pack_reader_next(reader, &pack, err);
        if (r != PS_OK)
            break;
        r = ps_pack_check(ps_pack_reader_info(reader), &pack, err);
        *checked = r != PS_OK;
    }
    ps_pack_reader_free(reader);
    (void)close(fd);
    return r;
}

/* Writes `n` bytes to record 0, seals, and expects to hear of it. */
static void expect(size_t at, uint64_t value, size_t n, bool by_check)
{
    bytes b = make_packs();
    bool checked;
    ps_error err;

    for (size_t i = 0; i < n; i++)
        *record_at(&b, 0, at + i) = (unsigned char)(value >> 8 * i & 0xff);
    seal_packs(&b);
    assert_result(audit(&b, &checked, &err), PS_ERR_CORRUPT, &err);
    assert_int_equal(checked, by_check);
    free_bytes(&b);
}

static void refused_by_reader(size_t at, uint64_t value, size_t n)
{
    expect(at, value, n, false);
}

static void refused_by_check(size_t at, uint64_t value, size_t n)
{
    expect(at, value, n, true);
}

/* The stream as it is: what the tests below start from. */
static void test_good(void **state)
{
    bytes b = make_packs();
    bool checked;
    ps_error err;

    assert_result(audit(&b, &checked, &err), PS_END, &err);
    seal_packs(&b);
    assert_result(audit(&b, &checked, &err), PS_END, &err);
    assert_int_equal(get_u32(record_at(&b, 0, N_SEQ)), 3);
    assert_int_equal(get_u32(record_at(&b, 0, N_TOK)), 18);
    assert_int_equal(get_u32(record_at(&b, 0, CU + 12)), 18);
    assert_int_equal(get_u32(record_at(&b, 0, CU + 16)), 20);
    assert_int_equal(get_u32(record_at(&b, 0, LABELS + 18 * 4)),
                     0xffffff9c);
    assert_int_equal(*record_at(&b, 0, TYPE_ID + 19), 7);
    free_bytes(&b);
}

static void test_heads(void **state)
{
    refused_by_reader(8, 0, 1);      /* magic */
    refused_by_reader(FLAGS, 2, 4);  /* unknown */
    refused_by_reader(FLAGS, 1, 4);  /* END, too early */
    refused_by_reader(INDEX, 1, 8);
    refused_by_reader(INDEX, UINT64_MAX, 8);
    refused_by_check(SUM_LEN_SQ, 111, 8);
    refused_by_check(MAX_SEQLEN, 6, 4);
    refused_by_check(MAX_SEQLEN, 20, 4);
    refused_by_check(ZERO, 1, 1);
    refused_by_check(CU - 1, 1, 1);
}

static void test_counts(void **state)
{
    refused_by_reader(N_SEQ, 0, 4);
    refused_by_reader(N_SEQ, 2, 4);
    refused_by_reader(N_SEQ, 4, 4);
    refused_by_reader(N_SEQ, 7, 4); /* above the depth */
    refused_by_reader(N_SEQ, UINT32_MAX, 4);
    refused_by_reader(N_TOK, 0, 4);
    refused_by_reader(N_TOK, 17, 4);
    refused_by_reader(N_TOK, 19, 4);
    refused_by_reader(N_TOK, 21, 4); /* above the capacity */
    refused_by_reader(N_TOK, UINT32_MAX, 4);
}

/* cu is 0 5 12 18 20 20 20 20. */
static void test_boundaries(void **state)
{
    refused_by_reader(CU, 1, 4);
    refused_by_reader(CU, UINT32_MAX, 4);
    refused_by_reader(CU + 4, 0, 4);  /* an empty sequence */
    refused_by_reader(CU + 4, 12, 4); /* another */
    refused_by_reader(CU + 4, 13, 4); /* falls */
    refused_by_reader(CU + 4, 0x80000005, 4);
    refused_by_reader(CU + 12, 17, 4); /* not n_tok */
    refused_by_reader(CU + 12, 20, 4);
    refused_by_reader(CU + 16, 18, 4); /* not the capacity */
    refused_by_reader(CU + 28, 0, 4);
    refused_by_reader(CU + 28, 21, 4);
}

/* Writes boundaries and counts that agree with one another. */
static void refused_boundaries(const uint32_t *cu, uint32_t n_seq,
                               uint32_t n_tok)
{
    bytes b = make_packs();
    bool checked;
    ps_error err;

    for (uint32_t i = 0; i < 8; i++)
        set_u32(record_at(&b, 0, CU + 4 * i), cu[i]);
    set_u32(record_at(&b, 0, N_SEQ), n_seq);
    set_u32(record_at(&b, 0, N_TOK), n_tok);
    seal_packs(&b);
    assert_result(audit(&b, &checked, &err), PS_ERR_CORRUPT, &err);
    assert_false(checked);
    free_bytes(&b);
}

/* They rise as they should, but not within depth or capacity. */
static void test_boundaries_beyond(void **state)
{
    static const uint32_t too_many[] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const uint32_t too_far[] = {0, 5, 12, 21, 20, 20, 20, 20};

    refused_boundaries(too_many, 7, 7);
    refused_boundaries(too_far, 3, 21);
}

static void test_unused_elements(void **state)
{
    refused_by_check(SEQ_ID + 3 * 8, 0, 8);
    refused_by_check(SEQ_ID + 5 * 8 + 7, 0xfe, 1);
    refused_by_check(SCORE + 3 * 8, 1, 1);
    refused_by_check(GROUP + 3 * 2, 0, 2);
    refused_by_check(GROUP + 5 * 2 + 1, 0xfe, 1);
    refused_by_check(TOKENS + 18 * 2, 8, 2);
    refused_by_check(TOKENS + 19 * 2 + 1, 1, 1);
    refused_by_check(LABELS + 18 * 4, 0, 4);
    refused_by_check(LABELS + 19 * 4 + 3, 0, 1);
    refused_by_check(TYPE_ID + 18, 0, 1);
    refused_by_check(TYPE_ID + 19, 6, 1);
    refused_by_check(WEIGHT + 18 * 4, 0, 4);
}

static void test_gaps(void **state)
{
    refused_by_check(GROUP + 12, 1, 1);
    refused_by_check(TOKENS - 1, 1, 1);
    refused_by_check(TOKENS + 40, 1, 1);
    refused_by_check(LABELS - 1, 1, 1);
    refused_by_check(TYPE_ID + 20, 1, 1);
    refused_by_check(WEIGHT + 80, 1, 1);
    refused_by_check(RECORD - 1, 1, 1);
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
    assert_result(audit(&b, &checked, &err), PS_END, &err);
    free_bytes(&b);
    set_u32(c.samples[0].payload + 8, 300);
    b = corpus_packs(&c, &o, NULL);
    assert_result(audit(&b, &checked, &err), PS_ERR_RANGE, &err);
    assert_non_null(strstr(err.text, "token 2 is 300"));
    free_bytes(&b);
    free_corpus(&c);
}

/* Where END holds what, behind its head. */
enum {
    END_PACKS = 64,
    END_DIGEST = 88,
    END_INPUT_SEQUENCES = 96,
    END_REJECTED_TOKENS = 120,
    END_EXTRA_PIECES = 152,
    END_MAX_DISPLACEMENT = 160,
    END_MAX_SEQLEN = 168,
    END_UNUSED = 180
};

/* Adds one to a byte of END, seals, and expects a refusal. */
static void refuse_end(size_t at)
{
    bytes b = make_packs();
    bool checked;
    ps_error err;

    ++*record_at(&b, 2, at);
    seal_packs(&b);
    assert_result(audit(&b, &checked, &err), PS_ERR_CORRUPT, &err);
    assert_false(checked);
    free_bytes(&b);
}

/* Every number in END that the records, or the others, contradict. */
static void test_end(void **state)
{
    refuse_end(INDEX);
    refuse_end(24); /* watermark */
    refuse_end(SUM_LEN_SQ);
    refuse_end(N_SEQ);
    refuse_end(N_TOK);
    refuse_end(MAX_SEQLEN);
    refuse_end(ZERO);
    for (size_t at = END_PACKS; at < END_DIGEST; at += 8)
        refuse_end(at);
    for (size_t at = END_INPUT_SEQUENCES; at <= END_REJECTED_TOKENS; at += 8)
        refuse_end(at);
    refuse_end(END_EXTRA_PIECES);
    refuse_end(END_MAX_DISPLACEMENT);
    for (size_t at = END_MAX_SEQLEN; at < END_UNUSED; at += 4)
        refuse_end(at);
    refuse_end(END_UNUSED);
    refuse_end(RECORD - 1);
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
    assert_result(audit(&b, &checked, &err), PS_ERR_CORRUPT, &err);
    assert_non_null(strstr(err.text, "digest"));
    free_bytes(&other);
    free_bytes(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_boundaries),
        cmocka_unit_test(test_boundaries_beyond),
        cmocka_unit_test(test_unused_elements),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_vocabulary),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_false_digest),
    };

    return run_as_tap("pack", tests, NULL);
}
