/*
 * dual-prices-state-t.c - prices over a stream: when they are learned, when
 * counts fade, which states are refused, and how much memory they need.
 *
 * SPDX-License-Identifier: MIT
 */

#include "dual-prices-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "lib-alloc.h"

/* Layout of a saved state: bytes before the counts, and some offsets. */
#define AT_FEW 0
#define AT_MEAN 4
#define AT_CAME 12
#define AT_NEXT 20
#define AT_INTERVAL 28
#define AT_KNOWN 36
#define AT_LINEAR 40
#define AT_WORK 44
#define AT_VARIATION 52
#define AT_TOTAL 60
#define AT_COUNTS 68

/* ---- When, and for how long ---- */

/*
 * Prices are learned after the first window, again after the same interval if
 * that was informative, and then at growing intervals, up to 32 windows.  It
 * is with 60, which has a pack to itself; not with 20, a third of a pack as
 * the depth implies.  64 fills a pack, and has no price to learn.
 */
static void test_schedule(void **state)
{
    static const uint32_t windows[] = {1, 2, 100, 1000, 5000};
    static const struct {
        uint32_t length;
        uint32_t second; /* interval, in windows */
        uint32_t last;
    } cases[] = {{60, 1, 32}, {20, 2, 32}, {64, 1, 1}};

    for (size_t i = 0; i < COUNT(windows) * COUNT(cases); i++) {
        uint32_t window = windows[i / COUNT(cases)];
        size_t k = i % COUNT(cases);
        ps_dual_prices *p = open_prices(64, 3, window);
        uint64_t interval = window;
        uint64_t due = 0;
        uint64_t n = 0;

        for (int round = 0; round < 10; round++) {
            due += interval;
            for (; p->arrivals < p->next; n++)
                come(p, cases[k].length, 1);
            assert_true(n == due);
            learn(p);
            interval = round == 0 ? (uint64_t)cases[k].second * window
                                  : 2 * interval;
            if (interval > (uint64_t)cases[k].last * window)
                interval = (uint64_t)cases[k].last * window;
        }
        close_prices(p);
    }
}

/* The long-run work of learning, which never stops. */
static void test_work(void **state)
{
    uint32_t lengths[400];
    ps_dual_prices *p = open_prices(512, 64, 16);
    uint64_t random = 3;
    double before = 0;

    for (uint32_t i = 0; i < COUNT(lengths); i++)
        lengths[i] = 40 + i;
    for (uint32_t i = 0; i < 6; i++) {
        stream(p, lengths, COUNT(lengths), 200000, &random);
        assert_true(p->work <= 3e7 + 200.0 * (double)p->arrivals + 2e7);
        assert_true(p->work > before);
        before = p->work;
    }
    close_prices(p);
}

/* ---- How much windows vary ---- */

/* The variation of a stream of 1..100 in runs of `run` equal lengths. */
static double variation_of(uint32_t window, uint32_t run)
{
    ps_dual_prices *p = open_prices(100, 3, window);
    uint64_t random = 8;
    double variation;

    for (uint32_t i = 0; i < 100 * window / run; i++)
        stream(p, (const uint32_t[]){1 + random_below(&random, 100)}, 1, run,
               &random);
    variation = p->variation;
    close_prices(p);
    return variation;
}

/* Chance gives a variation near one; equal runs multiply it by their length. */
static void test_variation(void **state)
{
    for (uint32_t window = 64; window <= 4096; window *= 8) {
        double by_chance = variation_of(window, 1);

        if (by_chance < 1 || by_chance > 2)
            fail_msg("W %u: %f", window, by_chance);
        assert_in_range(variation_of(window, 16), 4, 40);
        assert_in_range(variation_of(window, 64), 10, 160);
    }
}

/* Counts are halved once they cover more than 512 windows. */
static void test_fading(void **state)
{
    ps_dual_prices *p = open_prices(100, 3, 100);

    come(p, 30, 32000);
    come(p, 40, 19200);
    learn(p);
    assert_near(p->total, 51200, 0);
    come(p, 40, 1);
    learn(p);
    assert_near(p->total, 25600.5, 0);
    assert_near(p->count[30], 16000, 0);
    assert_near(p->count[40], 9600.5, 0);
    close_prices(p);
}

/* ---- Units ---- */

/* Prices of `lengths` widely spaced lengths, some of them waiting. */
static ps_dual_prices *open_few(uint32_t capacity, uint32_t lengths,
                                uint32_t *held)
{
    ps_dual_prices *p = open_prices(capacity, 4, 500);

    memset(held, 0, (capacity + 1) * sizeof *held);
    for (uint32_t k = 1; k <= lengths; k++) {
        uint32_t length = capacity / 40 * k + k % 3;

        come(p, length, 10 * k);
        held[length] = k % 5;
        for (uint32_t i = 0; i < held[length]; i++)
            ps_dual_prices_admit(p, length);
    }
    return p;
}

