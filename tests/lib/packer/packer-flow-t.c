/*
 * packer-flow-t.c - when packs leave a packer: drained, for want of memory,
 * after a delay; and how a stream starts whose depth is to be chosen.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <unistd.h>

/* A packer and its output. */
typedef struct flow {
    ps_packer *p;
    int fd;
    uint64_t next;
} flow;

static flow open_flow(const ps_packer_options *o)
{
    int fd = open_empty();

    return (flow){.p = open_packer(fd, o), .fd = fd};
}

static void put(flow *f, uint32_t n_tok)
{
    static const unsigned char tokens[2000];
    const ps_sequence s = {.id = f->next++,
                           .n_tok = n_tok,
                           .payload = tokens,
                           .payload_bytes = 2 * (size_t)n_tok};
    ps_error err;

    assert_ok(ps_packer_put(f->p, &s, &err), &err);
}

static void drain(flow *f)
{
    ps_error err;

    assert_ok(ps_packer_flush(f->p, PS_FLUSH_DRAIN, &err), &err);
}

static uint64_t packs(const flow *f)
{
    return ps_packer_totals(f->p)->packs;
}

/* Ends the stream; the packs can be read, and are so many. */
static void close_flow(flow *f, uint64_t wanted)
{
    bytes b;
    uint64_t n;
    ps_error err;

    assert_ok(ps_packer_flush(f->p, PS_FLUSH_FINISH, &err), &err);
    assert_int_equal(packs(f), wanted);
    ps_packer_free(f->p);
    b = read_back(f->fd);
    assert_result(read_packs(&b, &n, &err), PS_END, &err);
    assert_int_equal(n, wanted);
    free_bytes(&b);
    (void)close(f->fd);
}

static void test_drain(void **state)
{
    const ps_packer_options o = {10, 4, 100, 0, .policy = PS_POLICY_AUTO};
    flow f = open_flow(&o);
    size_t stride = ps_packer_info(f.p)->record_bytes;

    drain(&f);
    assert_int_equal(size_of(f.fd), PS_PACK_HEADER_BYTES);
    put(&f, 3);
    put(&f, 4);
    drain(&f);
    assert_int_equal(packs(&f), 1);
    assert_int_equal(size_of(f.fd), PS_PACK_HEADER_BYTES + stride);
    drain(&f);
    assert_int_equal(packs(&f), 1);
    put(&f, 3);
    close_flow(&f, 2);
}

/* A sequence that fits nowhere leaves when it must, and not before. */
static void test_delay(void **state)
{
    static const ps_policy policies[] = {PS_POLICY_AUTO, PS_POLICY_SPFHP,
                                         PS_POLICY_NNLSHP, PS_POLICY_BESTFIT};

    for (size_t i = 0; i < COUNT(policies); i++) {
        const ps_packer_options o = {
            10, 4, 100, 0, .policy = policies[i], .max_delay = 7};
        flow f = open_flow(&o);

        for (int n = 0; n < 30; n++)
            put(&f, 9);
        assert_true(packs(&f) >= 23);
        assert_true(ps_packer_delay(f.p) <= 7);
        close_flow(&f, 30);
    }
}

/* Records that are rejected let time pass, and so do pieces. */
static void test_delay_by_others(void **state)
{
    ps_packer_options o = {10, 4, 100, 0, .overlong = PS_OVERLONG_DROP,
                           .policy = PS_POLICY_BESTFIT, .max_delay = 3};
    flow f = open_flow(&o);

    put(&f, 5);
    put(&f, 11);
    put(&f, 11);
    assert_int_equal(packs(&f), 0);
    put(&f, 11);
    assert_int_equal(packs(&f), 1);
    assert_int_equal(ps_packer_delay(f.p), 3);
    close_flow(&f, 1);

    o.overlong = PS_OVERLONG_SPLIT;
    f = open_flow(&o);
    put(&f, 5);
    put(&f, 1000);
    assert_int_equal(packs(&f), 98);
    assert_int_equal(ps_packer_delay(f.p), 3);
    close_flow(&f, 101);
}

/* What does not fit lets others leave first: 768 bytes hold three. */
static void test_memory(void **state)
{
    const ps_packer_options o = {100, 4, 100, 0,
                                 .policy = PS_POLICY_BESTFIT,
                                 .max_bytes = 768};
    flow f = open_flow(&o);

    for (uint64_t n = 0; n < 20; n++) {
        put(&f, 60);
        assert_int_equal(packs(&f), n < 3 ? 0 : n - 2);
    }
    close_flow(&f, 20);
}

