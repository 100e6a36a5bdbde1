/*
 * token-reader-reject-t.c - sequences that ps_token_reader leaves to its
 * caller: those with a token outside the vocabulary, overlong or not, and those
 * without tokens.
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VOCAB 1000
#define NONE UINT32_MAX

/* Bytes that a reader skips at a time. */
#define PIECE 32768

/* A sequence, and the position of its only token outside the vocabulary. */
typedef struct odd {
    uint32_t n_tok;
    uint32_t bad;
} odd;

/* Tokens, a channel without any value in the vocabulary, and a list. */
static void put_payload(bytes *b, uint32_t id, const odd *o, bool framed)
{
    const uint32_t n = framed ? (id * 7919 + o->n_tok) % 20000 : 0;

    for (uint32_t i = 0; i < o->n_tok; i++)
        put_u16(b, i == o->bad ? VOCAB + id : (id * 31 + i * 7) % VOCAB);
    for (uint32_t i = 0; framed && i < o->n_tok; i++)
        put_u16(b, 2 * VOCAB + i % 100);
    if (framed)
        put_u32(b, n);
    for (uint32_t i = 0; i < 3 * n; i++)
        put_u8(b, i + id);
}

static int open_odd(const odd *odds, uint32_t n, bool framed)
{
    ps_schema schema = ps_schema_raw(PS_U16);
    int fd = open_empty();
    ps_token_writer *w;
    ps_error err;

    if (framed) {
        schema.framed = true;
        schema.vocab_size = VOCAB;
        schema.n_channels = 2;
        schema.channels[0] = (ps_channel){"wide", PS_U16, PS_PER_TOKEN, 0, 0};
        schema.channels[1] = (ps_channel){"list", PS_U8, PS_LIST, 0, 3};
    }
    assert_ok(ps_token_writer_open(&w, fd, &schema, &err), &err);
    for (uint32_t i = 0; i < n; i++) {
        bytes b = {0};

        put_payload(&b, i, &odds[i], framed);
        assert_ok(ps_token_writer_put(w, odds[i].n_tok, b.data, &err), &err);
        free_bytes(&b);
    }
    assert_ok(ps_token_writer_finish(w, &err), &err);
    ps_token_writer_free(w);
    rewind_fd(fd);
    return fd;
}

static ps_token_reader *open_with(int fd, ps_token_reader_options options)
{
    options.vocab_size = VOCAB;
    return open_tokens(fd, &options);
}

static ps_token_reader *open_reader(int fd)
{
    return open_with(fd, (ps_token_reader_options){0});
}

static void assert_same(const ps_sequence *s, uint32_t id, const odd *o,
                        bool framed)
{
    bytes b = {0};

    put_payload(&b, id, o, framed);
    assert_int_equal(s->id, id);
    assert_int_equal(s->n_tok, o->n_tok);
    assert_int_equal(s->payload_bytes, b.size);
    assert_memory_equal(s->payload, b.data, b.size);
    free_bytes(&b);
}

/* The message names the sequence and the token. */
static void assert_told(const ps_error *err, uint32_t id, uint32_t at)
{
    char text[80];

    (void)snprintf(text, sizeof text, "record %u at byte ", (unsigned)id);
    assert_memory_equal(err->text, text, strlen(text));
    (void)snprintf(text, sizeof text,
                   ": token %u is %u, outside the vocabulary of %u",
                   (unsigned)at, (unsigned)(VOCAB + id), (unsigned)VOCAB);
    assert_non_null(strstr(err->text, text));
}

/* Holds or skips it; if it was not checked before, it is checked first. */
static void take_left(ps_token_reader *r, uint32_t id, const odd *o,
                      bool framed, bool hold, bool checked)
{
    ps_sequence s = {0};
    ps_error err;
    ps_result wanted = checked || o->bad == NONE ? PS_OK : PS_ERR_RANGE;

    for (int i = 0; i < 2; i++) {
        ps_result got = hold ? ps_token_reader_hold(r, &s, &err)
                             : ps_token_reader_skip(r, &err);

        assert_result(got, wanted, &err);
        if (wanted == PS_OK)
            break;
        assert_told(&err, id, o->bad);
        wanted = PS_OK;
    }
    if (hold)
        assert_same(&s, id, o, framed);
}

