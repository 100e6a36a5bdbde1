/*
 * put-ready-t.c - ps_packer_put_ready makes the same packs as one call per
 * sequence, respects its limits, and leaves sequences that it cannot put to the
 * caller.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <unistd.h>

/* Longer sequences are not ready. */
#define CAPACITY 40

/* Puts the next sequence alone; false at the end. */
static bool put_one(ps_packer *p, ps_token_reader *r)
{
    bytes copy = {0};
    ps_sequence s;
    ps_error err;
    ps_result result = ps_token_reader_next(r, CAPACITY, &s, &err);

    if (result == PS_END)
        return false;
    if (result == PS_ERR_OVERLONG)
        result = ps_token_reader_hold(r, &s, &err);
    assert_ok(result, &err);
    if (s.id % 2 > 0) { /* a copy, which is not in the reader's block */
        put_bytes(&copy, s.payload, s.payload_bytes);
        s.payload = copy.data;
    }
    assert_ok(ps_packer_put(p, &s, &err), &err);
    free_bytes(&copy);
    return true;
}

/*
 * Puts all sequences of a reader, most of them ready, at most that many at a
 * time and up to that many new packs.  Returns how many were ready.
 */
static uint64_t put_all(ps_packer *p, ps_token_reader *r, uint32_t most,
                        uint32_t packs)
{
    const ps_totals *t = ps_packer_totals(p);
    uint64_t ready = 0;
    uint64_t n;
    ps_error err;

    do {
        const uint64_t end = t->packs + packs;
        const uint64_t before = t->input_sequences;

        assert_ok(ps_packer_put_ready(p, r, most, end, &n, &err), &err);
        assert_int_equal(t->input_sequences, before + n);
        assert_true(n <= most && (n == 0 || packs > 0));
        ready += n;
    } while (n > 0 || put_one(p, r));
    return ready;
}

static ps_packer *open_for(const corpus *c, const ps_packer_options *o, int fd)
{
    ps_packer *p;
    ps_error err;

    assert_ok(ps_packer_open(&p, fd, &c->schema, o, &err), &err);
    return p;
}

/* A packer, a reader of the records to put, and the packs expected. */
typedef struct stand {
    corpus c;
    bytes records;
    bytes wanted;
    int in;
    int out;
    ps_token_reader *reader;
    ps_packer *packer;
} stand;

static stand open_stand(const ps_schema *schema, const ps_packer_options *o,
                        uint32_t count, uint32_t longest, uint64_t seed)
{
    stand s = {.c = make_corpus(schema, count, longest, seed)};

    s.records = corpus_records(&s.c);
    s.wanted = corpus_packs(&s.c, o, NULL);
    s.in = open_bytes(&s.records);
    s.out = open_empty();
    s.reader = open_tokens(s.in, &(ps_token_reader_options){0});
    s.packer = open_for(&s.c, o, s.out);
    return s;
}

/* Ends the stream, which must have the expected bytes. */
static void close_stand(stand *s)
{
    bytes got;
    ps_error err;

    assert_ok(ps_packer_flush(s->packer, PS_FLUSH_FINISH, &err), &err);
    ps_packer_free(s->packer);
    got = read_back(s->out);
    assert_same_bytes(&got, &s->wanted);
    (void)close(s->out);
    ps_token_reader_free(s->reader);
    (void)close(s->in);
    free_bytes(&s->records);
    free_bytes(&s->wanted);
    free_corpus(&s->c);
}

/* With and without channels; sequences that fit and that do not. */
static void test_same_packs(void **state)
{
    static const ps_overlong overlong[] = {
        PS_OVERLONG_DROP, PS_OVERLONG_TRUNCATE, PS_OVERLONG_SPLIT};
    static const uint32_t limits[][2] = {
        {1, 1}, {3, 1000}, {1000, 1}, {1000, 4}, {64, 1000}};

    for (uint32_t i = 0; i < 30; i++) {
        const ps_schema schema =
            i % 2 == 0 ? ps_schema_raw(PS_U16) : rich_schema(PS_U16);
        const bool cuts = i % 4 >= 2;
        const ps_packer_options o = {
            CAPACITY, 0, 20, 0,
            .overlong = cuts ? PS_OVERLONG_ERROR : overlong[i % 3],
            .policy = cuts ? PS_POLICY_CONCAT : PS_POLICY_AUTO,
            .align = i % 5 == 0 ? 8 : 1};
        const uint32_t *limit = limits[i % COUNT(limits)];
        stand s = open_stand(&schema, &o, 400, CAPACITY + 10, 1 + i);

        assert_in_range(put_all(s.packer, s.reader, limit[0], limit[1]), 200,
                        399);
        close_stand(&s);
    }
}

