/*
 * align-t.c - packs whose sequences begin at multiples of a number: what
 * their header and their blocks say, byte by byte, and that both are
 * refused when that cannot be.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/pack_header.h"

/* Places in the header. */
enum {
    AT_ROW_BYTES = 20,
    AT_DEPTH = 52,
    AT_INCOMPAT = 80,
    AT_ALIGN = 180,
    AT_SEQ_BYTES = 184
};

/* Places in a row of 12 tokens, in a pack's head, in a sequence row. */
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
    s.channels[0] = (ps_channel){"type_id", PS_U8, PS_PER_TOKEN, TYPE_FILL};
    return s;
}

/* One pack: sequences of 3 and 5 tokens, of which the second takes up 8. */
static bytes make_packs(void)
{
    static const uint32_t lengths[] = {3, 5};
    const ps_packer_options o = {12, 9, 4, PAD, .align = 4,
                                 .policy = PS_POLICY_NEXTFIT};
    const ps_schema schema = make_schema();
    corpus c = make_lengths(&schema, 2, lengths, 5);
    bytes b = corpus_packs(&c, &o, NULL);

    free_corpus(&c);
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
    /* No more than three fit, whatever the options say. */
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
    free_bytes(&b);
}

/* Nothing but the options' zero or one leaves a stream as it always was. */
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
    free_bytes(&a);
    free_bytes(&b);
    free_corpus(&c);
}

/* ---------------------------------------------------------------------
 * Packs
 */

/* In the head of the pack, or in the row of a sequence. */
enum { HEAD = -1 };

/* Up to three numbers written to pack 0: who hears of it. */
typedef struct fault {
    struct {
        int sequence;
        size_t at; /* 0 ends the list */
        uint32_t value;
    } writes[3];
    bool by_check; /* it is not the reader that finds it */
} fault;

static const fault faults[] = {
    /* lengths are 3 and 5, n_tok is 8 */
    {{{0, LENGTH, 0}}, false},
    {{{0, LENGTH, 4}}, false}, /* n_tok does not know */
    {{{0, LENGTH, UINT32_MAX}}, false},
    {{{1, LENGTH, 9}}, false},
    {{{1, LENGTH, 0}}, false},
    {{{HEAD, N_TOK, 7}}, false},
    {{{HEAD, N_TOK, 12}}, false},
    {{{0, LENGTH, 0}, {HEAD, N_TOK, 5}}, false},  /* empty */
    {{{0, LENGTH, 5}, {HEAD, N_TOK, 10}}, false}, /* beyond the next one */
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
        free_bytes(&b);
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
    free_bytes(&b);
}

/* The pad id may be outside the vocabulary, and no token may. */
static void test_vocabulary(void **state)
{
    static const uint32_t lengths[] = {3, 5};
    const ps_packer_options o = {12, 3, 4, PAD, .align = 4};
    ps_schema schema = ps_schema_raw(PS_U16);
    corpus c;
    bytes b;
    bool checked;
    ps_error err;

    schema.vocab_size = PAD;
    c = make_lengths(&schema, 2, lengths, 5);
    memset(c.samples[0].payload, 0, c.samples[0].payload_bytes);
    memset(c.samples[1].payload, 0, c.samples[1].payload_bytes);
    b = corpus_packs(&c, &o, NULL);
    assert_result(audit_packs(&b, &checked, &err), PS_END, &err);
    free_bytes(&b);
    c.samples[1].payload[2] = PAD;
    b = corpus_packs(&c, &o, NULL);
    assert_result(audit_packs(&b, &checked, &err), PS_ERR_RANGE, &err);
    assert_true(checked);
    free_bytes(&b);
    free_corpus(&c);
}

/* ---------------------------------------------------------------------
 * Headers
 */

