/*
 * parts-t.c - small CPU operations compared with naive ones.
 *
 * Built twice: with float and with double.
 *
 * SPDX-License-Identifier: MIT
 */
#include "toy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/columns.h"
#include "cpu/device.h"
#include "cpu/dropout_rows.h"
#include "cpu/gemm.h"
#include "cpu/softmax.h"
#include "cpu/vector.h"

#ifdef TR_DOUBLE
#define NEAR 1e-12
#else
#define NEAR 2e-6
#endif

static void assert_near(double x, double y, double size)
{
    if (!(fabs(x - y) <= NEAR * size))
        fail_msg("%.17g instead of %.17g", x, y);
}

static void test_exp(void **state)
{
    for (double x = -86.9; x < 88; x += 0.0137) {
        const double y = exp((double)(real)x);

        assert_near((double)tr_exp((real)x), y, y);
    }
    assert_true(tr_exp(0) == 1);
    assert_true(tr_exp((real)-INFINITY) == 0);
    assert_true(isnan((double)tr_exp((real)NAN)));
}

/* Rows x columns numbers in rows that are `stride` apart, with NaN between. */
static real *spread(size_t rows, size_t columns, size_t stride, const real *x)
{
    real *const y = toy_numbers(0, rows * stride);

    for (size_t i = 0; i < rows * stride; i++)
        y[i] = i % stride < columns ? x[i / stride * columns + i % stride]
                                    : (real)NAN;
    return y;
}

/* Each of the four kinds, several tiles, added to the output or not. */
static void test_product(void **state)
{
    const size_t m = 300;
    const size_t n = 530;
    const size_t k = 7;
    const size_t gap = 3;
    real *const a = toy_numbers(1, m * k);
    real *const b = toy_numbers(2, k * n);
    real *const was = toy_numbers(3, m * n);

    for (int kind = 0; kind < 8; kind++) {
        const bool a_turned = kind & 1;
        const bool b_turned = kind & 2;
        const real beta = (real)(kind >> 2);
        const size_t a_width = a_turned ? m : k;
        real *const wide_a = spread(m * k / a_width, a_width, a_width + gap,
                                    a);
        real *const c = spread(m, n, n + gap, was);

        tr_multiply(&(tr_product){m, n, k, wide_a, a_turned,
                    a_width + gap, b, b_turned, beta, c,
                    n + gap});
        for (size_t i = 0; i < m * n; i++) {
            double sum = (double)beta * (double)was[i];

            for (size_t j = 0; j < k; j++)
                sum += (double)a[a_turned ? j * m + i / n : i / n * k + j]
                       * (double)b[b_turned ? i % n * k + j : j * n + i % n];
            assert_near((double)c[i / n * (n + gap) + i % n], sum, 7);
        }
        for (size_t i = 0; i < m * gap; i++)
            assert_true(isnan((double)c[i / gap * (n + gap) + n + i % gap]));
        free(wide_a);
        free(c);
    }
    free(a);
    free(b);
    free(was);
    /* Zero rows are not an error. */
    tr_multiply(&(tr_product){.m = 0, .n = 5, .k = 5});
}

static void test_columns(void **state)
{
    const size_t rows = 37;
    const size_t columns = 301;
    const size_t stride = 304;
    real *const x = toy_numbers(1, rows * columns);
    real *const wide = spread(rows, columns, stride, x);
    real *const y = toy_numbers(2, rows * columns);
    real *const sums = toy_numbers(3, columns);
    real *const products = toy_numbers(3, columns);

    tr_columns_sum(rows, columns, stride, wide, 0, sums);
    tr_columns_sum_products(rows, columns, x, y, 0, products);
    for (size_t c = 0; c < columns; c++) {
        double sum = 0;
        double product = 0;

        for (size_t r = 0; r < rows; r++) {
            sum += (double)x[r * columns + c];
            product += (double)x[r * columns + c]
                       * (double)y[r * columns + c];
        }
        assert_near((double)sums[c], sum, 8);
        assert_near((double)products[c], product, 8);
    }
    free(x);
    free(wide);
    free(y);
    free(sums);
    free(products);
}