/* Coarsens as a caller does. */
static bool coarsen(ps_dual_prices *p, const uint32_t *held)
{
    if (!ps_dual_prices_coarsen(p))
        return false;
    for (uint32_t l = 1; l < p->capacity; l++)
        if (held[l] > 0)
            ps_dual_prices_recount(p, l, held[l]);
    return true;
}

/* The counts of a fine unit go to the coarse unit that has its middle. */
static void check_coarse(const ps_dual_prices *p, const ps_units *fine,
                         const double *count, const double *recent,
                         const uint32_t *held)
{
    static double wanted[3][2048 + 1];
    double total = 0;

    memset(wanted, 0, sizeof wanted);
    for (uint32_t u = 1; u <= fine->count; u++) {
        uint32_t to = ps_units_round(&p->units, u * fine->size);

        wanted[0][to] += count[u];
        wanted[1][to] += recent[u];
    }
    for (uint32_t l = 1; l < p->capacity; l++)
        wanted[2][ps_units_round(&p->units, l)] += held[l];
    for (uint32_t u = 1; u <= p->units.count; u++) {
        assert_near(p->count[u], wanted[0][u], 1e-9);
        assert_near(p->recent[u], wanted[1][u], 1e-9);
        assert_near(p->in_window[u], wanted[2][u], 0);
        total += p->count[u];
    }
    for (uint32_t u = p->units.count + 1; u <= fine->count; u++)
        assert_true(p->in_window[u] == 0);
    assert_near(p->total, total, 1e-9);
}

/* Units are coarsened once, at the 33rd length. */
static void test_coarsen(void **state)
{
    static const uint32_t capacities[] = {200, 256, 257, 2048, 2049, 100000};
    static double count[2048 + 1];
    static double recent[2048 + 1];
    static uint32_t held[100000 + 1];

    for (size_t i = 0; i < COUNT(capacities); i++) {
        uint32_t capacity = capacities[i];
        ps_dual_prices *p = open_few(capacity, 32, held);
        const ps_units fine = p->units;
        double total = p->total;
        uint64_t arrivals = p->arrivals;
        ps_error err;

        assert_int_equal(fine.size, (capacity - 1) / 2048 + 1);
        learn(p);
        assert_true(p->few && p->known);
        assert_false(coarsen(p, held));
        assert_near(p->total, total, 0);
        come(p, capacity / 40 * 33, 3);
        memcpy(count, p->count, (fine.count + 1) * sizeof *count);
        memcpy(recent, p->recent, (fine.count + 1) * sizeof *recent);

        assert_true(coarsen(p, held));
        assert_false(p->few || p->known);
        assert_int_equal(p->units.size, (capacity - 1) / 256 + 1);
        assert_int_equal(p->cuts.n, 2);
        check_coarse(p, &fine, count, recent, held);
        assert_true(p->arrivals == arrivals + 3);
        /* Until they are learned, prices are proportional to length. */
        for (uint32_t u = 0; u <= p->units.count; u++)
            assert_near(p->price[u], (double)u / p->units.count, 0);
        assert_false(coarsen(p, held));
        assert_ok(ps_dual_prices_learn(p, &err), &err);
        ps_dual_prices_follow(p);
        assert_true(p->known);
        close_prices(p);
    }
}

/* ---- Saved and loaded ---- */

/* Loads `p` again without its last `cut` bytes. */
static ps_dual_prices *load_again(const ps_dual_prices *p,
                                  const ps_saver *saver, size_t cut,
                                  bool *good)
{
    ps_dual_prices *other = open_prices(p->capacity, p->depth,
                                        p->window_size);
    ps_restorer restorer = {.at = saver->bytes, .left = saver->n - cut};

    ps_dual_prices_load(other, &restorer);
    *good = !restorer.failed && restorer.left == 0;
    return other;
}

/* Expects an error when `number` replaces part of the saved state. */
static void refuse(const ps_dual_prices *p, size_t at, uint64_t number,
                   size_t width)
{
    ps_saver saver = {0};
    bool good;

    ps_dual_prices_save(p, &saver);
    for (size_t i = 0; i < width; i++)
        saver.bytes[at + i] = (unsigned char)(number >> 8 * i);
    close_prices(load_again(p, &saver, 0, &good));
    assert_false(good);
    free(saver.bytes);
}

static void refuse_double(const ps_dual_prices *p, size_t at, double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    refuse(p, at, bits, 8);
}

