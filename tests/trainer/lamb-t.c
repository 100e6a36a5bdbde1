/*
 * lamb-t.c - the optimiser beside a naive one, and the learning rate.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "lamb.h"
#include "schedule.h"

/* Three tensors, one of which goes over several blocks of the sums. */
#define PARTS 3
#define NUMBERS 10010
static const lamb_part parts[PARTS] = {
    {0, 7, false}, {7, 10000, true}, {10007, 3, true}};

static const lamb_options usual = {.beta1 = 0.9,
                                   .beta2 = 0.999,
                                   .epsilon = 1e-6,
                                   .decay = 0.01,
                                   .clip = 1};

/* ---- Algorithm 2 of the paper, word by word, in double ---- */

typedef struct naive {
    lamb_options o;
    double w[NUMBERS], m[NUMBERS], v[NUMBERS];
    double beta1_all, beta2_all;
} naive;

static double norm(const double *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

static void naive_layer(naive *l, const lamb_part *part, const double *g,
                        double rate, double b1, double b2)
{
    static double u[NUMBERS];
    double lambda = part->decays ? l->o.decay : 0, ratio = 1;

    for (size_t i = part->offset; i < part->offset + part->count; i++) {
        double m_hat, v_hat;

        l->m[i] = b1 * l->m[i] + (1 - b1) * g[i];
        l->v[i] = b2 * l->v[i] + (1 - b2) * g[i] * g[i];
        m_hat = l->m[i] / (1 - l->beta1_all);
        v_hat = l->v[i] / (1 - l->beta2_all);
        u[i] = m_hat / (sqrt(v_hat) + l->o.epsilon) + lambda * l->w[i];
    }
    if (part->decays && norm(l->w + part->offset, part->count) > 0 &&
        norm(u + part->offset, part->count) > 0)
        ratio = norm(l->w + part->offset, part->count) /
                norm(u + part->offset, part->count);
    for (size_t i = part->offset; i < part->offset + part->count; i++)
        l->w[i] -= rate * ratio * u[i];
}

static void naive_step(naive *l, const double *gradient, double rate,
                       double factor)
{
    static double g[NUMBERS];
    double length = norm(gradient, NUMBERS);
    double b1 = pow(l->o.beta1, factor), b2 = pow(l->o.beta2, factor);

    for (size_t i = 0; i < NUMBERS; i++)
        g[i] = l->o.clip > 0 && length > l->o.clip
                   ? gradient[i] / length * l->o.clip
                   : gradient[i];
    l->beta1_all *= b1;
    l->beta2_all *= b2;
    for (size_t p = 0; p < PARTS; p++)
        naive_layer(l, &parts[p], g, rate, b1, b2);
}

/* ---- Side by side ---- */

static void draw_numbers(uint64_t *state, double scale, double *to)
{
    for (size_t i = 0; i < NUMBERS; i++)
        to[i] = scale * ((double)draw_below(state, 2001) - 1000) / 1000;
}

static void to_real(const double *from, real *to)
{
    for (size_t i = 0; i < NUMBERS; i++)
        to[i] = (real)from[i];
}

static void compare(const lamb_options *options, double scale, double factor)
{
    static naive n;
    static double gradient[NUMBERS];
    static real w[NUMBERS], g[NUMBERS];
    uint64_t state = 5;
    lamb *l = lamb_open(options, NUMBERS, parts, PARTS);

    assert_non_null(l);
    n = (naive){.o = *options, .beta1_all = 1, .beta2_all = 1};
    draw_numbers(&state, 0.5, n.w);
    memset(n.w + 10007, 0, 3 * sizeof *n.w); /* weights of no length */
    to_real(n.w, w);
    for (int step = 0; step < 5; step++) {
        double rate = 0.01 * (step + 1);

        draw_numbers(&state, scale, gradient);
        to_real(gradient, g);
        naive_step(&n, gradient, rate, factor);
        assert_true(fabs(lamb_step(l, w, g, rate, factor) -
                         norm(gradient, NUMBERS)) <
                    1e-5 * norm(gradient, NUMBERS));
    }
    for (size_t i = 0; i < NUMBERS; i++)
        assert_true(fabs((double)w[i] - n.w[i]) < 2e-5);
    lamb_free(l);
}

static void test_naive(void **state)
{
    lamb_options o = usual;

    compare(&o, 1, 1);    /* a gradient that is cut */
    compare(&o, 1e-3, 1); /* and one that is not */
    compare(&o, 1, 2.5);
    o.clip = 0;
    compare(&o, 1, 1);
    o.decay = 0;
    compare(&o, 1, 1);
}

/*
 * Taken to the power of two, the decays do to the moments at once what two
 * steps with the same gradient do.
 */
static void test_factor(void **state)
{
    static real w[NUMBERS], v[NUMBERS], g[NUMBERS];
    lamb *once = lamb_open(&usual, NUMBERS, parts, PARTS);
    lamb *twice = lamb_open(&usual, NUMBERS, parts, PARTS);

    for (size_t i = 0; i < NUMBERS; i++)
        g[i] = (real)(1e-4 * (double)(i % 7));
    for (int i = 0; i < 3; i++) {
        (void)lamb_step(once, w, g, 0, 2);
        (void)lamb_step(twice, v, g, 0, 1);
        (void)lamb_step(twice, v, g, 0, 1);
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        assert_true(fabs((double)lamb_mean(once)[i] -
                         (double)lamb_mean(twice)[i]) < 1e-9);
        assert_true(fabs((double)lamb_square(once)[i] -
                         (double)lamb_square(twice)[i]) < 1e-12);
    }
    assert_true(fabs(lamb_get(once).product1 - lamb_get(twice).product1) <
                1e-12);
    lamb_free(once);
    lamb_free(twice);
}

/* A gradient that is no number is told, and nothing is spoilt by it. */
static void test_no_number(void **state)
{
    static real w[NUMBERS], g[NUMBERS];
    lamb *l = lamb_open(&usual, NUMBERS, parts, PARTS);

    w[5000] = 3;
    g[9000] = (real)NAN;
    assert_true(isnan(lamb_step(l, w, g, 0.1, 1)) != 0);
    assert_true(w[5000] == 3 && lamb_mean(l)[9000] == 0);
    assert_true(lamb_get(l).product1 == 1);
    lamb_free(l);
}

/* ---- The learning rate ---- */

static void assert_rate(const schedule *s, uint64_t at, double wanted)
{
    assert_true(fabs(schedule_rate(s, at) - wanted) < 1e-12);
}

static void test_schedule(void **state)
{
    schedule s = {.peak = 2, .warmup = 100, .total = 300, .power = 1};

    assert_rate(&s, 0, 0);
    assert_rate(&s, 50, 1);
    assert_rate(&s, 100, 2);
    assert_rate(&s, 200, 1);
    assert_rate(&s, 300, 0);
    assert_rate(&s, 1000, 0);
    s.power = 2;
    assert_rate(&s, 200, 0.5);
    s.total = 0;
    assert_rate(&s, 1000, 2);
    s.warmup = 0;
    assert_rate(&s, 1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_naive),
        cmocka_unit_test(test_factor),
        cmocka_unit_test(test_no_number),
        cmocka_unit_test(test_schedule),
    };

    return run_as_tap("bert-lamb", tests, NULL);
}