static double naive_gelu(double x)
{
    return x / 2
           * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static double naive_slope(double x)
{
    const double h = 1e-4;

    return (8 * (naive_gelu(x + h) - naive_gelu(x - h))
            - (naive_gelu(x + 2 * h) - naive_gelu(x - 2 * h)))
           / (12 * h);
}

static void test_gelu(void **state)
{
    for (double at = -15; at <= 15; at += 0.0173) {
        const real x = (real)at;
        const double is = (double)x;
        real y;
        real d = 3;

        tr_cpu_gelu_forward(TR_GELU_TANH, 1, &x, &y);
        tr_cpu_gelu_backward(toy_device(), TR_GELU_TANH, 1, &x, &d);
        assert_near((double)y, naive_gelu(is), 1 + fabs(is));
        if (!(fabs((double)d - 3 * naive_slope(is)) <= 1e-5))
            fail_msg("slope %g at %g", (double)d / 3, is);
    }
}

static void test_gelu_far_out(void **state)
{
    const real x[2] = {(real)-1e4, (real)1e4};
    real y[2];

    tr_cpu_gelu_forward(TR_GELU_TANH, 2, x, y);
    assert_true(fabs((double)y[0]) < 1e-30);
    assert_true(y[1] == x[1]);
}

static void test_softmax(void **state)
{
    static const int32_t segment[5] = {1, 2, 1, 0, 1};
    real x[5] = {1000, 2000, 1001, 5, 999};
    const double e = exp(1.0);
    const double sum = 1 + e + 1 / e;

    tr_mask_row(5, segment, 1, x);
    tr_softmax_row(5, x);
    assert_near((double)x[0], 1 / sum, 1);
    assert_near((double)x[2], e / sum, 1);
    assert_near((double)x[4], 1 / e / sum, 1);
    assert_true(x[1] == 0 && x[3] == 0);
}

static void test_cross_entropy(void **state)
{
    real x[3] = {500, 501, 499};
    const double e = exp(1.0);
    const double sum = 1 + e + 1 / e;

    assert_near(tr_cross_entropy_row(3, x, 2, (real)0.5), log(sum) + 1,
                500);
    assert_near((double)x[0], 0.5 / sum, 1);
    assert_near((double)x[1], 0.5 * e / sum, 1);
    assert_near((double)x[2], 0.5 / e / sum - 0.5, 1);
}

/* ---- layer norm ---- */

#define WIDTH 37

static void test_norm(void **state)
{
    real *const x = toy_numbers(1, WIDTH);
    real *const gain = toy_numbers(2, WIDTH);
    real *const bias = toy_numbers(3, WIDTH);
    const tr_norm norm = {.width = WIDTH,
                          .epsilon = 1e-12,
                          .gain = gain,
                          .bias = bias};
    real hat[WIDTH];
    real y[WIDTH];
    real inverse;
    double mean = 0;
    double variance = 0;

    for (size_t i = 0; i < WIDTH; i++)
        mean += (double)x[i] / WIDTH;
    for (size_t i = 0; i < WIDTH; i++)
        variance += ((double)x[i] - mean) * ((double)x[i] - mean) / WIDTH;
    tr_cpu_norm_forward(toy_device(), &norm, 1, x,
                        &(tr_norm_kept){hat, &inverse}, y);
    for (size_t i = 0; i < WIDTH; i++) {
        const double h = ((double)x[i] - mean) / sqrt(variance);

        assert_near((double)hat[i], h, 4);
        assert_near((double)y[i], h * (double)gain[i] + (double)bias[i], 4);
    }
    free(x);
    free(gain);
    free(bias);
}

/* Equal numbers have no deviation, and the result is not NaN. */
static void test_norm_of_one_number(void **state)
{
    real x[WIDTH];
    real one[WIDTH];
    real hat[WIDTH];
    real y[WIDTH];
    real inverse;
    const tr_norm norm = {.width = WIDTH,
                          .epsilon = 1e-12,
                          .gain = one,
                          .bias = one};

    for (size_t i = 0; i < WIDTH; i++)
        x[i] = one[i] = 1;
    tr_cpu_norm_forward(toy_device(), &norm, 1, x,
                        &(tr_norm_kept){hat, &inverse}, y);
    for (size_t i = 0; i < WIDTH; i++)
        assert_true(y[i] == 1);
}

/* ---- dropout ---- */

#define ROWS 200
#define COLUMNS 500

/* How often numbers at this distance are dropped together. */
static double together(const real *y, size_t apart)
{
    size_t n = 0;
    const size_t all = ROWS * COLUMNS - apart;

    for (size_t i = 0; i < all; i++)
        n += y[i] == 0 && y[i + apart] == 0;
    return (double)n / (double)all;
}

static void test_dropout_rates(void **state)
{
    static const double rates[] = {0.1, 0.5, 0.9};
    static const size_t apart[] = {1, 2, 16, COLUMNS};
    real *const y = malloc(ROWS * COLUMNS * sizeof *y);

    assert_non_null(y);
    for (size_t k = 0; k < COUNT(rates); k++) {
        const double rate = rates[k];
        const tr_dropout dropout = tr_dropout_at(rate, 7);

        for (size_t i = 0; i < ROWS * COLUMNS; i++)
            y[i] = 2;
        tr_dropout_rows(&dropout, 3, ROWS, COLUMNS, y, y);
        for (size_t i = 0; i < ROWS * COLUMNS; i++) {
            if (y[i] != 0)
                assert_near((double)y[i], 2 / (1 - rate), 2 / (1 - rate));
        }
        /* More than five deviations from the expected number. */
        assert_true(fabs(together(y, 0) - rate) < 0.008);
        for (size_t i = 0; i < COUNT(apart); i++)
            assert_true(fabs(together(y, apart[i]) - rate * rate) < 0.008);
    }
    free(y);
    assert_int_equal(tr_dropout_at(0, 7).threshold, 0);
}

/* How many of the row's numbers are equal. */
static size_t alike(const tr_dropout *a, uint32_t site_a, uint64_t row_a,
                    const tr_dropout *b, uint32_t site_b, uint64_t row_b)
{
    const tr_dropout_key x = tr_dropout_row(a, site_a, row_a);
    const tr_dropout_key y = tr_dropout_row(b, site_b, row_b);
    size_t n = 0;

    for (uint32_t i = 0; i < 1000; i++)
        n += tr_dropout_keeps(x, i, a->threshold)
             == tr_dropout_keeps(y, i, b->threshold);
    return n;
}

/* Another seed, site or row: other numbers. */
static void test_dropout_depends(void **state)
{
    const tr_dropout a = tr_dropout_at(0.5, 7);
    const tr_dropout b = tr_dropout_at(0.5, 8);

    assert_int_equal(alike(&a, 1, 5, &a, 1, 5), 1000);
    assert_in_range(alike(&a, 1, 5, &b, 1, 5), 400, 600);
    assert_in_range(alike(&a, 1, 5, &a, 2, 5), 400, 600);
    assert_in_range(alike(&a, 1, 5, &a, 1, 6), 400, 600);
    assert_in_range(alike(&a, 1, 0, &a, 0, 1), 400, 600);
}

/* A marked row is dropped where its single scores are. */
static void test_dropout_of_scores(void **state)
{
    const tr_dropout dropout = tr_dropout_at(0.5, 7);
    const uint32_t rows[] = {3, 11, 19};

    for (size_t r = 0; r < COUNT(rows); r++) {
        const tr_dropout_key key =
            tr_dropout_scores(&dropout, 1, 1000, rows[r], 2, 4);
        real x[100];
        real y[100];

        for (size_t i = 0; i < 100; i++)
            x[i] = 1;
        tr_dropout_mark(&dropout, key, rows[r], 100, x);
        tr_dropout_marked(&dropout, 100, x, y);
        for (uint32_t i = 0; i < 100; i++)
            assert_true((y[i] == 2)
                        == tr_dropout_score_stays(key, rows[r], i,
                                                  dropout.threshold));
    }
}

/* Four scores from one draw: all sixteen outcomes, equally often. */
static void test_dropout_of_four(void **state)
{
    const uint32_t size = 256;
    const double rate = 0.3;
    const tr_dropout dropout = tr_dropout_at(rate, 7);
    size_t seen[16] = {0};
    double off = 0;

    for (uint32_t row = 0; row < size; row += 1 + row % 8 / 7 * 8) {
        const tr_dropout_key key =
            tr_dropout_scores(&dropout, 3, 40, row, 1, 2);

        assert_memory_equal(
            &key,
            &(tr_dropout_key[]){
                tr_dropout_scores(&dropout, 3, 40, row + 8, 1, 2)},
            sizeof key);
        for (uint32_t column = 0; column < size;
             column += 1 + column % 8 / 7 * 8) {
            unsigned which = 0;

            for (uint32_t i = 0; i < 4; i++)
                which |= (unsigned)!tr_dropout_score_stays(
                             key, row + i / 2 * 8, column + i % 2 * 8,
                             dropout.threshold)
                         << i;
            seen[which]++;
        }
    }
    for (unsigned i = 0; i < 16; i++) {
        const int dropped = __builtin_popcount(i);
        const double right = size * size / 4.0 * pow(rate, dropped)
                             * pow(1 - rate, 4 - dropped);

        off += pow((double)seen[i] - right, 2) / right;
    }
    assert_true(off < 45); /* chi squared of 15: exceeded once in 10,000 */
}

/* Branch and bias are dropped, the residual is not. */
static void test_dropout_in_sums(void **state)
{
    const tr_dropout dropout = tr_dropout_at(0.5, 7);
    const tr_dropout_key key = tr_dropout_row(&dropout, 1, 1);
    real *const residual = toy_numbers(1, 100);
    real *const x = toy_numbers(2, 100);
    real *const bias = toy_numbers(3, 100);
    real y[100];

    tr_dropout_sum(&dropout, key, 100, residual, x, bias, y);
    for (uint32_t i = 0; i < 100; i++) {
        const bool keeps = tr_dropout_keeps(key, i, dropout.threshold);

        assert_near((double)y[i],
                    (double)residual[i]
                        + (keeps ? 2 * ((double)x[i] + (double)bias[i]) : 0),
                    5);
    }
    free(residual);
    free(x);
    free(bias);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_product),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_gelu),
        cmocka_unit_test(test_gelu_far_out),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_norm),
        cmocka_unit_test(test_norm_of_one_number),
        cmocka_unit_test(test_dropout_rates),
        cmocka_unit_test(test_dropout_depends),
        cmocka_unit_test(test_dropout_of_scores),
        cmocka_unit_test(test_dropout_of_four),
        cmocka_unit_test(test_dropout_in_sums),
    };

    return run_as_tap("parts", tests, toy_setup);
}
