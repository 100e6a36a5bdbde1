/*
 * policy-auto-t.c - what the default policy chooses, in examples worked out
 * by hand.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include "policy-harness.h"

static void open_auto(stand *s, ps_policy_setup setup,
                      const uint32_t *lengths, size_t n)
{
    setup.capacity = 100;
    setup.window_size = MAX_SLOTS;
    open_stand(s, &ps_policy_auto_calls, &setup);
    admit_all(s, lengths, n);
}

static void expect_auto(ps_policy_setup setup, const uint32_t *lengths,
                        size_t n, const uint32_t *pack, size_t n_pack)
{
    stand s;

    open_auto(&s, setup, lengths, n);
    choose(&s, false);
    assert_sorted_pack(&s, pack, n_pack);
    close_stand(&s);
}

#define EXPECT(setup, lengths, pack)                                    \
    expect_auto(setup, lengths, COUNT(lengths), pack, COUNT(pack))

/* What fills the pack with the oldest is taken: one, two, of which the older
   ones, or two of a length; and else the longest that fits. */
static void test_auto_fills(void **state)
{
    static const ps_policy_setup deep = {.depth = 3};
    static const uint32_t single[] = {60, 39, 40, 20};
    static const uint32_t single_pack[] = {40, 60};
    static const uint32_t pair[] = {60, 39, 30, 10, 26, 15, 25};
    static const uint32_t pair_pack[] = {10, 30, 60};
    static const uint32_t twins[] = {60, 20, 39, 20};
    static const uint32_t twins_pack[] = {20, 20, 60};
    static const uint32_t lone_half[] = {60, 20, 39};
    static const uint32_t lone_half_pack[] = {39, 60};
    static const uint32_t fits[] = {50, 60, 41};
    static const uint32_t fits_pack[] = {41, 50};
    static const uint32_t one[] = {7};

    EXPECT(deep, single, single_pack);
    EXPECT(deep, pair, pair_pack);
    EXPECT(deep, twins, twins_pack);
    EXPECT(deep, lone_half, lone_half_pack);
    EXPECT(deep, fits, fits_pack);
    EXPECT(deep, one, one);
}

/* At a depth of two an exact pair goes first, then the oldest with the
   longest that fits. */
static void test_auto_pairs(void **state)
{
    static const uint32_t lengths[] = {41, 58, 52, 39, 48, 57, 45, 43};
    static const uint32_t third[] = {41, 58};
    static const uint32_t fourth[] = {39, 45};
    stand s;

    open_auto(&s, (ps_policy_setup){.depth = 2}, lengths, COUNT(lengths));
    for (int i = 0; i < 2; i++) {
        choose(&s, false);
        assert_int_equal(s.n_pack, 2);
        assert_int_equal(s.pack[0] + s.pack[1], 100);
    }
    choose(&s, false);
    assert_sorted_pack(&s, third, 2);
    choose(&s, false);
    assert_sorted_pack(&s, fourth, 2);
    close_stand(&s);
}

/* With one place left a pair is no use, and with none nothing is added. */
static void test_auto_depth(void **state)
{
    static const uint32_t lengths[] = {60, 30, 25, 15};
    static const uint32_t one[] = {60};
    static const uint32_t two[] = {30, 60};
    static const uint32_t three[] = {15, 25, 60};

    EXPECT(((ps_policy_setup){.depth = 1}), lengths, one);
    EXPECT(((ps_policy_setup){.depth = 2}), lengths, two);
    EXPECT(((ps_policy_setup){.depth = 3}), lengths, three);
}

/*
 * The oldest come first, as long as there is more room than seven lengths of
 * the mean take, and more than seven places; the last ones then fill the pack.
 * They come behind the longest if that makes a better pack, as it does where
 * places are many.
 */
static void test_auto_many_places(void **state)
{
    static const uint32_t lengths[] = {7, 3, 9, 1, 8, 8, 2, 5, 6, 4, 3, 7,
                                       9, 1, 6, 2, 5, 4, 8, 3, 7, 6, 1, 9,
                                       4, 2, 5, 8, 6, 3, 7, 1, 9, 5, 2, 4};
    uint32_t tokens = 0;
    uint32_t room = 91;
    uint32_t sum = 0;
    uint32_t n = 0;
    stand s;

    for (size_t i = 0; i < COUNT(lengths); i++)
        tokens += lengths[i];
    while (room * COUNT(lengths) > 7 * tokens)
        room -= lengths[n++];
    open_auto(&s, (ps_policy_setup){.depth = 64}, lengths, COUNT(lengths));
    choose(&s, false);
    assert_true(n > 8 && s.n_pack > n);
    assert_int_equal(s.pack[0], 9);
    assert_memory_equal(s.pack + 1, lengths, n * sizeof lengths[0]);
    for (uint32_t i = 0; i < s.n_pack; i++)
        sum += s.pack[i];
    assert_int_equal(sum, 100);
    close_stand(&s);
    open_auto(&s, (ps_policy_setup){.depth = 12}, lengths, COUNT(lengths));
    choose(&s, false);
    assert_int_equal(s.n_pack, 12);
    assert_memory_equal(s.pack, lengths, (12 - 7) * sizeof lengths[0]);
    close_stand(&s);
}

