/*
 * bound-uses-t.c - the bound with several limits holds for the best packing,
 * and for each limit alone it is the bound for lengths.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-alloc.h"
#include "lib-fixture.h"
#include "plan-naive.h"

#include <math.h>

#define ITEMS 10
#define LIMITS 3

typedef struct instance {
    ps_uses items[ITEMS]; /* each with a count of 1 */
    uint32_t n;
    uint64_t limits[LIMITS];
    uint64_t unit[LIMITS]; /* uses and limits are multiples */
    uint32_t depth;
} instance;

static double bound_of(const instance *of, double alone[LIMITS])
{
    double packs;
    ps_error err;

    assert_ok(ps_plan_bound_uses(of->items, of->n, of->limits, LIMITS,
                                 of->depth, alone, &packs, &err),
              &err);
    return packs;
}

/* True if the items of a set, one bit each, fit a pack. */
static bool fits(const instance *of, unsigned set)
{
    uint64_t sums[LIMITS] = {0};
    uint32_t n = 0;

    for (uint32_t i = 0; i < of->n; i++)
        for (int k = 0; set >> i & 1 && k < LIMITS; k++) {
            sums[k] += of->items[i].uses[k];
            n += k == 0;
        }
    for (int k = 0; k < LIMITS; k++)
        if (sums[k] > of->limits[k])
            return false;
    return n <= of->depth;
}

/* The fewest packs, from those of all smaller sets. */
static unsigned fewest_packs(const instance *of)
{
    static unsigned fewest[1 << ITEMS];
    static bool fit[1 << ITEMS];

    for (unsigned set = 1; set < 1u << of->n; set++) {
        fit[set] = fits(of, set);
        fewest[set] = ITEMS;
        for (unsigned pack = set; pack > 0; pack = (pack - 1) & set)
            if (fit[pack] && fewest[set ^ pack] + 1 < fewest[set])
                fewest[set] = fewest[set ^ pack] + 1;
    }
    return fewest[(1u << of->n) - 1];
}

static instance random_instance(uint64_t *random)
{
    instance of = {.n = 1 + random_below(random, ITEMS),
                   .depth = random_below(random, 3) > 0
                                ? UINT32_MAX
                                : 1 + random_below(random, 4)};

    for (int k = 0; k < LIMITS; k++) {
        const uint32_t limit = 1 + random_below(random, 24);
        const uint32_t most = 1 + random_below(random, limit);
        const uint32_t zeros = random_below(random, 3);

        of.unit[k] = random_below(random, 3) > 0 ? 1 : UINT64_C(1) << 37;
        of.limits[k] = limit * of.unit[k];
        for (uint32_t i = 0; i < of.n; i++)
            of.items[i].uses[k] = random_below(random, 3) < zeros
                                      ? 0
                                      : (1 + random_below(random, most)) *
                                            of.unit[k];
    }
    for (uint32_t i = 0; i < of.n; i++)
        of.items[i].count = 1;
    return of;
}

/* The bound of ps_plan_bound for one resource. */
static double bound_of_lengths(const instance *of, int k)
{
    ps_histogram *h = open_histogram();
    double packs;
    ps_error err;

    for (uint32_t i = 0; i < of->n; i++)
        if (of->items[i].uses[k] > 0)
            add_lengths(h, (uint32_t)(of->items[i].uses[k] / of->unit[k]), 1);
    assert_ok(ps_plan_bound(h, (uint32_t)(of->limits[k] / of->unit[k]),
                            of->depth, &packs, &err),
              &err);
    ps_histogram_free(h);
    return packs;
}

static void test_random(void **state)
{
    const int cases = is_short() ? 300 : 3000;
    uint64_t random = 1;
    int joint = 0;

    for (int i = 0; i < cases; i++) {
        const instance of = random_instance(&random);
        double alone[LIMITS];
        double greatest = 0;
        const double packs = bound_of(&of, alone);

        for (int k = 0; k < LIMITS; k++) {
            assert_true(fabs(alone[k] - bound_of_lengths(&of, k)) < 1e-6);
            greatest = fmax(greatest, alone[k]);
        }
        assert_true(packs >= greatest);
        assert_true(packs >= (double)of.n / of.depth);
        assert_true(packs <= fewest_packs(&of) + 1e-9);
        joint += packs > greatest + 0.01;
    }
    /* In many cases, all limits count for more than any one. */
    assert_true(joint > cases / 20);
}

