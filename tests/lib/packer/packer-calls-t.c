/*
 * packer-calls-t.c - what ps_packer refuses, when it writes, and the bytes
 * of a small stream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

static const ps_packer_options usual = {
    10, 4, 3, 0, .policy = PS_POLICY_BESTFIT};

/* Puts sequence `id` of `n` tokens, all of which are `id`. */
static ps_result put(ps_packer *p, uint64_t id, uint32_t n, ps_error *err)
{
    bytes b = {0};
    ps_sequence s = {.id = id, .n_tok = n};
    ps_result r;

    for (uint32_t i = 0; i < n; i++)
        put_u16(&b, (unsigned)id & 0xffff);
    s.payload = b.data;
    s.payload_bytes = b.size;
    r = ps_packer_put(p, &s, err);
    free_bytes(&b);
    return r;
}

/* Options and a schema that open and check refuse alike. */
static void refuse(const ps_schema *schema, ps_packer_options o,
                   ps_result wanted)
{
    ps_packer *p = (ps_packer *)&p;
    int fd = open_empty();
    ps_error err;

    assert_result(ps_packer_check(schema, &o, &err), wanted, &err);
    assert_result(ps_packer_open(&p, fd, schema, &o, &err), wanted, &err);
    if (wanted == PS_OK)
        ps_packer_free(p);
    else
        assert_null(p);
    assert_int_equal(size_of(fd), wanted == PS_OK ? PS_PACK_HEADER_BYTES : 0);
    (void)close(fd);
}

static void test_refused_options(void **state)
{
    const ps_schema u16 = ps_schema_raw(PS_U16);
    const ps_schema u32 = ps_schema_raw(PS_U32);
    const ps_schema bad = ps_schema_raw(PS_F32);
    ps_packer_options o;

    refuse(&u16, usual, PS_OK);
    refuse(&bad, usual, PS_ERR_ARGUMENT);
#define REFUSE(schema, member, value, wanted)                           \
    o = usual;                                                          \
    o.member = value;                                                   \
    refuse(schema, o, wanted)
    REFUSE(&u16, capacity, 0, PS_ERR_ARGUMENT);
    REFUSE(&u16, capacity, PS_MAX_CAPACITY + 1, PS_ERR_ARGUMENT);
    REFUSE(&u16, capacity, PS_MAX_CAPACITY, PS_OK);
    REFUSE(&u16, depth, 0, PS_OK);
    REFUSE(&u16, depth, UINT32_MAX, PS_OK); /* taken as the capacity */
    REFUSE(&u16, window, 0, PS_OK);
    REFUSE(&u16, max_window, PS_MAX_WINDOW, PS_OK);
    REFUSE(&u16, max_window, PS_MAX_WINDOW + 1, PS_ERR_ARGUMENT);
    REFUSE(&u16, window, PS_MAX_WINDOW + 1, PS_ERR_ARGUMENT);
    REFUSE(&u16, pad_id, 65535, PS_OK);
    REFUSE(&u16, pad_id, 65536, PS_ERR_ARGUMENT);
    REFUSE(&u32, pad_id, UINT32_MAX, PS_OK);
    REFUSE(&u16, max_delay, PS_MAX_WINDOW, PS_OK);
    REFUSE(&u16, max_delay, PS_MAX_WINDOW + 1, PS_ERR_ARGUMENT);
    REFUSE(&u16, max_bytes, 255, PS_ERR_ARGUMENT);
    REFUSE(&u16, max_bytes, 256, PS_OK);
    REFUSE(&u16, order, PS_PACKS_SHUFFLED, PS_ERR_ARGUMENT); /* no seed */
    REFUSE(&u16, block_packs, 3, PS_ERR_ARGUMENT);
    REFUSE(&u16, block_packs, 65536, PS_OK);
    REFUSE(&u16, block_packs, 131072, PS_ERR_ARGUMENT);
    o.block_packs = 8; /* of 32 MiB each */
    o.capacity = PS_MAX_CAPACITY;
    refuse(&u16, o, PS_OK);
    o.block_packs = 16;
    refuse(&u16, o, PS_ERR_ARGUMENT);
#undef REFUSE
}

