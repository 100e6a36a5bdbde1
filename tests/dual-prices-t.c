/*
 * dual-prices-t.c - the prices learned: against duals worked out by hand,
 * the bound, and every pack that can be made of the lengths that came.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "dual_prices.h"
#include "lib-alloc.h"
#include "plan.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* How far a dual may be from the optimum: the relaxation stops near it. */
#define NEAR 0.003

/* Drawn counts' prices are left out if they bound worse by this. */
#define USELESS 0.004

/* Saved: eight numbers in front of the counts, and where some of them are. */
#define AT_CAME 8
#define AT_NEXT 16
#define AT_KNOWN 32
#define AT_TOTAL 44
#define AT_COUNTS 68

static ps_dual_prices *open_prices(uint32_t capacity, uint32_t depth,
                                   uint32_t window)
{
    ps_dual_prices *p;
    ps_error err;

    assert_ok(ps_dual_prices_open(&p, capacity, depth, window, &err), &err);
    return p;
}

static void come(ps_dual_prices *p, uint32_t length, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        ps_dual_prices_count(p, length);
}

/* Written prices do not fall, and end a little above that of a pack. */
static int32_t *write_prices(const ps_dual_prices *p)
{
    int32_t *price = must_alloc((p->capacity + 1) * sizeof *price);

    ps_dual_prices_write(p, price);
    assert_int_equal(price[0], 0);
    for (uint32_t l = 1; l <= p->capacity; l++)
        assert_true(price[l] >= price[l - 1]);
    assert_in_range(price[p->capacity], PS_SCORE_ONE,
                    PS_SCORE_ONE / 200 * 201);
    return price;
}

static void learn(ps_dual_prices *p)
{
    ps_error err;

    assert_ok(ps_dual_prices_learn(p, &err), &err);
    free(write_prices(p));
    for (uint32_t u = 1; u <= p->units; u++)
        assert_true(p->average[u] >= p->average[u - 1] - 1e-12);
}

static void assert_near(double is, double wanted, double by)
{
    if (!(is - wanted <= by && wanted - is <= by))
        fail_msg("%f, not %f", is, wanted);
}

static void assert_dual(const ps_dual_prices *p, uint32_t length,
                        double wanted)
{
    assert_near(p->average[ps_round_to_units(length, p->unit, p->units)],
                wanted, NEAR);
}

/* Draws from a mixture and learns whenever it is time. */
static void stream(ps_dual_prices *p, const uint32_t *lengths, uint32_t n,
                   uint64_t records, uint64_t *random)
{
    for (uint64_t i = 0; i < records; i++) {
        ps_dual_prices_count(p, lengths[random_below(random, n)]);
        if (ps_dual_prices_due(p))
            learn(p);
    }
}

/* ---- Duals by hand ---- */

/* Of one length a pack holds so many: each is worth its part of it. */
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

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (uint32_t window = 10; window <= 10000; window *= 10) {
            ps_dual_prices *p = open_prices(cases[i].capacity,
                                            cases[i].depth, window);

            come(p, cases[i].length, 1000);
            learn(p);
            assert_dual(p, cases[i].length, cases[i].dual);
            ps_dual_prices_free(p);
        }
    ps_dual_prices_free(NULL);
}

/*
 * Of 60 and 40 the rarer is worth nothing; two 40 fit, so they are worth
 * half if they are too many.
 */
static void test_two_lengths(void **state)
{
    static const uint32_t windows[] = {100, 2000};

    (void)state;
    for (size_t i = 0; i < COUNT(windows); i++) {
        ps_dual_prices *p = open_prices(100, 3, windows[i]);

        come(p, 60, 300);
        come(p, 40, 100);
        learn(p);
        assert_dual(p, 60, 1);
        assert_dual(p, 40, 0);
        assert_false(p->linear);
        ps_dual_prices_free(p);
        p = open_prices(100, 3, windows[i]);
        come(p, 60, 200);
        come(p, 40, 800);
        learn(p);
        assert_dual(p, 60, 0.5);
        assert_dual(p, 40, 0.5);
        ps_dual_prices_free(p);
    }
}

/* As long as the last ones bound well, new prices count for a half. */
static void test_new_prices(void **state)
{
    ps_dual_prices *p = open_prices(100, 3, 20000);

    (void)state;
    come(p, 60, 1000);
    come(p, 40, 900);
    learn(p);
    assert_dual(p, 60, 1);
    come(p, 40, 106);
    learn(p);
    assert_near(p->average[60], 0.75, 0.01);
    assert_near(p->average[40], 0.25, 0.01);
    come(p, 40, 800);
    learn(p);
    assert_dual(p, 60, 0.5);
    assert_dual(p, 40, 0.5);
    ps_dual_prices_free(p);
}

