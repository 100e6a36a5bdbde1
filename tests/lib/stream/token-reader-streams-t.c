/*
 * token-reader-streams-t.c - reading token records: several streams and files,
 * control records, bytes after END, and waiting for input.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Reads on to the end; returns the result and the number of sequences. */
static ps_result read_on(ps_token_reader *r, uint64_t *sequences,
                         ps_error *err)
{
    ps_sequence s;
    ps_result result = PS_OK;

    while (result == PS_OK) {
        result = ps_token_reader_next(r, UINT32_MAX, &s, err);
        *sequences += result == PS_OK;
    }
    return result;
}

/* Reads `b` from its start; expects `sequences`, then `wanted`. */
static void expect(const bytes *b, uint64_t sequences, ps_result wanted)
{
    int fd = open_bytes(b);
    ps_token_reader *r = NULL;
    uint64_t n = 0;
    ps_error err;
    ps_result result = ps_token_reader_open(&r, fd, PS_U16, NULL, &err);

    if (result == PS_OK)
        result = read_on(r, &n, &err);
    assert_result(result, wanted, &err);
    assert_int_equal(n, sequences);
    ps_token_reader_free(r);
    (void)close(fd);
}

/* A framed stream of `count` sequences with `schema`. */
static bytes stream(ps_schema schema, uint32_t count)
{
    return records_from(make_corpus(&schema, count, 9, 4));
}

static bytes rich_stream(uint32_t count)
{
    return stream(rich_schema(PS_U16), count);
}

static void test_concatenated(void **state)
{
    bytes all = rich_stream(3);

    join_bytes(&all, rich_stream(0));
    join_bytes(&all, rich_stream(0));
    join_bytes(&all, rich_stream(2));
    expect(&all, 5, PS_END);
    all.size--;
    expect(&all, 5, PS_ERR_TRUNCATED);
}

static void test_concatenated_with_another_schema(void **state)
{
    ps_schema other = rich_schema(PS_U16);
    bytes all = rich_stream(3);

    other.channels[2].fill ^= 1;
    join_bytes(&all, stream(other, 2));
    expect(&all, 3, PS_ERR_CORRUPT);
}

/* After END only a header or the end of input is valid. */
static void test_garbage_after_end(void **state)
{
    static const char *const garbage[] = {"x", "\n", "\x89TOX",
                                          "\1\0\0\0\1\0", "12345678"};
    bytes header = rich_stream(0);

    for (size_t i = 0; i < COUNT(garbage); i++) {
        bytes b = rich_stream(3);

        put_bytes(&b, garbage[i], i == 3 ? 6 : strlen(garbage[i]));
        expect(&b, 3, PS_ERR_CORRUPT);
    }
    for (size_t n = 1; n < 136; n += n < 10 ? 1 : 30) {
        bytes b = rich_stream(3);

        put_bytes(&b, header.data, n); /* the start of another stream */
        expect(&b, 3, PS_ERR_TRUNCATED);
    }
}

/* END is the last 32 bytes: 0, 1, sequences, tokens, digest. */
static void test_false_end(void **state)
{
    static const struct {
        size_t at; /* before the end of the stream */
        unsigned add;
        ps_result wanted;
    } cases[] = {
        {28, 6, PS_ERR_UNSUPPORTED}, /* kind 7 */
        {28, 255, PS_ERR_UNSUPPORTED}, /* kind 0 */
        {25, 1, PS_ERR_UNSUPPORTED},
        {24, 1, PS_ERR_CORRUPT}, /* counts */
        {17, 1, PS_ERR_CORRUPT},
        {16, 1, PS_ERR_CORRUPT},
        {9, 128, PS_ERR_CORRUPT},
        {8, 1, PS_ERR_CORRUPT}, /* digest */
        {1, 1, PS_ERR_CORRUPT},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        bytes b = rich_stream(3);
        unsigned char *p;

        drop_lengths(&b);
        p = b.data + b.size - cases[i].at;
        *p = (unsigned char)(*p + cases[i].add);
        expect(&b, 3, cases[i].wanted);

        /* After LENGTHS, anything except END is damage, not a later format. */
        b = rich_stream(3);
        p = b.data + b.size - cases[i].at;
        *p = (unsigned char)(*p + cases[i].add);
        expect(&b, 3, PS_ERR_CORRUPT);
    }
}

