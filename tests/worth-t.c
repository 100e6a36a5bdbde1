/*
 * worth-t.c - the choices worth most against a look at every single, pair
 * and triple that the window holds.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "window.h"
#include "worth.h"

#define MOST_CAPACITY 48

/* A window, and what that which it holds is worth at a time. */
typedef struct stand {
    ps_window *window;
    ps_worth *worth;
    uint32_t capacity;
    uint64_t now;
} stand;

static stand open_stand(uint32_t capacity, uint32_t window_size,
                        uint64_t now)
{
    stand s = {.capacity = capacity, .now = now};
    ps_error err;

    assert_ok(ps_window_open(&s.window, 64, 0, capacity, &err), &err);
    assert_ok(ps_worth_open(&s.worth, s.window, capacity, window_size, &err),
              &err);
    ps_worth_set_time(s.worth, now);
    return s;
}

static void close_stand(stand *s)
{
    ps_worth_free(s->worth);
    ps_window_free(s->window);
}

static void admit(stand *s, uint32_t length)
{
    ps_window_admit(s->window, length, s->now);
    ps_worth_update(s->worth, length);
}

static void take(stand *s, uint32_t length)
{
    ps_window_release(s->window, ps_window_take(s->window, length));
    ps_worth_update(s->worth, length);
}

static void pass_time(stand *s, uint64_t records)
{
    s->now += records;
    ps_worth_set_time(s->worth, s->now);
}

/* What one sequence of a length is worth that is there. */
static int32_t value(const stand *s, uint32_t length)
{
    ps_choice c = ps_worth_exact(s->worth, length, length, 1);

    assert_int_equal(c.n, 1);
    assert_int_equal(c.length[0], length);
    return c.worth;
}

/* ---- The naive look ---- */

typedef struct naive {
    uint32_t count[MOST_CAPACITY + 1];
    int32_t value[MOST_CAPACITY + 1];
} naive;

static naive look(const stand *s)
{
    naive v = {0};

    for (uint32_t l = 1; l <= s->capacity; l++) {
        v.count[l] = ps_window_count_of(s->window, l);
        v.value[l] = v.count[l] > 0 ? value(s, l) : PS_WORTH_NONE;
    }
    return v;
}

/*
 * The most that up to `places` lengths are worth that fit the room; in
 * ascending order, from `from` on, so that none is seen twice.
 */
static int32_t most_of(naive *v, uint32_t from, uint32_t room,
                       uint32_t places, bool exact)
{
    int32_t most = !exact || room == 0 ? 0 : PS_WORTH_NONE;

    for (uint32_t l = from; places > 0 && l <= room; l++) {
        int32_t rest;

        if (v->count[l] == 0)
            continue;
        v->count[l]--;
        rest = most_of(v, l, room - l, places - 1, exact);
        v->count[l]++;
        if (rest > PS_WORTH_NONE && v->value[l] + rest > most)
            most = v->value[l] + rest;
    }
    return most;
}

/* The same with a leader, or at least one of any lengths without it. */
static int32_t naive_most(const stand *s, uint32_t first, uint32_t room,
                          uint32_t places, bool exact)
{
    naive v = look(s);
    int32_t most = PS_WORTH_NONE;

    for (uint32_t l = 1; l <= room; l++) {
        int32_t rest;

        if (v.count[l] == 0 || (first != 0 && l != first))
            continue;
        v.count[l]--;
        rest = most_of(&v, 1, room - l, places - 1, exact);
        v.count[l]++;
        if (rest > PS_WORTH_NONE && v.value[l] + rest > most)
            most = v.value[l] + rest;
    }
    return most;
}

/* ---- Comparing ---- */

/* That a choice is there, fits, and is worth what it says. */
static void check_choice(const stand *s, const ps_choice *c, uint32_t first,
                         uint32_t room, uint32_t places, bool exact)
{
    uint32_t used[MOST_CAPACITY + 1] = {0};
    uint32_t sum = 0;
    int32_t worth = 0;

    assert_in_range(c->n, 1, places);
    if (first != 0)
        assert_int_equal(c->length[0], first);
    for (uint32_t i = 0; i < c->n; i++) {
        uint32_t l = c->length[i];

        assert_in_range(l, 1, room);
        assert_true(++used[l] <= ps_window_count_of(s->window, l));
        sum += l;
        worth += value(s, l);
    }
    assert_int_equal(c->worth, worth);
    if (exact)
        assert_int_equal(sum, room);
    assert_true(sum <= room);
}

