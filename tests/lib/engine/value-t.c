/*
 * value-t.c - the value of tokens and slots left, against a naive knapsack.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"

#include <stdlib.h>
#include <string.h>

#include "engine/score.h"
#include "engine/value.h"

#define MAX_UNITS 2048

/* More slots than these count as unlimited. */
#define MAX_PLACES 32

/* Scores by length in units, after padding that may be read. */
static int32_t padded[PS_SEARCH_GROUP + MAX_UNITS + 1];
static int32_t *const best = padded + PS_SEARCH_GROUP;

/* One in `rare` lengths is present; some scores are below 0. */
static void draw_scores(uint32_t units, uint32_t rare, uint64_t *random)
{
    for (size_t i = 0; i < COUNT(padded); i++)
        padded[i] = PS_SCORE_NONE;
    for (uint32_t u = 1; u <= units; u++)
        if (random_below(random, rare) == 0)
            best[u] = (int32_t)random_below(random, PS_SCORE_ONE) -
                      PS_SCORE_ONE / 10;
}

/*
 * The row of `places` slots is the best score of `meant` slots for each number
 * of tokens left, as if every length were unlimited.
 */
static void check_row(const ps_value *v, uint32_t units, uint32_t places,
                      uint32_t meant)
{
    const int32_t *row = ps_value_row(v, places);
    int64_t wanted[MAX_UNITS + 1] = {0};

    while (meant-- > 0)
        for (uint32_t c = units; c > 0; c--)
            for (uint32_t u = 1; u <= c; u++)
                if (best[u] > PS_SCORE_NONE &&
                    best[u] + wanted[c - u] > wanted[c])
                    wanted[c] = best[u] + wanted[c - u];
    for (uint32_t c = 0; c <= units; c++) {
        assert_int_equal(row[units - c], wanted[c]);
        if (c > 0)
            assert_true(row[units - c] >= row[units - c + 1]);
    }
}

/* Few slots are exact; if the depth is ample, slots do not count. */
static void check(const ps_value *v, uint32_t units, uint32_t depth,
                  bool is_ample)
{
    bool has_any = depth - 1 > MAX_PLACES;

    for (uint32_t places = 1; places < depth && places < 40; places++)
        check_row(v, units, places,
                  has_any && (is_ample || places > MAX_PLACES) ? units
                                                              : places);
}

static ps_value *open_value(uint32_t units, uint32_t depth)
{
    ps_value *v = must_alloc(sizeof *v);
    ps_mem mem = {0};

    ps_value_init(v, units, depth, &mem);
    assert_false(mem.failed);
    return v;
}

static void close_value(ps_value *v)
{
    ps_value_destroy(v);
    free(v);
}

static const uint32_t depths[] = {1, 2, 3, 10, 33, 34, 41, 64};

static void test_naive(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 15, 16, 17, 33, 100};
    uint64_t random = 3;

    for (size_t i = 0; i < COUNT(sizes); i++)
        for (size_t d = 0; d < COUNT(depths); d++) {
            ps_value *v = open_value(sizes[i], depths[d]);

            for (uint32_t k = 0; k < 8; k++) {
                draw_scores(sizes[i], 1 + k * k, &random);
                ps_value_refresh(v, best, sizes[i], k % 2 == 1);
                check(v, sizes[i], depths[d], k % 2 == 1);
            }
            close_value(v);
        }
}

/*
 * The highest possible scores add up without overflow: a sequence's score
 * beside its price, and prices of ten packs.
 */
static void test_greatest(void **state)
{
    ps_value *v = open_value(MAX_UNITS, 64);
    int32_t max;

    for (uint32_t u = 1; u <= MAX_UNITS; u++) {
        double fit = MAX_UNITS / u < 10 ? MAX_UNITS / u : 10;
        double price = u >= MAX_UNITS / 10 ? 1 / fit
                                            : u / (double)MAX_UNITS;

        best[u] = (int32_t)(PS_SCORE_ONE * (0.16 + 1.04 * price));
    }
    max = best[1];
    ps_value_refresh(v, best, MAX_UNITS, true);
    assert_int_equal(ps_value_row(v, 40)[0], MAX_UNITS * max);
    ps_value_refresh(v, best, MAX_UNITS, false);
    assert_in_range(ps_value_row(v, 8)[0], 2.1 * PS_SCORE_ONE,
                    3.4 * PS_SCORE_ONE);
    close_value(v);
}