/* A control record cut after its kind is recognized as a later format's. */
static void test_unknown_control_record(void **state)
{
    bytes b = rich_stream(2);

    drop_lengths(&b);
    b.size -= 24;
    set_u32(b.data + b.size - 4, 7);
    expect(&b, 2, PS_ERR_UNSUPPORTED);
    set_u32(b.data + b.size - 4, 1);
    expect(&b, 2, PS_ERR_TRUNCATED);
}

/* Another file can be appended only after the end of the first. */
static void test_append(void **state)
{
    bytes a = rich_stream(3);
    int fd = open_bytes(&a);
    ps_token_reader *r = open_tokens(fd, NULL);
    ps_sequence s;
    ps_error err;
    uint64_t n = 1;

    assert_ok(ps_token_reader_next(r, 99, &s, &err), &err);
    assert_result(ps_token_reader_append(r, fd, &err), PS_ERR_ARGUMENT,
                  &err);
    assert_result(read_on(r, &n, &err), PS_END, &err);
    for (uint64_t file = 1; file < 4; file++) {
        rewind_fd(fd);
        assert_ok(ps_token_reader_append(r, fd, &err), &err);
        assert_ok(ps_token_reader_next(r, 99, &s, &err), &err);
        assert_int_equal(s.id, 3 * file);
        assert_int_equal(s.offset, 136 + 64 * 5); /* in its own file */
        n++;
        assert_result(read_on(r, &n, &err), PS_END, &err);
        assert_int_equal(ps_token_reader_offset(r), (file + 1) * a.size);
    }
    assert_int_equal(n, 12);
    ps_token_reader_free(r);
}

/* Raw files may be empty, the first as well as a later one. */
static void test_append_raw(void **state)
{
    bytes a = {0};
    int empty = open_empty();
    int fd;
    ps_token_reader *r = open_tokens(empty, NULL);
    ps_error err;
    uint64_t n = 0;

    put_u32(&a, 1);
    put_u16(&a, 7);
    fd = open_bytes(&a);
    assert_result(read_on(r, &n, &err), PS_END, &err);
    assert_ok(ps_token_reader_append(r, fd, &err), &err);
    assert_result(read_on(r, &n, &err), PS_END, &err);
    assert_ok(ps_token_reader_append(r, empty, &err), &err);
    assert_result(read_on(r, &n, &err), PS_END, &err);
    assert_int_equal(n, 1);
    ps_token_reader_free(r);
}

/* Appends `b`, which is freed, to a stream of rich_schema: refused. */
static void refuse_append(bytes b, ps_result wanted)
{
    bytes a = rich_stream(1);
    int first = open_bytes(&a);
    int second = open_bytes(&b);
    ps_token_reader *r = open_tokens(first, NULL);
    ps_error err;
    uint64_t n = 0;

    assert_result(read_on(r, &n, &err), PS_END, &err);
    assert_result(ps_token_reader_append(r, second, &err), wanted, &err);
    ps_token_reader_free(r);
    (void)close(first);
    (void)close(second);
}

static void test_append_of_something_else(void **state)
{
    bytes cut = rich_stream(1);
    bytes raw = {0};
    bytes packs = {0};

    refuse_append(stream(rich_schema(PS_U32), 1), PS_ERR_CORRUPT);
    put_u32(&raw, 1);
    put_u16(&raw, 7);
    refuse_append(raw, PS_ERR_CORRUPT);
    refuse_append((bytes){0}, PS_ERR_TRUNCATED); /* a header is due */
    cut.size = 100;
    refuse_append(cut, PS_ERR_TRUNCATED);
    put_bytes(&packs, "\x89PKS\r\n\x1a\n", 8);
    refuse_append(packs, PS_ERR_MAGIC);
}

