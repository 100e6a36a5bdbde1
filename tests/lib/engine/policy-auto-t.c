/*
 * policy-auto-t.c - choices of the default policy, in examples worked out by
 * hand.
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

/*
 * Packs worked out by hand: the waiting lengths, and the packs chosen, each in
 * ascending order.
 */
static void test_auto_examples(void **state)
{
    static const struct {
        const char *what;
        ps_policy_setup setup;
        uint64_t now; /* 0: when the last one came */
        uint32_t lengths[9];
        uint32_t packs[4][4];
    } cases[] = {
        {"one fills the pack with the oldest", {.depth = 3}, 0,
         {60, 39, 40, 20}, {{40, 60}}},
        {"two do, the older ones", {.depth = 3}, 0,
         {60, 39, 30, 10, 26, 15, 25}, {{10, 30, 60}}},
        {"two of a length do", {.depth = 3}, 0,
         {60, 20, 39, 20}, {{20, 20, 60}}},
        {"half of two of a length does not: the longest fits", {.depth = 3},
         0, {60, 20, 39}, {{39, 60}}},
        {"nothing fills it: the longest that fits", {.depth = 3}, 0,
         {50, 60, 41}, {{41, 50}}},
        {"nothing fits", {.depth = 3}, 0, {7}, {{7}}},
        {"with no place left nothing is added", {.depth = 1}, 0,
         {60, 30, 25, 15}, {{60}}},
        {"with one place left a pair is no use", {.depth = 2}, 0,
         {60, 30, 25, 15}, {{30, 60}}},
        {"with two it is", {.depth = 3}, 0,
         {60, 30, 25, 15}, {{15, 25, 60}}},
        {"the oldest goes with nothing, and may wait",
         {.depth = 3, .max_delay = 10}, 10,
         {35, 60, 40, 70, 80}, {{40, 60}}},
        {"it leads all the same once it must",
         {.depth = 3, .max_delay = 10}, 11,
         {35, 60, 40, 70, 80}, {{35, 60}}},
        {"without a limit to the delay it waits for four windows,",
         {.depth = 3}, 254, {35, 60, 40, 70, 80}, {{40, 60}}},
        {"less a hundredth", {.depth = 3}, 255,
         {35, 60, 40, 70, 80}, {{35, 60}}},
        {"in order the oldest leads each, however little goes with it",
         {.depth = 2, .in_order = true}, 0, {70, 60, 40, 90, 10, 31},
         {{10, 70}, {40, 60}, {90}, {31}}},
        {"in order a full one waits, too", {.depth = 3, .in_order = true}, 0,
         {60, 40, 100}, {{40, 60}, {100}}},
        {"two choices fill the pack: the older one", {.depth = 2}, 0,
         {99, 1, 50, 50}, {{1, 99}}},
        {"the cost of one is nearer to the mean",
         {.depth = 2, .even_cost = true}, 0, {99, 1, 50, 50}, {{50, 50}}},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t n = 0;
        stand s;

        print_message("# %s\n", cases[i].what);
        while (cases[i].lengths[n] > 0)
            n++;
        open_auto(&s, cases[i].setup, cases[i].lengths, n);
        assert_false(is_ready(&s));
        if (cases[i].now > 0)
            s.now = cases[i].now;
        for (size_t k = 0; k < 4 && cases[i].packs[k][0] > 0; k++) {
            for (n = 0; cases[i].packs[k][n] > 0;)
                n++;
            choose(&s, false);
            assert_sorted_pack(&s, cases[i].packs[k], n);
        }
        close_stand(&s);
    }
}

/*
 * The oldest come first, while the pack has room for more than seven mean
 * lengths and more than seven slots; the last ones then fill the pack.  The
 * longest goes before them if that makes a better pack, as it does with many
 * slots.
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

/* Expects an exact fill among other lengths, scaled, and one token off. */
static void expect_scaled(bool in_order, uint32_t by)
{
    const ps_policy_setup setup = {.capacity = 100 * by,
                                   .depth = 3,
                                   .window_size = MAX_SLOTS,
                                   .in_order = in_order};
    static const uint32_t parts[] = {60, 25, 39, 15, 38};
    const uint32_t pack[] = {15 * by - 1, 25 * by, 60 * by + 1};
    stand s;

    open_stand(&s, &ps_policy_auto_calls, &setup);
    for (size_t k = 0; k < COUNT(parts); k++)
        admit(&s, parts[k] * by + (k == 0) - (k == 3));
    choose(&s, false);
    assert_sorted_pack(&s, pack, 3);
    close_stand(&s);
}

/*
 * With lengths counted in units, exact fills are still found; of packs beyond
 * all units, at least those with the seed sequence.
 */
static void test_auto_units(void **state)
{
    static const uint32_t fit[] = {6, 7, 10, 100, 1311};
    static const uint32_t others[] = {3, 5, 9, 1312};

    for (size_t i = 0; i < COUNT(fit); i++) {
        expect_scaled(false, fit[i]);
        expect_scaled(true, fit[i]);
    }
    for (size_t i = 0; i < COUNT(others); i++)
        expect_scaled(true, others[i]);
}

/*
 * 4096 sequences in a pack of 2^20 tokens: the product, 2^32, must not wrap.
 * Mean lengths fill the pack so well that no pair is needed, and two slightly
 * older ones go before the pair that would fill it.
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

        ps_window_admit(setup.window, length, i < 2 ? 2 * n : 2 * n + n / 2);
        calls->admitted(policy, length);
    }
    assert_ok(calls->choose(policy, 2 * n + n / 2, PS_EMIT_DUE, slots, &taken,
                            &err),
              &err);
    assert_int_equal(taken, 2);
    assert_int_equal(setup.window->slots[slots[0]].length, half - 1000);
    assert_int_equal(setup.window->slots[slots[1]].length, half + 1);
    calls->free(policy);
    ps_window_destroy(&window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_auto_examples),
        cmocka_unit_test(test_auto_many_places),
        cmocka_unit_test(test_auto_units),
        cmocka_unit_test(test_auto_large_product),
    };

    return run_as_tap("policy-auto", tests, NULL);
}