/* Holds every other rejected sequence, or the ones in between. */
static void read_odds(ps_token_reader *r, const odd *odds, uint32_t n,
                      uint32_t max, bool framed, uint32_t turn)
{
    ps_sequence s;
    ps_error err;

    for (uint32_t i = 0; i < n; i++) {
        const odd *o = &odds[i];
        bool overlong = o->n_tok > max;
        ps_result wanted = overlong             ? PS_ERR_OVERLONG
                           : o->bad == NONE ? PS_OK
                                            : PS_ERR_RANGE;

        assert_result(ps_token_reader_next(r, max, &s, &err), wanted, &err);
        assert_int_equal(s.id, i);
        assert_int_equal(s.n_tok, o->n_tok);
        if (wanted == PS_ERR_RANGE)
            assert_told(&err, i, o->bad);
        if (wanted == PS_OK) {
            assert_same(&s, i, o, framed);
            continue;
        }
        assert_null(s.payload);
        take_left(r, i, o, framed, turn++ % 2 == 0, !overlong);
    }
    /* In a framed stream, END agrees with all of it. */
    assert_result(ps_token_reader_next(r, max, &s, &err), PS_END, &err);
    assert_int_equal(ps_token_reader_mark(r).id, n);
}

static const odd every_kind[] = {
    {3, NONE},        {3, 0},           {3, 2},
    {1, 0},           {50, 49},         {51, NONE},
    {51, 50},         {51, 0},          {4, NONE},
    {PIECE, NONE},    {PIECE, 5},       {PIECE, PIECE / 2 - 1},
    {PIECE, PIECE / 2}, {PIECE, PIECE - 1}, {200000, 199999},
    {200000, 77},     {2, 1},           {200000, NONE},
    {200000, 100000}, {1, NONE}};
static const uint32_t n_kinds = COUNT(every_kind);

static void test_outside(void **state)
{
    static const uint32_t max[] = {UINT32_MAX, 50, 1, PIECE};

    for (unsigned run = 0; run < 32; run++) {
        bool framed = run % 2 == 1;
        int fd = open_odd(every_kind, n_kinds, framed);
        ps_token_reader *r = open_reader(fd);
        ps_error err;

        if (run >= 16)
            assert_ok(ps_token_reader_read_ahead(r, &err), &err);
        read_odds(r, every_kind, n_kinds, max[run / 4 % 4], framed,
                  run / 2 % 2);
        ps_token_reader_free(r);
        (void)close(fd);
    }
}

/* A partly skipped sequence can no longer be held, nor is there a next one. */
static void test_order_of_calls(void **state)
{
    static const odd late = {PIECE, PIECE / 2};
    int fd = open_odd(&late, 1, false);
    ps_token_reader *r = open_reader(fd);
    ps_sequence s;
    ps_error err;

    assert_result(ps_token_reader_next(r, 9, &s, &err), PS_ERR_OVERLONG,
                  &err);
    assert_result(ps_token_reader_skip(r, &err), PS_ERR_RANGE, &err);
    assert_result(ps_token_reader_hold(r, &s, &err), PS_ERR_ARGUMENT, &err);
    assert_non_null(strstr(err.text, "has already been skipped"));
    ps_token_reader_free(r);
    rewind_fd(fd);
    r = open_reader(fd);
    assert_result(ps_token_reader_next(r, PIECE, &s, &err), PS_ERR_RANGE,
                  &err);
    assert_result(ps_token_reader_next(r, PIECE, &s, &err), PS_ERR_ARGUMENT,
                  &err);
    ps_token_reader_free(r);
}

/* A skip that is continued detects the end of the input. */
static void test_cut_behind_the_token(void **state)
{
    static const odd early = {PIECE, 3};
    int fd = open_odd(&early, 1, false);
    ps_token_reader *r;
    ps_sequence s;
    ps_error err;

    assert_int_equal(ftruncate(fd, 4 + 2 * PIECE - 1), 0);
    r = open_reader(fd);
    assert_result(ps_token_reader_next(r, 9, &s, &err), PS_ERR_OVERLONG,
                  &err);
    assert_result(ps_token_reader_skip(r, &err), PS_ERR_RANGE, &err);
    assert_result(ps_token_reader_skip(r, &err), PS_ERR_TRUNCATED, &err);
    assert_non_null(
        strstr(err.text, "ends after 65539 of its 65540 bytes"));
    ps_token_reader_free(r);
}

