/*
 * open-any-t.c - detecting the type of an input, and waiting for pipes.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-file-fixture.h"

#include <unistd.h>

#include "io/fd.h"

/*
 * Opens `b`, plain and compressed by zstd, and expects a reader of that kind
 * that reads to the end.
 */
static void expect(const bytes *b, bool is_packs, bool framed)
{
    bytes packed = compress(b);
    const bytes *both[] = {b, &packed};

    for (size_t i = 0; i < 2; i++) {
        int fd = open_bytes(both[i]);
        ps_pack_reader *packs;
        ps_token_reader *tokens;
        ps_pack pack;
        ps_sequence s;
        ps_result r;
        ps_error err;

        assert_ok(ps_open_any(fd, PS_U16, &packs, &tokens, &err), &err);
        assert_int_equal(packs != NULL, is_packs);
        assert_int_equal(tokens != NULL, !is_packs);
        if (tokens != NULL)
            assert_int_equal(ps_token_reader_schema(tokens)->framed, framed);
        do {
            r = is_packs ? ps_pack_reader_next(packs, &pack, &err)
                         : ps_token_reader_next(tokens, 99, &s, &err);
        } while (r == PS_OK);
        assert_result(r, PS_END, &err);
        ps_pack_reader_free(packs);
        ps_token_reader_free(tokens);
        (void)close(fd);
    }
}

static const ps_packer_options usual = {
    50, 8, 3, 0, .overlong = PS_OVERLONG_ERROR};

static void test_kinds(void **state)
{
    const ps_schema rich = rich_schema(PS_U16);
    const ps_schema raw = ps_schema_raw(PS_U16);
    corpus c = make_corpus(&rich, 9, 50, 5);
    corpus plain = make_corpus(&raw, 9, 50, 5);
    bytes b = corpus_packs(&c, &usual, NULL);

    expect(&b, true, false);
    b = corpus_records(&c);
    expect(&b, false, true);
    b = corpus_records(&plain);
    expect(&b, false, false);
    b.size = 0;
    expect(&b, false, false);
    b.size = 4 + 2 * plain.samples[0].n_tok;
    expect(&b, false, false);
}

/* The given width applies only to raw records. */
static void test_width(void **state)
{
    bytes b = {0};
    int fd;
    ps_pack_reader *packs;
    ps_token_reader *tokens;
    ps_sequence s;
    ps_error err;

    put_u32(&b, 2);
    put_u32(&b, 70000);
    put_u32(&b, 1);
    fd = open_bytes(&b);
    assert_ok(ps_open_any(fd, PS_U32, &packs, &tokens, &err), &err);
    assert_int_equal(ps_token_reader_schema(tokens)->token_type, PS_U32);
    assert_ok(ps_token_reader_next(tokens, 9, &s, &err), &err);
    assert_int_equal(s.payload_bytes, 8);
    ps_token_reader_free(tokens);
}

static void refuse(int fd, ps_type type, ps_result wanted)
{
    ps_pack_reader *packs = (ps_pack_reader *)&fd;
    ps_token_reader *tokens = (ps_token_reader *)&fd;
    ps_error err;

    assert_result(ps_open_any(fd, type, &packs, &tokens, &err), wanted,
                  &err);
    assert_null(packs);
    assert_null(tokens);
}

static void refuse_data(const void *data, size_t n, ps_result wanted)
{
    int fd = open_data(data, n);

    refuse(fd, PS_U16, wanted);
    (void)close(fd);
}

static void test_refused(void **state)
{
    static const char pack_magic[] = "\x89PKS\r\n\x1a\n";
    static const char token_magic[] = "\x89TOK\r\n\x1a\n";
    int fd = open_empty();

    refuse(fd, PS_U8, PS_ERR_ARGUMENT);
    refuse(fd, PS_F32, PS_ERR_ARGUMENT);
    (void)close(fd);
    refuse(-1, PS_U16, PS_ERR_IO);
    refuse_data(pack_magic, 8, PS_ERR_TRUNCATED);
    refuse_data(token_magic, 8, PS_ERR_TRUNCATED);
    refuse_data(token_magic, 3, PS_ERR_TRUNCATED);
    refuse_data("\x28\xb5\x2f\xfd", 4, PS_ERR_TRUNCATED);
    refuse_data("\x28\xb5\x2f\xfd\x08\0\1\0\0", 9, PS_ERR_CORRUPT);
}

/* Only an empty pipe with an open writer is waited for. */
static void test_would_wait(void **state)
{
    int ends[2];
    int fd = open_empty();

    assert_false(ps_would_wait(fd));
    assert_int_equal(pipe(ends), 0);
    assert_true(ps_would_wait(ends[0]));
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_false(ps_would_wait(ends[0]));
    (void)close(ends[1]);
    assert_false(ps_would_wait(ends[0]));
    (void)close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_width),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_would_wait),
    };

    return run_as_tap("open-any", tests, NULL);
}
