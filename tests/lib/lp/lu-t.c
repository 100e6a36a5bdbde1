/*
 * lu-t.c - solving with a sparse matrix, before and after some of its columns
 * are replaced.
 *
 * SPDX-License-Identifier: MIT
 */

#include "lib-fixture.h"
#include "lp/lu.h"

#include <math.h>
#include <stdlib.h>

#define MAX 60

/* The same matrix, dense. */
typedef struct square {
    uint32_t n;
    double at[MAX][MAX]; /* row, column */
} square;

static double random_value(uint64_t *random)
{
    return (double)random_below(random, 7) - 3;
}

/* A column with few entries; the one in row `sure` is not small. */
static void fill_column(square *s, uint32_t j, uint32_t sure,
                        uint64_t *random)
{
    for (uint32_t i = 0; i < s->n; i++)
        s->at[i][j] = 0;
    for (int k = 0; k < 3; k++)
        s->at[random_below(random, s->n)][j] = random_value(random);
    s->at[sure][j] = 5 + (double)random_below(random, 3);
}

/* For matrices with any number of entries. */
static void open_lu(ps_lu *lu, uint32_t n)
{
    ps_mem mem = {0};

    ps_lu_init(lu, n, (uint64_t)n * n, &mem);
    assert_false(mem.failed);
}

static void load(const square *s, ps_matrix *m)
{
    m->n = s->n;
    m->entries.n = 0;
    assert_true(ps_entries_reserve(&m->entries, (size_t)s->n * s->n));
    for (uint32_t j = 0; j < s->n; j++) {
        m->start[j] = m->entries.n;
        for (uint32_t i = 0; i < s->n; i++)
            if (s->at[i][j] != 0) {
                m->entries.index[m->entries.n] = i;
                m->entries.value[m->entries.n++] = s->at[i][j];
            }
    }
    m->start[s->n] = m->entries.n;
}

/* Solves both ways for random right-hand sides, and multiplies back. */
static void assert_solves(ps_lu *lu, const square *s, uint64_t *random)
{
    double b[MAX], v[MAX], x[MAX];

    for (uint32_t i = 0; i < s->n; i++)
        v[i] = b[i] = random_value(random);
    assert_true(ps_lu_solve(lu, v, x, false));
    for (uint32_t i = 0; i < s->n; i++) {
        double sum = 0;

        for (uint32_t j = 0; j < s->n; j++)
            sum += s->at[i][j] * x[j];
        assert_true(fabs(sum - b[i]) < 1e-6);
    }
    for (uint32_t i = 0; i < s->n; i++)
        v[i] = b[i];
    assert_true(ps_lu_solve_transposed(lu, v, x, false));
    for (uint32_t j = 0; j < s->n; j++) {
        double sum = 0;

        for (uint32_t i = 0; i < s->n; i++)
            sum += s->at[i][j] * x[i];
        assert_true(fabs(sum - b[j]) < 1e-6);
    }
}

/*
 * Replaces column j; false, without a change, if that would make the matrix
 * nearly singular.
 */
static bool replace(ps_lu *lu, square *s, uint32_t j, uint64_t *random)
{
    square old = *s;
    double v[MAX], x[MAX];

    fill_column(s, j, j, random);
    for (uint32_t i = 0; i < s->n; i++)
        v[i] = s->at[i][j];
    assert_true(ps_lu_solve(lu, v, x, true));
    if (fabs(x[j]) < 0.05) {
        *s = old;
        return false;
    }
    for (uint32_t i = 0; i < s->n; i++)
        v[i] = i == j;
    assert_true(ps_lu_solve_transposed(lu, v, x, true));
    assert_int_equal(ps_lu_replace(lu, j), PS_LU_OK);
    return true;
}

static void test_solves(void **state)
{
    size_t start[MAX + 1];
    ps_matrix m = {.start = start};
    uint64_t random = 1;
    unsigned replaced = 0;

    for (int round = 0; round < 300; round++) {
        square s = {.n = 1 + random_below(&random, MAX)};
        uint32_t turn = random_below(&random, s.n);
        ps_lu lu;

        open_lu(&lu, s.n);
        for (uint32_t j = 0; j < s.n; j++)
            fill_column(&s, j, (j + turn) % s.n, &random);
        load(&s, &m);
        if (ps_lu_factor(&lu, &m) == PS_LU_OK) {
            assert_solves(&lu, &s, &random);
            for (int k = 0; k < 40 && !ps_lu_is_full(&lu); k++)
                replaced += replace(&lu, &s, random_below(&random, s.n),
                                    &random);
            assert_solves(&lu, &s, &random);
        }
        ps_lu_destroy(&lu);
    }
    ps_entries_free(&m.entries);
    print_message("# %u columns replaced\n", replaced);
    assert_true(replaced > 3000);
}

static void test_singular(void **state)
{
    size_t start[] = {0, 2, 4, 5};
    uint32_t index[] = {0, 1, 0, 1, 2};
    double value[] = {1, 2, 2, 4, 1};
    ps_matrix m = {.n = 3,
                   .start = start,
                   .entries = {.index = index, .value = value, .n = 5}};
    ps_lu lu;

    open_lu(&lu, 3);
    assert_int_equal(ps_lu_factor(&lu, &m), PS_LU_SINGULAR);
    value[3] = 5;
    assert_int_equal(ps_lu_factor(&lu, &m), PS_LU_OK);
    ps_lu_destroy(&lu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_solves),
        cmocka_unit_test(test_singular),
    };

    return run_as_tap("plan-lu", tests, NULL);
}
