/*
 * gradient-t.c - gradients beside differences of losses, in double.
 *
 * SPDX-License-Identifier: MIT
 */
#include "toy.h"

#include <omp.h>

#define STEP 1e-5

/* Numbers of a tensor; only its ends where a device takes its time. */
#ifdef TOY_VARLEN
#define PLACES 1
#else
#define PLACES (is_short() ? 3 : 13)
#endif

static double loss_at(bert_model *model, const toy_batch *toy,
                      const bert_step *step, size_t place, double shift)
{
    real *const weight = bert_model_weights(model) + place;
    const real was = *weight;
    toy_losses losses;

    *weight += shift;
    bert_model_store(model);
    losses = toy_forward(model, toy, step);
    *weight = was;
    return losses.total;
}

/* The slope by differences, of fourth order. */
static double slope_at(bert_model *model, const toy_batch *toy,
                       const bert_step *step, size_t place)
{
    const double near = loss_at(model, toy, step, place, STEP)
                        - loss_at(model, toy, step, place, -STEP);
    const double far = loss_at(model, toy, step, place, 2 * STEP)
                       - loss_at(model, toy, step, place, -2 * STEP);

    return (8 * near - far) / (12 * STEP);
}

/* Some numbers of a tensor, the first and the last among them. */
static void check_tensor(bert_model *model, const toy_batch *toy,
                         const bert_step *step, const bert_tensor *t)
{
    const size_t n = (size_t)t->rows * t->columns;
    const size_t stride = n / PLACES + 1;
    const real *const gradients = bert_model_gradients(model) + t->offset;
    double largest = 0;

    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(gradients[i]));
    for (size_t i = 0; i < n + stride - 1; i += stride) {
        const size_t at = i < n ? i : n - 1;
        const double slope = slope_at(model, toy, step, t->offset + at);

        if (!(fabs(gradients[at] - slope) <= 1e-8 + 1e-7 * largest))
            fail_msg("%s[%zu]: %.12g instead of %.12g", t->name, at,
                     gradients[at], slope);
    }
}

/* With dropout the same numbers are dropped in forward and in backward. */
static void test_gradients(void **state)
{
    static const struct {
        bert_step step;
        double dropout;
    } cases[] = {
        {{.attention = BERT_VARLEN}, 0},
        {{.attention = BERT_DENSE}, 0},
        {{BERT_VARLEN, true, 8, BERT_UNPADDED}, 0.3},
        {{BERT_DENSE, true, 8, BERT_PADDED}, 0.3},
    };

    /* Those with dropout do all that the others do. */
    for (size_t i = is_short() ? 2 : 0; i < COUNT(cases); i++) {
        const bert_step *const step = &cases[i].step;
        const toy_plan plan = toy_packed_plan();
        bert_config config = toy_config(53, 32);
        toy_batch toy;
        bert_model *model;

        if (!toy_can(step))
            continue;
        toy = toy_open(&plan);
        config.dropout = cases[i].dropout;
        model = toy_model(&config, 21);
        toy_run(model, &toy, step);
        for (size_t k = 0; k < bert_model_tensors(model); k++)
            check_tensor(model, &toy, step, bert_model_tensor(model, k));
        toy_free(&toy);
        bert_model_free(model);
    }
}

/* Steps are so small that sharing them out would take longer. */
static int one_thread(void **state)
{
    omp_set_num_threads(1);
    return toy_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
    };

    return run_as_tap("gradient", tests, one_thread);
}
