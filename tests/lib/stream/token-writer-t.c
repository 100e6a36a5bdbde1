/*
 * token-writer-t.c - the output of ps_token_writer, byte by byte.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <unistd.h>

#include "format/token_header.h"

static const unsigned char two[] = {1, 0, 2, 0};

/* A writer of raw records. */
static ps_token_writer *open_raw(int fd)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    ps_token_writer *w;
    ps_error err;

    assert_ok(ps_token_writer_open(&w, fd, &schema, &err), &err);
    return w;
}

/* Four bytes raw, eight framed; both also write out buffered records. */
static void test_flush_record(void **state)
{
    static const unsigned char zeros[4];
    static const unsigned char control[] = {0, 0, 0, 0, 2, 0, 0, 0};

    for (int framed = 0; framed < 2; framed++) {
        size_t at = framed ? 136 + 8 : 8;
        ps_schema schema = ps_schema_raw(PS_U16);
        int fd = open_empty();
        ps_token_writer *w;
        ps_error err;
        bytes b;

        schema.framed = framed == 1;
        assert_ok(ps_token_writer_open(&w, fd, &schema, &err), &err);
        assert_ok(ps_token_writer_put(w, 2, two, &err), &err);
        assert_ok(ps_token_writer_put_flush(w, &err), &err);
        b = read_back(fd);
        assert_int_equal(b.size, at + (framed ? 8 : 4));
        assert_memory_equal(b.data + at, framed ? control : zeros,
                            framed ? 8 : 4);
        assert_ok(ps_token_writer_finish(w, &err), &err);
        assert_result(ps_token_writer_put_flush(w, &err), PS_ERR_ARGUMENT,
                      &err);
        ps_token_writer_free(w);
        b = read_back(fd);
        if (framed) {
            assert_int_equal(get_u64(b.data + b.size - 24), 1);
            assert_true(get_u64(b.data + b.size - 8) ==
                        chain_record(chain_record(0, b.data + 136, 8),
                                     b.data + 144, 8));
        }
        (void)close(fd);
    }
}

/* Header, records in order, LENGTHS, END with counts and digest. */
static void test_framed(void **state)
{
    const ps_schema schema = rich_schema(PS_U16);
    corpus c = make_corpus(&schema, 9, 20, 5);
    bytes written = corpus_records(&c);
    unsigned char header[PS_TOKEN_HEADER_MAX];
    size_t n_header = ps_token_header_encode(&schema, header);
    bytes wanted = {0};
    uint64_t tokens = 0;
    uint64_t digest = 0;

    put_bytes(&wanted, header, n_header);
    for (uint32_t i = 0; i < c.count; i++) {
        size_t n = 4 + c.samples[i].payload_bytes;

        put_u32(&wanted, c.samples[i].n_tok);
        put_bytes(&wanted, c.samples[i].payload, n - 4);
        digest = chain_record(digest, wanted.data + wanted.size - n, n);
        tokens += c.samples[i].n_tok;
    }
    put_lengths(&wanted, &c);
    put_u32(&wanted, 0);
    put_u32(&wanted, 1);
    put_u64(&wanted, c.count);
    put_u64(&wanted, tokens);
    put_u64(&wanted, digest);
    assert_same_bytes(&written, &wanted);
}

/* Writes samples `from` to `to` - 1. */
static void put_samples(ps_token_writer *w, const corpus *c, uint32_t from,
                        uint32_t to)
{
    ps_error err;

    for (uint32_t i = from; i < to; i++)
        assert_ok(ps_token_writer_put(w, c->samples[i].n_tok,
                                      c->samples[i].payload, &err),
                  &err);
}

/*
 * The corpus from a writer that stops after `stop` records and another that
 * resumes there, with lengths or without.
 */