/* Writes `n` bytes to the header, seals it, and expects this. */
static void expect_header(size_t at, uint64_t value, size_t n,
                          ps_result wanted)
{
    bytes b = make_packs();
    ps_pack_info info;
    ps_error err;

    set_number(b.data + at, value, n);
    seal_header(b.data, PS_PACK_HEADER_BYTES);
    assert_result(ps_pack_header_decode(b.data, &info, &err), wanted, &err);
    free_bytes(&b);
}

static void test_headers(void **state)
{
    expect_header(AT_ALIGN, 4, 4, PS_OK);
    expect_header(AT_ALIGN, 0, 4, PS_ERR_CORRUPT);
    expect_header(AT_ALIGN, 1, 4, PS_ERR_CORRUPT);
    expect_header(AT_ALIGN, 5, 4, PS_ERR_CORRUPT);
    expect_header(AT_ALIGN, 24, 4, PS_ERR_CORRUPT);
    expect_header(AT_ALIGN, UINT32_MAX, 4, PS_ERR_CORRUPT);
    expect_header(AT_INCOMPAT, 3, 8, PS_ERR_UNSUPPORTED);
    expect_header(AT_INCOMPAT, 2, 8, PS_ERR_UNSUPPORTED);
}

/* Streams of another alignment do not follow one another. */
static void test_other_alignment(void **state)
{
    static const uint32_t lengths[] = {3, 5};
    ps_packer_options o = {12, 3, 4, PAD, .align = 2};
    const ps_schema schema = make_schema();
    corpus c = make_lengths(&schema, 2, lengths, 5);
    bytes b = make_packs();
    bytes other = corpus_packs(&c, &o, NULL);
    bool checked;
    ps_error err;

    put_bytes(&b, other.data, other.size);
    assert_result(audit_packs(&b, &checked, &err), PS_ERR_CORRUPT, &err);
    free_bytes(&other);
    free_bytes(&b);
    free_corpus(&c);
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

/* The table has room for all channels, but not with split as well. */
static void test_many_channels(void **state)
{
    ps_packer_options o = {12, 4, 4, 0, .align = 4};
    ps_schema schema = ps_schema_raw(PS_U16);
    ps_error err;

    schema.framed = true;
    for (uint32_t i = 0; i < PS_MAX_CHANNELS; i++) {
        schema.channels[i] = (ps_channel){"a", PS_U8, PS_PER_TOKEN, 0};
        schema.channels[i].name[0] = (char)('a' + i);
    }
    schema.n_channels = PS_MAX_CHANNELS;
    assert_ok(ps_packer_check(&schema, &o, &err), &err);
    o.overlong = PS_OVERLONG_SPLIT;
    assert_result(ps_packer_check(&schema, &o, &err), PS_ERR_LIMIT, &err);
    schema.n_channels--;
    assert_ok(ps_packer_check(&schema, &o, &err), &err);
}

/* A state is for one alignment, and says so. */
static void test_state(void **state)
{
    const ps_schema schema = make_schema();
    ps_packer_options o = {12, 3, 2, 0, .align = 4};
    corpus c = make_corpus(&schema, 30, 12, 8);
    unsigned char *saved;
    size_t size;
    ps_packer *p;
    ps_error err;
    int fd = open_empty();

    assert_ok(ps_packer_open(&p, fd, &schema, &o, &err), &err);
    put_corpus(p, &c, 0, c.count);
    assert_ok(ps_packer_save(p, NULL, 0, &saved, &size, &err), &err);
    assert_ok(ps_state_fits(saved, size, &schema, &o, &err), &err);
    for (o.align = 0; o.align <= 3; o.align++) {
        assert_result(ps_state_fits(saved, size, &schema, &o, &err),
                      PS_ERR_ARGUMENT, &err);
        assert_non_null(strstr(err.text, "aligned to 4, not"));
    }
    ps_packer_free(p);
    free(saved);
    free_corpus(&c);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_vocabulary),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_other_alignment),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_many_channels),
        cmocka_unit_test(test_state),
    };

    return run_as_tap("align", tests, NULL);
}