static void compare(const stand *s, uint32_t first, uint32_t room,
                    uint32_t places, bool exact)
{
    ps_choice c = exact ? ps_worth_exact(s->worth, first, room, places)
                        : ps_worth_within(s->worth, first, room, places);
    uint32_t limit = first == 0 && places > 2 ? 2 : places;
    int32_t most = naive_most(s, first, room, limit, exact);

    if (c.n > 0)
        check_choice(s, &c, first, room, places, exact);
    assert_int_equal(c.worth, most);
}

/* Every leader that is there and none, every room and number of places. */
static void compare_all(const stand *s)
{
    for (uint32_t room = 1; room <= s->capacity; room++)
        for (uint32_t first = 0; first <= room; first++) {
            if (first > 0 && ps_window_count_of(s->window, first) == 0)
                continue;
            for (uint32_t places = 1; places <= 3; places++) {
                compare(s, first, room, places, true);
                compare(s, first, room, places, false);
            }
        }
}

/* ---- Random windows ---- */

/* Prices as they are learned: not falling, or in parts of the capacity. */
static void set_prices(stand *s, uint64_t *random)
{
    int32_t price[MOST_CAPACITY + 1] = {0};
    uint32_t kind = random_below(random, 4);

    if (kind == 0)
        return;
    for (uint32_t l = 1; l <= s->capacity; l++) {
        uint32_t left = (uint32_t)(PS_WORTH_ONE - price[l - 1]);

        price[l] = price[l - 1];
        if (random_below(random, 3) < kind)
            price[l] +=
                (int32_t)random_below(random, left * 3 / s->capacity + 1);
        if (price[l] > PS_WORTH_ONE)
            price[l] = PS_WORTH_ONE;
    }
    ps_worth_set_prices(s->worth, price);
}

static void run(uint32_t capacity, uint32_t window_size, uint64_t random)
{
    stand s = open_stand(capacity, window_size, 1);
    uint32_t most = 1 + random_below(&random, 14);

    for (int round = 0; round < 5; round++) {
        set_prices(&s, &random);
        while (ps_window_count(s.window) < most) {
            uint32_t length = 1 + random_below(&random, capacity);

            if (random_below(&random, 3) == 0)
                length = 1 + length / 4;
            admit(&s, length <= capacity ? length : capacity);
            s.now += random_below(&random, window_size / most + 2);
        }
        pass_time(&s, random_below(&random, 2 * window_size));
        compare_all(&s);
        for (uint32_t i = 0; i < most; i += 2)
            take(&s, ps_window_length(s.window,
                                      ps_window_oldest(s.window)));
        compare_all(&s);
    }
    close_stand(&s);
}

static void test_random_windows(void **state)
{
    static const uint32_t sizes[] = {1, 3, 16, 1000};

    (void)state;
    for (uint32_t capacity = 1; capacity <= 26; capacity++)
        for (uint64_t i = 0; i < 12; i++)
            run(capacity, sizes[i % 4], capacity * 100 + i + 1);
    run(MOST_CAPACITY, 64, 5);
}

/* ---- Age ---- */

/* The mean time of waiting is worth nothing, no time less, more time more. */
static void try_age(uint32_t size, const int32_t *prices, int32_t aged)
{
    stand s = open_stand(4, size, 78);
    int32_t price;
    int32_t last;

    ps_worth_set_prices(s.worth, prices);
    price = ps_worth_price(s.worth, 3);
    pass_time(&s, 0);
    admit(&s, 3);
    last = value(&s, 3);
    assert_in_range(price - last, aged - 2, aged + 2);
    for (int step = 1; step <= 100; step++) {
        pass_time(&s, size);
        if (step == 1)
            assert_in_range(value(&s, 3) - price + 2, 0, 4);
        assert_true(value(&s, 3) > last || step > 8);
        last = value(&s, 3);
        assert_true(last <= price + 16 * aged);
    }
    close_stand(&s);
}

/* It counts for more where the depth binds. */
static void test_age(void **state)
{
    static const int32_t prices[] = {0, 100, 200000, 300000, PS_WORTH_ONE};
    static const uint32_t sizes[] = {1, 2, 3, 100, 1024, 1000003,
                                     PS_MAX_WINDOW};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        try_age(sizes[i], NULL, PS_WORTH_ONE / 1024);
        try_age(sizes[i], prices, PS_WORTH_ONE / 128);
    }
}

