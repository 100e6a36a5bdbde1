/*
 * unpacker-t.c - restores the original records: in both orders, joined from
 * pieces, from several streams.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <unistd.h>

/* An unpacker on a stream in memory. */
typedef struct opened {
    int fd;
    ps_pack_reader *reader;
    ps_unpacker *unpacker;
} opened;

static opened open_unpacker(const bytes *b, ps_order order)
{
    opened o = {.fd = open_bytes(b)};
    ps_error err;

    assert_ok(ps_pack_reader_open(&o.reader, o.fd, &err), &err);
    assert_ok(ps_unpacker_open(&o.unpacker, o.reader, order, &err), &err);
    return o;
}

static void close_unpacker(opened *o)
{
    ps_unpacker_free(o->unpacker);
    ps_pack_reader_free(o->reader);
    (void)close(o->fd);
}

/* The end is reached, and is returned repeatedly. */
static void expect_end(opened *o)
{
    ps_sequence s;
    ps_error err;

    for (int i = 0; i < 3; i++)
        assert_result(ps_unpacker_next(o->unpacker, &s, &err), PS_END, &err);
}

/* The next sequence in input order is number `i` of the corpus. */
static void expect_sample(opened *o, const corpus *c, uint32_t i)
{
    ps_sequence s;
    ps_error err;

    assert_ok(ps_unpacker_next(o->unpacker, &s, &err), &err);
    assert_int_equal(s.id, i);
    assert_sample(c, i, &s);
}

/* Packs a corpus and restores it in input order. */
static void round_trip(const corpus *c, const ps_packer_options *options)
{
    bytes b = corpus_packs(c, options, NULL);

    assert_unpacked(&b, c);
    free_bytes(&b);
}

static void test_input_order(void **state)
{
    static const uint32_t windows[] = {1, 2, 10, 100, 5000};
    const ps_schema schemas[] = {ps_schema_raw(PS_U16),
                                 rich_schema(PS_U16), rich_schema(PS_U32)};

    for (size_t s = 0; s < 3; s++)
        for (size_t w = 0; w < 5; w++) {
            corpus c = make_corpus(&schemas[s], 600, 64, w + 1);
            ps_packer_options o = {
                64, 1, windows[w], 0, .overlong = PS_OVERLONG_ERROR};

            for (o.depth = 1; o.depth <= 64; o.depth *= 4)
                round_trip(&c, &o);
        }
}

/* Pieces of any size are joined, with their channels. */
static void test_split(void **state)
{
    static const uint32_t capacities[] = {1, 2, 3, 10, 99, 100, 101};
    static const uint32_t windows[] = {1, 2, 9, 300};
    const ps_schema schema = rich_schema(PS_U16);
    corpus c = make_corpus(&schema, 150, 200, 31);

    for (size_t l = 0; l < COUNT(capacities); l++)
        for (size_t w = 0; w < 4; w++) {
            ps_packer_options o = {capacities[l], 8, windows[w], 0,
                                   .overlong = PS_OVERLONG_SPLIT};

            round_trip(&c, &o);
        }
}

/* In pack order, sequences arrive in file order: compared with the pieces. */
static void test_pack_order(void **state)
{
    const ps_schema schema = rich_schema(PS_U16);
    const ps_packer_options options = {
        30, 5, 20, 0, .overlong = PS_OVERLONG_SPLIT};
    bytes b = packs_from(make_corpus(&schema, 200, 70, 13), &options, NULL);
    opened o = open_unpacker(&b, PS_ORDER_PACK);
    int fd = open_bytes(&b);
    ps_pack_reader *reader;
    ps_pack pack;
    ps_sequence s;
    ps_error err;

    assert_ok(ps_pack_reader_open(&reader, fd, &err), &err);
    while (ps_pack_reader_next(reader, &pack, NULL) == PS_OK)
        for (uint32_t i = 0; i < pack.n_seq; i++) {
            const ps_pack_info *info = ps_pack_reader_info(reader);
            ps_piece piece = ps_pack_piece(info, &pack, i);
            unsigned char *payload;

            assert_ok(ps_unpacker_next(o.unpacker, &s, &err), &err);
            assert_int_equal(s.id, piece.id);
            assert_int_equal(s.n_tok, piece.n_tok);
            assert_int_equal(s.payload_bytes,
                             ps_payload_bytes(&schema, piece.n_tok));
            payload = must_alloc(s.payload_bytes);
            ps_pack_payload(info, &pack, i, payload);
            assert_memory_equal(s.payload, payload, s.payload_bytes);
            free(payload);
        }
    expect_end(&o);
    ps_pack_reader_free(reader);
    close_unpacker(&o);
}

