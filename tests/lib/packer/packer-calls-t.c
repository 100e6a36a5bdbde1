/*
 * packer-calls-t.c - calls that ps_packer refuses, and when it writes.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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
                                     PS_PER_TOKEN, 0, 0};
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
            i == 0 ? PS_PER_TOKEN : PS_PER_SEQUENCE, 0, 0};
    assert_ok(ps_packer_open(&p, fd, &s, &o, &err), &err);
    assert_int_equal(ps_max_sequences(ps_packer_info(p)), PS_MAX_DEPTH);
    assert_int_equal(ps_packer_info(p)->block_packs, 1);
    assert_int_equal(ps_packer_info(p)->block_bytes,
                     64 + PS_MAX_CAPACITY * 10 + 40 +
                         PS_MAX_DEPTH * (24 + 21 * 8) + 24);
    ps_packer_free(p);
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
    /* The payload can only be missing if the sequence is not kept. */
    s = (ps_sequence){.n_tok = 11};
    refuse_put(0, s, PS_OVERLONG_DROP, PS_OK);
    refuse_put(0, s, PS_OVERLONG_ERROR, PS_ERR_OVERLONG);
    refuse_put(0, s, PS_OVERLONG_TRUNCATE, PS_ERR_ARGUMENT);
    refuse_put(0, s, PS_OVERLONG_SPLIT, PS_ERR_ARGUMENT);
    /* No record of that size can be read. */
    s = (ps_sequence){.n_tok = PS_MAX_SEQUENCE_BYTES / 2 + 1,
                      .payload = tokens,
                      .payload_bytes = PS_MAX_SEQUENCE_BYTES + 2};
    refuse_put(0, s, PS_OVERLONG_SPLIT, PS_ERR_LIMIT);
    refuse_put(0, s, PS_OVERLONG_TRUNCATE, PS_ERR_LIMIT);
}

static ps_result count_call(void *calls, const ps_sequence *sequence,
                            bool truncated, ps_error *err)
{
    (void)truncated;
    (void)err;
    assert_non_null(sequence->payload);
    ++*(int *)calls;
    return PS_OK;
}

/* The hook gets payloads, so with budgets a dropped sequence must have one. */
static void test_payload_for_the_hook(void **state)
{
    static const unsigned char tokens[22];
    const ps_budget_option budget = {PS_ATTENTION, 1000};
    int calls = 0;
    ps_packer_options o = usual;
    ps_sequence s = {.n_tok = 11};
    int fd = open_empty();
    ps_packer *p;
    ps_error err;

    o.overlong = PS_OVERLONG_DROP;
    o.policy = PS_POLICY_AUTO;
    o.budgets = &budget;
    o.n_budgets = 1;
    o.rejects = count_call;
    o.rejects_context = &calls;
    p = open_packer(fd, &o);
    assert_result(ps_packer_put(p, &s, &err), PS_ERR_ARGUMENT, &err);
    s.payload = tokens;
    s.payload_bytes = sizeof tokens;
    assert_ok(ps_packer_put(p, &s, &err), &err);
    assert_int_equal(calls, 1);
    ps_packer_free(p);
    (void)close(fd);
}

/* Size of a stream of `n` blocks of that many packs with one sequence each. */
static size_t with_blocks(size_t n, size_t packs)
{
    /* The row and the sequence row take 24 and 16 bytes. */
    return PS_PACK_HEADER_BYTES +
           n * ((64 + packs * (24 + 40 + 16) + 63) / 64 * 64);
}

/* A pack is emitted by the put that decides it; flush writes it. */
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
    assert_result(ps_packer_flush(p, (ps_flush)9, &err), PS_ERR_ARGUMENT,
                  &err);
    ps_packer_free(p);
}

/*
 * An abandoned stream has all decided packs; if its packer was only freed, it
 * has those of complete blocks.  Neither has END.
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
        (void)close(fd);
    }
}

/* A full disk fails the call that packs: a put, whole or split, or a drain. */
static void test_no_space(void **state)
{
    static const uint32_t lengths[] = {3, 25, 0};
    const int full = open("/dev/full", O_WRONLY);
    const ps_packer_options o = {10, 4, 99, 0,
                                 .policy = PS_POLICY_BESTFIT,
                                 .overlong = PS_OVERLONG_SPLIT,
                                 .max_delay = 2,
                                 .block_packs = 1};

    for (size_t i = 0; i < COUNT(lengths); i++) {
        const int fd = open_empty();
        ps_packer *p = open_packer(fd, &o);
        ps_error err;
        ps_result r;

        assert_int_equal(dup2(full, fd), fd);
        assert_ok(put(p, 0, 3, &err), &err);
        r = lengths[i] == 0 ? ps_packer_flush(p, PS_FLUSH_DRAIN, &err) : PS_OK;
        for (uint64_t id = 1; r == PS_OK && id < 9; id++)
            r = put(p, id, lengths[i], &err);
        assert_result(r, PS_ERR_IO, &err);
        ps_packer_free(p);
        (void)close(fd);
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_refused_policies),
        cmocka_unit_test(test_row_too_large),
        cmocka_unit_test(test_largest_block),
        cmocka_unit_test(test_refused_sequences),
        cmocka_unit_test(test_payload_for_the_hook),
        cmocka_unit_test(test_flush),
        cmocka_unit_test(test_abandon),
        cmocka_unit_test(test_no_space),
        cmocka_unit_test(test_nothing_follows_finish),
    };

    return run_as_tap("packer-calls", tests, NULL);
}
