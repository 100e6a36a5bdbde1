/*
 * packer-flow-t.c - when packs leave a packer: drained, out of memory, after a
 * delay, or full; and when their block is written.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
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

/* Ends the stream, which must be readable and have that many packs. */
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
    (void)close(f->fd);
}

static void test_drain(void **state)
{
    const ps_packer_options o = {10, 4, 100, 0, .policy = PS_POLICY_AUTO};
    flow f = open_flow(&o);
    /* Head, row of 24 bytes, and two sequence rows of 16. */
    const size_t block = 64 + 24 + 40 + 32 + 32;

    drain(&f);
    assert_int_equal(size_of(f.fd), PS_PACK_HEADER_BYTES);
    put(&f, 3);
    put(&f, 4);
    drain(&f);
    assert_int_equal(packs(&f), 1);
    assert_int_equal(size_of(f.fd), PS_PACK_HEADER_BYTES + block);
    drain(&f);
    assert_int_equal(packs(&f), 1);
    put(&f, 3);
    close_flow(&f, 2);
}

/* Rejected records and pieces count towards the delay. */
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

/* A sequence that does not fit forces others out: 768 bytes hold three. */
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

/* The blocks have these numbers of packs, up to a 0 in `n_packs`. */
static void assert_blocks(const flow *f, const uint32_t *n_packs)
{
    bytes b = read_back(f->fd);
    size_t at = PS_PACK_HEADER_BYTES;

    for (; *n_packs > 0; n_packs++) {
        assert_true(at < b.size);
        assert_int_equal(get_u32(b.data + at + 8), *n_packs);
        at += block_bytes(b.data + at);
    }
    assert_int_equal(at, b.size);
}
#define BLOCKS(...) ((const uint32_t[]){__VA_ARGS__})

/* Only closed blocks are written; only a drain or the end closes one early. */
static void test_blocks(void **state)
{
    const ps_packer_options sets[] = {
        {10, 4, 9, 0, .policy = PS_POLICY_NONE, .block_packs = 4},
        {10, 4, 9, 0, .policy = PS_POLICY_NONE, .block_packs = 4,
         .threads = 1},
    };

    for (size_t i = 0; i < COUNT(sets); i++) {
        flow f = open_flow(&sets[i]);
        unsigned char *saved;
        size_t size;
        ps_error err;

        for (int n = 0; n < 7; n++) {
            put(&f, 9);
            assert_ok(ps_packer_flush(f.p, PS_FLUSH_NOWAIT, &err), &err);
            assert_ok(ps_packer_flush(f.p, PS_FLUSH_DECIDED, &err), &err);
            assert_ok(ps_packer_save(f.p, "", 0, &saved, &size, &err), &err);
            free(saved);
            if (n == 2)
                assert_blocks(&f, BLOCKS(0));
        }
        assert_int_equal(packs(&f), 7);
        assert_blocks(&f, BLOCKS(4, 0));
        drain(&f);
        drain(&f);
        assert_blocks(&f, BLOCKS(4, 3, 0));
        for (int n = 0; n < 5; n++)
            put(&f, 9);
        assert_ok(ps_packer_flush(f.p, PS_FLUSH_DECIDED, &err), &err);
        assert_blocks(&f, BLOCKS(4, 3, 4, 0));
        close_flow(&f, 12);
    }
}

/* Without a depth cap, packs are the same as with a cap that is never met. */
static void test_no_cap(void **state)
{
    const ps_schema schema = rich_schema(PS_U16);
    corpus c = make_corpus(&schema, 300, 30, 6);

    for (int policy = 0; policy < PS_POLICY_NONE; policy++)
        for (int order = 0; order <= PS_PACKS_SHUFFLED; order++) {
            ps_packer_options o = {64, 0, 33, 0,
                                   .policy = (ps_policy)policy,
                                   .order = (ps_pack_order)order,
                                   .seed = 3, .block_packs = 4};
            ps_totals totals[2];
            bytes a = corpus_packs(&c, &o, &totals[0]);
            bytes b;

            assert_int_equal(get_u32(a.data + 52), 0);
            o.depth = 64;
            b = corpus_packs(&c, &o, &totals[1]);
            assert_int_equal(get_u32(b.data + 52), 64);
            assert_totals(&totals[0], &totals[1]);
            assert_int_equal(a.size, b.size);
            /* The digest in END covers that of the options. */
            assert_memory_equal(
                a.data + PS_PACK_HEADER_BYTES, b.data + PS_PACK_HEADER_BYTES,
                (size_t)(end_at(&a, 0) - a.data) - PS_PACK_HEADER_BYTES);
        }
}

/*
 * Policies without a window leave no gap: the open pack is held, and closes
 * once it is full or the next sequence does not fit.
 */
static void test_open_pack(void **state)
{
    static const uint32_t caps[] = {0, 8192, 1000};

    for (size_t i = 0; i < 2 * COUNT(caps); i++) {
        const bool cuts = i % 2 == 0;
        const uint32_t depth = caps[i / 2];
        const ps_packer_options o = {
            8192, depth, 1, 0,
            .policy = cuts ? PS_POLICY_CONCAT : PS_POLICY_NEXTFIT};
        flow f = open_flow(&o);
        uint64_t n;

        for (n = 1; n <= 10000; n++) {
            put(&f, 3);
            assert_int_equal(packs(&f), depth == 1000 ? n / 1000
                                        : cuts        ? 3 * n / 8192
                                                      : (n - 1) / 2730);
        }
        assert_int_equal(ps_packer_totals(f.p)->min_fill,
                         depth == 1000 ? 3000
                         : cuts        ? 8192
                                       : 8190);
        close_flow(&f, depth == 1000 ? 10 : 4);
    }
}

/* The same in any order, with all kinds of lengths, aligned or not. */
static void test_no_gaps(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);

    for (uint32_t i = 0; i < 12; i++) {
        const ps_packer_options o = {
            60, 0, 1 + i % 2, 0,
            .policy = i < 6 ? PS_POLICY_CONCAT : PS_POLICY_NEXTFIT,
            .order = (ps_pack_order)(i % 3), .seed = 4,
            .align = i % 4 < 2 ? 1 : 4};
        corpus c = make_corpus(&schema, 500, i % 5 < 2 ? 3 : 60, 1 + i);
        ps_totals totals;
        uint32_t used = 0; /* of the open pack */
        uint64_t wanted = 1;

        (void)corpus_packs(&c, &o, &totals);
        for (uint32_t k = 0; k < c.count; k++) {
            uint32_t n = c.samples[k].n_tok;

            if (n > 60 - used && i >= 6) {
                wanted++;
                used = 0;
            }
            for (; n > 60 - used; used = 0) {
                n -= 60 - used;
                wanted++;
            }
            used += (n + o.align - 1) / o.align * o.align;
        }
        assert_int_equal(totals.packs, wanted);
    }
}

/* Every option changes the digest. */
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
    o[8].depth = 0;
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
        cmocka_unit_test(test_delay_by_others),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_no_cap),
        cmocka_unit_test(test_open_pack),
        cmocka_unit_test(test_no_gaps),
        cmocka_unit_test(test_options_digest),
    };

    return run_as_tap("packer-flow", tests, NULL);
}