/* Dropped sequences leave gaps in the ids; truncated ones stay short. */
static void test_dropped_and_truncated(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    ps_packer_options options = {40, 8, 25, 0, .overlong = PS_OVERLONG_DROP};
    corpus c = make_corpus(&schema, 300, 60, 8);
    bytes b = corpus_packs(&c, &options, NULL);
    opened o = open_unpacker(&b, PS_ORDER_INPUT);
    ps_sequence s;
    ps_error err;

    for (uint32_t i = 0; i < c.count; i++)
        if (c.samples[i].n_tok <= 40)
            expect_sample(&o, &c, i);
    expect_end(&o);
    close_unpacker(&o);
    options.overlong = PS_OVERLONG_TRUNCATE;
    b = corpus_packs(&c, &options, NULL);
    o = open_unpacker(&b, PS_ORDER_INPUT);
    for (uint32_t i = 0; i < c.count; i++) {
        uint32_t n = c.samples[i].n_tok < 40 ? c.samples[i].n_tok : 40;

        assert_ok(ps_unpacker_next(o.unpacker, &s, &err), &err);
        assert_int_equal(s.id, i);
        assert_int_equal(s.n_tok, n);
        assert_memory_equal(s.payload, c.samples[i].payload, 2 * (size_t)n);
    }
    expect_end(&o);
    close_unpacker(&o);
}

/* Joined streams, some of them empty: ids restart. */
static void test_concatenated(void **state)
{
    static const uint32_t counts[] = {0, 50, 0, 0, 1, 80, 0};
    const ps_schema schema = rich_schema(PS_U16);
    const ps_packer_options options = {
        30, 5, 20, 0, .overlong = PS_OVERLONG_SPLIT};
    corpus c[7];
    bytes all = {0};
    opened o;

    for (size_t i = 0; i < 7; i++) {
        c[i] = make_corpus(&schema, counts[i], 50, i + 1);
        join_bytes(&all, corpus_packs(&c[i], &options, NULL));
    }
    o = open_unpacker(&all, PS_ORDER_INPUT);
    for (size_t i = 0; i < 7; i++)
        for (uint32_t s = 0; s < counts[i]; s++)
            expect_sample(&o, &c[i], s);
    expect_end(&o);
    assert_int_equal(ps_pack_reader_totals(o.reader)->input_sequences, 131);
    close_unpacker(&o);
    for (size_t i = 0; i < 7; i++)
        free_corpus(&c[i]);
}

/* The window of a later stream can be larger than the first one's. */
static void test_concatenated_windows(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    ps_packer_options options = {64, 64, 1, 0, .overlong = PS_OVERLONG_ERROR};
    corpus c = make_corpus(&schema, 900, 40, 4);
    bytes all = {0};
    opened o;

    for (int i = 0; i < 3; i++) {
        options.window = i == 1 ? 500 : 1;
        join_bytes(&all, corpus_packs(&c, &options, NULL));
    }
    o = open_unpacker(&all, PS_ORDER_INPUT);
    for (int i = 0; i < 3; i++)
        for (uint32_t s = 0; s < c.count; s++)
            expect_sample(&o, &c, s);
    expect_end(&o);
    close_unpacker(&o);
}

/* Held sequences are limited in bytes: to 4 GiB, or the caller's maximum. */
static void test_max_bytes(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    const ps_packer_options options = {
        64, 64, 500, 0, .overlong = PS_OVERLONG_ERROR};
    corpus c = make_corpus(&schema, 900, 40, 4);
    bytes b = corpus_packs(&c, &options, NULL);
    uint64_t low = 0;          /* is too little, */
    uint64_t high = 1 << 20;   /* and that is enough */
    ps_sequence s;
    ps_error err;

    while (low + 1 < high) {
        uint64_t middle = low + (high - low) / 2;
        opened o = open_unpacker(&b, PS_ORDER_INPUT);
        uint32_t i = 0;
        ps_result r;

        ps_unpacker_set_max_bytes(o.unpacker, middle);
        while ((r = ps_unpacker_next(o.unpacker, &s, &err)) == PS_OK)
            assert_sample(&c, i++, &s);
        if (r != PS_END)
            assert_result(r, PS_ERR_LIMIT, &err);
        *(r == PS_END ? &high : &low) = middle;
        close_unpacker(&o);
    }
    /* A few hundred sequences of 40 bytes, with their overhead. */
    assert_in_range(high, 5000, 100000);
}

/* A cut stream returns the sequences that are certain, then the error. */
static void test_cut(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    const ps_packer_options options = {
        30, 5, 1, 0, .overlong = PS_OVERLONG_ERROR};
    corpus c = make_corpus(&schema, 50, 30, 4);
    bytes b = corpus_packs(&c, &options, NULL);
    opened o;
    ps_sequence s;
    ps_error err;

    b.size -= (size_t)get_u64(b.data + b.size - 24); /* END */
    o = open_unpacker(&b, PS_ORDER_INPUT);
    for (uint32_t i = 0; i < c.count; i++)
        expect_sample(&o, &c, i);
    assert_result(ps_unpacker_next(o.unpacker, &s, &err), PS_ERR_TRUNCATED,
                  &err);
    close_unpacker(&o);
    ps_unpacker_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_input_order),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_pack_order),
        cmocka_unit_test(test_dropped_and_truncated),
        cmocka_unit_test(test_concatenated),
        cmocka_unit_test(test_concatenated_windows),
        cmocka_unit_test(test_max_bytes),
        cmocka_unit_test(test_cut),
    };

    return run_as_tap("unpacker", tests, NULL);
}