/*
 * Where neither depth nor sizes bind, a length is worth its part: at once to
 * the counts themselves, and in the end to the average, which begins with
 * drawn ones.
 */
static void test_linear(void **state)
{
    static const uint32_t capacities[] = {2, 10, 512, 1024, 100000};

    (void)state;
    for (size_t i = 0; i < COUNT(capacities); i++) {
        uint32_t capacity = capacities[i];
        ps_dual_prices *p = open_prices(capacity, 64, 2000);

        assert_true(p->linear);
        for (uint32_t u = 1; u <= p->units / 2; u++) {
            come(p, u * p->unit, 10);
            come(p, (p->units - u) * p->unit, 10);
        }
        learn(p);
        for (uint32_t u = 1; u <= p->units; u++)
            assert_near(p->last[u], (double)u / p->units, 1e-9);
        for (int more = 0; more < 10; more++)
            learn(p);
        assert_true(p->linear);
        for (uint32_t u = 1; u <= p->units; u++)
            assert_near(p->average[u], (double)u / p->units, 1e-3);
        ps_dual_prices_free(p);
    }
}

/* Full ones teach nothing, and do not change what others teach. */
static void test_full_length(void **state)
{
    static const uint32_t capacities[] = {1, 2, 100, 5000};
    ps_dual_prices *p;

    (void)state;
    for (size_t i = 0; i < COUNT(capacities); i++) {
        p = open_prices(capacities[i], 8, 10);
        come(p, capacities[i], 1000);
        assert_true(ps_dual_prices_due(p));
        learn(p);
        assert_false(p->known);
        assert_true(p->linear);
        for (uint32_t u = 0; u <= p->units; u++)
            assert_near(p->average[u], (double)u / p->units, 0);
        ps_dual_prices_free(p);
    }
    p = open_prices(100, 3, 2000);
    come(p, 98, 100);
    come(p, 1, 1000);
    come(p, 100, 5000);
    learn(p);
    assert_dual(p, 98, 1 / 3.0);
    assert_dual(p, 1, 1 / 3.0);
    ps_dual_prices_free(p);
}

/* ---- Dual feasible, and as good as the bound ---- */

/*
 * The most that up to so many of the lengths that came are worth in each
 * room.
 */
static double *fill_rooms(const ps_dual_prices *p, const double *price,
                          uint32_t places)
{
    double *most = calloc(p->units + 1, sizeof *most);

    assert_non_null(most);
    for (uint32_t place = 0; place < places; place++)
        for (uint32_t room = p->units; room > 0; room--)
            for (uint32_t u = 1; u <= room; u++)
                if (p->count[u] > 0 && price[u] + most[room - u] > most[room])
                    most[room] = price[u] + most[room - u];
    return most;
}

static double dearest_pack(const ps_dual_prices *p, const double *price)
{
    double *most = fill_rooms(p, price, p->depth);
    double all = most[p->units];

    free(most);
    return all;
}

/* The bound on what came, in units. */
static double bound_of(const ps_dual_prices *p)
{
    ps_histogram *h;
    double packs;
    ps_error err;

    assert_ok(ps_histogram_open(&h, &err), &err);
    for (uint32_t u = 1; u <= p->units; u++)
        if (p->count[u] > 0)
            assert_ok(ps_histogram_add(h, u, (uint64_t)p->count[u], &err),
                      &err);
    assert_ok(ps_plan_bound(h, p->units, p->depth, &packs, &err), &err);
    ps_histogram_free(h);
    return packs;
}

/* What prices say of it is within a part of the bound, and not above it. */
static void check_told(const ps_dual_prices *p, const double *price,
                       double bound, double gap)
{
    double told = 0;

    for (uint32_t u = 1; u <= p->units; u++)
        told += p->count[u] * price[u];
    if (told > bound * (1 + 1e-6) || told < bound * (1 - gap))
        fail_msg("L %u, D %u, W %u: %f packs, not %f", p->capacity,
                 p->depth, p->window_size, told, bound);
}

/*
 * The prices for the counts are feasible, and near the bound.  The average
 * has a quarter of them at least, and drawn ones that are not useless.
 */
static void check_learned(const ps_dual_prices *p, double gap)
{
    double bound = bound_of(p);

    assert_true(dearest_pack(p, p->last) <= 1 + 1e-6);
    check_told(p, p->last, bound, gap);
    check_told(p, p->average, bound, gap + 0.75 * USELESS);
}

