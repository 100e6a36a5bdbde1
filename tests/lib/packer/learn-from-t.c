/*
 * learn-from-t.c - a packer that gets the histogram of the expected lengths.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan-naive.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bfd-blocks.h"
#include "lengths.h"
#include "lib-alloc.h"

#define CAPACITY 512

/* Like Wikipedia: many as long as a pack or nearly so, and short ones. */
#define LIKE_WIKIPEDIA \
    "mix:0.25*=512+0.15*normal:485,20+0.6*lognormal:4.9,0.7"

#define SHARDS 8
#define PER_SHARD 3000
#define CORPUS 200000

static uint32_t *draw(const char *distribution, uint64_t seed, size_t n)
{
    lengths *l = lengths_parse(distribution, CAPACITY);
    uint32_t *drawn = must_alloc(n * sizeof *drawn);

    assert_non_null(l);
    assert_true(lengths_draw(l, LENGTHS_RANDOM, seed, drawn, n));
    lengths_free(l);
    return drawn;
}

static ps_histogram *count(const uint32_t *drawn, size_t n)
{
    ps_histogram *h;
    ps_error err;

    assert_ok(lengths_histogram(drawn, n, &h, &err), &err);
    return h;
}

/* ------------------------------------------------------------ efficiency */

static uint64_t packed(const uint32_t *drawn, size_t n,
                       const ps_packer_options *o)
{
    uint64_t *order = must_alloc(2 * n * sizeof *order);
    uint64_t packs;
    ps_error err;

    assert_ok(ps_pack_lengths(drawn, NULL, n, o, order, order + n, &packs,
                              &err),
              &err);
    free(order);
    return packs;
}

/* Packs above the bound, as a fraction of it. */
static double excess(double packs, double bound)
{
    return packs / bound - 1;
}

static double bound_of(const uint32_t *drawn, size_t n, uint32_t depth)
{
    ps_histogram *h = count(drawn, n);
    double bound;
    ps_error err;

    assert_ok(ps_plan_bound(h, CAPACITY, depth, &bound, &err), &err);
    ps_histogram_free(h);
    return bound;
}

/*
 * With the histogram of the corpus small shards exceed their bound by less, and
 * by no more than the corpus in one piece.
 */
static void test_shards_pack_as_the_whole(void **state)
{
    ps_packer_options alone = {CAPACITY, 3, 256, 0, .level = 0};
    ps_packer_options learned = alone;
    uint32_t *all = draw(LIKE_WIKIPEDIA, 1, CORPUS);
    ps_histogram *h = count(all, CORPUS);
    double whole = excess((double)packed(all, CORPUS, &alone),
                          bound_of(all, CORPUS, 3));
    double packs[2] = {0, 0};
    double bound = 0;

    learned.learn_from = h;
    for (size_t i = 0; i < SHARDS; i++) {
        const uint32_t *shard = all + i * PER_SHARD;

        packs[0] += (double)packed(shard, PER_SHARD, &alone);
        packs[1] += (double)packed(shard, PER_SHARD, &learned);
        bound += bound_of(shard, PER_SHARD, 3);
    }
    print_message("# above the bound: shards %.5f, with the histogram %.5f;"
                  " the corpus %.5f\n",
                  excess(packs[0], bound), excess(packs[1], bound), whole);
    assert_true(excess(packs[1], bound) < 0.75 * excess(packs[0], bound));
    assert_true(excess(packs[1], bound) < whole);
    ps_histogram_free(h);
    free(all);
}

/* ----------------------------------------------------------- the header */

/* The header of a packer that was just opened. */
static ps_pack_info header_with(const ps_histogram *h)
{
    const ps_packer_options o = {CAPACITY, 0, 64, 0, .learn_from = h};
    int fd = open_empty();
    ps_packer *p = open_packer(fd, &o);
    ps_pack_info info = *ps_packer_info(p);

    ps_packer_free(p);
    (void)close(fd);
    return info;
}

/*
 * The digest of the options distinguishes histograms, however they were built.
 */
static void test_header(void **state)
{
    uint32_t *drawn = draw("lognormal:3.5,0.5", 1, CORPUS);
    ps_histogram *h = count(drawn, CORPUS);
    ps_histogram *backwards = open_histogram();
    ps_histogram *twice = open_histogram();
    ps_pack_info none = header_with(NULL);
    ps_pack_info info = header_with(h);
    ps_pack_info other;
    ps_error err;

    assert_true(info.options_digest != none.options_digest);
    for (size_t i = ps_histogram_size(h); i-- > 0;) {
        uint32_t length = ps_histogram_length(h, i);

        add_lengths(backwards, length, ps_histogram_count(h, i));
        add_lengths(twice, length, 2 * ps_histogram_count(h, i));
    }
    other = header_with(backwards);
    assert_ok(ps_pack_info_compare(&other, &info, &err), &err);
    assert_true(other.options_digest == info.options_digest);
    other = header_with(twice);
    assert_true(other.options_digest != info.options_digest);
    ps_histogram_free(h);
    ps_histogram_free(backwards);
    ps_histogram_free(twice);
    free(drawn);
}

static void test_refused(void **state)
{
    const ps_schema raw = ps_schema_raw(PS_U16);
    ps_histogram *h = open_histogram();
    ps_packer_options o = {CAPACITY, 3, 64, 0, .learn_from = h};
    ps_error err;

    assert_result(ps_packer_check(&raw, &o, &err), PS_ERR_ARGUMENT, &err);
    assert_non_null(strstr(err.text, "is empty"));
    assert_true(ps_packer_memory(&raw, &o) == UINT64_MAX);
    add_lengths(h, CAPACITY, 1);
    assert_ok(ps_packer_check(&raw, &o, &err), &err);
    add_lengths(h, CAPACITY + 1, 1);
    assert_result(ps_packer_check(&raw, &o, &err), PS_ERR_ARGUMENT, &err);
    assert_non_null(strstr(err.text, "has length 513, which exceeds"));
    ps_histogram_free(h);
}