static bytes write_in_two(const corpus *c, uint32_t stop, bool with_lengths)
{
    int fd = open_empty();
    bytes lengths = {0};
    const unsigned char *record;
    ps_token_mark mark;
    ps_token_writer *w;
    ps_error err;
    bytes b;
    size_t n;

    assert_ok(ps_token_writer_open(&w, fd, &c->schema, &err), &err);
    put_samples(w, c, 0, stop);
    assert_ok(ps_token_writer_flush(w, &err), &err);
    mark = ps_token_writer_mark(w);
    assert_ok(ps_token_writer_lengths(w, &record, &n, &err), &err);
    assert_int_equal(n > 0, c->schema.framed);
    put_bytes(&lengths, record, n);
    ps_token_writer_free(w);

    assert_ok(ps_token_writer_resume(&w, fd, &c->schema, &mark, &err), &err);
    if (with_lengths)
        assert_ok(ps_token_writer_set_lengths(w, lengths.data, lengths.size,
                                              &err),
                  &err);
    put_samples(w, c, stop, c->count);
    assert_ok(ps_token_writer_finish(w, &err), &err);
    ps_token_writer_free(w);
    b = read_back(fd);
    (void)close(fd);
    return b;
}

static void test_resumed(void **state)
{
    const ps_schema schemas[] = {ps_schema_raw(PS_U16), rich_schema(PS_U16)};

    for (int i = 0; i < 2; i++) {
        corpus c = make_corpus(&schemas[i], 300, 2000, 5);
        bytes whole = corpus_records(&c);

        for (uint32_t stop = 0; stop <= c.count; stop += 150) {
            bytes b = write_in_two(&c, stop, true);

            assert_same_bytes(&b, &whole);
        }
        if (schemas[i].framed) {
            bytes b = write_in_two(&c, 150, false);

            drop_lengths(&whole);
            assert_same_bytes(&b, &whole);
        }
    }
}

/* Lengths that differ from the mark, or come from a damaged state. */
static void test_refused_lengths(void **state)
{
    const ps_schema schema = rich_schema(PS_U16);
    corpus c = make_corpus(&schema, 30, 9, 5);
    bytes b = corpus_records(&c);
    const size_t n = lengths_size(&b);
    const size_t at = b.size - 32 - n;
    const ps_token_mark mark = {.id = 30,
                                .offset = at,
                                .sequences = 30,
                                .tokens = get_u64(b.data + b.size - 16)};
    int fd = open_empty();
    ps_error err;

    for (int i = 0; i < 9; i++) {
        bytes lengths = {0};
        ps_token_mark other = mark;
        ps_token_writer *w;

        put_bytes(&lengths, b.data + at, n);
        other.sequences += i == 1;
        other.tokens += i == 2;
        other.offset += i == 3;
        lengths.data[n - 16] ^= i == 4;
        lengths.data[0] ^= i == 5;
        lengths.data[4] ^= i == 6;
        lengths.size -= i == 7 ? 12 : i == 8 ? n - 12 : 0;
        assert_ok(ps_token_writer_resume(&w, fd, &schema, &other, &err),
                  &err);
        assert_result(ps_token_writer_set_lengths(w, lengths.data,
                                                  lengths.size, &err),
                      i == 0 ? PS_OK : PS_ERR_CORRUPT, &err);
        assert_int_equal(ps_token_writer_set_lengths(w, lengths.data,
                                                     lengths.size, NULL),
                         i == 0 ? PS_OK : PS_ERR_CORRUPT);
        ps_token_writer_free(w);
        w = open_raw(fd); /* which has no use for them */
        assert_ok(ps_token_writer_set_lengths(w, lengths.data, lengths.size,
                                              &err),
                  &err);
        ps_token_writer_free(w);
    }
}

