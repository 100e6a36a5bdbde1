/*
 * prices-t.c - what lengths are worth: against duals worked out by hand,
 * and against every pack that can be made of the lengths that came.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "prices.h"
#include "worth.h"

/* The part of a price that is the length's part of the capacity. */
#define LINEAR 0.1

/* How far prices may be from the optimum: the relaxation stops near it. */
#define NEAR 0.003

typedef struct stand {
    ps_prices *prices;
    uint32_t capacity;
    uint32_t depth;
    int32_t *price;
    bool binding;
    bool *came;
} stand;

static stand open_stand(uint32_t capacity, uint32_t depth, uint32_t window)
{
    stand s = {.capacity = capacity, .depth = depth};
    ps_error err;

    s.price = must_alloc((capacity + 1) * sizeof *s.price);
    s.came = calloc(capacity + 1, sizeof *s.came);
    assert_non_null(s.came);
    assert_ok(ps_prices_open(&s.prices, capacity, depth, window, &err),
              &err);
    return s;
}

static void close_stand(stand *s)
{
    ps_prices_free(s->prices);
    free(s->price);
    free(s->came);
}

static void come(stand *s, uint32_t length, uint32_t times)
{
    s->came[length] = true;
    for (uint32_t i = 0; i < times; i++)
        ps_prices_count(s->prices, length);
}

/* Learns, and sees to what holds of all prices. */
static void learn(stand *s)
{
    bool binding;
    ps_error err;

    for (uint32_t l = 0; l <= s->capacity; l++)
        s->price[l] = -1;
    assert_ok(ps_prices_learn(s->prices, s->price, &binding, &err), &err);
    for (uint32_t l = 0; !binding && l <= s->capacity; l++) {
        assert_int_equal(s->price[l], -1);
        s->price[l] = (int32_t)((int64_t)l * PS_WORTH_ONE / s->capacity);
    }
    s->binding = binding;
    assert_int_equal(s->price[0], 0);
    for (uint32_t l = 1; l <= s->capacity; l++) {
        assert_true(s->price[l] >= s->price[l - 1]);
        assert_true(s->price[l] <= PS_WORTH_ONE);
    }
    assert_true(s->price[s->capacity] >= PS_WORTH_ONE * 0.99);
}

static double part(const stand *s, uint32_t length)
{
    return (double)s->price[length] / PS_WORTH_ONE;
}

/* A dual as it shows in the prices. */
static void assert_dual(const stand *s, uint32_t length, double dual)
{
    double wanted =
        (1 - LINEAR) * dual + LINEAR * length / (double)s->capacity;

    if (fabs(part(s, length) - wanted) > NEAR)
        fail_msg("length %u of %u: %f, not %f", length, s->capacity,
                 part(s, length), wanted);
}

static void assert_linear(const stand *s)
{
    for (uint32_t l = 0; l <= s->capacity; l++)
        assert_int_equal(s->price[l],
                         (int64_t)l * PS_WORTH_ONE / s->capacity);
}

/* ---- Where the depth does not bind ---- */

static void test_linear(void **state)
{
    static const uint32_t capacities[] = {1, 2, 10, 512, 513, 100000};

    (void)state;
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        uint32_t capacity = capacities[i];
        stand s = open_stand(capacity, 8, 100);

        learn(&s);
        assert_linear(&s);
        come(&s, capacity, 100);
        learn(&s);
        assert_linear(&s);
        come(&s, capacity / 4 + 1, 50);
        come(&s, (capacity + 1) / 2, 100);
        learn(&s);
        assert_linear(&s);
        close_stand(&s);
    }
    ps_prices_free(NULL);
}

/* ---- Duals by hand ---- */

