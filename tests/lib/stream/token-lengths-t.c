/*
 * token-lengths-t.c - LENGTHS, as a reader checks it and as it is read from the
 * end of a file.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* A framed stream of u16 tokens: one each of 5 and 7, two of 9. */
enum { N_TOKENS = 30, HEAD = 12, TAIL = 24, END = 32 };

static bytes small_stream(void)
{
    static const uint32_t lengths[] = {9, 5, 7, 9};
    ps_schema schema = ps_schema_raw(PS_U16);

    schema.framed = true;
    return records_from(make_lengths(&schema, COUNT(lengths), lengths, 3));
}

/* Offset of LENGTHS. */
static size_t at_lengths(const bytes *b)
{
    return b->size - END - lengths_size(b);
}

/* Reads all, and counts lengths with `check`; returns the final offset. */
static ps_result read_all(int fd, bool check, uint64_t *offset, ps_error *err)
{
    ps_token_reader *r = open_tokens(fd, NULL);
    ps_result result = PS_OK;
    ps_sequence s;

    if (check)
        ps_token_reader_check_lengths(r);
    while (result == PS_OK)
        result = ps_token_reader_next(r, UINT32_MAX, &s, err);
    *offset = ps_token_reader_offset(r);
    ps_token_reader_free(r);
    return result;
}

/* Expected results of the reader and ps_histogram_read for a faulty stream. */
static void expect(const bytes *b, ps_result read, ps_result from_end,
                   const char *why)
{
    int fd = open_bytes(b);
    ps_histogram *h = (ps_histogram *)&h;
    ps_error err;
    uint64_t offset;

    assert_result(read_all(fd, false, &offset, &err), read, &err);
    if (why != NULL && read != PS_END)
        assert_non_null(strstr(err.text, why));
    rewind_fd(fd);
    assert_result(ps_histogram_read(&h, fd, &err), from_end, &err);
    if (why != NULL && from_end == PS_ERR_CORRUPT)
        assert_non_null(strstr(err.text, why));
    assert_true((h == NULL) == (from_end != PS_OK));
    ps_histogram_free(h);
    (void)close(fd);
}

static void test_sound(void **state)
{
    bytes b = small_stream();
    int fd;
    ps_histogram *h;
    ps_error err;
    uint64_t offset;

    join_bytes(&b, small_stream());
    fd = open_bytes(&b);
    assert_ok(ps_histogram_read(&h, fd, &err), &err);
    assert_int_equal(ps_histogram_size(h), 3);
    assert_int_equal(ps_histogram_length(h, 0), 5);
    assert_int_equal(ps_histogram_count(h, 0), 2);
    assert_int_equal(ps_histogram_length(h, 2), 9);
    assert_int_equal(ps_histogram_count(h, 2), 4);
    assert_int_equal(ps_histogram_sequences(h), 8);
    assert_int_equal(ps_histogram_tokens(h), 2 * N_TOKENS);
    ps_histogram_free(h);
    assert_result(read_all(fd, true, &offset, &err), PS_END, &err);
    assert_int_equal(offset, b.size);
}