static void assert_empty(ps_token_reader *r, uint64_t id, uint64_t offset)
{
    ps_sequence s;
    ps_error err;

    assert_result(ps_token_reader_next(r, 9, &s, &err), PS_ERR_EMPTY, &err);
    assert_int_equal(s.id, id);
    assert_int_equal(s.offset, offset);
    assert_int_equal(s.n_tok, 0);
    assert_null(s.payload);
    assert_int_equal(ps_token_reader_offset(r), offset + 4);
}

/* Empty sequences have their own ids, at any position. */
static void test_empty(void **state)
{
    bytes b = {0};
    ps_token_reader *r;
    ps_sequence s;
    ps_error err;
    int fd;

    put_zeros(&b, 8);
    put_u32(&b, 1);
    put_u16(&b, 5);
    put_zeros(&b, 4);
    fd = open_bytes(&b);
    r = open_reader(fd);
    assert_empty(r, 0, 0);
    assert_empty(r, 1, 4);
    assert_ok(ps_token_reader_next(r, 9, &s, &err), &err);
    assert_int_equal(s.id, 2);
    assert_empty(r, 3, 14);
    /* There is nothing to hold or to skip. */
    assert_int_equal(ps_token_reader_mark(r).id, 4);
    assert_int_equal(ps_token_reader_mark(r).tokens, 1);
    assert_result(ps_token_reader_next(r, 9, &s, &err), PS_END, &err);
    ps_token_reader_free(r);
    rewind_fd(fd);
    r = open_reader(fd);
    assert_empty(r, 0, 0);
    assert_result(ps_token_reader_skip(r, &err), PS_ERR_ARGUMENT, &err);
    ps_token_reader_free(r);
}

/* Expected results leave the ps_error unchanged; others set it. */
static void test_expected(void **state)
{
    static const odd odds[] = {{9, NONE}, {3, 1}, {9, 4}};
    int fd = open_odd(odds, 3, false);
    ps_token_reader *r =
        open_with(fd, (ps_token_reader_options){.expect_overlong = true});
    ps_error err = {PS_OK, 0, "as it was"};
    ps_sequence s;

    assert_int_equal(ps_token_reader_next(r, 3, &s, &err), PS_ERR_OVERLONG);
    assert_int_equal(s.n_tok, 9);
    assert_string_equal(err.text, "as it was");
    assert_int_equal(ps_token_reader_skip(r, &err), PS_OK);
    assert_result(ps_token_reader_next(r, 3, &s, &err), PS_ERR_RANGE, &err);
    ps_token_reader_free(r);
}

static void test_expected_outside(void **state)
{
    static const odd late = {9, 4};
    int fd = open_odd(&late, 1, false);
    ps_token_reader *r =
        open_with(fd, (ps_token_reader_options){.expect_outside = true});
    ps_error err = {PS_OK, 0, "as it was"};
    ps_sequence s;

    assert_result(ps_token_reader_next(r, 3, &s, &err), PS_ERR_OVERLONG,
                  &err);
    err = (ps_error){PS_OK, 0, "as it was"};
    assert_int_equal(ps_token_reader_hold(r, &s, &err), PS_ERR_RANGE);
    assert_string_equal(err.text, "as it was");
    assert_int_equal(ps_token_reader_hold(r, &s, &err), PS_OK);
    assert_int_equal(s.id, 0);
    ps_token_reader_free(r);
}

static void test_expected_empty(void **state)
{
    ps_error err = {PS_OK, 0, "as it was"};
    bytes b = {0};
    ps_token_reader *r;
    ps_sequence s;
    int fd;

    put_zeros(&b, 4);
    put_u16(&b, 1);
    fd = open_bytes(&b);
    r = open_with(fd, (ps_token_reader_options){.expect_empty = true});
    assert_int_equal(ps_token_reader_next(r, 9, &s, &err), PS_ERR_EMPTY);
    assert_string_equal(err.text, "as it was");
    assert_result(ps_token_reader_next(r, 9, &s, &err), PS_ERR_TRUNCATED,
                  &err);
    ps_token_reader_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outside),
        cmocka_unit_test(test_order_of_calls),
        cmocka_unit_test(test_cut_behind_the_token),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_expected),
        cmocka_unit_test(test_expected_outside),
        cmocka_unit_test(test_expected_empty),
    };

    return run_as_tap("reader-odd", tests, NULL);
}