/* A full one leaves at once, and first; but not if it has to wait. */
static void test_auto_full_length(void **state)
{
    static const uint32_t lengths[] = {60, 40, 100};
    static const uint32_t full[] = {100};
    static const uint32_t pair[] = {40, 60};
    stand s;

    open_auto(&s, (ps_policy_setup){.depth = 3}, lengths, 2);
    assert_false(is_ready(&s));
    admit(&s, 100);
    assert_true(is_ready(&s));
    choose(&s, false);
    assert_pack(&s, full, 1);
    assert_false(is_ready(&s));
    close_stand(&s);
    open_auto(&s, (ps_policy_setup){.depth = 3, .in_order = true}, lengths,
              3);
    assert_false(is_ready(&s));
    choose(&s, false);
    assert_sorted_pack(&s, pair, 2);
    choose(&s, false);
    assert_pack(&s, full, 1);
    close_stand(&s);
}

/* The oldest goes with nothing: it leads all the same once it must. */
static void test_auto_urgent(void **state)
{
    static const uint32_t lengths[] = {35, 60, 40, 70, 80};
    static const uint32_t full[] = {40, 60};
    static const uint32_t urgent[] = {35, 60};
    stand s;

    open_auto(&s, (ps_policy_setup){.depth = 3, .max_delay = 10}, lengths,
              5);
    s.now = 10;
    choose(&s, false);
    assert_sorted_pack(&s, full, 2);
    close_stand(&s);
    open_auto(&s, (ps_policy_setup){.depth = 3, .max_delay = 10}, lengths,
              5);
    s.now = 11;
    choose(&s, false);
    assert_sorted_pack(&s, urgent, 2);
    close_stand(&s);
}

/* Without a limit to the delay, four windows less a hundredth are enough. */
static void test_auto_waited(void **state)
{
    static const uint32_t lengths[] = {35, 60, 40, 70, 80};
    static const uint32_t full[] = {40, 60};
    static const uint32_t urgent[] = {35, 60};
    stand s;

    for (uint64_t now = 254; now <= 255; now++) {
        open_auto(&s, (ps_policy_setup){.depth = 3}, lengths, 5);
        s.now = now;
        choose(&s, false);
        assert_sorted_pack(&s, now == 254 ? full : urgent, 2);
        close_stand(&s);
    }
}

/*
 * Alone a long one fits with nothing, and short ones fill packs without it:
 * it leads all the same, and takes what goes best with it.
 */
static void test_auto_long_leads(void **state)
{
    static const uint32_t lengths[] = {7, 3, 9, 1, 8, 8, 2, 5, 6, 4, 3, 7,
                                       9, 1, 6, 2, 5, 4, 8, 3, 7, 6, 1, 9,
                                       4, 2, 5, 8, 6, 3, 7, 1, 9, 5, 2, 95};
    stand s;
    uint32_t sum = 0;
    bool leads = false;

    open_auto(&s, (ps_policy_setup){.depth = 5}, lengths, COUNT(lengths));
    choose(&s, false);
    for (uint32_t i = 0; i < s.n_pack; i++) {
        sum += s.pack[i];
        leads |= s.pack[i] == 95;
    }
    assert_true(leads);
    assert_int_equal(sum, 100);
    close_stand(&s);
}

/* In order the oldest leads each pack, however little goes with it. */
static void test_auto_in_order(void **state)
{
    static const uint32_t lengths[] = {70, 60, 40, 90, 10, 31};
    static const uint32_t first[] = {10, 70};
    static const uint32_t second[] = {40, 60};
    static const uint32_t third[] = {90};
    static const uint32_t last[] = {31};
    stand s;

    open_auto(&s, (ps_policy_setup){.depth = 2, .in_order = true}, lengths,
              COUNT(lengths));
    choose(&s, false);
    assert_sorted_pack(&s, first, 2);
    choose(&s, false);
    assert_sorted_pack(&s, second, 2);
    choose(&s, false);
    assert_sorted_pack(&s, third, 1);
    choose(&s, false);
    assert_sorted_pack(&s, last, 1);
    close_stand(&s);
}

static void expect_alone(ps_policy_setup setup, uint32_t length, uint32_t n)
{
    stand s;

    open_stand(&s, &ps_policy_auto_calls, &setup);
    for (uint32_t i = 0; i < n; i++)
        admit(&s, length);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(is_ready(&s), length == setup.capacity);
        choose(&s, i + 1 == n);
        assert_pack(&s, &length, 1);
    }
    close_stand(&s);
}