/*
 * If few lengths score higher than all shorter ones, the unlimited row is the
 * same filled by length or by tokens left.
 */
static void test_few(void **state)
{
    static int32_t wanted[PS_SEARCH_GROUP + MAX_UNITS + 1 + PS_SEARCH_GROUP];
    static const uint32_t sizes[] = {31, 32, 64, 300, MAX_UNITS};
    ps_value *v = open_value(MAX_UNITS, 64);
    uint64_t random = 7;

    for (size_t i = 0; i < COUNT(sizes); i++)
        for (uint32_t n = 0; n <= 66 && n < sizes[i]; n++) {
            uint32_t units = sizes[i];
            int32_t score = 0;

            for (size_t k = 0; k < COUNT(padded); k++)
                padded[k] = PS_SCORE_NONE;
            for (uint32_t k = 1; k <= n; k++) {
                uint32_t from = (units - 1) / n * (k - 1) + 1;
                uint32_t to = (units - 1) / n * k;

                score += 1 + (int32_t)random_below(&random,
                                                   PS_SCORE_ONE / 100);
                best[from + random_below(&random, to - from + 1)] = score;
                /* Useless, unless it is shorter. */
                if (n < 40)
                    best[from + random_below(&random, to - from + 1)] =
                        score - 1;
            }
            memset(wanted, 0, sizeof wanted);
            ps_kernels_best()->any(best, wanted + PS_SEARCH_GROUP, units);
            ps_value_refresh(v, best, units, n % 2 == 0);
            assert_memory_equal(ps_value_row(v, 40), wanted + PS_SEARCH_GROUP,
                                (units + 1) * sizeof *wanted);
        }
    close_value(v);
}

/* ---- Saved and loaded ---- */

static ps_value *load_again(const ps_saver *saver, size_t cut,
                            uint32_t units, uint32_t depth, bool *good)
{
    ps_value *v = open_value(units, depth);
    ps_restorer restorer = {.at = saver->bytes, .left = saver->n - cut};

    ps_value_load(v, units, &restorer);
    *good = !restorer.failed && restorer.left == 0;
    return v;
}

static void test_refused(void **state)
{
    static const uint32_t numbers[] = {UINT32_C(1) << 31, UINT32_MAX,
                                       UINT32_C(0x70000000),
                                       (uint32_t)PS_SCORE_NONE};
    ps_value *v = open_value(20, 3);
    ps_saver saver = {0};
    bool good;

    memset(padded, 0, sizeof padded);
    ps_value_refresh(v, best, 20, false);
    ps_value_save(v, &saver);
    assert_int_equal(saver.n, 4 * (2 + 3 * 21));
    close_value(v);
    for (size_t cut = 1; cut <= saver.n; cut++) {
        close_value(load_again(&saver, cut, 20, 3, &good));
        assert_false(good);
    }
    for (size_t at = 0; at < saver.n; at += 4)
        for (size_t i = 0; i < COUNT(numbers); i++) {
            for (size_t k = 0; k < 4; k++)
                saver.bytes[at + k] = (unsigned char)(numbers[i] >> 8 * k);
            close_value(load_again(&saver, 0, 20, 3, &good));
            assert_false(good);
            memset(saver.bytes + at, 0, 4);
            saver.bytes[0] = 20;
        }
    close_value(load_again(&saver, 0, 20, 3, &good));
    assert_true(good);
    close_value(load_again(&saver, 0, 19, 3, &good));
    assert_false(good);
    saver.bytes[4] = 1; /* far, but of depth 3 nothing is */
    close_value(load_again(&saver, 0, 20, 3, &good));
    assert_false(good);
    free(saver.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_naive),
        cmocka_unit_test(test_greatest),
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_refused),
    };

    return run_as_tap("value", tests, NULL);
}