static void test_refused_policies(void **state)
{
    const ps_schema u16 = ps_schema_raw(PS_U16);
    ps_packer_options o = usual;

    memset(&o.overlong, 4, 1);
    refuse(&u16, o, PS_ERR_ARGUMENT);
    o = usual;
    memset(&o.policy, PS_POLICY_CONCAT + 1, 1);
    refuse(&u16, o, PS_ERR_ARGUMENT);
    o = usual;
    memset(&o.order, 3, 1);
    refuse(&u16, o, PS_ERR_ARGUMENT);
    o = usual;
    o.policy = PS_POLICY_CONCAT;
    refuse(&u16, o, PS_OK);
    for (int i = PS_OVERLONG_DROP; i <= PS_OVERLONG_SPLIT; i++) {
        o.overlong = (ps_overlong)i;
        refuse(&u16, o, PS_ERR_ARGUMENT);
    }
    o.overlong = PS_OVERLONG_ERROR;
    o.depth = 0;
    refuse(&u16, o, PS_OK);
    o.policy = PS_POLICY_NONE;
    refuse(&u16, o, PS_OK);
    o.policy = PS_POLICY_NEXTFIT;
    refuse(&u16, o, PS_OK);
}

/* 12 channels of 8 bytes for each of 2^24 tokens: 1.5 GiB a row. */
static void test_row_too_large(void **state)
{
    ps_schema s = ps_schema_raw(PS_U32);
    ps_packer_options o = usual;

    s.framed = true;
    s.n_channels = 12;
    for (unsigned i = 0; i < 12; i++)
        s.channels[i] = (ps_channel){{(char)('a' + i)}, PS_F64,
                                     PS_PER_TOKEN, 0};
    refuse(&s, o, PS_OK);
    o.capacity = PS_MAX_CAPACITY;
    refuse(&s, o, PS_ERR_LIMIT);
    assert_true(ps_packer_memory(&s, &o) == UINT64_MAX);
}

/* The largest row and, with the most channels, the largest sequence rows. */
static void test_largest_block(void **state)
{
    ps_schema s = ps_schema_raw(PS_U16);
    ps_packer_options o = {.capacity = PS_MAX_CAPACITY,
                           .window = 1,
                           .policy = PS_POLICY_CONCAT};
    int fd = open_empty();
    ps_packer *p;
    ps_error err;

    s.framed = true;
    s.n_channels = 22;
    for (unsigned i = 0; i < s.n_channels; i++)
        s.channels[i] = (ps_channel){
            {(char)('a' + i)}, PS_F64,
            i == 0 ? PS_PER_TOKEN : PS_PER_SEQUENCE, 0};
    assert_ok(ps_packer_open(&p, fd, &s, &o, &err), &err);
    assert_int_equal(ps_max_sequences(ps_packer_info(p)), PS_MAX_DEPTH);
    assert_int_equal(ps_packer_info(p)->block_packs, 1);
    assert_int_equal(ps_packer_info(p)->block_bytes,
                     64 + PS_MAX_CAPACITY * 10 + 40 +
                         PS_MAX_DEPTH * (24 + 21 * 8) + 24);
    ps_packer_free(p);
    (void)close(fd);
}

/* All the names that there can be, as long as they can be. */
static void test_longest_names(void **state)
{
    ps_schema s = ps_schema_raw(PS_U16);
    ps_packer_options o = {.capacity = PS_MAX_CAPACITY / 8,
                           .depth = PS_MAX_DEPTH,
                           .window = PS_MAX_DEPTH,
                           .overlong = PS_OVERLONG_SPLIT,
                           .align = 2};

    s.framed = true;
    s.n_channels = PS_MAX_CHANNELS - 1;
    for (unsigned i = 0; i < PS_MAX_CHANNELS; i++) {
        s.channels[i].type = PS_U8;
        s.channels[i].kind = PS_PER_TOKEN;
        memset(s.channels[i].name, 'a' + (int)i, PS_NAME_BYTES - 1);
    }
    refuse(&s, o, PS_OK);
    s.n_channels++; /* beside what pieces need there is no room */
    refuse(&s, o, PS_ERR_LIMIT);
    o.overlong = PS_OVERLONG_DROP;
    refuse(&s, o, PS_OK);
}

/* A sequence that is refused, as the first or after `before` good ones. */
static void refuse_put(uint64_t before, ps_sequence s, ps_overlong overlong,
                       ps_result wanted)
{
    ps_packer_options o = usual;
    int fd = open_empty();
    ps_packer *p;
    ps_error err;

    o.overlong = overlong;
    p = open_packer(fd, &o);
    for (uint64_t i = 0; i < before; i++)
        assert_ok(put(p, i, 3, &err), &err);
    assert_result(ps_packer_put(p, &s, &err), wanted, &err);
    ps_packer_free(p);
    (void)close(fd);
}

