/*
 * dual-prices-t.c - learned prices against duals worked out by hand, the
 * bound, and every pack that the arrived lengths can form.
 *
 * SPDX-License-Identifier: MIT
 */

#include "dual-prices-fixture.h"

#include <math.h>
#include <stdlib.h>

#include "plan-naive.h"
#include "plan/plan.h"

/* Prices are the mean of cuts whose bound is worse by up to this / sqrt(W). */
#define TOLERANCE 0.2

/* ---- Duals by hand ---- */

/* With one length, the price is its share of a pack. */
static void test_one_length(void **state)
{
    static const struct {
        uint32_t capacity;
        uint32_t length;
        uint32_t depth;
        double dual;
    } cases[] = {
        {99, 34, 3, 1 / 2.0},  {99, 33, 3, 1 / 3.0}, {99, 51, 3, 1},
        {100, 50, 2, 1 / 2.0}, {99, 1, 3, 1 / 3.0},  {99, 1, 64, 1 / 64.0},
        {99, 26, 4, 1 / 3.0},  {99, 25, 4, 1 / 3.0}, {100, 25, 4, 1 / 4.0},
        {99, 17, 6, 1 / 5.0},  {9, 1, 9, 1 / 9.0},   {3, 2, 1, 1},
        {100, 3, 1, 1},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        for (uint32_t window = 10; window <= 10000; window *= 10) {
            ps_dual_prices *p = open_prices(cases[i].capacity,
                                            cases[i].depth, window);

            come(p, cases[i].length, 1000);
            learn(p);
            assert_dual(p, cases[i].length, cases[i].dual);
            close_prices(p);
        }
}

static void expect(ps_dual_prices *p, const char *text)
{
    ps_histogram *h = histogram_of(text);

    ps_dual_prices_expect(p, h);
    ps_histogram_free(h);
}

/*
 * Expected lengths are priced like arrived ones.  They count for at most 64
 * windows, however many they are, and rare ones drop out.
 */
static void test_expected(void **state)
{
    ps_dual_prices *p = open_prices(100, 3, 2000);

    expect(p, "40:800 60:200 100:7");
    assert_true(p->count[40] == 800 && p->count[60] == 200);
    assert_true(p->total == 1000 && p->arrivals == 0);
    learn(p);
    assert_dual(p, 60, 0.5);
    assert_dual(p, 40, 0.5);
    come(p, 60, 1400);
    learn(p);
    assert_dual(p, 60, 1);
    assert_dual(p, 40, 0);
    close_prices(p);

    p = open_prices(100, 3, 10);
    expect(p, "40:3000000000000000 50:1000000000000000 60:1");
    assert_near(p->count[40], 480, 1e-6);
    assert_near(p->count[50], 160, 1e-6);
    assert_true(p->count[60] == 0);
    assert_true(p->total == p->count[40] + p->count[50]);
    close_prices(p);

    /* Full packs carry no information about other lengths. */
    p = open_prices(100, 3, 10);
    expect(p, "100:5000");
    assert_true(p->total == 0);
    learn(p);
    assert_false(p->known);
    close_prices(p);
}

/* Chance does not upset expected prices; a different stream does, at first. */
static void test_expected_in_vain(void **state)
{
    ps_dual_prices *p = open_prices(100, 3, 100);

    expect(p, "20:500 60:500");
    come(p, 20, 60);
    come(p, 60, 40);
    learn(p);
    assert_true(p->count[20] == 560 && p->count[60] == 540);
    come(p, 20, 500);
    learn(p);
    assert_true(p->count[20] == 1060 && p->total == 1600);
    close_prices(p);

    p = open_prices(100, 3, 100);
    expect(p, "20:500 60:500");
    come(p, 20, 90);
    come(p, 60, 10);
    learn(p);
    assert_true(p->count[20] == 90 && p->count[60] == 10);
    assert_true(p->total == 100);
    close_prices(p);
}

/*
 * Equal numbers of 60 and 40 can be priced in two ways; the waiting sequences
 * decide.
 */
static void test_held(void **state)
{
    static const double dual[][2] = {{1, 0}, {0.5, 0.5}};
    ps_dual_prices *p = open_prices(100, 3, 1000);

    come(p, 60, 1000);
    come(p, 40, 1000);
    for (int more = 0; more < 6; more++) {
        uint32_t length = more % 2 == 0 ? 60 : 40;
        ps_error err;

        ps_dual_prices_recount(p, length, 500);
        if (more < 4)
            assert_ok(ps_dual_prices_learn(p, &err), &err);
        ps_dual_prices_follow(p);
        assert_dual(p, 60, dual[more % 2][0]);
        assert_dual(p, 40, dual[more % 2][1]);
        for (int i = 0; i < 500; i++)
            ps_dual_prices_take(p, length);
    }
    close_prices(p);
}

/* Full-length sequences teach nothing, and do not change other prices. */
static void test_full_length(void **state)
{
    static const uint32_t capacities[] = {1, 2, 100, 5000};
    ps_dual_prices *p;

    for (size_t i = 0; i < COUNT(capacities); i++) {
        p = open_prices(capacities[i], 8, 10);
        come(p, capacities[i], 1000);
        assert_true(p->arrivals >= p->next);
        learn(p);
        assert_false(p->known);
        for (uint32_t u = 0; u <= p->units.count; u++)
            assert_near(p->price[u], (double)u / p->units.count, 0);
        close_prices(p);
    }
    p = open_prices(100, 3, 2000);
    come(p, 98, 100);
    come(p, 1, 1000);
    come(p, 100, 5000);
    learn(p);
    assert_dual(p, 98, 1 / 3.0);
    assert_dual(p, 1, 1 / 3.0);
    close_prices(p);
}

/* ---- Dual feasible, and as good as the bound ---- */

/* The best total price of up to `places` arrived lengths, for each capacity. */
static double *fill_rooms(const ps_dual_prices *p, const double *price,
                          uint32_t places)
{
    double *max = calloc(p->units.count + 1, sizeof *max);

    assert_non_null(max);
    for (uint32_t place = 0; place < places; place++)
        for (uint32_t room = p->units.count; room > 0; room--)
            for (uint32_t u = 1; u <= room; u++)
                if (p->count[u] > 0 && price[u] + max[room - u] > max[room])
                    max[room] = price[u] + max[room - u];
    return max;
}

static double dearest_pack(const ps_dual_prices *p, const double *price)
{
    double *max = fill_rooms(p, price, p->depth);
    double all = max[p->units.count];

    free(max);
    return all;
}

/*
 * The prices are feasible, and the total price of all arrivals is within a
 * factor of the bound, and not above it.
 */
static void check_learned(const ps_dual_prices *p, double gap)
{
    ps_histogram *h = open_histogram();
    double bound;
    double told = 0;
    ps_error err;

    for (uint32_t i = 0; i < p->cuts.n; i++)
        assert_true(dearest_pack(p, ps_price_cut(&p->cuts, i)) <=
                    1 + 1e-6);
    gap += TOLERANCE / sqrt(p->window_size);
    for (uint32_t u = 1; u <= p->units.count; u++) {
        told += p->count[u] * p->price[u];
        if (p->count[u] > 0)
            add_lengths(h, u, (uint64_t)p->count[u]);
    }
    assert_ok(ps_plan_bound(h, p->units.count, p->depth, &bound, &err), &err);
    ps_histogram_free(h);
    if (told > bound * (1 + 1e-6) || told < bound * (1 - gap))
        fail_msg("L %u, D %u, W %u: %f packs, not %f", p->capacity,
                 p->depth, p->window_size, told, bound);
}

/* Distributions: even, mostly short, about a third, or a comb. */
static uint32_t draw_length(uint32_t shape, uint32_t capacity,
                            uint64_t *random)
{
    uint32_t a = random_below(random, capacity);
    uint32_t b = random_below(random, capacity);

    switch (shape) {
    case 0:
        return 1 + a;
    case 1:
        return 1 + (uint32_t)((uint64_t)a * b / capacity);
    case 2:
        return 1 + capacity / 5 + (a + b) / 8;
    default:
        return 1 + (a < b ? a : b) / 7 * 7;
    }
}

static void test_distributions(void **state)
{
    static const struct {
        uint32_t capacity;
        uint32_t depth;
        uint32_t window;
        double gap;
    } cases[] = {
        {128, 1, 4096, 4e-4},  {128, 2, 100000, 3e-4}, {200, 3, 4096, 4e-4},
        {100, 4, 4096, 4e-4},  {200, 8, 1024, 2e-3},   {128, 64, 4096, 4e-4},
        {1024, 3, 1024, 2e-3}, {4096, 6, 4096, 2e-3},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        for (uint32_t shape = 0; shape < 4; shape++) {
            ps_dual_prices *p = open_prices(cases[i].capacity,
                                            cases[i].depth,
                                            cases[i].window);
            uint64_t random = i * 4 + shape + 1;

            for (int n = 0; n < 4096; n++)
                come(p, draw_length(shape, cases[i].capacity, &random), 1);
            learn(p);
            check_learned(p, cases[i].gap);
            close_prices(p);
        }
}

/* No pack of arrived lengths and one other is priced above 1. */
static void test_unseen(void **state)
{
    uint64_t random = 12;

    for (int i = 0; i < 200; i++) {
        uint32_t depth = i % 20 == 0 ? 80 : 2 + random_below(&random, 6);
        uint32_t capacity = 90 + random_below(&random, 160);
        ps_dual_prices *p = open_prices(capacity, depth, 2000);

        for (int k = 0; k < 8; k++)
            come(p, 1 + random_below(&random, capacity - 1),
                 60 + random_below(&random, 300));
        for (int more = 0; more < 2; more++) {
            double *max;

            learn(p);
            max = fill_rooms(p, p->price, p->depth - 1);
            for (uint32_t u = 1; u <= p->units.count; u++)
                assert_true(p->price[u] + max[p->units.count - u] <=
                            1 + 1e-6);
            free(max);
        }
        close_prices(p);
    }
}

/* ---- Units ---- */

/* Prices rise linearly between units. */
static void check_units(const ps_dual_prices *p, uint32_t unit)
{
    uint32_t long_one = p->capacity / 10 * 6;

    assert_int_equal(p->units.size, unit);
    assert_true(ps_dual_price_of(p, long_one + unit) >
                PS_SCORE_ONE / 100 * 95);
    assert_true(ps_dual_price_of(p, p->capacity / 10 * 3) <
                PS_SCORE_ONE / 10);
    for (uint32_t l = 1; l + 2 <= unit; l++)
        assert_in_range(ps_dual_price_of(p, l + 1) + 2 +
                            ps_dual_price_of(p, l - 1) -
                            2 * ps_dual_price_of(p, l), 0, 4);
}

/* Units stay fine while at most 32 lengths have arrived. */
static void test_units(void **state)
{
    static const struct {
        uint32_t capacity;
        uint32_t depth;
        uint32_t few;
        uint32_t many;
    } cases[] = {{256, 3, 1, 1},   {257, 3, 1, 2},
                 {256, 4, 1, 1},   {257, 4, 1, 2},
                 {1000, 3, 1, 4},  {2048, 3, 1, 8},
                 {2049, 3, 2, 9},  {131072, 64, 64, 512},
                 {131072, 3, 64, 512}, {PS_MAX_CAPACITY, 3, 8192, 65536}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint32_t capacity = cases[i].capacity;
        ps_dual_prices *p = open_prices(capacity, cases[i].depth, 2000);
        uint32_t short_one = capacity / 10 * 4 - capacity / 200;

        come(p, capacity / 10 * 6, 3000);
        come(p, short_one, 1000);
        for (uint32_t k = 1; k <= 30; k++)
            come(p, short_one - k * (capacity / 200), 1);
        learn(p);
        assert_true(p->few);
        check_units(p, cases[i].few);
        come(p, short_one - 31 * (capacity / 200), 1);
        learn(p);
        assert_false(p->few);
        check_units(p, cases[i].many);
        come(p, 1, 100);
        come(p, capacity - 1, 100);
        learn(p);
        close_prices(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_length),
        cmocka_unit_test(test_expected),
        cmocka_unit_test(test_expected_in_vain),
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_full_length),
        cmocka_unit_test(test_distributions),
        cmocka_unit_test(test_unseen),
        cmocka_unit_test(test_units),
    };

    return run_as_tap("dual-prices", tests, NULL);
}
