/*
 * zstd-input-t.c - compressed input reads like the plain bytes, whatever its
 * frames.
 *
 * SPDX-License-Identifier: MIT
 */

#include "pack-file-fixture.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Appends a frame that decoders skip; `which` < 16. */
static void put_skippable(bytes *b, unsigned which, uint32_t n)
{
    put_u32(b, 0x184D2A50 + which);
    put_u32(b, n);
    for (uint32_t i = 0; i < n; i++)
        put_u8(b, 0x28); /* no zeros, and nearly zstd's magic */
}

/* Reads token records; returns the final result and the number of records. */
static ps_result read_all(const bytes *b, const corpus *c, uint32_t *count,
                          ps_error *err)
{
    int fd = open_bytes(b);
    ps_token_reader *r = NULL;
    ps_sequence s;
    ps_result result = ps_token_reader_open(&r, fd, PS_U16, NULL, err);

    *count = 0;
    while (result == PS_OK) {
        result = ps_token_reader_next(r, UINT32_MAX, &s, err);
        if (result == PS_OK)
            assert_sample(c, (*count)++, &s);
    }
    ps_token_reader_free(r);
    (void)close(fd);
    return result;
}

/* Reads the whole corpus from `b`. */
static void expect_corpus(const bytes *b, const corpus *c)
{
    uint32_t count;
    ps_error err;

    assert_result(read_all(b, c, &count, &err), PS_END, &err);
    assert_int_equal(count, c->count);
}

static corpus rich_corpus(uint32_t count, uint32_t longest)
{
    const ps_schema schema = rich_schema(PS_U16);

    return make_corpus(&schema, count, longest, 77);
}

/* Cuts the plain bytes into frames of 1..most bytes, some of them empty. */
static bytes many_frames(const bytes *plain, uint32_t max, bool skippable)
{
    bytes b = {0};
    uint64_t random = max;
    size_t at = 0;

    while (at < plain->size) {
        size_t n = random_below(&random, max + 1);

        n = n < plain->size - at ? n : plain->size - at;
        if (skippable && random_below(&random, 3) == 0)
            put_skippable(&b, random_below(&random, 16),
                          random_below(&random, 300));
        put_frame(&b, plain->data + at, n, 1);
        at += n;
    }
    return b;
}

static void test_many_frames(void **state)
{
    static const uint32_t max[] = {1, 7, 1000, 300000};
    corpus c = rich_corpus(30, 5000);
    corpus little = rich_corpus(5, 9);
    bytes plain = corpus_records(&c);
    bytes few = corpus_records(&little);

    for (size_t i = 0; i < COUNT(max); i++)
        for (int skippable = 0; skippable < 2; skippable++) {
            bool tiny = max[i] < 100;
            bytes b = many_frames(tiny ? &few : &plain, max[i],
                                  skippable != 0);

            expect_corpus(&b, tiny ? &little : &c);
        }
}

/* Frames without content are an empty input. */
static void test_nothing_in_it(void **state)
{
    corpus none = {.count = 0};
    bytes b = {0};

    put_frame(&b, "", 0, 3);
    expect_corpus(&b, &none);
    put_skippable(&b, 4, 10);
    expect_corpus(&b, &none);
    free_bytes(&b);
    put_skippable(&b, 4, 10);
    expect_corpus(&b, &none);
}

static void test_every_cut(void **state)
{
    corpus c = rich_corpus(6, 9);
    bytes plain = corpus_records(&c);
    bytes b = {0};
    size_t whole;
    uint32_t count;
    ps_error err;

    put_skippable(&b, 0, 9);
    put_frame(&b, plain.data, 200, 3);
    put_frame(&b, plain.data + 200, plain.size - 200, 3);
    whole = b.size;
    for (b.size = 1; b.size < whole; b.size++)
        if (b.size == 17) /* the skippable frame alone: an empty input */
            assert_result(read_all(&b, &c, &count, &err), PS_END, &err);
        else
            assert_result(read_all(&b, &c, &count, &err), PS_ERR_TRUNCATED,
                          &err);
    expect_corpus(&b, &c);
}

/* Bytes before the cut are returned first. */
static void test_cut_gives_what_came(void **state)
{
    corpus c = rich_corpus(400, 400);
    bytes plain = corpus_records(&c);
    bytes b = {0};
    uint32_t count;
    ps_error err;

    put_frame(&b, plain.data, plain.size, 1);
    b.size = b.size / 4 * 3;
    assert_result(read_all(&b, &c, &count, &err), PS_ERR_TRUNCATED, &err);
    assert_in_range(count, c.count / 2, c.count - 1);
}

static void test_garbage_behind_a_frame(void **state)
{
    corpus c = rich_corpus(6, 9);
    bytes plain = corpus_records(&c);
    bytes b = {0};
    uint32_t count;
    ps_error err;

    put_frame(&b, plain.data, plain.size, 3);
    put_bytes(&b, "garbage", 7);
    assert_result(read_all(&b, &c, &count, &err), PS_ERR_CORRUPT, &err);
    assert_int_equal(count, c.count);
    assert_non_null(strstr(err.text, "zstd"));
    b.size -= 4;
    assert_true(read_all(&b, &c, &count, &err) > PS_END);
}