static void test_refused_sequences(void **state)
{
    static const unsigned char tokens[200];
    const ps_sequence good = {
        .n_tok = 5, .payload = tokens, .payload_bytes = 10};
    ps_sequence s = good;

    refuse_put(0, s, PS_OVERLONG_ERROR, PS_OK);
    refuse_put(1, s, PS_OVERLONG_ERROR, PS_ERR_ARGUMENT); /* 0 again */
    s.id = 2;
    refuse_put(1, s, PS_OVERLONG_ERROR, PS_ERR_ARGUMENT); /* 1 left out */
    refuse_put(2, s, PS_OVERLONG_ERROR, PS_OK);
    s.id = UINT64_MAX;
    refuse_put(0, s, PS_OVERLONG_ERROR, PS_ERR_ARGUMENT);
    s = good;
    s.n_tok = 0;
    s.payload_bytes = 0;
    refuse_put(0, s, PS_OVERLONG_ERROR, PS_ERR_ARGUMENT);
    s = good;
    s.payload_bytes = 8;
    refuse_put(0, s, PS_OVERLONG_ERROR, PS_ERR_ARGUMENT);
    s.payload_bytes = 12;
    refuse_put(0, s, PS_OVERLONG_ERROR, PS_ERR_ARGUMENT);
    s = good;
    s.payload = NULL;
    refuse_put(0, s, PS_OVERLONG_DROP, PS_ERR_ARGUMENT);
    /* Only what is not kept may come without its payload. */
    s = (ps_sequence){.n_tok = 11};
    refuse_put(0, s, PS_OVERLONG_DROP, PS_OK);
    refuse_put(0, s, PS_OVERLONG_ERROR, PS_ERR_OVERLONG);
    refuse_put(0, s, PS_OVERLONG_TRUNCATE, PS_ERR_ARGUMENT);
    refuse_put(0, s, PS_OVERLONG_SPLIT, PS_ERR_ARGUMENT);
    /* No record of that size could have been read. */
    s = (ps_sequence){.n_tok = PS_MAX_SEQUENCE_BYTES / 2 + 1,
                      .payload = tokens,
                      .payload_bytes = PS_MAX_SEQUENCE_BYTES + 2};
    refuse_put(0, s, PS_OVERLONG_SPLIT, PS_ERR_LIMIT);
    refuse_put(0, s, PS_OVERLONG_TRUNCATE, PS_ERR_LIMIT);
}

static void test_overlong_is_named(void **state)
{
    int fd = open_empty();
    ps_packer *p = open_packer(fd, &usual);
    ps_error err;

    assert_ok(put(p, 0, 10, &err), &err);
    assert_result(put(p, 1, 11, &err), PS_ERR_OVERLONG, &err);
    assert_non_null(strstr(err.text, "record 1 "));
    assert_non_null(strstr(err.text, " 11 tokens"));
    ps_packer_free(p);
    ps_packer_free(NULL);
    (void)close(fd);
}

/* Blocks of as many packs, each of one sequence, with all before them. */
static size_t with_blocks(size_t n, size_t packs)
{
    /* The row and the sequence row take 24 and 16 bytes. */
    return PS_PACK_HEADER_BYTES +
           n * ((64 + packs * (24 + 40 + 16) + 63) / 64 * 64);
}

/* A pack leaves with the put that decides it, and flush passes it on. */
static void test_flush(void **state)
{
    ps_packer_options o = usual;
    int fd = open_empty();
    ps_packer *p;
    ps_error err;

    o.block_packs = 1;
    p = open_packer(fd, &o);
    assert_ok(ps_packer_flush(p, PS_FLUSH_DECIDED, &err), &err);
    assert_int_equal(size_of(fd), PS_PACK_HEADER_BYTES);
    assert_ok(put(p, 0, 9, &err), &err);
    assert_ok(put(p, 1, 9, &err), &err);
    assert_ok(ps_packer_flush(p, PS_FLUSH_DECIDED, &err), &err);
    assert_int_equal(size_of(fd), PS_PACK_HEADER_BYTES);
    assert_int_equal(ps_packer_totals(p)->packs, 0);
    assert_ok(put(p, 2, 9, &err), &err); /* the window is full */
    assert_int_equal(ps_packer_totals(p)->packs, 1);
    assert_ok(ps_packer_flush(p, PS_FLUSH_DECIDED, &err), &err);
    assert_int_equal(size_of(fd), with_blocks(1, 1));
    assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    assert_int_equal(size_of(fd), with_blocks(3, 1) + 320); /* END lists 3 */
    assert_int_equal(ps_packer_totals(p)->input_sequences, 3);
    ps_packer_free(p);
    (void)close(fd);
}

