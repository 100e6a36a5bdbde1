/*
 * window-plan-t.c - the end of a stream is packed well with little work.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-alloc.h"
#include "plan-naive.h"
#include "plan/repack.h"
#include "plan/window_plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Sums of `terms` equally likely numbers from `from` to `to`. */
typedef struct kind {
    const char *name;
    uint32_t capacity;
    uint32_t from;
    uint32_t to;
    uint32_t terms;
} kind;

/* Near a half, a third, a quarter and a tenth of a pack, and of any length. */
static const kind kinds[] = {
    {"even", 512, 1, 512, 1},     {"halves", 512, 50, 75, 4},
    {"thirds", 512, 20, 70, 4},   {"quarters", 1024, 40, 110, 4},
    {"tenths", 1024, 20, 32, 4},  {"few", 1024, 335, 350, 1},
    {"long", 131072, 1, 9000, 4}, {"short", 4096, 1, 60, 4},
    {"wide", 2048, 512, 1023, 1},
};

static const uint32_t depths[] = {1, 2, 3, 4, 8, 16, 64};

static ps_histogram *draw(const kind *k, uint32_t n, uint64_t *random)
{
    ps_histogram *h = open_histogram();

    for (uint32_t i = 0; i < n; i++) {
        uint32_t length = 0;

        for (uint32_t t = 0; t < k->terms; t++)
            length += k->from + random_below(random, k->to - k->from + 1);
        add_lengths(h, length, 1);
    }
    return h;
}

/* The plan's packs above the lower bound. */
static double excess(ps_effort effort, const kind *k, const ps_histogram *h,
                     uint32_t depth)
{
    ps_plan_options o = plan_options(k->capacity, depth);
    ps_plan *plan;
    ps_error err;
    double bound, packs;

    assert_ok(ps_plan_window(&plan, h, effort, &o, &err), &err);
    assert_ok(ps_plan_check(plan, h, &o, &err), &err);
    packs = (double)ps_plan_packs(plan);
    ps_plan_free(plan);
    assert_ok(ps_plan_bound(h, k->capacity, depth, &bound, &err), &err);
    return packs - ceil(bound);
}

/* The mean excess for `n` sequences of each kind, at each depth. */
static double try_all(ps_effort effort, uint32_t n, double max)
{
    uint64_t random = n;
    double sum = 0;

    for (size_t k = 0; k < COUNT(kinds); k++) {
        ps_histogram *h = draw(&kinds[k], n, &random);

        for (size_t d = 0; d < COUNT(depths); d++) {
            double more = excess(effort, &kinds[k], h, depths[d]);

            if (more > max)
                fail_msg("%" PRIu32 " %s, depth %" PRIu32 ": %.0f more", n,
                         kinds[k].name, depths[d], more);
            sum += more;
        }
        ps_histogram_free(h);
    }
    print_message("# %" PRIu32 ": %.3f packs more\n", n,
                  sum / (COUNT(kinds) * COUNT(depths)));
    return sum / (COUNT(kinds) * COUNT(depths));
}

static void test_few(void **state)
{
    for (uint32_t n = 1; n <= 16; n++)
        (void)try_all(PS_EFFORT_LOW, n, 1);
}

static void test_windows(void **state)
{
    assert_true(try_all(PS_EFFORT_LOW, 64, 1) < 0.1);
    assert_true(try_all(PS_EFFORT_LOW, 256, 2) < 0.4);
    if (!is_short())
        assert_true(try_all(PS_EFFORT_LOW, 1024, 5) < 1);
}

/* The end is planned with more effort. */
static void test_end(void **state)
{
    assert_true(try_all(PS_EFFORT_HIGH, 64, 1) < 0.1);
    if (is_short())
        return;
    assert_true(try_all(PS_EFFORT_HIGH, 1024, 1) < 0.05);
    assert_true(try_all(PS_EFFORT_HIGH, 4096, 2) < 0.25);
}

/* A plan exceeds its work limit only by the work of the first plan. */
static void test_work(void **state)
{
    uint64_t random = 9;

    for (size_t k = 0; k < COUNT(kinds); k++) {
        const uint32_t n = 1000;
        ps_histogram *h = draw(&kinds[k], n, &random);
        double *price = must_alloc(n * sizeof *price);

        for (size_t i = 0; i < ps_histogram_size(h); i++)
            price[i] = (double)ps_histogram_length(h, i) / kinds[k].capacity;
        for (double work = 0; work <= 2e6; work += 2e5) {
            ps_repack_options o = {.capacity = kinds[k].capacity,
                                   .depth = 16,
                                   .price = price,
                                   .min_packs = 1,
                                   .work = work};
            ps_plan *plan = NULL;
            ps_error err;

            assert_ok(ps_plan_repack(&plan, h, &o, &err), &err);
            assert_true(o.work > -100.0 * n);
            ps_plan_free(plan);
        }
        free(price);
        ps_histogram_free(h);
    }
}

static void test_memory_told(void **state)
{
    uint64_t random = 7;

    for (size_t k = 0; k < COUNT(kinds); k++)
        for (uint32_t n = 64; n <= (is_short() ? 512 : 4096); n *= 8) {
            ps_histogram *h = draw(&kinds[k], n, &random);
            ps_plan_options o = plan_options(kinds[k].capacity, 16);
            ps_plan_size size = {.sequences = n,
                                 .lengths = (uint32_t)ps_histogram_size(h),
                                 .capacity = o.capacity,
                                 .depth = o.depth};

            for (ps_effort e = PS_EFFORT_LOW; e <= PS_EFFORT_HIGH; e++) {
                size_t before = alloc_so_far().bytes;
                ps_plan *plan;
                ps_error err;

                alloc_watch();
                assert_ok(ps_plan_window(&plan, h, e, &o, &err), &err);
                assert_true(alloc_so_far().peak - before <=
                            ps_plan_window_bytes(&size, e));
                assert_ok(ps_plan_check(plan, h, &o, &err), &err);
                ps_plan_free(plan);
            }
            ps_histogram_free(h);
        }
}

/* Each allocation fails in turn: it is reported, and nothing leaks. */
static void test_memory(void **state)
{
    uint64_t random = 8;
    ps_histogram *h = draw(&kinds[2], 500, &random);
    ps_plan_options o = plan_options(kinds[2].capacity, 4);
    size_t blocks = alloc_so_far().blocks;
    ps_result r = PS_ERR_MEMORY;

    for (uint64_t nth = 1; r != PS_OK; nth++) {
        ps_plan *plan;
        ps_error err;

        alloc_watch();
        alloc_fail(nth, false);
        r = ps_plan_window(&plan, h, PS_EFFORT_LOW, &o, &err);
        alloc_fail(0, false);
        assert_int_equal(r, alloc_so_far().failed > 0 ? PS_ERR_MEMORY
                                                      : PS_OK);
        ps_plan_free(plan);
        assert_int_equal(alloc_so_far().blocks, blocks);
    }
    ps_histogram_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_work),
        cmocka_unit_test(test_memory_told),
        cmocka_unit_test(test_memory),
    };

    return run_as_tap("window-plan", tests, NULL);
}
