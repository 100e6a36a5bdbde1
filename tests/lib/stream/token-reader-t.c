/*
 * token-reader-t.c - reading token records: complete, cut anywhere, hostile,
 * held, skipped and appended.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <string.h>
#include <unistd.h>

/* The outcome of reading a whole input. */
typedef struct outcome {
    ps_result result; /* that ended it */
    uint64_t sequences;
    uint64_t next_offset; /* where the next record would start */
    ps_error err;
} outcome;

/* Reads everything, skipping sequences longer than `max_tokens`. */
static outcome read_fd(int fd, uint32_t max_tokens)
{
    outcome o = {.err = {PS_OK, 0, ""}};
    ps_token_reader *r = NULL;
    ps_sequence s;

    o.result = ps_token_reader_open(&r, fd, PS_U16, NULL, &o.err);
    while (o.result == PS_OK) {
        o.result = ps_token_reader_next(r, max_tokens, &s, &o.err);
        if (o.result == PS_ERR_OVERLONG)
            o.result = ps_token_reader_skip(r, &o.err);
        if (o.result == PS_OK) {
            assert_int_equal(s.id, o.sequences++);
            o.next_offset = ps_token_reader_offset(r);
        }
    }
    ps_token_reader_free(r);
    return o;
}

static outcome read_data(const bytes *b, size_t n, uint32_t max_tokens)
{
    int fd = open_data(b->data, n);
    outcome o = read_fd(fd, max_tokens);

    (void)close(fd);
    return o;
}

static void round_trip(const ps_schema *schema, uint32_t count,
                       uint32_t longest)
{
    corpus c = make_corpus(schema, count, longest, 17);
    bytes b = corpus_records(&c);
    int fd = open_bytes(&b);
    ps_token_reader *r;
    ps_sequence s;
    ps_error err;
    uint64_t at;

    assert_ok(ps_token_reader_open(&r, fd, schema->token_type, NULL, &err),
              &err);
    assert_true(ps_schema_equal(ps_token_reader_schema(r), schema));
    at = schema->framed ? 136 + 64 * schema->n_channels : 0;
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(ps_token_reader_offset(r), at);
        assert_ok(ps_token_reader_next(r, UINT32_MAX, &s, &err), &err);
        assert_int_equal(s.id, i);
        assert_int_equal(s.offset, at);
        assert_sample(&c, i, &s);
        at += 4 + s.payload_bytes;
    }
    for (int i = 0; i < 3; i++) /* the end stays the end */
        assert_result(ps_token_reader_next(r, UINT32_MAX, &s, &err), PS_END,
                      &err);
    assert_int_equal(ps_token_reader_offset(r), b.size);
    ps_token_reader_free(r);
    (void)close(fd);
}

static void test_round_trip(void **state)
{
    const ps_schema raw16 = ps_schema_raw(PS_U16);
    const ps_schema raw32 = ps_schema_raw(PS_U32);
    const ps_schema rich = rich_schema(PS_U32);
    ps_schema plain = ps_schema_raw(PS_U16);

    plain.framed = true;
    round_trip(&raw16, 500, 300);
    round_trip(&raw32, 500, 300);
    round_trip(&plain, 500, 300);
    round_trip(&rich, 500, 300);
    round_trip(&raw16, 0, 1);
    round_trip(&rich, 0, 1);
    round_trip(&rich, 4, 400000); /* larger than the buffer */
}

/* Raw: complete records before the cut are returned; a boundary is the end. */
static void test_every_cut_of_raw(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    corpus c = make_corpus(&schema, 12, 9, 2);
    bytes b = corpus_records(&c);
    size_t boundary = 0;
    uint32_t whole = 0;

    for (size_t cut = 0; cut <= b.size; cut++) {
        outcome o = read_data(&b, cut, cut % 2 ? UINT32_MAX : 3);

        if (whole < c.count &&
            cut == boundary + 4 + c.samples[whole].payload_bytes) {
            boundary = cut;
            whole++;
        }
        assert_result(o.result, cut == boundary ? PS_END : PS_ERR_TRUNCATED,
                      &o.err);
        assert_int_equal(o.sequences, whole);
        assert_int_equal(o.next_offset, boundary);
    }
    assert_int_equal(whole, c.count);
}

/* Framed: every cut is an error, except of everything: an empty raw stream. */
static void test_every_cut_of_framed(void **state)
{
    const ps_schema schema = rich_schema(PS_U16);
    bytes b = records_from(make_corpus(&schema, 6, 5, 3));

    for (size_t cut = 0; cut <= b.size; cut++) {
        outcome o = read_data(&b, cut, cut % 2 ? UINT32_MAX : 2);
        bool whole = cut == 0 || cut == b.size;

        assert_result(o.result, whole ? PS_END : PS_ERR_TRUNCATED, &o.err);
    }
}