/*
 * A stream that was abandoned, or of which the packer was just freed, has the
 * packs that were decided, the latter only in whole blocks, and no END.
 */
static void test_abandon(void **state)
{
    ps_packer_options o = usual;

    o.block_packs = 2;
    for (int abandoned = 0; abandoned < 2; abandoned++) {
        int fd = open_empty();
        ps_packer *p = open_packer(fd, &o);
        bytes b;
        uint64_t n;
        ps_error err;

        for (uint64_t i = 0; i < 5; i++)
            assert_ok(put(p, i, 9, &err), &err);
        if (abandoned) {
            assert_ok(ps_packer_flush(p, PS_FLUSH_ABANDON, &err), &err);
            assert_result(put(p, 5, 9, &err), PS_ERR_ARGUMENT, &err);
            assert_result(ps_packer_flush(p, PS_FLUSH_DRAIN, &err),
                          PS_ERR_ARGUMENT, &err);
            assert_result(ps_packer_flush(p, PS_FLUSH_FINISH, &err),
                          PS_ERR_ARGUMENT, &err);
        } else {
            assert_ok(ps_packer_flush(p, PS_FLUSH_DECIDED, &err), &err);
        }
        ps_packer_free(p);
        b = read_back(fd);
        assert_result(read_packs(&b, &n, &err), PS_ERR_TRUNCATED, &err);
        assert_int_equal(n, abandoned ? 3 : 2);
        free_bytes(&b);
        (void)close(fd);
    }
}

/* Without threads nobody else would write: whole blocks are there at once. */
static void test_flush_without_waiting(void **state)
{
    ps_packer_options o = usual;
    int fd = open_empty();
    ps_packer *p;
    ps_error err;

    o.block_packs = 2;
    p = open_packer(fd, &o);
    for (uint64_t i = 0; i < 5; i++)
        assert_ok(put(p, i, 9, &err), &err);
    assert_int_equal(ps_packer_totals(p)->packs, 3);
    assert_ok(ps_packer_flush(p, PS_FLUSH_NOWAIT, &err), &err);
    assert_int_equal(size_of(fd), with_blocks(1, 2));
    assert_result(ps_packer_flush(p, (ps_flush)9, &err), PS_ERR_ARGUMENT,
                  &err);
    assert_string_equal(err.text, "no way to flush has the number 9");
    ps_packer_free(p);
    (void)close(fd);
}

static void test_nothing_follows_finish(void **state)
{
    for (int i = 0; i < 3; i++) {
        int fd = open_empty();
        ps_packer *p = open_packer(fd, &usual);
        ps_error err;

        assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
        assert_result(i == 0   ? ps_packer_flush(p, PS_FLUSH_FINISH, &err)
                      : i == 1 ? put(p, 0, 1, &err)
                               : ps_packer_flush(p, PS_FLUSH_DRAIN, &err),
                      PS_ERR_ARGUMENT, &err);
        ps_packer_free(p);
        (void)close(fd);
    }
}

static void test_write_errors(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    int bad = open("/dev/null", O_RDONLY);
    int fd = open_empty();
    ps_packer *p;
    ps_error err;

    assert_result(ps_packer_open(&p, bad, &schema, &usual, &err), PS_ERR_IO,
                  &err);
    assert_int_equal(err.sys_errno, EBADF);
    assert_null(p);
    for (int i = 0; i < 2; i++) {
        p = open_packer(fd, &usual);
        assert_ok(put(p, 0, 9, &err), &err);
        assert_int_equal(dup2(bad, fd), fd);
        assert_result(
            ps_packer_flush(p, i == 0 ? PS_FLUSH_DRAIN : PS_FLUSH_FINISH, &err),
            PS_ERR_IO, &err);
        ps_packer_free(p);
        (void)close(fd);
        fd = open_empty();
    }
    (void)close(fd);
    (void)close(bad);
}

/* Seals the head of a block. */
static void seal_block(bytes *b)
{
    set_u64(b->data + 56, XXH3_64bits(b->data, 56));
}