static void refuse_open(int fd, ps_type type, ps_result wanted, int number)
{
    ps_token_reader *r = (ps_token_reader *)&r;
    ps_error err;

    assert_result(ps_token_reader_open(&r, fd, type, NULL, &err), wanted,
                  &err);
    assert_null(r);
    assert_int_equal(err.sys_errno, number);
}

static void test_refused_opens(void **state)
{
    int fd = open_empty();
    int folder = open("/", O_RDONLY);

    refuse_open(fd, PS_U8, PS_ERR_ARGUMENT, 0);
    refuse_open(fd, PS_I32, PS_ERR_ARGUMENT, 0);
    (void)close(fd);
    refuse_open(-1, PS_U16, PS_ERR_IO, EBADF);
    assert_true(folder >= 0);
    refuse_open(folder, PS_U16, PS_ERR_IO, EISDIR);
    (void)close(folder);
    fd = open_data("\x89PKS\r\n\x1a\n", 8);
    refuse_open(fd, PS_U16, PS_ERR_MAGIC, 0);
}

/* A writer that writes only when the reader is about to wait. */
typedef struct lazy {
    int fd;
    uint32_t calls;
    uint32_t records;
    ps_result result;
} lazy;

static ps_result on_wait(void *context, ps_error *err)
{
    static const unsigned char record[] = {1, 0, 0, 0, 42, 0};
    lazy *l = context;

    l->calls++;
    if (l->result != PS_OK && l->records == 0) {
        *err = (ps_error){l->result, 0, "the test wants it so"};
        return l->result;
    }
    if (l->records-- == 0)
        (void)close(l->fd);
    else if (write(l->fd, record, sizeof record) != sizeof record)
        return PS_ERR_IO;
    return PS_OK;
}

/* Opens a reader on a pipe that holds one record of two tokens so far. */
static ps_token_reader *open_lazy(lazy *l, int *end)
{
    int ends[2];
    ps_token_reader *r;

    assert_int_equal(pipe(ends), 0);
    *end = ends[0];
    l->fd = ends[1];
    assert_int_equal(write(l->fd, "\2\0\0\0\1\0\1\0", 8), 8);
    r = open_tokens(*end, NULL);
    ps_token_reader_on_wait(r, on_wait, l);
    return r;
}

static void test_wait_hook_ends_the_read(void **state)
{
    lazy l = {.records = 1, .result = PS_ERR_LIMIT};
    int end;
    ps_token_reader *r = open_lazy(&l, &end);
    ps_error err;
    uint64_t n = 0;

    assert_result(read_on(r, &n, &err), PS_ERR_LIMIT, &err);
    assert_string_equal(err.text, "the test wants it so");
    assert_int_equal(n, 2);
    ps_token_reader_free(r);
    (void)close(l.fd);
}

/* The reader keeps its hook for the next file. */
static void test_wait_hook_after_append(void **state)
{
    lazy l = {.records = 0, .result = PS_OK};
    int end;
    int ends[2];
    ps_token_reader *r = open_lazy(&l, &end);
    ps_error err;
    uint64_t n = 0;

    assert_result(read_on(r, &n, &err), PS_END, &err);
    assert_int_equal(l.calls, 1);
    assert_int_equal(pipe(ends), 0);
    l = (lazy){.fd = ends[1], .records = 2, .result = PS_OK};
    assert_int_equal(write(l.fd, "\1\0\0\0\1\0\1\0", 8), 8);
    assert_ok(ps_token_reader_append(r, ends[0], &err), &err);
    assert_result(read_on(r, &n, &err), PS_ERR_TRUNCATED, &err);
    assert_int_equal(l.calls, 3);
    ps_token_reader_free(r);
    (void)close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_concatenated),
        cmocka_unit_test(test_concatenated_with_another_schema),
        cmocka_unit_test(test_garbage_after_end),
        cmocka_unit_test(test_false_end),
        cmocka_unit_test(test_unknown_control_record),
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_append_raw),
        cmocka_unit_test(test_append_of_something_else),
        cmocka_unit_test(test_refused_opens),
        cmocka_unit_test(test_wait_hook_ends_the_read),
        cmocka_unit_test(test_wait_hook_after_append),
    };

    return run_as_tap("reader-streams", tests, NULL);
}