/* Wrong numbers in the record, under a valid checksum. */
static void test_broken_rules(void **state)
{
    static const struct {
        size_t at; /* in the record; from its end if above 1000 */
        unsigned width;
        uint64_t value;
        bool seal;
        const char *why;
    } cases[] = {
        {HEAD, 4, 0, true, "length 0 follows"},
        {HEAD, 4, 7, true, "length 7 follows length 7"},
        {HEAD + 12, 4, 10, true, "length 9 follows length 10"},
        {HEAD, 4, 6, true, "counts 4 sequences and 31 tokens"},
        {HEAD + 4, 8, 0, true, "length 5 has a count of 0"},
        {HEAD + 4, 8, 2, true, "counts 5 sequences and 35 tokens"},
        {HEAD + 4, 8, UINT64_MAX, true, "counts exceed 64 bits"},
        {HEAD + 4, 8, UINT64_MAX / 4, true, "counts exceed 64 bits"},
        {HEAD + 16, 8, UINT64_MAX, true, "counts exceed 64 bits"},
        {HEAD + 4, 8, 2, false, "counts 5 sequences"},
        {1000 + 16, 8, 1, false, "checksum"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        bytes b = small_stream();
        const size_t n = lengths_size(&b);
        const size_t at = at_lengths(&b);
        const size_t where =
            cases[i].at > 1000 ? n + 1000 - cases[i].at : cases[i].at;

        set_number(b.data + at + where, cases[i].value, cases[i].width);
        if (cases[i].seal)
            seal_lengths(b.data + at, n, at);
        expect(&b, PS_ERR_CORRUPT, PS_ERR_CORRUPT,
               cases[i].seal || cases[i].at > 1000 ? cases[i].why : NULL);
    }
}

/* The numbers that locate the record, and its neighbours. */
static void test_misplaced(void **state)
{
    static const uint64_t sizes[] = {8, 72 + 12, 1000, UINT64_MAX};
    bytes b = small_stream();
    const size_t n = lengths_size(&b);
    const size_t at = at_lengths(&b);
    bytes other = {0};

    /* The byte count before it, one too high or too low. */
    for (int i = -1; i <= 1; i += 2) {
        seal_lengths(b.data + at, n, at + (uint64_t)i);
        expect(&b, PS_ERR_CORRUPT, PS_ERR_CORRUPT, NULL);
    }
    seal_lengths(b.data + at, n, UINT64_MAX);
    expect(&b, PS_ERR_CORRUPT, PS_ERR_CORRUPT,
           "bytes before it, but there are");
    seal_lengths(b.data + at, n, 8); /* too few for a header */
    expect(&b, PS_ERR_CORRUPT, PS_ERR_CORRUPT, NULL);
    seal_lengths(b.data + at, n, at);
    expect(&b, PS_END, PS_OK, NULL);

    /* Its size, by which a reader from the end finds it. */
    for (size_t i = 0; i < COUNT(sizes); i++) {
        set_u64(b.data + at + n - 8, sizes[i]);
        expect(&b, PS_ERR_CORRUPT, PS_ERR_UNSUPPORTED, "it has 72 bytes");
    }
    seal_lengths(b.data + at, n, at);

    /* More entries than possible, or than exist. */
    set_u32(b.data + at + 8, 65537);
    expect(&b, PS_ERR_CORRUPT, PS_ERR_CORRUPT, "65537 entries");
    set_u32(b.data + at + 8, 65536);
    expect(&b, PS_ERR_TRUNCATED, PS_ERR_CORRUPT, NULL);

    /* Twice, or with a record or FLUSH after it. */
    seal_lengths(b.data + at, n, at);
    put_bytes(&other, b.data, at + n);
    put_bytes(&other, b.data + at, n + END);
    seal_lengths(other.data + at + n, n, at + n);
    /* From the end the first has the size of nine flush records. */
    expect(&other, PS_ERR_CORRUPT, PS_OK, NULL);
    other.size = at + n;
    put_u32(&other, 0);
    put_u32(&other, 2);
    put_bytes(&other, b.data + at + n, END);
    expect(&other, PS_ERR_CORRUPT, PS_ERR_UNSUPPORTED,
           "something other than END follows LENGTHS");
    free_bytes(&other);

    /* No LENGTHS at all. */
    drop_lengths(&b);
    expect(&b, PS_END, PS_ERR_UNSUPPORTED, NULL);
}

/* LENGTHS and END that agree, but not with the size of the records. */
static void test_wrong_sums(void **state)
{
    static const struct {
        uint32_t length; /* of the last two sequences */
        uint64_t count;  /* instead of two */
    } cases[] = {{9, 1000}, {1000, 2}, {10, 1}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        bytes b = small_stream();
        const size_t n = lengths_size(&b);
        const size_t at = at_lengths(&b);

        set_u32(b.data + at + HEAD + 24, cases[i].length);
        set_u64(b.data + at + HEAD + 28, cases[i].count);
        seal_lengths(b.data + at, n, at);
        set_u64(b.data + at + n + 8, 2 + cases[i].count);
        set_u64(b.data + at + n + 16, 12 + cases[i].count * cases[i].length);
        expect(&b, PS_ERR_CORRUPT, PS_ERR_CORRUPT, NULL);
    }
}

/* Every cut of the records, LENGTHS and END. */
static void test_cut(void **state)
{
    bytes b = small_stream();
    const size_t size = b.size;

    for (b.size = 137; b.size < size; b.size++)
        expect(&b, PS_ERR_TRUNCATED, PS_ERR_TRUNCATED, NULL);
}

/* Each joined stream counts; only readers of records check digests. */
static void test_joined(void **state)
{
    bytes b = small_stream();
    bytes first = small_stream();
    ps_schema wide = ps_schema_raw(PS_U32);
    const size_t n = b.size;

    drop_lengths(&first);
    join_bytes(&first, small_stream());
    expect(&first, PS_END, PS_ERR_UNSUPPORTED, NULL);
    free_bytes(&first);

    wide.framed = true;
    join_bytes(&b, records_from(make_corpus(&wide, 3, 9, 1)));
    expect(&b, PS_ERR_CORRUPT, PS_ERR_CORRUPT, "cannot");
    b.size = n;
    join_bytes(&b, small_stream());
    b.data[n + 1] ^= 1; /* the magic of the second */
    expect(&b, PS_ERR_CORRUPT, PS_ERR_CORRUPT, NULL);
    b.data[n + 1] ^= 1;
    for (uint32_t i = 0; i < 2; i++) { /* a header of no size, or too large */
        set_u32(b.data + n + 16, i * (136 + 64 * 22));
        set_u32(b.data + n + 20, i * 22);
        expect(&b, i == 0 ? PS_ERR_CORRUPT : PS_ERR_TRUNCATED,
               PS_ERR_CORRUPT, NULL);
    }
    set_u32(b.data + n + 16, 136);
    set_u32(b.data + n + 20, 0);
    b.data[n - 1] ^= 1; /* the digest of the first */
    expect(&b, PS_ERR_CORRUPT, PS_OK, NULL);
}

/* Other lengths with the same sums are found only by counting. */
static void test_other_lengths(void **state)
{
    bytes b = small_stream();
    const size_t n = lengths_size(&b);
    const size_t at = at_lengths(&b);
    ps_error err;
    uint64_t offset;
    int fd;

    set_u32(b.data + at + HEAD, 4); /* 4, 8 for 5, 7 */
    set_u32(b.data + at + HEAD + 12, 8);
    seal_lengths(b.data + at, n, at);
    fd = open_bytes(&b);
    assert_result(read_all(fd, false, &offset, &err), PS_END, &err);
    rewind_fd(fd);
    assert_result(read_all(fd, true, &offset, &err), PS_ERR_CORRUPT, &err);
    assert_non_null(strstr(err.text, "it declares 1 sequences of 4 tokens, "
                                     "but the stream has 0"));
    assert_int_equal(offset, at + HEAD);

    /* Without any record. */
    memmove(b.data + 136, b.data + at, n + END);
    b.size = 136 + n + END;
    seal_lengths(b.data + 136, n, 136);
    fd = open_bytes(&b);
    assert_result(read_all(fd, true, &offset, &err), PS_ERR_CORRUPT, &err);
    assert_int_equal(offset, 136 + HEAD);
}

/* Files without LENGTHS for other reasons. */
static void test_other_files(void **state)
{
    bytes b = small_stream();
    bytes raw = {0};
    int ends[2];
    int fd = open_empty();
    ps_histogram *h;
    ps_error err;

    assert_result(ps_histogram_read(&h, fd, &err), PS_ERR_MAGIC, &err);
    (void)close(fd);
    put_u32(&raw, 1);
    put_u16(&raw, 7);
    fd = open_bytes(&raw);
    assert_result(ps_histogram_read(&h, fd, &err), PS_ERR_MAGIC, &err);
    (void)close(fd);
    fd = open_data("PAR1PAR1", 8);
    assert_result(ps_histogram_read(&h, fd, &err), PS_ERR_MAGIC, &err);
    assert_non_null(strstr(err.text, "looks like Parquet"));
    (void)close(fd);
    fd = open_data("\x28\xb5\x2f\xfd", 4);
    assert_result(ps_histogram_read(&h, fd, &err), PS_ERR_UNSUPPORTED, &err);
    (void)close(fd);
    fd = open_bytes(&b);
    assert_int_equal(lseek(fd, 1, SEEK_SET), 1);
    assert_result(ps_histogram_read(&h, fd, &err), PS_ERR_ARGUMENT, &err);
    (void)close(fd);
    assert_int_equal(pipe(ends), 0);
    assert_result(ps_histogram_read(&h, ends[0], &err), PS_ERR_ARGUMENT,
                  &err);
    (void)close(ends[0]);
    (void)close(ends[1]);
    assert_result(ps_histogram_read(&h, -1, &err), PS_ERR_IO, &err);
}

/* Passes on one byte of a stream at every second wait, or ends the read. */
typedef struct trickle {
    bytes left;
    size_t at;
    int fd;
    bool ends;
} trickle;

static ps_result on_wait(void *context, ps_error *err)
{
    trickle *t = context;

    t->ends = !t->ends && t->at < t->left.size;
    if (t->ends)
        return ps_fail(err, PS_ERR_LIMIT, "the test wants it so");
    if (t->at == t->left.size)
        (void)close(t->fd);
    else if (write(t->fd, t->left.data + t->at++, 1) != 1)
        return PS_ERR_IO;
    return PS_OK;
}

/*
 * A read that a hook interrupts within LENGTHS continues, and its mark is the
 * position before LENGTHS.
 */
static void test_interrupted(void **state)
{
    bytes b = small_stream();
    const size_t at = at_lengths(&b);
    trickle t = {.left = b, .at = at};
    int ends[2];
    ps_token_reader *r;
    ps_result result = PS_OK;
    ps_sequence s;
    ps_error err;
    uint64_t stops = 0;

    assert_int_equal(pipe(ends), 0);
    t.fd = ends[1];
    assert_int_equal(write(ends[1], b.data, at), (ssize_t)at);
    r = open_tokens(ends[0], NULL);
    ps_token_reader_on_wait(r, on_wait, &t);
    while (result == PS_OK || result == PS_ERR_LIMIT) {
        result = ps_token_reader_next(r, UINT32_MAX, &s, &err);
        stops += result == PS_ERR_LIMIT;
        if (result == PS_ERR_LIMIT && t.at < b.size)
            assert_int_equal(ps_token_reader_mark(r).offset, at);
    }
    assert_result(result, PS_END, &err);
    assert_true(stops > 50);
    assert_int_equal(ps_token_reader_mark(r).offset, b.size);
    ps_token_reader_free(r);
    (void)close(ends[0]);
}

/* A reader that starts at a mark checks sums, but cannot count. */
static void test_after_a_mark(void **state)
{
    bytes b = small_stream();
    int fd = open_bytes(&b);
    ps_token_reader *r = open_tokens(fd, NULL);
    ps_token_mark mark;
    ps_sequence s;
    ps_error err;

    assert_ok(ps_token_reader_next(r, 9, &s, &err), &err);
    mark = ps_token_reader_mark(r);
    ps_token_reader_free(r);
    for (int i = 0; i < 2; i++) {
        rewind_fd(fd);
        r = open_tokens(fd, NULL);
        ps_token_reader_check_lengths(r);
        mark.tokens += (uint64_t)i;
        assert_ok(ps_token_reader_seek(r, &mark, &err), &err);
        for (int k = 1; k < 4; k++)
            assert_ok(ps_token_reader_next(r, 9, &s, &err), &err);
        assert_result(ps_token_reader_next(r, 9, &s, &err),
                      i == 0 ? PS_END : PS_ERR_CORRUPT, &err);
        ps_token_reader_free(r);
    }
}

/*
 * More than one part of entries.  The long form has as many as LENGTHS can
 * hold, and one more: 4 GiB each.
 */
static void test_many(void **state)
{
    const uint32_t most = is_short() ? 8001 : 65537;
    ps_schema schema = ps_schema_raw(PS_U16);
    unsigned char *payload = calloc(most, 2);
    bytes b = {0};
    uint64_t offset;
    ps_error err;
    int fd;
    size_t at;

    schema.framed = true;
    for (uint32_t n = most - 1; n <= most; n++) {
        ps_token_writer *w;

        fd = open_empty();
        assert_ok(ps_token_writer_open(&w, fd, &schema, &err), &err);
        for (uint32_t i = 1; i <= n; i++)
            assert_ok(ps_token_writer_put(w, i, payload, &err), &err);
        assert_ok(ps_token_writer_finish(w, &err), &err);
        ps_token_writer_free(w);
        rewind_fd(fd);
        assert_result(read_all(fd, true, &offset, &err), PS_END, &err);
        if (n == 65537)
            b = read_back(fd);
        (void)close(fd);
    }

    free(payload);
    if (is_short())
        return;
    /* One entry, with a length beyond the reader's counters. */
    at = b.size - 32;
    b.size = at;
    put_zeros(&b, 12);
    put_u32(&b, most);
    put_u64(&b, most);
    put_zeros(&b, 24);
    seal_lengths(b.data + at, 48, at);
    put_u32(&b, 0);
    put_u32(&b, 1);
    put_u64(&b, most);
    put_zeros(&b, 16);
    fd = open_bytes(&b);
    assert_result(read_all(fd, true, &offset, &err), PS_ERR_CORRUPT, &err);
    assert_non_null(strstr(err.text, "but the stream has more than 65536"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),
        cmocka_unit_test(test_broken_rules),
        cmocka_unit_test(test_misplaced),
        cmocka_unit_test(test_wrong_sums),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_other_lengths),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_after_a_mark),
        cmocka_unit_test(test_many),
    };

    return run_as_tap("token-lengths", tests, NULL);
}