/* The same sequences with the same ages, the clock being elsewhere. */
static void compare_shifted(uint32_t window_size, uint64_t shift,
                            int32_t tolerance, uint64_t random)
{
    stand a = open_stand(20, window_size, 1);
    stand b = open_stand(20, window_size, 1 + shift);

    for (int round = 0; round < 60; round++) {
        uint32_t length = 1 + random_below(&random, 20);
        uint32_t age = random_below(&random, window_size / 4 + 1);

        admit(&a, length);
        admit(&b, length);
        pass_time(&a, age);
        pass_time(&b, age);
        for (uint32_t room = 1; room <= 20; room++) {
            uint32_t oldest = ps_window_oldest(a.window);
            uint32_t first = ps_window_length(a.window, oldest);
            ps_choice x = first > room
                              ? ps_worth_within(a.worth, 0, room, 3)
                              : ps_worth_exact(a.worth, first, room, 3);
            ps_choice y = first > room
                              ? ps_worth_within(b.worth, 0, room, 3)
                              : ps_worth_exact(b.worth, first, room, 3);

            assert_in_range(x.worth - y.worth + tolerance, 0,
                            2 * tolerance);
            if (tolerance > 0)
                continue;
            assert_int_equal(x.n, y.n);
            assert_memory_equal(x.length, y.length, sizeof x.length);
        }
        if (ps_window_count(a.window) > 12) {
            length = ps_window_length(a.window, ps_window_oldest(a.window));
            take(&a, length);
            take(&b, length);
        }
    }
    close_stand(&a);
    close_stand(&b);
}

/*
 * Choices do not change because the epoch moves: to the last bit where a
 * record of waiting is worth a whole number, else but for rounding, which
 * takes up to two from each sequence.
 */
static void test_epochs(void **state)
{
    static const uint32_t sizes[] = {1,    2,    3,       16,           100,
                                     1024, 2048, 1000003, PS_MAX_WINDOW};
    static const uint64_t shifts[] = {1,
                                      7,
                                      1000,
                                      UINT64_C(1) << 31,
                                      UINT64_C(12345678901),
                                      (UINT64_C(1) << 63) - 300,
                                      (UINT64_C(1) << 63) + 5};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t k = 0; k < sizeof shifts / sizeof shifts[0]; k++)
            compare_shifted(sizes[i], shifts[k],
                            1024 % sizes[i] == 0 ? 0 : 6, i * 10 + k + 1);
}

/* ---- Prices ---- */

/* At first a length is worth its part; then what it is said to be. */
static void test_prices(void **state)
{
    int32_t price[11] = {0, 1, 2, 3, 5, 8, 13, 21, 34, 55, PS_WORTH_ONE};
    stand s = open_stand(10, 16, 1);
    int32_t old;

    (void)state;
    for (uint32_t l = 1; l <= 10; l++) {
        assert_int_equal(ps_worth_price(s.worth, l),
                         (int64_t)l * PS_WORTH_ONE / 10);
        admit(&s, l);
    }
    old = value(&s, 7);
    ps_worth_set_prices(s.worth, price);
    for (uint32_t l = 1; l <= 10; l++)
        assert_int_equal(ps_worth_price(s.worth, l), price[l]);
    pass_time(&s, 0);
    assert_int_equal(value(&s, 7) - old,
                     21 - 7 * PS_WORTH_ONE / 10 -
                         (PS_WORTH_ONE / 128 - PS_WORTH_ONE / 1024));
    compare_all(&s);
    close_stand(&s);
}

/* Nothing in the window, and then only what does not fit. */
static void test_nothing(void **state)
{
    stand s = open_stand(10, 4, 1);
    ps_choice c = ps_worth_exact(s.worth, 0, 10, 3);

    (void)state;
    assert_int_equal(c.n, 0);
    assert_int_equal(c.worth, PS_WORTH_NONE);
    c = ps_worth_within(s.worth, 0, 10, 3);
    assert_int_equal(c.n, 0);
    assert_int_equal(c.worth, PS_WORTH_NONE);
    admit(&s, 6);
    compare_all(&s);
    c = ps_worth_within(s.worth, 0, 5, 3);
    assert_int_equal(c.n, 0);
    close_stand(&s);
    ps_worth_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_windows),
        cmocka_unit_test(test_age),
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_prices),
        cmocka_unit_test(test_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("worth", tests, NULL, NULL);
}