/* LENGTHS is written for up to 65536 different lengths, but not for more. */
static void test_most_lengths(void **state)
{
    unsigned char *payload;
    ps_schema schema = ps_schema_raw(PS_U16);

    skip_if_short();
    payload = calloc(65537, 2);
    schema.framed = true;
    for (uint32_t most = 65536; most <= 65537; most++) {
        int fd = open_empty();
        ps_token_writer *w;
        ps_error err;
        unsigned char tail[40];

        assert_ok(ps_token_writer_open(&w, fd, &schema, &err), &err);
        for (uint32_t n = most; n > 0; n--)
            assert_ok(ps_token_writer_put(w, n, payload, &err), &err);
        assert_ok(ps_token_writer_put(w, 1, payload, &err), &err);
        assert_ok(ps_token_writer_finish(w, &err), &err);
        ps_token_writer_free(w);
        assert_int_equal(pread(fd, tail, 40, (off_t)size_of(fd) - 40), 40);
        assert_true((get_u64(tail) == 36 + 12 * 65536) == (most == 65536));
        assert_true(get_u64(tail + 16) == most + 1);
        (void)close(fd);
    }
    free(payload);
}

/* Before flush nothing has to be written, after it everything. */
static void test_flush(void **state)
{
    int fd = open_empty();
    ps_token_writer *w = open_raw(fd);
    ps_error err;

    assert_ok(ps_token_writer_put(w, 2, two, &err), &err);
    assert_ok(ps_token_writer_flush(w, &err), &err);
    assert_int_equal(size_of(fd), 8);
    assert_ok(ps_token_writer_flush(w, &err), &err);
    assert_int_equal(size_of(fd), 8);
    assert_ok(ps_token_writer_put(w, 1, two, &err), &err);
    ps_token_writer_free(w); /* does not flush */
    assert_int_equal(size_of(fd), 8);
    ps_token_writer_free(NULL);
}

static void refuse(const ps_schema *schema)
{
    ps_token_writer *w = (ps_token_writer *)&w;
    int fd = open_empty();
    ps_error err;

    assert_result(ps_token_writer_open(&w, fd, schema, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_null(w);
    assert_int_equal(size_of(fd), 0);
    (void)close(fd);
}

static void test_refused_schemas(void **state)
{
    ps_schema schema = rich_schema(PS_U16);

    schema.framed = false; /* channels, but nowhere to name them */
    refuse(&schema);
    schema = rich_schema(PS_U8);
    refuse(&schema);
    schema = rich_schema(PS_U16);
    schema.channels[3].name[0] = '\0';
    refuse(&schema);
}

/*
 * Sequences that no reader would accept, refused without a look at the payload;
 * then any put after END.
 */
static void test_refused_puts(void **state)
{
    static const struct {
        uint32_t n_tok;
        ps_result wanted;
    } cases[] = {
        {0, PS_ERR_ARGUMENT},
        {PS_MAX_SEQUENCE_BYTES / 2 + 1, PS_ERR_LIMIT},
        {0x80000000, PS_ERR_LIMIT},
        {UINT32_MAX, PS_ERR_LIMIT},
    };
    int fd = open_empty();
    ps_token_writer *w;
    ps_error err;

    for (size_t i = 0; i < COUNT(cases); i++) {
        w = open_raw(fd);
        assert_result(ps_token_writer_put(w, cases[i].n_tok, two, &err),
                      cases[i].wanted, &err);
        ps_token_writer_free(w);
    }
    for (int i = 0; i < 2; i++) {
        w = open_raw(fd);
        assert_ok(ps_token_writer_finish(w, &err), &err);
        assert_result(i == 0 ? ps_token_writer_finish(w, &err)
                             : ps_token_writer_put(w, 1, two, &err),
                      PS_ERR_ARGUMENT, &err);
        ps_token_writer_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flush_record),
        cmocka_unit_test(test_framed),
        cmocka_unit_test(test_resumed),
        cmocka_unit_test(test_refused_lengths),
        cmocka_unit_test(test_most_lengths),
        cmocka_unit_test(test_flush),
        cmocka_unit_test(test_refused_schemas),
        cmocka_unit_test(test_refused_puts),
    };

    return run_as_tap("writer", tests, NULL);
}