static void test_every_flipped_bit_of_framed(void **state)
{
    const ps_schema schema = rich_schema(PS_U16);
    bytes b = records_from(make_corpus(&schema, 3, 4, 3));

    for (size_t bit = 0; bit < 8 * b.size; bit++) {
        outcome o;

        b.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        o = read_data(&b, b.size, bit % 2 ? UINT32_MAX : 2);
        if (o.result <= PS_END)
            fail_msg("a flip of bit %zu is not noticed", bit);
        b.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

/* Counts how often it is called; fails at the third time. */
static ps_result count_flush(void *context, ps_error *err)
{
    int *n = context;

    if (++*n < 3)
        return PS_OK;
    *err = (ps_error){PS_ERR_LIMIT, 0, "enough"};
    return PS_ERR_LIMIT;
}

/* Reads `b` with the hook or without; returns the final result. */
static ps_result read_flushes(const bytes *b, int *flushes,
                              uint64_t *sequences, ps_error *err)
{
    const ps_token_reader_options options = {.raw_flush = flushes != NULL,
                                             .on_flush = count_flush,
                                             .flush_context = flushes};
    int fd = open_bytes(b);
    ps_token_reader *r = open_tokens(fd, flushes == NULL ? NULL : &options);
    ps_result result = PS_OK;
    ps_sequence s;

    *sequences = 0;
    while ((result = ps_token_reader_next(r, 9, &s, err)) == PS_OK)
        assert_int_equal(s.id, (*sequences)++);
    ps_token_reader_free(r);
    (void)close(fd);
    return result;
}

/* A length of 0 can be a flush record; an error of the hook ends the read. */
static void test_flush_of_raw(void **state)
{
    bytes b = {0};
    int flushes = 0;
    uint64_t n;
    ps_error err;

    for (uint32_t i = 0; i < 2; i++) {
        put_u32(&b, 1);
        put_u16(&b, i);
        put_u32(&b, 0);
    }
    assert_result(read_flushes(&b, NULL, &n, &err), PS_ERR_EMPTY, &err);
    assert_int_equal(n, 1);
    assert_result(read_flushes(&b, &flushes, &n, &err), PS_END, &err);
    assert_int_equal(flushes, 2);
    assert_int_equal(n, 2);
    assert_result(read_flushes(&b, &flushes, &n, &err), PS_ERR_LIMIT, &err);
    assert_int_equal(n, 1);
}

/* The digest of a framed stream of u16 tokens that starts with a FLUSH. */
static uint64_t chain_all(const bytes *b)
{
    uint64_t digest = chain_record(0, b->data + 136, 8);
    size_t at = 144;

    while (get_u32(b->data + at) > 0) {
        size_t n = 4 + 2 * (size_t)get_u32(b->data + at);

        digest = chain_record(digest, b->data + at, n);
        at += n;
    }
    return digest;
}

/* Framed streams skip flush records without a hook; END covers them. */
static void test_flush_of_framed(void **state)
{
    ps_schema plain = ps_schema_raw(PS_U16);
    corpus c;
    bytes b;
    bytes with = {0};
    int flushes = 0;
    uint64_t n;
    ps_error err;

    plain.framed = true;
    c = make_corpus(&plain, 2, 5, 1);
    b = corpus_records(&c);
    drop_lengths(&b);
    put_bytes(&with, b.data, 136);
    put_u32(&with, 0);
    put_u32(&with, 2);
    put_bytes(&with, b.data + 136, b.size - 136);
    assert_result(read_flushes(&with, NULL, &n, &err), PS_ERR_CORRUPT, &err);
    assert_int_equal(n, 2);
    set_u64(with.data + with.size - 8, chain_all(&with));
    assert_result(read_flushes(&with, NULL, &n, &err), PS_END, &err);
    assert_int_equal(n, 2);
    assert_result(read_flushes(&with, &flushes, &n, &err), PS_END, &err);
    assert_int_equal(flushes, 1);
    assert_int_equal(n, 2);
    with.size = 140; /* cut in the flush record */
    assert_result(read_flushes(&with, NULL, &n, &err), PS_ERR_TRUNCATED,
                  &err);
}

/* Lengths of a first record that is cut almost at its start. */
static void test_false_lengths(void **state)
{
    static const struct {
        uint32_t n_tok;
        uint32_t max_tokens; /* it is skipped if it has more */
        ps_result wanted;
    } cases[] = {
        {UINT32_MAX, UINT32_MAX, PS_ERR_LIMIT},
        /* They must arrive to be skipped. */
        {UINT32_MAX, UINT32_MAX - 1, PS_ERR_TRUNCATED},
        /* 2^27 u16 tokens may be held if they arrive; one more may not. */
        {PS_MAX_SEQUENCE_BYTES / 2, UINT32_MAX, PS_ERR_TRUNCATED},
        {PS_MAX_SEQUENCE_BYTES / 2 + 1, UINT32_MAX, PS_ERR_LIMIT},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        bytes b = {0};
        outcome o;

        put_u32(&b, cases[i].n_tok);
        put_zeros(&b, 50);
        o = read_data(&b, b.size, cases[i].max_tokens);
        assert_result(o.result, cases[i].wanted, &o.err);
        assert_int_equal(o.sequences, 0);
    }
}

/* Calls in the wrong order are refused, before and after an overlong record. */
static void test_order_of_calls(void **state)
{
    bytes b = {0};
    int fd;
    ps_sequence s;
    ps_error err;

    put_u32(&b, 2);
    put_zeros(&b, 4);
    fd = open_bytes(&b);
    for (int i = 0; i < 3; i++) {
        ps_token_reader *r = open_tokens(fd, NULL);

        if (i == 2)
            assert_result(ps_token_reader_next(r, 1, &s, &err),
                          PS_ERR_OVERLONG, &err);
        assert_result(i == 0   ? ps_token_reader_hold(r, &s, &err)
                      : i == 1 ? ps_token_reader_skip(r, &err)
                               : ps_token_reader_next(r, 9, &s, &err),
                      PS_ERR_ARGUMENT, &err);
        ps_token_reader_free(r);
        rewind_fd(fd);
    }
    ps_token_reader_free(NULL);
}

/* Tokens 0, 1 and `last`; one token outside the vocabulary of 300. */
static void check_vocab(uint32_t declared, uint32_t given, uint32_t last,
                        ps_result wanted)
{
    ps_schema schema = ps_schema_raw(PS_U16);
    const unsigned char payload[] = {0, 0, 1, 0, (unsigned char)(last & 255),
                                     (unsigned char)(last >> 8)};
    int fd = open_empty();
    ps_token_writer *w;
    ps_token_reader_options options = {.vocab_size = given};
    ps_token_reader *r;
    ps_sequence s;
    ps_error err;

    schema.framed = declared > 0;
    schema.vocab_size = declared;
    assert_ok(ps_token_writer_open(&w, fd, &schema, &err), &err);
    assert_ok(ps_token_writer_put(w, 3, payload, &err), &err);
    assert_ok(ps_token_writer_finish(w, &err), &err);
    ps_token_writer_free(w);
    rewind_fd(fd);
    r = open_tokens(fd, &options);
    assert_int_equal(ps_token_reader_schema(r)->vocab_size, declared);
    assert_result(ps_token_reader_next(r, 9, &s, &err), wanted, &err);
    if (wanted == PS_ERR_RANGE)
        assert_non_null(strstr(err.text, "token 2 is"));
    ps_token_reader_free(r);
    (void)close(fd);
}

static void test_vocabulary(void **state)
{
    check_vocab(0, 0, 65535, PS_OK);
    check_vocab(0, 300, 299, PS_OK);
    check_vocab(0, 300, 300, PS_ERR_RANGE);
    check_vocab(0, 70000, 65535, PS_OK);
    check_vocab(300, 0, 299, PS_OK);
    check_vocab(300, 0, 300, PS_ERR_RANGE);
    check_vocab(300, 200, 199, PS_OK);
    check_vocab(300, 200, 200, PS_ERR_RANGE);
    check_vocab(300, 400, 300, PS_ERR_RANGE); /* the stream's stays */
}

/* A seek to a mark must come before any read, and not lead into the header. */
static void test_seek(void **state)
{
    const ps_schema schema = rich_schema(PS_U16);
    corpus c = make_corpus(&schema, 9, 20, 5);
    bytes b = corpus_records(&c);
    int fd = open_bytes(&b);
    ps_token_reader *r = open_tokens(fd, NULL);
    ps_token_mark mark = {0};
    ps_sequence s;
    ps_error err;

    assert_result(ps_token_reader_seek(r, &mark, &err), PS_ERR_CORRUPT, &err);
    for (int i = 0; i < 3; i++)
        assert_ok(ps_token_reader_next(r, 20, &s, &err), &err);
    mark = ps_token_reader_mark(r);
    assert_result(ps_token_reader_seek(r, &mark, &err), PS_ERR_ARGUMENT,
                  &err);
    ps_token_reader_free(r);

    rewind_fd(fd);
    r = open_tokens(fd, NULL);
    assert_ok(ps_token_reader_seek(r, &mark, &err), &err);
    for (uint32_t i = 3; i < c.count; i++) {
        assert_ok(ps_token_reader_next(r, 20, &s, &err), &err);
        assert_int_equal(s.id, i);
        assert_sample(&c, i, &s);
    }
    assert_result(ps_token_reader_next(r, 20, &s, &err), PS_END, &err);
    assert_result(ps_token_reader_seek(r, &mark, &err), PS_ERR_ARGUMENT,
                  &err);
    ps_token_reader_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_every_cut_of_raw),
        cmocka_unit_test(test_every_cut_of_framed),
        cmocka_unit_test(test_every_flipped_bit_of_framed),
        cmocka_unit_test(test_flush_of_raw),
        cmocka_unit_test(test_flush_of_framed),
        cmocka_unit_test(test_false_lengths),
        cmocka_unit_test(test_seek),
        cmocka_unit_test(test_order_of_calls),
        cmocka_unit_test(test_vocabulary),
    };

    return run_as_tap("reader", tests, NULL);
}
