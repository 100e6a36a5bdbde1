/*
 * rows-t.c - operations on rows that models with norms before their blocks use,
 * compared with loops in double.
 *
 * Built twice: with float and with double.
 *
 * SPDX-License-Identifier: MIT
 */
#include "toy.h"

#include <stdlib.h>
#include <string.h>

#include <omp.h>

#ifdef TR_DOUBLE
#define NEAR 1e-12
#define NEAR_SLOPE 1e-9 /* slopes are compared with differences */
#define NEAR_LOSS 1e-12
#else
#define NEAR 5e-7
#define NEAR_SLOPE 2e-6
#define NEAR_LOSS 1e-5 /* with a compiler that does not vectorise sums */
#endif

#define WIDTH 37
#define ROWS 9

static const tr_activation activations[] = {TR_GELU_TANH, TR_GELU, TR_SILU};

static const tr_ops *ops_of(tr_device **d)
{
    *d = toy_device();
    return (*d)->ops;
}

static void assert_near(double x, double right, double near)
{
    if (!(fabs(x - right) <= near * (1 + fabs(right))))
        fail_msg("%.9g instead of %.9g", x, right);
}

/* ---- Activations ---- */

static double naive_act(tr_activation act, double x)
{
    if (act == TR_SILU)
        return x / (1 + exp(-x));
    if (act == TR_GELU)
        return x / 2 * erfc(-x / sqrt(2.0));
    return x / (1 + exp(-sqrt(8 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

/* An error of h^4. */
static double naive_slope(tr_activation act, double x)
{
    const double h = 1e-3;

    return (8 * (naive_act(act, x + h) - naive_act(act, x - h))
            - (naive_act(act, x + 2 * h) - naive_act(act, x - 2 * h)))
           / (12 * h);
}

/* GELU through a layer with weight 1. */
static void test_gelu(void **state)
{
    tr_device *d;
    const tr_ops *const ops = ops_of(&d);
    const real one = 1;
    const tr_linear l = {.in = 1, .out = 1, .stride = 1, .weight = &one};

    for (double x = -15; x <= 15; x += 0.00173)
        for (int a = 0; a < 2; a++) {
            const real in = (real)x;
            const real dy = 3;
            real u, y, du, dx = 3;

            ops->linear_gelu_forward(d, &l, activations[a], 1, &in, &u, &y);
            assert_true(u == in);
            assert_near((double)y, naive_act(activations[a], (double)in),
                        NEAR);
            ops->linear_gelu_backward(d, &l, activations[a], 1, &dy, &in,
                                      &du);
            assert_near((double)du / 3,
                        naive_slope(activations[a], (double)in), NEAR_SLOPE);
            ops->gelu_backward(d, activations[a], 1, &in, &dx);
            assert_true(dx == du);
        }
}

/* Far out, activations are 0 or the identity, with slopes 0 and 1. */
static void test_far_out(void **state)
{
    tr_device *d;
    const tr_ops *const ops = ops_of(&d);

    for (size_t a = 0; a < COUNT(activations); a++) {
        const real u[4] = {(real)-1e4, 1, (real)1e4, 1};
        const real dy[2] = {1, 1};
        real y[2], du[4];

        ops->gate_forward(d, activations[a], 2, 1, u, y);
        ops->gate_backward(d, activations[a], 2, 1, u, dy, du);
        assert_true(fabs((double)y[0]) < 1e-30 && y[1] == u[2]);
        assert_true(fabs((double)du[0]) < 1e-20 && du[2] == 1);
        assert_true(du[1] == y[0] && du[3] == y[1]);
    }
}

static void test_gate(void **state)
{
    tr_device *d;
    const tr_ops *const ops = ops_of(&d);
    real *const u = toy_numbers(1, ROWS * 2 * WIDTH);
    real *const dy = toy_numbers(2, ROWS * WIDTH);
    real y[ROWS * WIDTH], du[ROWS * 2 * WIDTH];

    for (size_t i = 0; i < ROWS * 2 * WIDTH; i++)
        u[i] *= 5;
    for (size_t a = 0; a < COUNT(activations); a++) {
        const tr_activation act = activations[a];

        ops->gate_forward(d, act, ROWS, WIDTH, u, y);
        ops->gate_backward(d, act, ROWS, WIDTH, u, dy, du);
        for (size_t r = 0; r < ROWS; r++)
            for (size_t i = 0; i < WIDTH; i++) {
                const size_t at = r * 2 * WIDTH + i;
                const double g = (double)dy[r * WIDTH + i];
                const double x = (double)u[at];
                const double by = (double)u[at + WIDTH];

                assert_near((double)y[r * WIDTH + i], naive_act(act, x) * by,
                            NEAR * 5);
                assert_near((double)du[at], g * by * naive_slope(act, x),
                            NEAR_SLOPE * 5);
                assert_near((double)du[at + WIDTH], g * naive_act(act, x),
                            NEAR * 5);
            }
    }
    free(u);
    free(dy);
}

/* ---- Norms ---- */

typedef struct norm_rig {
    tr_norm norm;
    real gain[WIDTH], bias[WIDTH], gain_gradient[WIDTH], bias_gradient[WIDTH];
    real hat[ROWS * WIDTH], inverse[ROWS];
    tr_norm_kept kept;
} norm_rig;

static void open_norm(norm_rig *n, bool rms, bool bias)
{
    for (uint32_t i = 0; i < WIDTH; i++) {
        n->gain[i] = 1 + toy_number(3, i) / 2;
        n->bias[i] = bias ? toy_number(4, i) : 0;
    }
    n->norm = (tr_norm){.width = WIDTH,
                        .epsilon = 0.01,
                        .rms = rms,
                        .gain = n->gain,
                        .bias = bias ? n->bias : NULL,
                        .gain_gradient = n->gain_gradient,
                        .bias_gradient = bias ? n->bias_gradient : NULL};
    n->kept = (tr_norm_kept){n->hat, n->inverse};
}

/* Number i of the norm of a row; `moved` is added to number `which`. */
static double naive_norm(const norm_rig *n, const real *x, size_t i,
                         size_t which, double moved)
{
    double mean = 0, square = 0, at;

    for (size_t j = 0; j < WIDTH && !n->norm.rms; j++)
        mean += ((double)x[j] + (j == which ? moved : 0)) / WIDTH;
    for (size_t j = 0; j < WIDTH; j++) {
        at = (double)x[j] + (j == which ? moved : 0) - mean;
        square += at * at / WIDTH;
    }
    at = (double)x[i] + (i == which ? moved : 0) - mean;
    return at / sqrt(square + n->norm.epsilon) * (double)n->gain[i]
           + (double)n->bias[i];
}

/* The gradient of sum of dy * norm(x) by number `which` of x. */
static double naive_norm_slope(const norm_rig *n, const real *x,
                               const real *dy, size_t which)
{
    const double h = 1e-4;
    double sum = 0;

    for (size_t i = 0; i < WIDTH; i++)
        sum += (double)dy[i]
               * (naive_norm(n, x, i, which, h)
                  - naive_norm(n, x, i, which, -h));
    return sum / (2 * h);
}

static void check_gradients(const norm_rig *n, const real *y, const real *dy)
{
    for (size_t i = 0; i < WIDTH; i++) {
        double gain = 0, bias = 0;

        for (size_t r = 0; r < ROWS; r++) {
            const size_t at = r * WIDTH + i;

            bias += (double)dy[at];
            gain += (double)dy[at] * ((double)y[at] - (double)n->bias[i])
                    / (double)n->gain[i];
        }
        assert_near((double)n->gain_gradient[i], gain, NEAR * 10);
        if (n->norm.bias)
            assert_near((double)n->bias_gradient[i], bias, NEAR * 10);
    }
}

static void check_norm(bool rms, bool bias)
{
    tr_device *d;
    const tr_ops *const ops = ops_of(&d);
    const tr_dropout none = {.scale = 1};
    real *const x = toy_numbers(1, ROWS * WIDTH);
    real *const sum = toy_numbers(1, ROWS * WIDTH);
    real *const branch = toy_numbers(5, ROWS * WIDTH);
    real *const dy = toy_numbers(6, ROWS * WIDTH);
    real *const start = toy_numbers(7, ROWS * WIDTH);
    real *const added = toy_numbers(7, ROWS * WIDTH);
    real y[ROWS * WIDTH], again[ROWS * WIDTH], dx[ROWS * WIDTH];
    norm_rig n;

    open_norm(&n, rms, bias);
    ops->add_norm_forward(d, &n.norm, ROWS, branch, sum, sum, &n.kept, y);
    for (size_t i = 0; i < ROWS * WIDTH; i++) {
        assert_true(sum[i] == x[i] + branch[i]);
        assert_near((double)y[i],
                    naive_norm(&n, sum + i / WIDTH * WIDTH, i % WIDTH, 0, 0),
                    NEAR * 4);
    }
    ops->norm_backward(d, &n.norm, ROWS, &n.kept, dy, &none, 0, dx, NULL);
    check_gradients(&n, y, dy);
    memset(n.gain_gradient, 0xff, sizeof n.gain_gradient);
    memset(n.bias_gradient, 0xff, sizeof n.bias_gradient);
    ops->add_norm_backward(d, &n.norm, ROWS, &n.kept, dy, added);
    check_gradients(&n, y, dy);
    for (size_t i = 0; i < ROWS * WIDTH; i++) {
        const size_t row = i / WIDTH * WIDTH;

        assert_near((double)dx[i],
                    naive_norm_slope(&n, sum + row, dy + row, i % WIDTH),
                    1e-6);
        assert_near((double)added[i], (double)start[i] + (double)dx[i], NEAR);
    }
    /* Without a branch, and as norm_forward(). */
    ops->add_norm_forward(d, &n.norm, ROWS, NULL, sum, sum, &n.kept, again);
    assert_memory_equal(y, again, sizeof y);
    ops->norm_forward(d, &n.norm, ROWS, sum, &n.kept, again);
    assert_memory_equal(y, again, sizeof y);
    free(x);
    free(sum);
    free(branch);
    free(dy);
    free(start);
    free(added);
}

static void test_norms(void **state)
{
    check_norm(false, true);
    check_norm(false, false);
    check_norm(true, false);
    check_norm(true, true);
}

/* As norms of whole rows, for rows of 3 heads and 5 numbers that stay. */
static void test_head_norms(void **state)
{
    enum { SOME = 3, APART = SOME * WIDTH + 5, LINES = ROWS / SOME };
    tr_device *d;
    const tr_ops *const ops = ops_of(&d);
    const tr_dropout none = {.scale = 1};
    real *const x = toy_numbers(1, ROWS * WIDTH);
    real *const dx = toy_numbers(6, ROWS * WIDTH);
    real *const wide = toy_numbers(8, LINES * APART);
    real *const d_wide = toy_numbers(8, LINES * APART);
    real gain[WIDTH];
    norm_rig n, heads;

    for (size_t i = 0; i < ROWS * WIDTH; i++) {
        const size_t at = i / (SOME * WIDTH) * APART + i % (SOME * WIDTH);

        wide[at] = x[i];
        d_wide[at] = dx[i];
    }
    open_norm(&n, true, false);
    open_norm(&heads, true, false);
    ops->norm_forward(d, &n.norm, ROWS, x, &n.kept, x);
    ops->norm_backward(d, &n.norm, ROWS, &n.kept, dx, &none, 0, dx, NULL);
    memset(heads.gain_gradient, 0xff, sizeof gain);
    ops->head_norm_forward(d, &heads.norm, LINES, SOME, APART, &heads.kept,
                           wide);
    ops->head_norm_backward(d, &heads.norm, LINES, SOME, APART, &heads.kept,
                            d_wide);
    for (size_t i = 0; i < LINES * APART; i++) {
        const size_t at = i / APART * SOME * WIDTH + i % APART;
        const bool stays = i % APART >= SOME * WIDTH;

        assert_true(wide[i] == (stays ? toy_number(8, i) : x[at]));
        assert_true(d_wide[i] == (stays ? toy_number(8, i) : dx[at]));
    }
    assert_memory_equal(heads.gain_gradient, n.gain_gradient, sizeof gain);
    free(x);
    free(dx);
    free(wide);
    free(d_wide);
}

/* ---- Rotary positions ---- */

#define HEAD 6
#define HEADS 2
#define STRIDE 20 /* 2 heads of 6, and 8 numbers that stay */

static tr_rotary rotary_of(const real *frequency)
{
    return (tr_rotary){.heads = HEADS,
                       .width = HEAD,
                       .stride = STRIDE,
                       .frequency = frequency};
}

static void check_rotary(const real *frequency, const int32_t *position)
{
    tr_device *d;
    const tr_ops *const ops = ops_of(&d);
    const tr_rotary r = rotary_of(frequency);
    real *const x = toy_numbers(1, ROWS * STRIDE);
    real *const y = toy_numbers(1, ROWS * STRIDE);

    ops->rotate(d, &r, ROWS, position, false, y);
    for (size_t i = 0; i < ROWS * STRIDE; i++) {
        const size_t column = i % STRIDE, pair = column % HEAD % (HEAD / 2);
        const double angle =
            (double)((real)position[i / STRIDE] * frequency[pair]);

        if (column >= HEADS * HEAD)
            assert_true(x[i] == y[i]);
        else if (column % HEAD < HEAD / 2)
            assert_near((double)y[i],
                        (double)x[i] * cos(angle)
                            - (double)x[i + HEAD / 2] * sin(angle),
                        NEAR);
        else
            assert_near((double)y[i],
                        (double)x[i] * cos(angle)
                            + (double)x[i - HEAD / 2] * sin(angle),
                        NEAR);
    }
    ops->rotate(d, &r, ROWS, position, true, y);
    for (size_t i = 0; i < ROWS * STRIDE; i++)
        assert_near((double)y[i], (double)x[i], NEAR);
    free(x);
    free(y);
}

/* More frequencies than tables are kept, and positions that grow. */
static void test_rotary(void **state)
{
    static const real f[3][HEAD / 2] = {
        {1, (real)0.1, (real)0.01}, {1, (real)0.3, (real)0.02}, {2, 1, 0}};
    static const int32_t position[3][ROWS] = {
        {0, 1, 2, 3, 0, 1, 0, 0, 1},
        {7, 6, 5, 255, 256, 0, 1, 2, 3},
        {0, 100000, 1, 8191, 2, 3, 4, 5, 6}};

    for (int p = 0; p < 3; p++)
        for (int i = 0; i < 3; i++) {
            check_rotary(f[i], position[p]);
            check_rotary(f[0], position[0]);
        }
}

static void test_rotary_of_no_rows(void **state)
{
    static const real frequency[HEAD / 2] = {1, 2, 3};
    tr_device *d;
    const tr_ops *const ops = ops_of(&d);
    const tr_rotary r = rotary_of(frequency);

    ops->rotate(d, &r, 0, NULL, false, NULL);
    (void)toy_finish();
}

/* ---- Lookups and layers ---- */

#define WORDS 5

static void test_lookup(void **state)
{
    static const int32_t token[ROWS] = {4, 0, 3, 3, 3, 0, 1, 4, 3};
    tr_device *d;
    const tr_ops *const ops = ops_of(&d);
    real *const table = toy_numbers(1, WORDS * WIDTH);
    real *const sums = toy_numbers(1, WORDS * WIDTH);
    real *const dy = toy_numbers(2, ROWS * WIDTH);
    real y[ROWS * WIDTH];

    ops->lookup_forward(d, ROWS, WIDTH, token, table, y);
    for (size_t r = 0; r < ROWS; r++)
        assert_memory_equal(y + r * WIDTH, table + token[r] * WIDTH,
                            WIDTH * sizeof *y);
    ops->lookup_backward(d, ROWS, WIDTH, token, dy, sums);
    for (size_t r = 0; r < ROWS; r++)
        for (size_t i = 0; i < WIDTH; i++)
            table[(size_t)token[r] * WIDTH + i] += dy[r * WIDTH + i];
    assert_memory_equal(sums, table, WORDS * WIDTH * sizeof *table);
    free(table);
    free(sums);
    free(dy);
}

/* Gradients that are added to: word vectors that are also the decoder. */
static void test_linear_adds(void **state)
{
    tr_device *d;
    const tr_ops *const ops = ops_of(&d);
    real *const dy = toy_numbers(1, ROWS * WIDTH);
    real *const x = toy_numbers(2, ROWS * WORDS);
    real once[WIDTH * WORDS], twice[WIDTH * WORDS], b[WIDTH], c[WIDTH];
    tr_linear l = {.in = WORDS,
                   .out = WIDTH,
                   .stride = WIDTH,
                   .weight_gradient = once,
                   .bias_gradient = b};

    ops->linear_backward_weight(d, &l, ROWS, dy, x);
    l.weight_gradient = twice;
    l.bias_gradient = c;
    memset(twice, 0xff, sizeof twice);
    memset(c, 0xff, sizeof c);
    ops->linear_backward_weight(d, &l, ROWS, dy, x);
    l.adds = true;
    ops->linear_backward_weight(d, &l, ROWS, dy, x);
    for (size_t i = 0; i < WIDTH * WORDS; i++)
        assert_near((double)twice[i], 2 * (double)once[i], NEAR);
    for (size_t i = 0; i < WIDTH; i++)
        assert_near((double)c[i], 2 * (double)b[i], NEAR);
    memcpy(once, twice, sizeof once);
    memcpy(b, c, sizeof b);
    ops->linear_backward_weight(d, &l, 0, dy, x);
    assert_memory_equal(once, twice, sizeof once);
    assert_memory_equal(b, c, sizeof b);
    free(dy);
    free(x);
}

static void test_linear_without_bias(void **state)
{
    tr_device *d;
    const tr_ops *const ops = ops_of(&d);
    real *const w = toy_numbers(1, WIDTH * WORDS);
    real *const x = toy_numbers(2, ROWS * WORDS);
    real *const dy = toy_numbers(3, ROWS * WIDTH);
    real gradient[WIDTH * WORDS], y[ROWS * WIDTH];
    const tr_linear l = {.in = WORDS,
                         .out = WIDTH,
                         .stride = WIDTH,
                         .weight = w,
                         .weight_gradient = gradient};

    ops->linear_forward(d, &l, ROWS, x, true, y);
    for (size_t i = 0; i < ROWS * WIDTH; i++) {
        double sum = 0;

        for (size_t j = 0; j < WORDS; j++)
            sum += (double)x[i / WIDTH * WORDS + j]
                   * (double)w[i % WIDTH * WORDS + j];
        assert_near((double)y[i], sum, NEAR);
    }
    ops->linear_backward_weight(d, &l, ROWS, dy, x);
    free(w);
    free(x);
    free(dy);
}

/* ---- Losses of a large vocabulary ---- */

static void test_large_vocabulary(void **state)
{
    const size_t words = 150000;
    tr_device *d;
    const tr_ops *const ops = ops_of(&d);
    real *const x = toy_numbers(1, words + 16);
    real *const before = toy_numbers(1, words);
    const int32_t label = 77777;
    const real weight = (real)0.25;
    double loss, all = 0, sum = 0;

    for (size_t i = 0; i < words; i++) {
        x[i] = before[i] *= 10;
        all += exp((double)x[i]);
    }
    ops->cross_entropy(d, TR_LOSS_MLM, 1, words, words + 16, x, &label,
                       &weight, &loss, false);
    assert_near(loss, log(all) - (double)before[label], NEAR_LOSS);
    for (size_t i = 0; i < words; i++) {
        const double p = exp((double)before[i]) / all;

        sum += (double)x[i];
        assert_near((double)x[i] / 0.25, p - (i == (size_t)label),
                    NEAR * 1e-2 + 4 * NEAR_LOSS * p);
    }
    assert_true(fabs(sum) < 4 * NEAR_LOSS);
    for (size_t i = words; i < words + 16; i++)
        assert_true(x[i] == 0);
    (void)toy_finish();
    free(x);
    free(before);
}

/* ---- Threads ---- */

#define MANY 300

/* All results for MANY rows, in one array; the caller frees it. */
static real *results(size_t *n)
{
    tr_device *d;
    const tr_ops *const ops = ops_of(&d);
    static int32_t index[MANY];
    static const real frequency[HEAD / 2] = {1, (real)0.5, (real)0.1};
    const tr_rotary r = {HEADS, HEAD, WIDTH, frequency};
    const size_t all = MANY * WIDTH;
    real *const x = toy_numbers(1, 2 * all);
    real *const y = toy_numbers(2, 10 * all);
    norm_rig rig;
    tr_norm_kept kept = {y + 4 * all, y + 5 * all};

    for (uint32_t i = 0; i < MANY; i++)
        index[i] = (int32_t)(i * i % 17);
    open_norm(&rig, true, false);
    rig.norm.gain_gradient = y + 5 * all + MANY;
    ops->gate_forward(d, TR_SILU, MANY, WIDTH, x, y);
    ops->gate_backward(d, TR_GELU, MANY, WIDTH, x, y, y + all);
    ops->add_norm_forward(d, &rig.norm, MANY, x, y, y, &kept, y + 3 * all);
    ops->add_norm_backward(d, &rig.norm, MANY, &kept, x, y + all);
    ops->lookup_backward(d, MANY, WIDTH, index, x, y + 6 * all);
    ops->rotate(d, &r, MANY, index, false, y + 2 * all);
    ops->lookup_forward(d, MANY, WIDTH, index, x, y + 7 * all);
    rig.norm.gain_gradient = y + 5 * all + 2 * MANY;
    ops->head_norm_forward(d, &rig.norm, MANY / 2, 2, 2 * WIDTH, &kept,
                           y + 8 * all);
    ops->head_norm_backward(d, &rig.norm, MANY / 2, 2, 2 * WIDTH, &kept, x);
    memcpy(y + 9 * all, x, all * sizeof *x);
    free(x);
    *n = 10 * all;
    return y;
}

/* Results are bit-identical for any number of threads. */
static void test_threads(void **state)
{
    const int before = omp_get_max_threads();
    size_t n;
    real *x;

    omp_set_num_threads(1);
    x = results(&n);
    for (int threads = 2; threads <= 3; threads++) {
        real *y;

        omp_set_num_threads(threads);
        y = results(&n);
        assert_memory_equal(x, y, n * sizeof *x);
        free(y);
    }
    omp_set_num_threads(before);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gelu),
        cmocka_unit_test(test_far_out),
        cmocka_unit_test(test_gate),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_head_norms),
        cmocka_unit_test(test_rotary),
        cmocka_unit_test(test_rotary_of_no_rows),
        cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_linear_adds),
        cmocka_unit_test(test_linear_without_bias),
        cmocka_unit_test(test_large_vocabulary),
        cmocka_unit_test(test_threads),
    };

    return run_as_tap("rows", tests, toy_setup);
}