/* Nothing is written until the depth is known. */
static void test_depth_is_chosen(void **state)
{
    const ps_packer_options o = {100, PS_DEPTH_AUTO, 20, 0,
                                 .policy = PS_POLICY_AUTO};
    flow f = open_flow(&o);
    ps_error err;

    assert_int_equal(ps_packer_info(f.p)->depth, PS_DEPTH_AUTO);
    for (int n = 0; n < 19; n++)
        put(&f, 25);
    assert_ok(ps_packer_flush(f.p, PS_FLUSH_DECIDED, &err), &err);
    assert_int_equal(size_of(f.fd), 0);
    put(&f, 25);
    assert_in_range(ps_packer_info(f.p)->depth, 16, 20);
    assert_true(packs(&f) > 0);
    close_flow(&f, 5);
}

/* A drain, the delay, the memory and the end do not wait for a window. */
static void test_depth_is_chosen_early(void **state)
{
    ps_packer_options o = {100, PS_DEPTH_AUTO, 200, 0,
                           .overlong = PS_OVERLONG_DROP};
    flow f = open_flow(&o);

    drain(&f);
    assert_int_equal(size_of(f.fd), 0);
    put(&f, 50);
    drain(&f);
    assert_int_equal(packs(&f), 1);
    assert_in_range(ps_packer_info(f.p)->depth, 16, 20);
    close_flow(&f, 1);

    o.max_delay = 5;
    f = open_flow(&o);
    for (int n = 0; n < 3; n++)
        put(&f, 60);
    put(&f, 101);
    put(&f, 101);
    assert_int_equal(size_of(f.fd), 0);
    put(&f, 101);
    assert_in_range(ps_packer_info(f.p)->depth, 16, 20);
    assert_int_equal(ps_packer_delay(f.p), 5);
    close_flow(&f, 3);

    o.max_delay = 0;
    o.max_bytes = 512;
    f = open_flow(&o);
    for (int n = 0; n < 3; n++)
        put(&f, 60);
    assert_int_equal(packs(&f), 1);
    close_flow(&f, 3);

    f = open_flow(&o);
    close_flow(&f, 0);
}

/* The same bytes whatever was known when the stream started. */
static void test_chosen_or_given(void **state)
{
    const ps_schema schema = rich_schema(PS_U16);
    ps_packer_options o = {64, PS_DEPTH_AUTO, 33, 0,
                           .overlong = PS_OVERLONG_SPLIT};

    for (uint64_t seed = 1; seed <= 3; seed++) {
        corpus c = make_corpus(&schema, 300, 100, seed);
        bytes a = corpus_packs(&c, &o, NULL);
        bytes b;

        o.depth = get_u32(a.data + 52);
        b = corpus_packs(&c, &o, NULL);
        o.depth = PS_DEPTH_AUTO;
        assert_int_equal(a.size, b.size);
        /* The digest of END covers that of the options. */
        assert_memory_equal(a.data + PS_PACK_HEADER_BYTES,
                            b.data + PS_PACK_HEADER_BYTES,
                            a.size - PS_PACK_HEADER_BYTES -
                                get_u32(a.data + 20));
        free_bytes(&a);
        free_bytes(&b);
        free_corpus(&c);
    }
}

/* Concatenated and cut: every pack but the last is full. */
static void test_concat(void **state)
{
    const ps_packer_options o = {10, 10, 100, 0, .policy = PS_POLICY_CONCAT};
    flow f = open_flow(&o);

    put(&f, 3);
    put(&f, 25);
    assert_int_equal(packs(&f), 2);
    put(&f, 2);
    assert_int_equal(packs(&f), 3);
    put(&f, 1);
    assert_int_equal(ps_packer_totals(f.p)->split_sequences, 1);
    assert_int_equal(ps_packer_totals(f.p)->extra_pieces, 2);
    assert_int_equal(ps_packer_totals(f.p)->min_fill, 10);
    close_flow(&f, 4);
}

/* Any option makes another digest. */
static void test_options_digest(void **state)
{
    const ps_packer_options base = {
        .capacity = 64, .depth = 5, .window = 33};
    ps_packer_options o[9];
    uint64_t digests[9];

    for (size_t i = 0; i < 9; i++)
        o[i] = base;
    o[1].policy = PS_POLICY_BESTFIT;
    o[2].order = PS_PACKS_BY_INPUT;
    o[3].order = PS_PACKS_SHUFFLED;
    o[3].seed = 1;
    o[4].order = PS_PACKS_SHUFFLED;
    o[4].seed = 2;
    o[5].max_delay = 5;
    o[6].max_bytes = 100000;
    o[7].even_cost = true;
    o[8].depth = PS_DEPTH_AUTO;
    for (size_t i = 0; i < 9; i++) {
        flow f = open_flow(&o[i]);

        digests[i] = ps_packer_info(f.p)->options_digest;
        for (size_t k = 0; k < i; k++)
            assert_true(digests[k] != digests[i]);
        close_flow(&f, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_delay),
        cmocka_unit_test(test_delay_by_others),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_depth_is_chosen),
        cmocka_unit_test(test_depth_is_chosen_early),
        cmocka_unit_test(test_chosen_or_given),
        cmocka_unit_test(test_concat),
        cmocka_unit_test(test_options_digest),
    };

    return run_as_tap("packer-flow", tests, NULL);
}