/* Stops exactly at the limit of sequences, and once the packs are there. */
static void test_limits(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    const ps_packer_options o = {CAPACITY, 0, 1, 0,
                                 .policy = PS_POLICY_NONE};
    stand s = open_stand(&schema, &o, 30, CAPACITY, 1);
    uint64_t n;
    ps_error err;

    assert_true(put_one(s.packer, s.reader));
    assert_ok(ps_packer_put_ready(s.packer, s.reader, 0, 9, &n, &err), &err);
    assert_int_equal(n, 0);
    assert_ok(ps_packer_put_ready(s.packer, s.reader, 3, 9, &n, &err), &err);
    assert_int_equal(n, 3);
    assert_ok(ps_packer_put_ready(s.packer, s.reader, 100, 9, &n, &err), &err);
    assert_int_equal(n, 5);
    assert_int_equal(ps_packer_totals(s.packer)->packs, 9);
    assert_ok(ps_packer_put_ready(s.packer, s.reader, 100, 9, &n, &err), &err);
    assert_int_equal(n, 0);
    assert_ok(ps_packer_put_ready(s.packer, s.reader, 100, UINT64_MAX, &n,
                                  &err),
              &err);
    assert_int_equal(n, 21);
    close_stand(&s);
}

/* A resumed packer needs single calls until earlier input was repeated. */
static void test_resumed(void **state)
{
    const ps_schema schema = rich_schema(PS_U16);
    const ps_packer_options o = {CAPACITY, 0, 20, 0,
                                 .policy = PS_POLICY_AUTO};
    stand s = open_stand(&schema, &o, 300, CAPACITY, 2);
    unsigned char *saved;
    size_t size;
    ps_error err;

    put_corpus(s.packer, &s.c, 0, 150);
    assert_ok(ps_packer_save(s.packer, NULL, 0, &saved, &size, &err), &err);
    ps_packer_free(s.packer);
    assert_ok(ps_packer_resume(&s.packer, s.out, &schema, &o, saved, size,
                               &err),
              &err);
    free(saved);
    assert_in_range(put_all(s.packer, s.reader, 7, 1000), 100, 150);
    close_stand(&s);
}

/* Sequences that the packer or the reader refuses. */
static void test_refused(void **state)
{
    static const uint32_t lengths[] = {3, 4, 5, 6};
    const ps_schema schema = ps_schema_raw(PS_U16);
    const ps_packer_options o = {CAPACITY, 0, 20, 0,
                                 .policy = PS_POLICY_AUTO};
    const ps_token_reader_options vocab = {.vocab_size = 0xffff};
    corpus c = make_lengths(&schema, COUNT(lengths), lengths, 3);
    bytes records;
    int in;
    int out = open_empty();
    ps_token_reader *r;
    ps_packer *p = open_for(&c, &o, out);
    ps_sequence s;
    uint64_t n;
    ps_error err;

    /* The third has a token outside the vocabulary. */
    for (uint32_t i = 0; i < c.count; i++)
        for (size_t k = 0; k < c.samples[i].payload_bytes; k++)
            c.samples[i].payload[k] = i == 2 ? 0xff : 1;
    records = corpus_records(&c);
    in = open_bytes(&records);
    r = open_tokens(in, &vocab);
    assert_true(put_one(p, r));
    assert_ok(ps_packer_put_ready(p, r, 9, 9, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_result(ps_token_reader_next(r, CAPACITY, &s, &err), PS_ERR_RANGE,
                  &err);
    /* The rejected sequence is pending. */
    assert_ok(ps_packer_put_ready(p, r, 9, 9, &n, &err), &err);
    assert_int_equal(n, 0);
    assert_ok(ps_token_reader_hold(r, &s, &err), &err);
    assert_int_equal(s.id, 2);
    /* The packer has not seen it, and must not get the next one. */
    assert_result(ps_packer_put_ready(p, r, 9, 9, &n, &err), PS_ERR_ARGUMENT,
                  &err);
    ps_packer_free(p);
    ps_token_reader_free(r);

    /* Tokens of another width: records that are right as they are, too. */
    (void)close(in);
    records = (bytes){0};
    for (int i = 0; i < 2; i++) {
        put_u32(&records, 1);
        put_u32(&records, 7);
    }
    in = open_bytes(&records);
    p = open_packer(out, &o);
    assert_ok(ps_token_reader_open(&r, in, PS_U32,
                                   &(ps_token_reader_options){0}, &err),
              &err);
    assert_ok(ps_token_reader_next(r, CAPACITY, &s, &err), &err);
    assert_result(ps_packer_put(p, &s, &err), PS_ERR_ARGUMENT, &err);
    assert_result(ps_packer_put_ready(p, r, 9, 9, &n, &err), PS_ERR_ARGUMENT,
                  &err);
    ps_packer_free(p);
    ps_token_reader_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_packs),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_refused),
    };

    return run_as_tap("put-ready", tests, NULL);
}
