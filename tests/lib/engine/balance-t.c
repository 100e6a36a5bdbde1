/*
 * balance-t.c - the counts of arrived and waiting sequences at each knot,
 * against a recount; and the sign of the weights.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "engine/balance.h"
#include "engine/dual_prices.h"

#define LAST (PS_BALANCE_KNOTS - 1)

/* Weights are from -1 to 2 times the strength. */
#define STRENGTH (PS_SCORE_ONE / 64)
#define STRONG (PS_SCORE_ONE / 16)

/* Layout of a saved balance: arrivals, whether knots are known, each knot. */
#define AT_KNOWN 8
#define AT_KNOTS 12
#define KNOT_BYTES 24

/* A balance, with its expected counts by length. */
typedef struct stand {
    ps_length_balance b;
    uint32_t capacity;
    ps_units units;
    double *count; /* by length in units */
    double *in_window; /* same, of held sequences, in learning or a load */
    uint32_t *held;
    uint32_t *came;
    uint32_t n_held;
    uint32_t n_came;
} stand;

static void *zeros(size_t n, size_t size)
{
    void *p = calloc(n, size);

    assert_non_null(p);
    return p;
}

/* Lengths are counted in units of `unit` tokens. */
static stand open_stand(uint32_t capacity, uint32_t unit, uint32_t window)
{
    const ps_units units = ps_units_of(capacity, (capacity - 1) / unit + 1);
    stand s = {.capacity = capacity, .units = units};
    ps_mem mem = {0};

    assert_int_equal(units.size, unit);
    ps_balance_init(&s.b, units.count, window, &mem);
    assert_false(mem.failed);
    s.count = zeros(s.units.count + 1, sizeof *s.count);
    s.in_window = zeros(s.units.count + 1, sizeof *s.in_window);
    s.held = zeros(capacity + 1, sizeof *s.held);
    s.came = zeros(capacity + 1, sizeof *s.came);
    return s;
}

static void close_stand(stand *s)
{
    ps_balance_destroy(&s->b);
    free(s->count);
    free(s->in_window);
    free(s->held);
    free(s->came);
}

static void admit(stand *s, uint32_t length)
{
    ps_balance_admit(&s->b, ps_units_round(&s->units, length));
    s->held[length]++;
    s->came[length]++;
    s->n_held++;
    s->n_came++;
}

static void take(stand *s, uint32_t length)
{
    ps_balance_take(&s->b, ps_units_round(&s->units, length));
    s->held[length]--;
    s->n_held--;
}

/* Adds `times` arrivals of a length. */
static void bring(stand *s, uint32_t length, double times)
{
    s->count[ps_units_round(&s->units, length)] += times;
}

/* Adds waiting sequences before the balance learns or is loaded. */
static void hold(stand *s, uint32_t length, uint32_t n)
{
    s->held[length] += n;
    s->n_held += n;
}

static void count_held(stand *s)
{
    memset(s->in_window, 0, (s->units.count + 1) * sizeof *s->in_window);
    for (uint32_t l = 1; l <= s->capacity; l++)
        s->in_window[ps_units_round(&s->units, l)] += s->held[l];
}

/* Learns from the arrivals, and recounts the waiting sequences, as required. */
static void learn(stand *s)
{
    count_held(s);
    ps_balance_learn(&s->b, s->units.count, s->count, s->in_window);
    memset(s->came, 0, (s->capacity + 1) * sizeof *s->came);
    s->n_came = 0;
}

static void weigh(stand *s, bool strong)
{
    ps_balance_weigh(&s->b, s->n_held, strong);
    memset(s->came, 0, (s->capacity + 1) * sizeof *s->came);
    s->n_came = 0;
}

/* Adds the shares of some sequences at the current knots. */
static void add_up(const stand *s, const uint32_t *lengths, int64_t *parts)
{
    const uint32_t *knot = s->b.knot;

    for (uint32_t l = 1; l <= s->capacity; l++) {
        uint32_t u = ps_units_round(&s->units, l);
        uint32_t i = 0;
        int64_t part = 0;

        while (i + 1 < LAST && u > knot[i + 1])
            i++;
        if (u >= knot[i + 1])
            part = PS_BALANCE_WHOLE;
        else if (u > knot[i])
            part = (int64_t)(u - knot[i]) * PS_BALANCE_WHOLE /
                   (knot[i + 1] - knot[i]);
        parts[i] += lengths[l] * (PS_BALANCE_WHOLE - part);
        parts[i + 1] += lengths[l] * part;
    }
}

static void check(const stand *s)
{
    int64_t held[PS_BALANCE_KNOTS] = {0};
    int64_t came[PS_BALANCE_KNOTS] = {0};
    int64_t shares = 0;

    add_up(s, s->held, held);
    add_up(s, s->came, came);
    assert_true(s->b.arrivals == s->n_came);
    for (uint32_t i = 0; i < PS_BALANCE_KNOTS; i++) {
        assert_true(s->b.in_window[i] == held[i]);
        assert_true(s->b.arrived[i] == came[i]);
        if (i > 0)
            assert_true(s->b.knot[i] > s->b.knot[i - 1]);
        shares += s->b.share[i];
        assert_in_range(s->b.weight[i] + STRONG, 0, 3 * STRONG);
    }
    assert_in_range(shares + 64, 0, (INT64_C(1) << 30) + 128);
}