static void test_refused(void **state)
{
    static const uint64_t not_numbers[] = {
        UINT64_C(0x7ff8000000000000), UINT64_C(0xfff8000000000001),
        UINT64_C(0x7ff0000000000000), UINT64_C(0xfff0000000000000)};
    ps_dual_prices *p = open_prices(20, 3, 10);
    size_t row = 8 * (size_t)p->units.count;
    const struct {
        size_t at;
        uint64_t number;
        size_t width;
    } numbers[] = {
        {AT_COUNTS, 1, 8}, /* as a double, the smallest above 0 */
        {AT_COUNTS + 3 * row, 1, 4},
        {AT_COUNTS + 3 * row, UINT32_MAX, 4},
        {AT_FEW, 2, 4},
        {AT_MEAN, 20 * 256 + 1, 8},
        {AT_CAME, UINT64_MAX, 8},
        {AT_NEXT, UINT64_MAX, 8},
        {AT_INTERVAL, 32 * 10 + 1, 8},
        {AT_KNOWN, 2, 4},
        {AT_LINEAR, 2, 4},
    };
    ps_saver saver = {0};
    size_t at;
    bool good;

    come(p, 7, 10);
    come(p, 9, 10);
    learn(p);
    assert_int_equal(p->cuts.n, 3);
    ps_dual_prices_save(p, &saver);
    assert_int_equal(saver.n, AT_COUNTS + 4 * row + 4 + 8);
    for (size_t cut = 1; cut <= saver.n; cut++) {
        close_prices(load_again(p, &saver, cut, &good));
        assert_false(good);
    }
    for (at = AT_WORK; at < saver.n; at += 8) {
        if (at == AT_COUNTS + 3 * row)
            at += 4 + 8; /* the number of cuts, and when one was used */
        refuse_double(p, at, -1e-9);
        refuse_double(p, at, 1e16);
        for (size_t i = 0; i < COUNT(not_numbers); i++)
            refuse(p, at, not_numbers[i], 8);
        if (at >= AT_COUNTS + 2 * row)
            refuse_double(p, at, 1.001);
    }
    refuse_double(p, AT_COUNTS + 2 * row, 1 / 3.0 + 0.001);
    refuse_double(p, AT_VARIATION, 0.999);
    refuse_double(p, AT_TOTAL, 20.1);
    for (size_t i = 0; i < COUNT(numbers); i++)
        refuse(p, numbers[i].at, numbers[i].number, numbers[i].width);
    free(saver.bytes);
    close_prices(p);
    /* A total of zero: no lengths to learn from. */
    for (uint32_t window = 10; window <= 2000; window += 1990) {
        p = open_prices(20, 3, window);
        refuse_double(p, AT_TOTAL, 5);
        refuse(p, AT_KNOWN, 1, 4);
        close_prices(p);
    }
}

/* ---- Memory ---- */

/* The memory bound suffices, and is not far too high in full use. */
static void test_memory(void **state)
{
    static const uint32_t capacities[] = {1, 2, 100, 256, 512, 1000, 131072};
    static const uint32_t depths[] = {1, 2, 3, 4, 8, 64};
    uint64_t random = 5;

    for (size_t i = 0; i < COUNT(capacities) * COUNT(depths); i++) {
        uint32_t capacity = capacities[i % COUNT(capacities)];
        uint32_t depth = depths[i / COUNT(capacities)];
        size_t before = alloc_so_far().bytes;
        ps_dual_prices *p = open_prices(capacity, depth, 1024);
        size_t held = alloc_so_far().bytes - before;
        ps_mem bound = {.bytes = ps_mem_array(1, sizeof *p), .counts = true};
        ps_dual_prices counted;
        ps_error err;

        ps_dual_prices_init(&counted, capacity, depth, 1024, &bound);
        assert_in_range(held, bound.bytes / 2, bound.bytes);
        /* Few lengths, then all. */
        for (int all = 0; all < 2; all++) {
            uint32_t step = all ? 1 : (capacity - 1) / 32 + 1;

            for (int n = 0; n < 3000; n++)
                come(p, step * (1 + random_below(&random, capacity / step)),
                     1);
            assert_int_equal(ps_dual_prices_coarsen(p), all && capacity > 32);
            alloc_watch();
            held = alloc_so_far().bytes;
            assert_ok(ps_dual_prices_learn(p, &err), &err);
            assert_true(alloc_so_far().peak - held <=
                        ps_dual_prices_learn_bytes(capacity, depth));
            assert_int_equal(alloc_so_far().bytes, held);
        }
        close_prices(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule),
        cmocka_unit_test(test_work),
        cmocka_unit_test(test_variation),
        cmocka_unit_test(test_fading),
        cmocka_unit_test(test_coarsen),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory),
    };

    return run_as_tap("dual-prices-state", tests, NULL);
}