/* A zstd frame in the middle of a plain stream is not decompressed. */
static void test_frame_behind_plain_records(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    corpus c = make_corpus(&schema, 3, 9, 5);
    bytes b = corpus_records(&c);
    uint32_t count;
    ps_error err;

    join_bytes(&b, compress(&b));
    assert_result(read_all(&b, &c, &count, &err), PS_ERR_LIMIT, &err);
    assert_int_equal(count, c.count); /* zstd's magic as a count */
}

/* Input that was compressed twice is decompressed once. */
static void test_frame_in_a_frame(void **state)
{
    corpus c = rich_corpus(3, 9);
    bytes plain = corpus_records(&c);
    bytes once = {0};
    bytes twice = {0};
    uint32_t count;
    ps_error err;

    put_frame(&once, plain.data, plain.size, 3);
    put_frame(&twice, once.data, once.size, 3);
    expect_corpus(&once, &c);
    assert_result(read_all(&twice, &c, &count, &err), PS_ERR_MAGIC, &err);
}

/* Number of tokens in `b` if each read returns `piece` bytes. */
static ps_result read_pieces(const bytes *b, size_t piece, uint64_t *tokens)
{
    int ends[2];
    ps_token_reader *r = NULL;
    ps_sequence s;
    ps_error err;
    ps_result result;

    assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), errno);
    for (size_t at = 0; at < b->size; at += piece) {
        size_t n = piece < b->size - at ? piece : b->size - at;

        assert_int_equal(write(ends[1], b->data + at, n), n);
    }
    (void)close(ends[1]);
    result = ps_token_reader_open(&r, ends[0], PS_U16, NULL, &err);
    *tokens = 0;
    while (result == PS_OK) {
        result = ps_token_reader_next(r, UINT32_MAX, &s, &err);
        if (result == PS_OK)
            *tokens += s.n_tok;
    }
    ps_token_reader_free(r);
    (void)close(ends[0]);
    return result;
}

/*
 * Frames with an empty last block of a kind that zstd takes for damage or for
 * an end, depending on how much of the frame it sees; and frames with a wrong
 * size.
 */
static void test_empty_blocks(void **state)
{
    static const struct {
        unsigned char rest[16]; /* after the magic */
        size_t n;
        ps_result result;
        uint64_t tokens;
    } frames[] = {
        /* claims 256 bytes, has none */
        {{0x40, 0, 0, 0, 5, 0, 0}, 7, PS_ERR_CORRUPT, 0},
        {{0x40, 0, 0, 0, 1, 0, 0}, 7, PS_ERR_CORRUPT, 0},
        /* None. */
        {{0x20, 0, 5, 0, 0}, 5, PS_END, 0},
        {{0x20, 0, 1, 0, 0}, 5, PS_END, 0},
        /* A record of one token. */
        {{0x20, 6, 0x30, 0, 0, 1, 0, 0, 0, 7, 0, 5, 0, 0}, 14, PS_END, 1},
        {{0x20, 6, 0x30, 0, 0, 1, 0, 0, 0, 7, 0, 1, 0, 0}, 14, PS_END, 1},
        {{0x20, 7, 0x30, 0, 0, 1, 0, 0, 0, 7, 0, 1, 0, 0}, 14,
         PS_ERR_CORRUPT, 0},
    };

    for (size_t i = 0; i < COUNT(frames); i++)
        for (size_t piece = 1; piece <= 20; piece++) {
            bytes b = {0};
            uint64_t tokens;

            put_u32(&b, 0xFD2FB528);
            put_bytes(&b, frames[i].rest, frames[i].n);
            assert_int_equal(read_pieces(&b, piece, &tokens),
                             frames[i].result);
            if (frames[i].result == PS_END)
                assert_int_equal(tokens, frames[i].tokens);
        }
}

/* Offsets are those of the decompressed input. */
static void test_offsets(void **state)
{
    corpus c = rich_corpus(20, 50);
    bytes plain = corpus_records(&c);
    bytes b = many_frames(&plain, 400, true);
    int fd = open_bytes(&b);
    ps_token_reader *r = open_tokens(fd, NULL);
    ps_sequence s;
    ps_error err;

    for (uint32_t i = 0; i < c.count; i++) {
        assert_ok(ps_token_reader_next(r, 99, &s, &err), &err);
        assert_int_equal(get_u32(plain.data + s.offset), s.n_tok);
        assert_memory_equal(plain.data + s.offset + 4, s.payload,
                            s.payload_bytes);
    }
    assert_result(ps_token_reader_next(r, 99, &s, &err), PS_END, &err);
    assert_int_equal(ps_token_reader_offset(r), plain.size);
    ps_token_reader_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_frames),
        cmocka_unit_test(test_nothing_in_it),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_cut_gives_what_came),
        cmocka_unit_test(test_garbage_behind_a_frame),
        cmocka_unit_test(test_frame_behind_plain_records),
        cmocka_unit_test(test_frame_in_a_frame),
        cmocka_unit_test(test_empty_blocks),
        cmocka_unit_test(test_offsets),
    };

    return run_as_tap("zstd", tests, NULL);
}
