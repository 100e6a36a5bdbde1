/*
 * lamb-t.c - the optimiser compared with a naive one, and the learning rate.
 *
 * SPDX-License-Identifier: MIT
 */
#include "toy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/rng.h"
#include "model/arena.h"
#include "optim/lamb.h"
#include "optim/schedule.h"

/* Three tensors, one of which spans several blocks of the sums. */
#define PARTS 3
#define NUMBERS 10010
static const tr_part parts[PARTS] = {
    {0, 7, false}, {7, 10000, true}, {10007, 3, true}};

static const tr_lamb_options usual = {.trust = true,
                                   .beta1 = 0.9,
                                   .beta2 = 0.999,
                                   .epsilon = 1e-6,
                                   .decay = 0.01,
                                   .clip = 1};

/* ---- Algorithm 2 of the paper, literally, in double ---- */

typedef struct naive {
    tr_lamb_options o;
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

static void naive_layer(naive *l, const tr_part *part, const double *g,
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
    if (l->o.trust && part->decays &&
        norm(l->w + part->offset, part->count) > 0 &&
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

/* ---- Comparison ---- */

static void draw_numbers(uint64_t *state, double scale, double *to)
{
    for (size_t i = 0; i < NUMBERS; i++)
        to[i] = scale * ((double)tr_rng_below(state, 2001) - 1000) / 1000;
}

/* Weights or gradients; some are 0. */
static tr_arena open_arena(void)
{
    tr_arena arena;

    assert_true(tr_arena_open(&arena, toy_device(), NUMBERS));
    return arena;
}

static tr_lamb *open_lamb(const tr_lamb_options *options)
{
    tr_lamb *l = tr_lamb_open(toy_device(), options, NUMBERS, parts, PARTS);

    assert_non_null(l);
    return l;
}

static void to_real(const double *from, const tr_arena *to)
{
    for (size_t i = 0; i < NUMBERS; i++)
        to->host[i] = (real)from[i];
    tr_arena_store(to);
}

static void compare(const tr_lamb_options *options, double scale, double factor)
{
    static naive n;
    static double gradient[NUMBERS];
    tr_arena w = open_arena(), g = open_arena();
    uint64_t state = 5;
    tr_lamb *l = open_lamb(options);

    n = (naive){.o = *options, .beta1_all = 1, .beta2_all = 1};
    draw_numbers(&state, 0.5, n.w);
    memset(n.w + 10007, 0, 3 * sizeof *n.w); /* weights of norm 0 */
    to_real(n.w, &w);
    for (int step = 0; step < 5; step++) {
        double rate = 0.01 * (step + 1);
        tr_results r;

        draw_numbers(&state, scale, gradient);
        to_real(gradient, &g);
        naive_step(&n, gradient, rate, factor);
        tr_lamb_step(l, w.at, g.at, rate, factor);
        r = toy_finish();
        assert_int_equal(r.steps, 1);
        assert_true(fabs(r.gradient - norm(gradient, NUMBERS)) <
                    1e-5 * norm(gradient, NUMBERS));
    }
    tr_arena_fetch(&w);
    for (size_t i = 0; i < NUMBERS; i++)
        assert_true(fabs((double)w.host[i] - n.w[i]) < 2e-5);
    tr_arena_free(&w);
    tr_arena_free(&g);
    tr_lamb_free(l);
}

static void test_naive(void **state)
{
    tr_lamb_options o = usual;

    compare(&o, 1, 1);    /* a gradient that is clipped */
    compare(&o, 1e-3, 1); /* and one that is not */
    compare(&o, 1, 2.5);
    o.clip = 0;
    compare(&o, 1, 1);
    o.decay = 0;
    compare(&o, 1, 1);
}

/*
 * AdamW as PyTorch documents it: the weights decay first, by `rate` times
 * `decay`, independently of the gradient.
 */
static void adamw_step(naive *l, const double *g, double rate)
{
    l->beta1_all *= l->o.beta1;
    l->beta2_all *= l->o.beta2;
    for (size_t i = 0; i < NUMBERS; i++) {
        const bool decays = i >= parts[1].offset;

        l->w[i] *= decays ? 1 - rate * l->o.decay : 1;
        l->m[i] = l->o.beta1 * l->m[i] + (1 - l->o.beta1) * g[i];
        l->v[i] = l->o.beta2 * l->v[i] + (1 - l->o.beta2) * g[i] * g[i];
        l->w[i] -= rate * (l->m[i] / (1 - l->beta1_all))
                   / (sqrt(l->v[i] / (1 - l->beta2_all)) + l->o.epsilon);
    }
}

/* Four weights after 20 steps of torch.optim.AdamW 2.15 in double. */
static const double torch_first[] = {0.5, -0.25, 1, 0};
static const double torch_last[] = {0.5169932626352298, -0.2563505745134931,
                                    0.9725529147974558, 0.03048455416315114};

static void test_adamw(void **state)
{
    static naive n;
    static double gradient[NUMBERS];
    tr_arena w = open_arena(), g = open_arena();
    tr_lamb_options o = usual;
    uint64_t seed = 6;
    tr_lamb *l;

    o.trust = false;
    o.clip = 0;
    l = open_lamb(&o);
    n = (naive){.o = o, .beta1_all = 1, .beta2_all = 1};
    draw_numbers(&seed, 0.5, n.w);
    memcpy(n.w + 100, torch_first, sizeof torch_first);
    to_real(n.w, &w);
    for (int step = 0; step < 20; step++) {
        draw_numbers(&seed, 1, gradient);
        for (int i = 0; i < 4; i++)
            gradient[100 + i] = ((3 * step + 5 * i) % 7 - 3) / 10.0;
        to_real(gradient, &g);
        adamw_step(&n, gradient, 0.01);
        tr_lamb_step(l, w.at, g.at, 0.01, 1);
    }
    assert_int_equal(toy_finish().steps, 20);
    tr_arena_fetch(&w);
    for (size_t i = 0; i < NUMBERS; i++)
        assert_true(fabs((double)w.host[i] - n.w[i]) < 1e-5);
    for (size_t i = 0; i < 4; i++)
        assert_true(fabs(n.w[100 + i] - torch_last[i]) < 1e-12);
    tr_arena_free(&w);
    tr_arena_free(&g);
    tr_lamb_free(l);
}

/*
 * With squared decays, one step changes the moments as two steps with the same
 * gradient would.
 */
static void test_factor(void **state)
{
    tr_arena w = open_arena(), v = open_arena(), g = open_arena();
    tr_lamb *once = open_lamb(&usual), *twice = open_lamb(&usual);

    for (size_t i = 0; i < NUMBERS; i++)
        g.host[i] = (real)(1e-4 * (double)(i % 7));
    tr_arena_store(&g);
    for (int i = 0; i < 3; i++) {
        tr_lamb_step(once, w.at, g.at, 0, 2);
        tr_lamb_step(twice, v.at, g.at, 0, 1);
        tr_lamb_step(twice, v.at, g.at, 0, 1);
    }
    assert_int_equal(toy_finish().steps, 9);
    tr_lamb_fetch(once);
    tr_lamb_fetch(twice);
    for (size_t i = 0; i < NUMBERS; i++) {
        assert_true(fabs((double)tr_lamb_mean(once)[i] -
                         (double)tr_lamb_mean(twice)[i]) < 1e-9);
        assert_true(fabs((double)tr_lamb_square(once)[i] -
                         (double)tr_lamb_square(twice)[i]) < 1e-12);
    }
    assert_true(fabs(tr_lamb_get(once).product1 - tr_lamb_get(twice).product1) <
                1e-12);
    tr_arena_free(&w);
    tr_arena_free(&v);
    tr_arena_free(&g);
    tr_lamb_free(once);
    tr_lamb_free(twice);
}

/*
 * A gradient of NaN is reported; neither it nor steps queued before the next
 * finish() change the weights.
 */
static void test_no_number(void **state)
{
    tr_arena w = open_arena(), g = open_arena();
    tr_lamb *l = open_lamb(&usual);

    w.host[5000] = 3;
    tr_arena_store(&w);
    tr_lamb_step(l, w.at, g.at, 0, 1);
    g.host[9000] = (real)NAN;
    tr_arena_store(&g);
    tr_lamb_step(l, w.at, g.at, 0.1, 1);
    g.host[9000] = 1;
    tr_arena_store(&g);
    tr_lamb_step(l, w.at, g.at, 0.1, 1);
    assert_int_equal(toy_finish().steps, 1);
    tr_arena_fetch(&w);
    tr_lamb_fetch(l);
    assert_true(w.host[5000] == 3 && tr_lamb_mean(l)[9000] == 0);
    assert_true(tr_lamb_square(l)[9000] == 0);
    /* After that, steps work again. */
    tr_lamb_step(l, w.at, g.at, 0.1, 1);
    assert_int_equal(toy_finish().steps, 1);
    tr_lamb_fetch(l);
    assert_true(tr_lamb_mean(l)[9000] > 0);
    tr_arena_free(&w);
    tr_arena_free(&g);
    tr_lamb_free(l);
}

/* A loss of NaN prevents a step, too. */
static void test_no_loss(void **state)
{
    const tr_config config = toy_config(53, 32);
    const tr_step step = {.attention = TR_VARLEN};
    const toy_plan plan = toy_packed_plan();
    tr_model *model = toy_model(&config, 1);
    toy_batch toy = toy_open(&plan);
    tr_arena w = open_arena(), g = open_arena();
    tr_lamb *l = open_lamb(&usual);

    tr_model_weights(model)[0] = (real)NAN;
    tr_model_store(model);
    for (uint32_t i = 0; i < 2; i++) {
        bool good = i == 1;
        tr_results r;

        assert_true(tr_model_forward(model, &toy.batch, &step));
        tr_lamb_step(l, w.at, g.at, 0.1, 1);
        r = toy_finish();
        assert_int_equal(r.steps, good);
        assert_int_equal(isfinite(r.loss[TR_LOSS_MLM]) != 0, good);
        assert_true(r.sum[TR_LOSS_MLM] ==
                    (good ? r.loss[TR_LOSS_MLM] : 0));
        assert_true(r.sum[TR_LOSS_NSP] ==
                    (good ? r.loss[TR_LOSS_NSP] : 0));
        tr_model_weights(model)[0] = 0;
        tr_model_store(model);
    }
    tr_arena_free(&w);
    tr_arena_free(&g);
    tr_lamb_free(l);
    toy_free(&toy);
    tr_model_free(model);
}

/* ---- The learning rate ---- */

static void assert_rate(const tr_schedule *s, uint64_t at, double wanted)
{
    assert_true(fabs(tr_schedule_rate(s, at) - wanted) < 1e-12);
}

static void test_schedule(void **state)
{
    tr_schedule s = {.peak = 2, .warmup = 100, .total = 300, .power = 1};

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
        cmocka_unit_test(test_adamw),
        cmocka_unit_test(test_factor),
        cmocka_unit_test(test_no_number),
        cmocka_unit_test(test_no_loss),
        cmocka_unit_test(test_schedule),
    };

    return run_as_tap("bert-lamb", tests, toy_setup);
}