/* A capacity of one token, a window or a pack of one sequence. */
static void test_auto_smallest(void **state)
{
    for (uint32_t n = 1; n < 6; n++) {
        expect_alone((ps_policy_setup){.capacity = 1,
                                       .depth = 1,
                                       .window_size = n}, 1, n);
        expect_alone((ps_policy_setup){.capacity = 9,
                                       .depth = 1,
                                       .window_size = n}, 2, n);
        expect_alone((ps_policy_setup){.capacity = 1000,
                                       .depth = 8,
                                       .window_size = n}, 501, n);
    }
    for (uint32_t length = 1; length <= 600; length += 7)
        expect_alone((ps_policy_setup){.capacity = 600,
                                       .depth = 3,
                                       .window_size = 1}, length, 1);
}

/* Those of an exact fill among others, at a scale, a token off it. */
static void expect_scaled(ps_policy_setup setup, uint32_t by)
{
    static const uint32_t parts[] = {60, 25, 39, 15, 38};
    const uint32_t pack[] = {15 * by - 1, 25 * by, 60 * by + 1};
    stand s;

    setup.capacity = 100 * by;
    setup.depth = 3;
    setup.window_size = MAX_SLOTS;
    open_stand(&s, &ps_policy_auto_calls, &setup);
    for (size_t k = 0; k < COUNT(parts); k++)
        admit(&s, parts[k] * by + (k == 0) - (k == 3));
    choose(&s, false);
    assert_sorted_pack(&s, pack, 3);
    close_stand(&s);
}

/*
 * Where lengths are counted in units, exact fills are found all the same;
 * those that fill more than all units where the first leads at least.
 */
static void test_auto_units(void **state)
{
    static const uint32_t fit[] = {6, 7, 10, 100, 1311};
    static const uint32_t others[] = {3, 5, 9, 1312};

    for (size_t i = 0; i < COUNT(fit); i++) {
        expect_scaled((ps_policy_setup){.in_order = false}, fit[i]);
        expect_scaled((ps_policy_setup){.in_order = true}, fit[i]);
    }
    for (size_t i = 0; i < COUNT(others); i++)
        expect_scaled((ps_policy_setup){.in_order = true}, others[i]);
}

/*
 * 4096 sequences in a pack of 2^20 tokens: their product, 2^32, must not be
 * taken for less.  Mean lengths fill so much of a pack that no pair need do
 * it, and an old one goes, with the longest that fits, before the young pair
 * that would.
 */
static void test_auto_large_product(void **state)
{
    enum { capacity = 1 << 20, n = 4096, half = capacity / 2 };
    ps_policy_setup setup = {.capacity = capacity,
                             .depth = 2,
                             .window_size = n,
                             .max_delay = UINT64_MAX};
    const ps_policy_calls *calls = &ps_policy_auto_calls;
    uint32_t slots[2] = {0};
    uint32_t taken = 0;
    void *policy;
    ps_window window;
    ps_mem mem = {0};
    ps_error err;

    ps_window_init(&window, n, 0, capacity, &mem);
    assert_false(mem.failed);
    setup.window = &window;
    assert_ok(calls->open(&policy, &setup, &err), &err);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t length = i < 2        ? half - 1000
                          : i + 2 == n ? half - 1
                          : i + 1 == n ? half + 1
                                       : capacity / 4;

        ps_window_admit(setup.window, length, i < 2 ? 1 : 3 * n);
        calls->admitted(policy, length);
    }
    assert_ok(calls->choose(policy, 3 * n, PS_EMIT_DUE, slots, &taken, &err),
              &err);
    assert_int_equal(taken, 2);
    assert_int_equal(setup.window->slots[slots[0]].length, half - 1000);
    assert_int_equal(setup.window->slots[slots[1]].length, half + 1);
    calls->free(policy);
    ps_window_destroy(&window);
}

/* Two choices fill a pack; the one whose cost is nearer to the mean wins. */
static void test_auto_even_cost(void **state)
{
    static const uint32_t lengths[] = {99, 50, 50, 1};
    static const uint32_t uneven[] = {1, 99};
    static const uint32_t even[] = {50, 50};
    ps_policy_setup setup = {.depth = 2};

    EXPECT(setup, lengths, uneven);
    setup.even_cost = true;
    EXPECT(setup, lengths, even);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_auto_fills),
        cmocka_unit_test(test_auto_pairs),
        cmocka_unit_test(test_auto_depth),
        cmocka_unit_test(test_auto_many_places),
        cmocka_unit_test(test_auto_full_length),
        cmocka_unit_test(test_auto_urgent),
        cmocka_unit_test(test_auto_waited),
        cmocka_unit_test(test_auto_long_leads),
        cmocka_unit_test(test_auto_in_order),
        cmocka_unit_test(test_auto_smallest),
        cmocka_unit_test(test_auto_units),
        cmocka_unit_test(test_auto_large_product),
        cmocka_unit_test(test_auto_even_cost),
    };

    return run_as_tap("policy-auto", tests, NULL);
}