/* A few lengths, often all short. */
static void test_few_lengths(void **state)
{
    uint64_t random = 11;

    (void)state;
    for (int i = 0; i < 300; i++) {
        uint32_t capacity = 2 + random_below(&random, 60);
        uint32_t depth = 1 + random_below(&random, 7);
        ps_dual_prices *p = open_prices(capacity, depth, 100000);

        for (uint32_t k = random_below(&random, 12); k < 12; k++) {
            uint32_t length = 1 + random_below(&random, capacity - 1);

            come(p, i % 2 == 0 ? length : length / 3 + 1,
                 1 + random_below(&random, 200));
        }
        learn(p);
        if (p->known)
            check_learned(p, 3e-4);
        ps_dual_prices_free(p);
    }
}

/* Shapes over all lengths: even, many short, about a third, or a comb. */
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

    (void)state;
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
            ps_dual_prices_free(p);
        }
}

/* Prices that are averages over time keep to it, blurred ones too. */
static void test_averages(void **state)
{
    static const uint32_t lengths[] = {60, 41, 33, 20, 19, 7, 98, 3};

    (void)state;
    for (uint32_t window = 64; window <= 2048; window *= 2)
        for (uint32_t depth = 2; depth <= 8; depth++) {
            ps_dual_prices *p = open_prices(100, depth, window);
            uint64_t random = depth;

            stream(p, lengths, COUNT(lengths), 50000, &random);
            assert_true(dearest_pack(p, p->average) <= 1 + 1e-6);
            ps_dual_prices_free(p);
        }
}

/*
 * A length that did not come fits no pack of those that came that would be
 * worth more with it; all that came are common enough to be drawn.
 */
static void test_unseen(void **state)
{
    uint64_t random = 12;

    (void)state;
    for (int i = 0; i < 200; i++) {
        uint32_t depth = i % 20 == 0 ? 80 : 2 + random_below(&random, 6);
        uint32_t capacity = 90 + random_below(&random, 160);
        ps_dual_prices *p = open_prices(capacity, depth, 2000);

        for (int k = 0; k < 8; k++)
            come(p, 1 + random_below(&random, capacity - 1),
                 60 + random_below(&random, 300));
        for (int more = 0; more < 2; more++) {
            double *most;

            learn(p);
            most = fill_rooms(p, p->average, p->depth - 1);
            for (uint32_t u = 1; u <= p->units; u++)
                assert_true(p->average[u] + most[p->units - u] <= 1 + 1e-6);
            free(most);
        }
        ps_dual_prices_free(p);
    }
}

/* ---- Units ---- */

/* Whether two sequences in a pack are as good as more. */
static void expect_pairs(uint32_t depth, uint32_t short_one,
                         uint32_t long_one, uint32_t times, bool wanted)
{
    ps_dual_prices *p = open_prices(100, depth, 10);

    come(p, short_one, times);
    come(p, long_one, 1000);
    learn(p);
    assert_int_equal(p->pairs, wanted);
    ps_dual_prices_free(p);
}

/*
 * Short ones beside long ones are pairs, as long as there are not more of
 * them.  Three short ones in a pack are better, if they fit and may be there;
 * but not if they are few of many, as chance may have brought them.
 */
static void test_pairs(void **state)
{
    (void)state;
    expect_pairs(3, 40, 60, 1000, true);
    expect_pairs(3, 40, 60, 1200, true);
    expect_pairs(3, 30, 60, 900, true);
    expect_pairs(3, 30, 60, 1200, false);
    expect_pairs(2, 30, 60, 1200, true);
    expect_pairs(1, 30, 60, 1200, true);
    expect_pairs(3, 25, 75, 1040, false);
    expect_pairs(3, 25, 75, 4000, false);
}

/* Of many thousands a few too many are no sign. */
static void test_pairs_by_chance(void **state)
{
    ps_dual_prices *p = open_prices(100, 4, 10);

    (void)state;
    come(p, 25, 5100);
    come(p, 75, 5000);
    learn(p);
    assert_true(p->pairs);
    come(p, 25, 400);
    learn(p);
    assert_false(p->pairs);
    ps_dual_prices_free(p);
}

