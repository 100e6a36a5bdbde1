/*
 * pack-lengths-t.c - packing lengths alone gives a packer's packs, and streams
 * to a hook equal those to a file.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <string.h>
#include <unistd.h>

#define MANY 3000
#define LONGEST 100

static const ps_packer_options usual = {LONGEST, 5, 64, 0, .threads = 0};

static ps_result take(void *context, const void *data, size_t n, ps_error *err)
{
    put_bytes(context, data, n);
    return PS_OK;
}

/* Accepts some writes, then fails. */
typedef struct torn {
    unsigned left;
    ps_result result;
    bool tells;
} torn;

static ps_result take_some(void *context, const void *data, size_t n,
                           ps_error *err)
{
    torn *t = context;

    if (t->left > 0) {
        t->left--;
        return PS_OK;
    }
    if (t->tells)
        *err = (ps_error){t->result, 0, "the tape is torn"};
    return t->result;
}

/* A stream of MANY sequences, written through a hook. */
static bytes packed(const corpus *c, ps_packer_options o)
{
    bytes b = {0};
    ps_packer *p;
    ps_error err;

    o.write = take;
    o.write_context = &b;
    p = open_packer(-1, &o);
    put_corpus(p, c, 0, c->count);
    assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    ps_packer_free(p);
    return b;
}

static void test_hook_takes_the_stream(void **state)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    corpus c = make_corpus(&schema, MANY, LONGEST, 1);

    for (uint32_t threads = 0; threads < 3; threads += 2) {
        for (int compressed = 0; compressed < 2; compressed++) {
            ps_packer_options o = usual;
            bytes file, hook;

            o.threads = threads;
            o.compressed = compressed == 1;
            file = corpus_packs(&c, &o, NULL);
            hook = packed(&c, o);
            assert_same_bytes(&file, &hook);
        }
    }
}

static void test_hook_fails(void **state)
{
    static const torn hooks[] = {{0, PS_ERR_IO, false},
                                 {1, PS_ERR_IO, false},
                                 {1, PS_ERR_LIMIT, false},
                                 {1, PS_END, false},
                                 {0, PS_ERR_IO, true},
                                 {1, PS_ERR_IO, true}};
    const ps_schema schema = ps_schema_raw(PS_U16);

    for (size_t i = 0; i < COUNT(hooks); i++) {
        torn hook = hooks[i];
        ps_packer_options o = usual;
        ps_packer *p;
        ps_error err;

        o.write = take_some;
        o.write_context = &hook;
        /* The header is written immediately. */
        assert_result(ps_packer_open(&p, -1, &schema, &o, &err),
                      hooks[i].left > 0 ? PS_OK : hook.result, &err);
        assert_int_equal(p != NULL, hooks[i].left > 0);
        if (p != NULL)
            assert_result(ps_packer_flush(p, PS_FLUSH_FINISH, &err),
                          hook.result, &err);
        if (hook.tells)
            assert_string_equal(err.text, "the tape is torn");
        ps_packer_free(p);
    }
}

/* Compares packs made from lengths with those of a stream. */
static void check_same_packs(const ps_packer_options *o, uint64_t seed)
{
    const ps_schema schema = ps_schema_raw(PS_U16);
    corpus c = make_corpus(&schema, MANY, o->capacity, seed);
    static uint32_t lengths[MANY];
    static uint64_t order[MANY], ends[MANY];
    uint64_t n_packs, at = 0;
    bytes b = packed(&c, *o);
    ps_pack_reader *reader;
    ps_error err;
    ps_pack pack;
    int fd = open_bytes(&b);

    for (uint32_t i = 0; i < MANY; i++)
        lengths[i] = c.samples[i].n_tok;
    assert_ok(ps_pack_lengths(lengths, NULL, MANY, o, order, ends, &n_packs,
                              &err),
              &err);
    assert_ok(ps_pack_reader_open(&reader, fd, &err), &err);
    for (uint64_t p = 0; p < n_packs; p++) {
        const ps_pack_info *info = ps_pack_reader_info(reader);

        assert_ok(ps_pack_reader_next(reader, &pack, &err), &err);
        assert_int_equal(ends[p] - at, pack.n_seq);
        for (uint32_t i = 0; i < pack.n_seq; i++)
            assert_int_equal(order[at++], ps_pack_piece(info, &pack, i).id);
    }
    assert_int_equal(at, MANY);
    assert_result(ps_pack_reader_next(reader, &pack, &err), PS_END, &err);
    ps_pack_reader_free(reader);
    (void)close(fd);
}

static void test_same_packs(void **state)
{
    for (int policy = PS_POLICY_AUTO; policy <= PS_POLICY_NONE; policy++) {
        for (int order = PS_PACKS_BY_WINDOW; order <= PS_PACKS_SHUFFLED;
             order++) {
            ps_packer_options o = usual;

            o.policy = (ps_policy)policy;
            o.order = (ps_pack_order)order;
            o.seed = 7;
            check_same_packs(&o, 10 + (uint64_t)policy);
        }
    }
}

static void test_same_packs_of_odd_options(void **state)
{
    ps_packer_options o = usual;

    o.align = 10;
    check_same_packs(&o, 30);
    o.max_delay = 9;
    o.even_cost = true;
    check_same_packs(&o, 31);
    o.window = 1;
    check_same_packs(&o, 32);
    o.depth = 1;
    check_same_packs(&o, 33);
}

static void test_refused(void **state)
{
    const uint32_t good[] = {LONGEST, 1}, empty[] = {1, 0},
                   overlong[] = {1, LONGEST + 1};
    uint64_t order[2], ends[2], n_packs = 9;
    ps_packer_options o = usual;
    ps_error err;

    assert_ok(ps_pack_lengths(NULL, NULL, 0, &o, NULL, NULL, &n_packs, &err),
              &err);
    assert_int_equal(n_packs, 0);
    assert_result(ps_pack_lengths(empty, NULL, 2, &o, order, ends, &n_packs,
                                  &err),
                  PS_ERR_EMPTY, &err);
    assert_non_null(strstr(err.text, "sequence 1"));
    assert_result(
        ps_pack_lengths(overlong, NULL, 2, &o, order, ends, &n_packs, &err),
        PS_ERR_OVERLONG, &err);
    assert_int_equal(n_packs, 0);
    o.policy = PS_POLICY_CONCAT;
    assert_result(ps_pack_lengths(good, NULL, 2, &o, order, ends, &n_packs,
                                  &err),
                  PS_ERR_ARGUMENT, &err);
    o = usual;
    o.overlong = PS_OVERLONG_DROP;
    assert_result(ps_pack_lengths(good, NULL, 2, &o, order, ends, &n_packs,
                                  &err),
                  PS_ERR_ARGUMENT, &err);
    o = usual;
    o.window = PS_MAX_WINDOW + 1;
    assert_result(ps_pack_lengths(good, NULL, 2, &o, order, ends, &n_packs,
                                  &err),
                  PS_ERR_ARGUMENT, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hook_takes_the_stream),
        cmocka_unit_test(test_hook_fails),
        cmocka_unit_test(test_same_packs),
        cmocka_unit_test(test_same_packs_of_odd_options),
        cmocka_unit_test(test_refused),
    };

    return run_as_tap("pack-lengths", tests, NULL);
}