/* With a place for one, all are worth a pack. */
static void test_depth_of_one(void **state)
{
    stand s = open_stand(100, 1, 10);

    (void)state;
    come(&s, 3, 5);
    come(&s, 40, 5);
    come(&s, 41, 3);
    learn(&s);
    assert_dual(&s, 3, 1);
    assert_dual(&s, 40, 1);
    assert_dual(&s, 41, 1);
    assert_dual(&s, 20, 1);
    assert_dual(&s, 2, 2 / 3.0);
    close_stand(&s);
}

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
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stand s = open_stand(cases[i].capacity, cases[i].depth, 100);

        come(&s, cases[i].length, 1000);
        learn(&s);
        assert_dual(&s, cases[i].length, cases[i].dual);
        close_stand(&s);
    }
}

/*
 * Of 60 and 40 the rarer is worth nothing, as long as it is so rare that it
 * does not matter; two 40 fit, so those that are too many are worth half.
 */
static void test_two_lengths(void **state)
{
    stand s = open_stand(100, 3, 100);

    (void)state;
    come(&s, 60, 300);
    come(&s, 40, 100);
    learn(&s);
    assert_dual(&s, 60, 1);
    assert_dual(&s, 40, 0);
    come(&s, 40, 500);
    learn(&s);
    assert_dual(&s, 60, 0.5);
    assert_dual(&s, 40, 0.5);
    close_stand(&s);
}

/*
 * Depth 3 and many that are short: 98 + 1 + 1 uses up what a third place is
 * for, and 1 + 1 + 1 takes the rest; 98 is worth a third, too.
 */
static void test_a_place_has_a_price(void **state)
{
    stand s = open_stand(100, 3, 100);

    (void)state;
    come(&s, 98, 100);
    come(&s, 1, 1000);
    learn(&s);
    assert_dual(&s, 98, 1 / 3.0);
    assert_dual(&s, 1, 1 / 3.0);
    come(&s, 100, 5000); /* full alone, they change nothing */
    learn(&s);
    assert_dual(&s, 98, 1 / 3.0);
    assert_dual(&s, 1, 1 / 3.0);
    close_stand(&s);
}

/* ---- No pack is worth more than one ---- */

/* The most that lengths which came are worth, in packs of the depth. */
static double dearest_pack(const stand *s)
{
    size_t n = s->capacity + 1;
    double *most = calloc(n, sizeof *most);
    double all;

    assert_non_null(most);
    for (uint32_t place = 0; place < s->depth; place++)
        for (uint32_t room = s->capacity; room > 0; room--)
            for (uint32_t l = 1; l <= room; l++)
                if (s->came[l] && part(s, l) + most[room - l] > most[room])
                    most[room] = part(s, l) + most[room - l];
    all = most[s->capacity];
    free(most);
    return all;
}

/* And packs that cover what came are worth no less than they are. */
static void test_no_pack_above_one(void **state)
{
    uint64_t random = 11;

    (void)state;
    for (int i = 0; i < 300; i++) {
        uint32_t capacity = 2 + random_below(&random, 60);
        uint32_t depth = 1 + random_below(&random, 7);
        uint32_t kinds = 1 + random_below(&random, 12);
        stand s = open_stand(capacity, depth, 100);

        for (uint32_t k = 0; k < kinds; k++) {
            uint32_t length = 1 + random_below(&random, capacity);

            come(&s, i % 2 == 0 ? length : length / 3 + 1,
                 1 + random_below(&random, 200));
        }
        learn(&s);
        assert_true(dearest_pack(&s) <= 1.0001);
        close_stand(&s);
    }
}

/* ---- Long packs are counted in units ---- */

static void test_units(void **state)
{
    static const uint32_t capacities[] = {511, 512, 513, 1000, 2048, 131072,
                                          PS_MAX_CAPACITY};

    (void)state;
    for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
        uint32_t capacity = capacities[i];
        stand s = open_stand(capacity, 3, 100);

        come(&s, capacity / 10 * 6, 300);
        come(&s, capacity / 10 * 4 - capacity / 200, 100);
        learn(&s);
        assert_true(part(&s, capacity / 10 * 6) > 0.95);
        assert_true(part(&s, capacity / 10 * 3) < 0.1);
        come(&s, 1, 100);
        come(&s, capacity - 1, 100);
        learn(&s);
        close_stand(&s);
    }
}