/* Between two units prices rise evenly. */
static void test_units(void **state)
{
    static const struct {
        uint32_t capacity;
        uint32_t depth;
        uint32_t unit;
    } cases[] = {{256, 3, 1},  {257, 3, 2},    {256, 4, 1},
                 {257, 4, 2},  {1000, 3, 4},   {131072, 64, 512},
                 {131072, 3, 512}, {PS_MAX_CAPACITY, 3, 65536}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint32_t capacity = cases[i].capacity;
        ps_dual_prices *p = open_prices(capacity, cases[i].depth, 2000);
        uint32_t long_one = capacity / 10 * 6;
        int32_t *price;

        assert_int_equal(p->unit, cases[i].unit);
        come(p, long_one, 300);
        come(p, capacity / 10 * 4 - capacity / 200, 100);
        learn(p);
        price = write_prices(p);
        assert_true(price[long_one + p->unit] > PS_SCORE_ONE / 100 * 95);
        assert_true(price[capacity / 10 * 3] < PS_SCORE_ONE / 10);
        for (uint32_t l = 1; l + 2 <= p->unit; l++)
            assert_in_range(price[l + 1] - price[l] + 2 - price[l] +
                                price[l - 1], 0, 4);
        come(p, 1, 100);
        come(p, capacity - 1, 100);
        learn(p);
        free(price);
        ps_dual_prices_free(p);
    }
}

/* ---- When, and for how long ---- */

/* First after a window, then after four times as many, up to 64 of them. */
static void test_schedule(void **state)
{
    static const uint32_t windows[] = {1, 2, 100, 1000, 5000};
    static const uint32_t lengths[] = {20, 60, 64};

    (void)state;
    for (size_t i = 0; i < COUNT(windows); i++)
        for (size_t k = 0; k < COUNT(lengths); k++) {
            ps_dual_prices *p = open_prices(64, 3, windows[i]);
            uint64_t most = (uint64_t)64 * windows[i];
            uint64_t due = windows[i];
            uint64_t n = 0;

            most = most > 65536 ? most : 65536;
            for (int round = 0; round < 9; round++) {
                for (; !ps_dual_prices_due(p); n++)
                    ps_dual_prices_count(p, lengths[k]);
                assert_true(n == due);
                learn(p);
                due = 3 * due < most ? 4 * due : due + most;
            }
            ps_dual_prices_free(p);
        }
}

/* Counts are halved when they are of more than 512 windows. */
static void test_fading(void **state)
{
    ps_dual_prices *p = open_prices(100, 3, 100);

    (void)state;
    come(p, 30, 32000);
    come(p, 40, 19200);
    learn(p);
    assert_near(p->total, 51200, 0);
    come(p, 40, 1);
    learn(p);
    assert_near(p->total, 25600.5, 0);
    assert_near(p->count[30], 16000, 0);
    assert_near(p->count[40], 9600.5, 0);
    ps_dual_prices_free(p);
}

/* What came long ago is forgotten. */
static void test_drift(void **state)
{
    static const uint32_t before[] = {60, 60, 60, 40};
    static const uint32_t now[] = {60, 40, 40, 40, 40};

    (void)state;
    for (uint32_t window = 50; window <= 2000; window += 1950) {
        ps_dual_prices *p = open_prices(100, 3, window);
        uint64_t random = 3;

        stream(p, before, 4, 64 * 300, &random);
        stream(p, now, 5, 65536 * 10 + 2000 * 200, &random);
        assert_dual(p, 60, 0.5);
        assert_dual(p, 40, 0.5);
        stream(p, before, 4, 65536 * 10 + 2000 * 200, &random);
        assert_dual(p, 60, 1);
        assert_dual(p, 40, 0);
        ps_dual_prices_free(p);
    }
}

/* ---- Saved and loaded ---- */

/* Loads `p` anew, of which `cut` bytes are missing at the end. */
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

/* It goes on as one that was not saved. */
static void test_saved(void **state)
{
    uint32_t lengths[60];
    uint64_t seed = 3;

    (void)state;
    for (size_t i = 0; i < COUNT(lengths); i++)
        lengths[i] = 20 + random_below(&seed, 81);
    for (uint32_t window = 100; window <= 1600; window *= 16)
        for (uint64_t n = 0; n < 60000; n = 3 * n + 50) {
            ps_dual_prices *p = open_prices(100, 3, window);
            uint64_t random = 9;
            uint64_t again;
            ps_saver saver = {0};
            ps_dual_prices *other;
            bool good;

            stream(p, lengths, COUNT(lengths), n, &random);
            ps_dual_prices_save(p, &saver);
            other = load_again(p, &saver, 0, &good);
            assert_true(good);
            again = random;
            stream(p, lengths, COUNT(lengths), 70000, &random);
            stream(other, lengths, COUNT(lengths), 70000, &again);
            assert_memory_equal(p->average, other->average,
                                (p->units + 1) * sizeof *p->average);
            assert_int_equal(p->linear, other->linear);
            ps_dual_prices_free(p);
            ps_dual_prices_free(other);
            free(saver.bytes);
        }
}