/* ---- Counting ---- */

static uint32_t draw_length(uint32_t capacity, uint32_t kind,
                            uint64_t *random)
{
    uint32_t length = 1 + random_below(random, capacity);

    if (kind == 1)
        length = 1 + (length - 1) / 9;
    else if (kind == 2)
        length = capacity - (length - 1) / 50;
    return length;
}

static void run(stand *s, uint32_t kind, uint64_t *random)
{
    for (int i = 0; i < 300; i++)
        bring(s, draw_length(s->capacity, kind, random), 1);
    learn(s);
    for (int i = 1; i <= 1000; i++) {
        uint32_t length = draw_length(s->capacity, kind, random);

        if (s->held[length] > 0 && random_below(random, 2) == 0)
            take(s, length);
        else
            admit(s, length);
        if (i % 100 == 0)
            check(s);
        if (i % 300 == 0)
            weigh(s, i % 200 == 0);
    }
}

static void test_counts(void **state)
{
    static const uint32_t sizes[][2] = {{1, 1},     {2, 1},    {3, 1},
                                        {7, 1},     {8, 1},    {9, 1},
                                        {512, 1},   {513, 2},  {1000, 2},
                                        {1000, 4},  {131072, 256},
                                        {131072, 512}};
    uint64_t random = 7;

    for (size_t i = 0; i < COUNT(sizes); i++)
        for (uint32_t kind = 0; kind < 3; kind++) {
            stand s = open_stand(sizes[i][0], sizes[i][1], 100);

            run(&s, kind, &random);
            run(&s, (kind + 1) % 3, &random);
            close_stand(&s);
        }
}

/* The largest capacity, and the units that go with it. */
static void test_huge(void **state)
{
    stand s = open_stand(PS_MAX_CAPACITY, 65536, PS_MAX_WINDOW);

    bring(&s, 1, 1);
    bring(&s, PS_MAX_CAPACITY, 1e15);
    learn(&s);
    admit(&s, 1);
    admit(&s, PS_MAX_CAPACITY);
    check(&s);
    weigh(&s, false);
    take(&s, 1);
    check(&s);
    close_stand(&s);
}

/* ---- Weights ---- */

static int32_t weight_of(const stand *s, uint32_t length)
{
    return ps_balance_of(&s->b, ps_units_round(&s->units, length));
}

/* By hand: half of the arrivals at a knot, and all that wait there. */
static void test_strength(void **state)
{
    for (int strong = 0; strong < 2; strong++) {
        stand s = open_stand(100, 1, 1024);
        double wanted = strong ? STRONG : STRENGTH;

        bring(&s, 10, 500);
        bring(&s, 90, 500);
        hold(&s, 90, 1000);
        learn(&s);
        weigh(&s, strong);
        assert_in_range(weight_of(&s, 90), wanted * 0.83, wanted * 0.84);
        assert_in_range(-weight_of(&s, 10), wanted * 0.83, wanted * 0.84);
        s.n_held = 0;
        weigh(&s, strong);
        assert_int_equal(weight_of(&s, 90), 0);
        close_stand(&s);
    }
}

/* The stream's share of a length that is exactly at a knot. */
static int64_t share_of(const stand *s, uint32_t length)
{
    uint32_t part;
    uint32_t i = ps_balance_find(&s->b, ps_units_round(&s->units, length),
                                 &part);

    assert_true(part % PS_BALANCE_WHOLE == 0);
    return s->b.share[part == 0 ? i : i + 1];
}

/* The shares follow the stream within a few windows. */
static void test_follows(void **state)
{
    stand s = open_stand(100, 1, 64);

    bring(&s, 10, 1000);
    bring(&s, 90, 1000);
    hold(&s, 10, 64);
    learn(&s);
    weigh(&s, false);
    assert_true(weight_of(&s, 10) > 0);
    for (int i = 0; i < 6 * 64 * 8; i++) {
        admit(&s, 10);
        take(&s, 10);
        if (i % 32 == 0)
            weigh(&s, false);
    }
    weigh(&s, false);
    assert_in_range(weight_of(&s, 10), 0, 200);
    assert_in_range(share_of(&s, 90), 1, (1 << 30) / 1000);
    for (int i = 0; i < 6 * 64; i++)
        admit(&s, 90);
    weigh(&s, false);
    assert_int_equal(share_of(&s, 90), 1 << 30);
    close_stand(&s);
}

/* ---- Knots ---- */