/* A block by hand: capacity 10, pad_id 7; sequences 0 and 1 of 3 tokens. */
static bytes block_by_hand(void)
{
    bytes b = {0};
    bytes summed = {0};

    put_bytes(&b, "PKSB", 4);
    put_u32(&b, 0); /* packs, */
    put_u32(&b, 1); /* one, */
    put_u32(&b, 2); /* and its sequences */
    put_u64(&b, 0); /* index of the first */
    put_u64(&b, 192);
    put_zeros(&b, 32);
    for (uint32_t i = 0; i < 10; i++) /* the row, at 64 */
        put_u16(&b, i < 6 ? i / 3 : 7);
    put_zeros(&b, 4);
    put_u64(&b, 0); /* the head, at 88: the checksum, below */
    put_u32(&b, 0); /* its first sequence row */
    put_u32(&b, 2); /* n_seq */
    put_u32(&b, 6); /* n_tok */
    put_u32(&b, 3); /* max_seqlen */
    put_u64(&b, 3 * 3 * 2); /* sum_len_sq */
    put_u64(&b, 3);         /* watermark: behind the dropped one, too */
    for (uint32_t i = 0; i < 2; i++) { /* sequence rows, at 128 */
        put_u64(&b, i);
        put_u32(&b, 3 * i);
        put_u32(&b, 3);
    }
    put_zeros(&b, 192 - b.size);
    put_u64(&summed, 0);
    put_u64(&summed, XXH3_64bits(b.data + 64, 24));
    put_u64(&summed, XXH3_64bits(b.data + 128, 32));
    put_bytes(&summed, b.data + 100, 28);
    set_u64(b.data + 88, XXH3_64bits(summed.data, summed.size));
    free_bytes(&summed);
    seal_block(&b);
    return b;
}

/* END of a stream that holds that block and has dropped 11 tokens. */
static bytes end_by_hand(const unsigned char *header, const bytes *block)
{
    static const uint64_t totals[] = {1, 2, 6, 0, 3, 17, 1, 11, 0, 0, 0,
                                      0, 1};
    bytes b = {0};

    put_bytes(&b, "PKSB", 4);
    put_u32(&b, 1); /* END */
    put_u64(&b, 0);
    put_u64(&b, 1); /* packs in the stream */
    put_u64(&b, 256);
    put_zeros(&b, 32);
    for (size_t i = 0; i < 13; i++)
        put_u64(&b, totals[i]);
    put_u32(&b, 3); /* max_seqlen */
    put_u32(&b, 2); /* max_depth */
    put_u32(&b, 6); /* min_fill */
    put_u32(&b, 0);
    put_u32(&b, 0); /* parts of the index */
    put_u32(&b, 1); /* blocks */
    put_u64(&b, 4096);
    put_u64(&b, 0);
    put_u64(&b, 3); /* watermark */
    put_zeros(&b, 256 - 24 - b.size);
    put_u64(&b, 256); /* END, and the stream */
    put_u64(&b, 4096 + 192 + 256);
    put_bytes(&b, "\x89PKE\r\n\x1a\n", 8);
    set_u64(b.data + 64 + 24,
            XXH3_64bits_withSeed(block->data + 88, 8,
                                 get_u64(header + 4088)));
    set_u64(b.data + 48, XXH3_64bits(b.data + 64, b.size - 64));
    seal_block(&b);
    return b;
}

static void test_bytes_of_a_stream(void **state)
{
    const ps_packer_options o = {10, 4, 3, 7, .overlong = PS_OVERLONG_DROP};
    int fd = open_empty();
    ps_packer *p = open_packer(fd, &o);
    bytes wanted = {0};
    bytes block = block_by_hand();
    bytes b;
    ps_error err;

    assert_ok(put(p, 0, 3, &err), &err);
    assert_ok(put(p, 1, 3, &err), &err);
    assert_ok(put(p, 2, 11, &err), &err);
    assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    ps_packer_free(p);
    b = read_back(fd);
    put_bytes(&wanted, b.data, PS_PACK_HEADER_BYTES);
    put_bytes(&wanted, block.data, block.size);
    join_bytes(&wanted, end_by_hand(b.data, &block));
    assert_same_bytes(&b, &wanted);
    free_bytes(&b);
    free_bytes(&block);
    free_bytes(&wanted);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_refused_policies),
        cmocka_unit_test(test_row_too_large),
        cmocka_unit_test(test_largest_block),
        cmocka_unit_test(test_longest_names),
        cmocka_unit_test(test_refused_sequences),
        cmocka_unit_test(test_overlong_is_named),
        cmocka_unit_test(test_flush),
        cmocka_unit_test(test_abandon),
        cmocka_unit_test(test_flush_without_waiting),
        cmocka_unit_test(test_nothing_follows_finish),
        cmocka_unit_test(test_write_errors),
        cmocka_unit_test(test_bytes_of_a_stream),
    };

    return run_as_tap("packer-calls", tests, NULL);
}
