/*
 * totals-t.c - totals: counting packs, adding streams, and when they balance.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include "format/totals.h"

/* Sums add up; maxima and minima cover both streams. */
static void test_add(void **state)
{
    const ps_totals a = {.packs = 2, .sequences = 5, .tokens = 70,
                         .input_sequences = 6, .input_tokens = 90,
                         .rejected_sequences = 1, .rejected_tokens = 15,
                         .truncated_sequences = 1, .truncated_tokens = 5,
                         .split_sequences = 2, .extra_pieces = 3,
                         .max_displacement = 9, .max_seqlen = 30,
                         .max_depth = 2, .min_fill = 33};
    const ps_totals b = {.packs = 1, .sequences = 4, .tokens = 20,
                         .input_sequences = 40, .input_tokens = 50,
                         .rejected_sequences = 60, .rejected_tokens = 70,
                         .truncated_sequences = 80, .truncated_tokens = 90,
                         .split_sequences = 100, .extra_pieces = 110,
                         .max_displacement = 3, .max_seqlen = 8,
                         .max_depth = 4, .min_fill = 20};
    const ps_totals wanted = {.packs = 3, .sequences = 9, .tokens = 90,
                              .input_sequences = 46, .input_tokens = 140,
                              .rejected_sequences = 61,
                              .rejected_tokens = 85,
                              .truncated_sequences = 81,
                              .truncated_tokens = 95,
                              .split_sequences = 102, .extra_pieces = 113,
                              .max_displacement = 9, .max_seqlen = 30,
                              .max_depth = 4, .min_fill = 20};
    const ps_totals empty = {.input_sequences = 4};
    ps_totals t = a;

    assert_true(ps_totals_add(&t, &b));
    assert_totals(&t, &wanted);
    t = b;
    assert_true(ps_totals_add(&t, &a));
    assert_totals(&t, &wanted);
    /* A stream without packs has no least full pack. */
    t = a;
    assert_true(ps_totals_add(&t, &empty));
    assert_int_equal(t.min_fill, 33);
    assert_int_equal(t.input_sequences, 10);
    t = empty;
    assert_true(ps_totals_add(&t, &a));
    assert_int_equal(t.min_fill, 33);
}

/* Any sum that exceeds 64 bits is reported. */
static void test_add_beyond_64_bits(void **state)
{
    ps_totals a;
    ps_totals b;

#define EXCEED(member)                                                  \
    a = (ps_totals){.member = UINT64_MAX - 4};                          \
    b = (ps_totals){.member = 4};                                       \
    assert_true(ps_totals_add(&a, &b));                                 \
    b.member = 1;                                                       \
    assert_false(ps_totals_add(&a, &b))
    EXCEED(packs);
    EXCEED(sequences);
    EXCEED(tokens);
    EXCEED(input_sequences);
    EXCEED(input_tokens);
    EXCEED(rejected_sequences);
    EXCEED(rejected_tokens);
    EXCEED(truncated_sequences);
    EXCEED(truncated_tokens);
    EXCEED(split_sequences);
    EXCEED(extra_pieces);
#undef EXCEED
}

static const ps_totals balanced = {
    .sequences = 9, .extra_pieces = 2, .rejected_sequences = 3,
    .input_sequences = 10, .tokens = 100, .rejected_tokens = 50,
    .truncated_tokens = 7, .input_tokens = 157};

static void test_balance(void **state)
{
    const ps_totals none = {0};
    ps_totals t = balanced;

    assert_true(ps_totals_balance(&none));
    assert_true(ps_totals_balance(&t));
#define UPSET(member)                                                   \
    t = balanced;                                                       \
    t.member++;                                                         \
    assert_false(ps_totals_balance(&t));                                \
    t.member -= 2;                                                      \
    assert_false(ps_totals_balance(&t))
    UPSET(sequences);
    UPSET(extra_pieces);
    UPSET(rejected_sequences);
    UPSET(input_sequences);
    UPSET(tokens);
    UPSET(rejected_tokens);
    UPSET(truncated_tokens);
    UPSET(input_tokens);
#undef UPSET
    t = none;
    t.extra_pieces = 1; /* more extra pieces than pieces */
    t.input_sequences = UINT64_MAX;
    assert_false(ps_totals_balance(&t));
    /* Sums that agree only modulo 2^64. */
    t = (ps_totals){.sequences = 5, .rejected_sequences = UINT64_MAX,
                    .input_sequences = 4};
    assert_false(ps_totals_balance(&t));
    t = (ps_totals){.tokens = 5, .rejected_tokens = UINT64_MAX,
                    .input_tokens = 4};
    assert_false(ps_totals_balance(&t));
    t = (ps_totals){.tokens = 5, .truncated_tokens = UINT64_MAX,
                    .input_tokens = 4};
    assert_false(ps_totals_balance(&t));
}

static void test_lower_bound(void **state)
{
    for (uint32_t capacity = 1; capacity < 40; capacity++)
        for (uint64_t tokens = 0; tokens < 200; tokens++) {
            uint64_t packs = ps_lower_bound(tokens, capacity);

            assert_true(packs * capacity >= tokens);
            assert_true(packs == 0 || (packs - 1) * capacity < tokens);
        }
    assert_true(ps_lower_bound(UINT64_MAX, 1) == UINT64_MAX);
    assert_true(ps_lower_bound(UINT64_MAX, 2) == UINT64_MAX / 2 + 1);
    assert_int_equal(ps_lower_bound(7, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_add_beyond_64_bits),
        cmocka_unit_test(test_balance),
        cmocka_unit_test(test_lower_bound),
    };

    return run_as_tap("totals", tests, NULL);
}