/* Refused if this number stands at a place of the saved. */
static void refuse_u64(const ps_dual_prices *p, size_t at, uint64_t number,
                       size_t width)
{
    ps_saver saver = {0};
    bool good;

    ps_dual_prices_save(p, &saver);
    for (size_t i = 0; i < width; i++)
        saver.bytes[at + i] = (unsigned char)(number >> 8 * i);
    ps_dual_prices_free(load_again(p, &saver, 0, &good));
    assert_false(good);
    free(saver.bytes);
}

static void refuse_double(const ps_dual_prices *p, size_t at, double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    refuse_u64(p, at, bits, 8);
}

static void test_refused(void **state)
{
    static const uint64_t not_numbers[] = {
        UINT64_C(0x7ff8000000000000), UINT64_C(0xfff8000000000001),
        UINT64_C(0x7ff0000000000000), UINT64_C(0xfff0000000000000)};
    ps_dual_prices *p = open_prices(20, 3, 10);
    size_t row = 8 * (size_t)(p->units + 1);
    ps_saver saver = {0};
    bool good;

    (void)state;
    come(p, 7, 10);
    learn(p);
    ps_dual_prices_save(p, &saver);
    assert_int_equal(saver.n, AT_COUNTS + 3 * row);
    for (size_t cut = 1; cut <= saver.n; cut++) {
        ps_dual_prices_free(load_again(p, &saver, cut, &good));
        assert_false(good);
    }
    for (size_t at = AT_TOTAL; at < saver.n; at += 8) {
        refuse_double(p, at, -1e-9);
        refuse_double(p, at, 1e16);
        for (size_t i = 0; i < COUNT(not_numbers); i++)
            refuse_u64(p, at, not_numbers[i], 8);
        if (at >= AT_COUNTS + row)
            refuse_double(p, at, 1.001);
    }
    refuse_u64(p, 0, 20 * 256 + 1, 8);
    refuse_u64(p, AT_CAME, UINT64_MAX, 8);
    refuse_u64(p, AT_NEXT, UINT64_MAX, 8);
    refuse_u64(p, AT_KNOWN, 2, 4);
    refuse_u64(p, AT_KNOWN + 4, UINT32_MAX, 4);
    refuse_u64(p, AT_KNOWN + 8, 2, 4);
    free(saver.bytes);
    ps_dual_prices_free(p);
}

/* A total of nothing: there is nothing to learn from. */
static void test_empty_total(void **state)
{
    (void)state;
    for (uint32_t window = 10; window <= 2000; window += 1990) {
        ps_dual_prices *p = open_prices(20, 3, window);

        refuse_double(p, AT_TOTAL, 5);
        ps_dual_prices_free(p);
    }
}

/* ---- Memory ---- */

/* What is said of it is enough, and not far too much where all is used. */
static void test_memory(void **state)
{
    static const uint32_t capacities[] = {1, 2, 100, 256, 512, 1000, 131072};
    static const uint32_t depths[] = {1, 2, 3, 4, 8, 64};
    uint64_t random = 5;

    (void)state;
    for (size_t i = 0; i < COUNT(capacities) * COUNT(depths); i++) {
        uint32_t capacity = capacities[i % COUNT(capacities)];
        uint32_t depth = depths[i / COUNT(capacities)];
        size_t before = alloc_so_far().bytes;
        ps_dual_prices *p = open_prices(capacity, depth, 1024);
        size_t held = alloc_so_far().bytes - before;
        uint64_t told = ps_dual_prices_bytes(capacity);
        ps_error err;

        assert_in_range(held, told / 2, told);
        for (int n = 0; n < 3000; n++)
            come(p, 1 + random_below(&random, capacity), 1);
        alloc_watch();
        assert_ok(ps_dual_prices_learn(p, &err), &err);
        assert_true(alloc_so_far().peak - before - held <=
                    ps_dual_prices_learn_bytes(capacity, depth));
        assert_int_equal(alloc_so_far().bytes - before, held);
        ps_dual_prices_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_length),
        cmocka_unit_test(test_two_lengths),
        cmocka_unit_test(test_new_prices),
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_full_length),
        cmocka_unit_test(test_few_lengths),
        cmocka_unit_test(test_distributions),
        cmocka_unit_test(test_averages),
        cmocka_unit_test(test_unseen),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_pairs_by_chance),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_schedule),
        cmocka_unit_test(test_fading),
        cmocka_unit_test(test_drift),
        cmocka_unit_test(test_saved),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_empty_total),
        cmocka_unit_test(test_memory),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("dual-prices", tests, NULL, NULL);
}