/* Knots are at quantiles, or on single lengths if there are few. */
static void test_knots(void **state)
{
    stand s = open_stand(700, 1, 10);

    for (uint32_t l = 1; l <= 700; l++)
        bring(&s, l, 3);
    learn(&s);
    for (uint32_t i = 0; i < PS_BALANCE_KNOTS; i++)
        assert_int_equal(s.b.knot[i], 100 * i);
    for (uint32_t l = 1; l <= 700; l++)
        s.count[l] = l == 700 ? 1e-9 : 0;
    learn(&s);
    for (uint32_t i = 0; i < PS_BALANCE_KNOTS; i++)
        assert_int_equal(s.b.knot[i], 699 + i);
    admit(&s, 700);
    admit(&s, 1);
    check(&s);
    s.count[700] = 0;
    learn(&s);
    check(&s);
    close_stand(&s);
}

/* ---- Saved and loaded ---- */

static bool load_from(stand *s, const ps_saver *saver, size_t cut)
{
    ps_restorer restorer = {.at = saver->bytes, .left = saver->n - cut};

    count_held(s);
    ps_balance_load(&s->b, s->units.count, s->in_window, &restorer);
    return !restorer.failed && restorer.left == 0;
}

/* The number is refused, or loaded and then used. */
static bool try_number(const stand *s, size_t at, uint64_t number,
                       size_t width)
{
    stand other = open_stand(s->capacity, s->units.size, s->b.window_size);
    ps_saver saver = {0};
    bool good;

    ps_balance_save(&s->b, &saver);
    for (size_t i = 0; i < width; i++)
        saver.bytes[at + i] = (unsigned char)(number >> 8 * i);
    good = load_from(&other, &saver, 0);
    for (uint32_t l = 1; good && l <= s->capacity; l++) {
        assert_in_range(weight_of(&other, l) + 2 * STRONG, 0, 4 * STRONG);
        admit(&other, l);
        weigh(&other, l % 2 == 0);
    }
    free(saver.bytes);
    close_stand(&other);
    return good;
}

/* Each number at its extremes. */
static void test_hostile(void **state)
{
    stand s = open_stand(100, 1, 1024);
    uint64_t random = 1;

    run(&s, 0, &random);
    assert_true(try_number(&s, 0, UINT32_MAX, 8));
    assert_false(try_number(&s, 0, UINT64_C(1) << 32, 8));
    assert_false(try_number(&s, 0, UINT64_MAX, 8));
    assert_false(try_number(&s, AT_KNOWN, 2, 4));
    (void)try_number(&s, AT_KNOWN, 0, 4);
    for (uint32_t i = 0; i < PS_BALANCE_KNOTS; i++) {
        size_t at = AT_KNOTS + i * KNOT_BYTES;

        assert_false(try_number(&s, at, 109, 4));
        assert_false(try_number(&s, at, UINT32_MAX, 4));
        if (i > 0)
            assert_false(try_number(&s, at, s.b.knot[i - 1], 4));
        assert_false(try_number(&s, at + 4, UINT64_MAX, 8));
        assert_false(try_number(&s, at + 4, INT64_MAX, 8));
        assert_true(try_number(&s, at + 12, 1 << 30, 8));
        assert_false(try_number(&s, at + 12, (1 << 30) + 1, 8));
        assert_false(try_number(&s, at + 12, UINT64_MAX, 8));
        assert_true(try_number(&s, at + 20, 2 * STRONG, 4));
        assert_false(try_number(&s, at + 20, 2 * STRONG + 1, 4));
        assert_false(try_number(&s, at + 20, INT32_MAX, 4));
        assert_false(try_number(&s, at + 20, (uint32_t)INT32_MIN, 4));
    }
    close_stand(&s);
}

/* All arrivals, at the highest count possible. */
static void test_hostile_together(void **state)
{
    stand s = open_stand(100, 1, PS_MAX_WINDOW);
    ps_saver saver = {0};

    ps_save_u64(&saver, UINT32_MAX);
    ps_save_u32(&saver, 1);
    for (uint32_t i = 0; i < PS_BALANCE_KNOTS; i++) {
        ps_save_u32(&saver, 100 + i);
        ps_save_u64(&saver, (uint64_t)UINT32_MAX * PS_BALANCE_WHOLE);
        ps_save_u64(&saver, 1 << 30);
        ps_save_u32(&saver, i % 2 == 0 ? 2 * STRONG
                                       : (uint32_t)-(2 * STRONG));
    }
    hold(&s, 100, 100 * (PS_MAX_WINDOW / 128));
    assert_true(load_from(&s, &saver, 0));
    for (int i = 0; i < 100; i++)
        ps_balance_admit(&s.b, 1);
    for (int i = 0; i < 3; i++)
        ps_balance_weigh(&s.b, 100 * (PS_MAX_WINDOW / 128 + 1), false);
    for (size_t cut = 1; cut <= saver.n; cut++)
        assert_false(load_from(&s, &saver, cut));
    free(saver.bytes);
    close_stand(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_huge),
        cmocka_unit_test(test_strength),
        cmocka_unit_test(test_follows),
        cmocka_unit_test(test_knots),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_hostile_together),
    };

    return run_as_tap("balance", tests, NULL);
}
