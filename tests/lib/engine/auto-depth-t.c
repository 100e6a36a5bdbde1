/*
 * auto-depth-t.c - the depth that is chosen by a histogram.
 *
 * SPDX-License-Identifier: MIT
 */

#include "plan-naive.h"

#include <inttypes.h>
#include <stdlib.h>

#include "bfd-blocks.h"
#include "engine-drive.h"
#include "engine/auto_depth.h"
#include "lengths.h"

/* The depth for `n` lengths, each as often as `counts` says. */
static uint32_t choose(uint32_t capacity, uint32_t max, size_t n,
                       const uint32_t *given, const uint64_t *counts)
{
    const ps_engine_options options = {.capacity = capacity,
                                       .depth = max,
                                       .window = 256,
                                       .max_delay = 512};
    ps_histogram *h = open_histogram();
    uint32_t depth = 0;
    ps_error err;

    for (size_t i = 0; i < n; i++)
        add_lengths(h, given[i], counts[i]);
    assert_ok(ps_depth_choose(h, &options, &depth, &err), &err);
    ps_histogram_free(h);
    return depth;
}

/* As many as fit, and a step or two more. */
static void test_one_length(void **state)
{
    static const struct {
        uint32_t capacity;
        uint32_t max;
        uint32_t length;
    } cases[] = {
        {100, 100, 100}, {100, 100, 51}, {100, 100, 33}, {100, 100, 10},
        {100, 100, 1},   {100, 1, 1},    {100, 5, 10},   {70000, 65536, 1},
    };
    const uint64_t count = 1000;

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint32_t max = cases[i].max;
        uint32_t fit = cases[i].capacity / cases[i].length;
        uint32_t depth = choose(cases[i].capacity, max, 1, &cases[i].length,
                                &count);

        assert_in_range(depth, fit < max ? fit : max,
                        max < 2 * fit + 2 ? max : 2 * fit + 2);
    }
}

/* Of few sequences not much follows. */
static void test_few(void **state)
{
    static const uint32_t length = 50;
    static const uint64_t count = 63;

    assert_int_equal(choose(100, 100, 0, NULL, NULL), 16);
    assert_int_equal(choose(100, 100, 1, &length, &count), 16);
    assert_int_equal(choose(100, 9, 1, &length, &count), 9);
    assert_int_equal(choose(100, 9, 0, NULL, NULL), 9);
}

/* A few short ones are no reason for depth, many are. */
static void test_mixture(void **state)
{
    static const uint32_t two[] = {1, 50};
    static const uint64_t few[] = {1, 100000};
    static const uint64_t many[] = {50000, 1000};

    assert_true(choose(100, 100, 2, two, few) <= 6);
    assert_true(choose(100, 100, 2, two, many) >= 48);
}

static void test_too_long(void **state)
{
    const ps_engine_options options = {
        .capacity = 9, .depth = 9, .window = 4, .max_delay = 8};
    ps_histogram *h = histogram_of("10:1");
    uint32_t depth;
    ps_error err;

    assert_result(ps_depth_choose(h, &options, &depth, &err),
                  PS_ERR_ARGUMENT, &err);
    ps_histogram_free(h);
}

/* ---- Next to fixed depths ---- */

#define SEQUENCES 40000

/* Of a share of the first and the rest of the second; 0: heavy. */
typedef struct stream {
    uint32_t capacity;
    uint32_t percent;
    double mean[2];
    double deviation[2];
} stream;

static const stream streams[] = {
    {512, 100, {5, 0}, {1, 1}},     {512, 100, {2.5, 0}, {1, 1}},
    {1024, 100, {5, 0}, {1, 1}},    {2048, 100, {5, 0}, {1, 1}},
    {2048, 100, {6, 0}, {.3, 1}},   {2048, 80, {3, 7.4}, {.3, .1}},
    {4096, 100, {4, 0}, {1.5, 1}},  {4096, 70, {5, 7}, {.6, .5}},
    {8192, 100, {6.5, 0}, {1.2, 1}}, {8192, 70, {5, 7}, {.6, .5}},
    {8192, 0, {0, 0}, {1, 1}},
};

static void draw_stream(const stream *s, uint32_t *to)
{
    uint32_t *drawn[2] = {to, must_alloc(SEQUENCES * sizeof *to)};

    for (unsigned part = 0; part < 2; part++) {
        lengths *l = s->percent == 0
                         ? lengths_heavy(s->capacity)
                         : lengths_lognormal(s->mean[part],
                                             s->deviation[part],
                                             s->capacity);

        assert_non_null(l);
        assert_true(lengths_draw(l, LENGTHS_RANDOM, 7 + part, drawn[part],
                                 SEQUENCES));
        lengths_free(l);
    }
    for (uint32_t i = 0; s->percent > 0 && i < SEQUENCES; i++)
        if (i * UINT32_C(61) % 100 >= s->percent)
            to[i] = drawn[1][i];
    free(drawn[1]);
}

static uint64_t packs_with(const ps_engine_options *options, uint32_t depth,
                           const uint32_t *drawn)
{
    ps_engine_options o = *options;
    drive_figures f;

    o.depth = depth;
    if (!drive(&o, drawn, SEQUENCES, 0, &f))
        fail_msg("%s", f.fault);
    return f.packs;
}

/* Within 0.02%, and two packs by chance, of the best of some depths. */
static void test_near_the_best(void **state)
{
    static const uint32_t fixed[] = {3, 4, 5, 8, 16, 64, UINT32_MAX};
    uint32_t *drawn;

    skip_if_quick();
    drawn = must_alloc(SEQUENCES * sizeof *drawn);
    for (size_t i = 0; i < COUNT(streams); i++) {
        const ps_engine_options o = {.capacity = streams[i].capacity,
                                     .depth = streams[i].capacity,
                                     .window = 256,
                                     .max_delay = 512};
        ps_histogram *h;
        uint32_t depth;
        uint64_t packs;
        uint64_t best = UINT64_MAX;
        ps_error err;

        draw_stream(&streams[i], drawn);
        assert_ok(lengths_histogram(drawn, o.window, &h, &err), &err);
        assert_ok(ps_depth_choose(h, &o, &depth, &err), &err);
        ps_histogram_free(h);
        for (size_t k = 0; k < COUNT(fixed); k++) {
            uint32_t d = fixed[k] < o.capacity ? fixed[k] : o.capacity;

            packs = packs_with(&o, d, drawn);
            best = packs < best ? packs : best;
        }
        packs = packs_with(&o, depth, drawn);
        if (packs > best + 2 + best / 5000)
            fail_msg("stream %zu: %" PRIu64 " packs with depth %" PRIu32
                     ", %" PRIu64 " with the best",
                     i, packs, depth, best);
    }
    free(drawn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_length),
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_mixture),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_near_the_best),
    };

    return run_as_tap("depth", tests, NULL);
}