/* ----------------------------------------------------- streams and states */

/* All packs of a corpus, stopped and resumed after `at` sequences unless 0. */
static bytes packs_with(const corpus *c, const ps_packer_options *o,
                        uint32_t at)
{
    unsigned char *saved;
    size_t size;
    ps_state says;
    ps_packer *p;
    ps_error err;
    bytes got;
    int fd = open_empty();

    assert_ok(ps_packer_open(&p, fd, &c->schema, o, &err), &err);
    put_corpus(p, c, 0, at);
    if (at > 0) {
        assert_ok(ps_packer_save(p, NULL, 0, &saved, &size, &err), &err);
        ps_packer_free(p);
        assert_ok(ps_state_read(saved, size, &says, &err), &err);
        assert_int_equal(lseek(fd, 0, SEEK_END), says.output_bytes);
        assert_ok(ps_packer_resume(&p, fd, &c->schema, o, saved, size, &err),
                  &err);
        free(saved);
        at = (uint32_t)says.resume_from_id;
    }
    put_corpus(p, c, at, c->count);
    assert_ok(ps_packer_flush(p, PS_FLUSH_FINISH, &err), &err);
    ps_packer_free(p);
    got = read_back(fd);
    (void)close(fd);
    return got;
}

/* Aligned or not, with every policy that learns. */
static void test_goes_on(void **state)
{
    const ps_packer_options sets[] = {
        {40, 0, 9, 1, .level = 0},
        {40, 4, 9, 1, .level = 0},
        {40, 0, 9, 1, .align = 8},
        {40, 0, 9, 1, .order = PS_PACKS_SHUFFLED, .seed = 3},
        {40, 0, 9, 1, .policy = PS_POLICY_SPFHP},
        {40, 0, 9, 1, .policy = PS_POLICY_CONCAT},
    };
    const ps_schema schema = rich_schema(PS_U16);
    corpus c = make_corpus(&schema, 120, 40, 4);
    ps_histogram *h = histogram_of("3:70 11:40 17:50 29:5 40:2");

    for (size_t i = 0; i < COUNT(sets); i++) {
        ps_packer_options o = sets[i];
        bytes whole;

        o.learn_from = h;
        whole = packs_with(&c, &o, 0);
        for (uint32_t at = 60; at < c.count; at += is_short() ? 29 : 7) {
            bytes got = packs_with(&c, &o, at);

            assert_same_bytes(&got, &whole);
        }
    }
    ps_histogram_free(h);
}

/* ---------------------------------------------------------------- memory */

/* Opens a packer without input, and returns its peak memory. */
static size_t open_and_free(const ps_packer_options *o, uint64_t fails)
{
    const ps_schema raw = ps_schema_raw(PS_U16);
    const alloc_counts before = alloc_so_far();
    ps_packer *p;
    ps_result r;
    ps_error err;
    int fd = open_empty();

    alloc_watch();
    alloc_fail(fails, fails % 2 == 0);
    r = ps_packer_open(&p, fd, &raw, o, &err);
    alloc_fail(0, false);
    assert_int_equal(r, alloc_so_far().failed == 0 ? PS_OK : PS_ERR_MEMORY);
    ps_packer_free(p);
    (void)close(fd);
    assert_int_equal(alloc_so_far().blocks, before.blocks);
    return alloc_so_far().peak;
}

/* A length for each number of tokens: the bound covers the histogram, too. */
static void test_bound(void **state)
{
    const ps_schema raw = ps_schema_raw(PS_U16);
    const size_t before = alloc_so_far().bytes;
    ps_histogram *h = open_histogram();
    ps_packer_options o = {CAPACITY, 3, 64, 0, .learn_from = h};

    for (uint32_t length = CAPACITY; length > 0; length--)
        add_lengths(h, length, length);
    assert_true(open_and_free(&o, 0) - before <= ps_packer_memory(&raw, &o));
    o.depth = 0;
    assert_true(open_and_free(&o, 0) - before <= ps_packer_memory(&raw, &o));
    ps_histogram_free(h);
}

/* Wherever memory runs out, the error is reported. */
static void test_no_memory(void **state)
{
    ps_histogram *h = histogram_of("3:70 11:40 17:50 29:5 40:2");
    const ps_packer_options o = {40, 3, 9, 1, .align = 2, .learn_from = h};
    uint64_t nth = 1;

    do
        (void)open_and_free(&o, nth);
    while (alloc_so_far().failed > 0 && ++nth < 1000);
    assert_in_range(nth, 10, 999);
    for (nth = 1; alloc_so_far().failed > 0 || nth == 1; nth++) {
        static const uint32_t drawn[] = {3, 11};
        uint64_t order[2], ends[2], packs;
        ps_result r;
        ps_error err;

        alloc_watch();
        alloc_fail(nth, false);
        r = ps_pack_lengths(drawn, NULL, 2, &o, order, ends, &packs, &err);
        alloc_fail(0, false);
        assert_int_equal(r, alloc_so_far().failed == 0 ? PS_OK
                                                       : PS_ERR_MEMORY);
    }
    ps_histogram_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shards_pack_as_the_whole),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_no_memory),
    };

    return run_as_tap("learn-from", tests, NULL);
}