/* Full sequences are alone, and the images of the others need packs, too. */
static void test_alone(void **state)
{
    static const ps_uses items[] = {{{100, 0}, 7}, {{5, 4}, 40}};
    static const uint64_t limits[] = {100, 10};
    double alone[2];
    double packs;
    ps_error err;

    assert_ok(ps_plan_bound_uses(items, 2, limits, 2, UINT32_MAX, alone, &packs,
                                 &err),
              &err);
    assert_true(fabs(alone[0] - 9) < 1e-9);
    assert_true(fabs(alone[1] - 20) < 1e-9);
    assert_true(fabs(packs - 27) < 1e-9);
}

/* Small uses of a large limit are not lost, though each rounds to 0. */
static void test_small(void **state)
{
    static const ps_uses items[] = {{{UINT64_C(1) << 18}, 1000000}};
    static const uint64_t limits[] = {PS_MAX_BUDGET};
    const double sum = 1e6 / (1 << 25);
    double alone;
    double packs;
    ps_error err;

    assert_ok(ps_plan_bound_uses(items, 1, limits, 1, UINT32_MAX, &alone,
                                 &packs, &err),
              &err);
    assert_true(packs == alone && fabs(packs - sum) < 1e-9);
}

static void test_refused(void **state)
{
    static const ps_uses items[] = {{{5}, 1}};
    static const ps_uses none[] = {{{5}, 0}};
    static const uint64_t limits[] = {4, 0, PS_MAX_BUDGET + 1, 5};
    double alone[PS_MAX_RESOURCES + 1];
    double packs = 7;
    ps_error err;

    for (int i = 0; i < 3; i++)
        assert_result(ps_plan_bound_uses(items, 1, limits + i, 1, 9, alone,
                                         &packs, &err),
                      PS_ERR_ARGUMENT, &err);
    assert_result(ps_plan_bound_uses(none, 1, limits + 3, 1, 9, alone, &packs,
                                     &err),
                  PS_ERR_ARGUMENT, &err);
    assert_result(ps_plan_bound_uses(items, 1, limits + 3, 1, 0, alone, &packs,
                                     &err),
                  PS_ERR_ARGUMENT, &err);
    assert_result(ps_plan_bound_uses(items, 1, limits, 0, 9, alone, &packs,
                                     &err),
                  PS_ERR_ARGUMENT, &err);
    assert_result(ps_plan_bound_uses(items, 1, limits, PS_MAX_RESOURCES + 1, 9,
                                     alone, &packs, &err),
                  PS_ERR_ARGUMENT, &err);
    assert_ok(ps_plan_bound_uses(items, 0, limits + 3, 1, 9, alone, &packs,
                                 &err),
              &err);
    assert_true(packs == 0 && alone[0] == 0);
}

/* Each allocation fails in turn: it is reported, and nothing leaks. */
static void test_memory(void **state)
{
    uint64_t random = 5;
    const instance of = random_instance(&random);
    size_t blocks = alloc_so_far().blocks;
    ps_result r = PS_ERR_MEMORY;

    for (uint64_t nth = 1; r != PS_OK; nth++) {
        double alone[LIMITS];
        double packs;
        ps_error err;

        alloc_watch();
        alloc_fail(nth, false);
        r = ps_plan_bound_uses(of.items, of.n, of.limits, LIMITS, of.depth,
                               alone, &packs, &err);
        alloc_fail(0, false);
        assert_int_equal(r, alloc_so_far().failed > 0 ? PS_ERR_MEMORY
                                                      : PS_OK);
        assert_int_equal(alloc_so_far().blocks, blocks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory),
    };

    return run_as_tap("bound-uses", tests, NULL);
}