/* ---- When ---- */

static uint64_t records_until_due(stand *s, uint32_t length)
{
    uint64_t n = 0;

    for (; !ps_prices_due(s->prices); n++)
        ps_prices_count(s->prices, length);
    return n;
}

/* First after a window, then after ever more, up to some windows. */
static void schedule(uint32_t window, uint32_t length)
{
    stand s = open_stand(64, 3, window);
    uint64_t last = records_until_due(&s, length);

    assert_true(last == window);
    for (int i = 0; i < 12; i++) {
        uint64_t n;

        learn(&s);
        assert_false(ps_prices_due(s.prices));
        n = records_until_due(&s, length);
        assert_true(n >= last);
        assert_true(n <= 64 * (uint64_t)window || window < 100);
        assert_true(n <= 4 * last || window < 100);
        last = n;
    }
    assert_true(last >= 64 * (uint64_t)window);
    close_stand(&s);
}

static void test_schedule(void **state)
{
    static const uint32_t windows[] = {1, 2, 10, 100, 1000, 5000};

    (void)state;
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        schedule(windows[i], 20);
        schedule(windows[i], 60);
        schedule(windows[i], 64);
    }
}

/* ---- Drift ---- */

/* Draws from a mixture and learns whenever it is time. */
static void stream(stand *s, const uint32_t *lengths, uint32_t n,
                   uint64_t records, uint64_t *random)
{
    for (uint64_t i = 0; i < records; i++) {
        come(s, lengths[random_below(random, n)], 1);
        if (ps_prices_due(s->prices))
            learn(s);
    }
}

/* What came long ago is forgotten, whatever it was. */
static void test_drift(void **state)
{
    static const uint32_t before[] = {60, 60, 60, 40, 7, 98, 1, 33};
    static const uint32_t now[] = {60, 40, 40, 40, 40};
    uint64_t random = 3;
    stand s = open_stand(100, 3, 50);

    (void)state;
    stream(&s, before, 4, 50 * 500, &random);
    assert_dual(&s, 60, 1);
    assert_dual(&s, 40, 0);
    stream(&s, now, 5, 50 * 1000, &random);
    assert_dual(&s, 60, 0.5);
    assert_dual(&s, 40, 0.5);
    stream(&s, before, 8, 50 * 1000, &random);
    stream(&s, now, 5, 50 * 1500, &random);
    assert_dual(&s, 60, 0.5);
    assert_dual(&s, 40, 0.5);
    stream(&s, before, 4, 50 * 1500, &random);
    assert_dual(&s, 60, 1);
    assert_dual(&s, 40, 0);
    close_stand(&s);
}

/* The same records, the same prices. */
static void test_repeats(void **state)
{
    static const uint32_t lengths[] = {5, 9, 13, 50, 51, 77, 90, 99, 100};
    int32_t *first = NULL;

    (void)state;
    for (int i = 0; i < 2; i++) {
        uint64_t random = 9;
        stand s = open_stand(100, 3, 200);

        stream(&s, lengths, 9, 20000, &random);
        if (i == 0) {
            first = s.price;
            s.price = NULL;
        } else {
            assert_memory_equal(first, s.price, 101 * sizeof *first);
        }
        close_stand(&s);
    }
    free(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_depth_of_one),
        cmocka_unit_test(test_one_length),
        cmocka_unit_test(test_two_lengths),
        cmocka_unit_test(test_a_place_has_a_price),
        cmocka_unit_test(test_no_pack_above_one),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_schedule),
        cmocka_unit_test(test_drift),
        cmocka_unit_test(test_repeats),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("prices", tests, NULL, NULL);
}
