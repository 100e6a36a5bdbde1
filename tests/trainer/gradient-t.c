/*
 * gradient-t.c - gradients compared with differences of losses, in double; and
 * the sites of dropout in both directions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "toy.h"

#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "model/dropout.h"

#define STEP 1e-5

/* Elements of a tensor to check; only its ends on a slow device.  There, short
 * runs leave out pre-norm models, which prenorm-t compares with the CPU's. */
#ifdef TOY_VARLEN
#define PLACES 1
#define END (is_short() ? 4 : COUNT(cases))
#else
#define PLACES (is_short() ? 3 : 13)
#define END COUNT(cases)
#endif

static double loss_at(tr_model *model, const toy_batch *toy,
                      const tr_step *step, size_t place, double shift)
{
    real *const weight = tr_model_weights(model) + place;
    const real was = *weight;
    toy_losses losses;

    *weight += shift;
    tr_model_store(model);
    losses = toy_forward(model, toy, step);
    *weight = was;
    return losses.total;
}

/* The slope by differences of fourth order. */
static double slope_at(tr_model *model, const toy_batch *toy,
                       const tr_step *step, size_t place)
{
    const double near = loss_at(model, toy, step, place, STEP)
                        - loss_at(model, toy, step, place, -STEP);
    const double far = loss_at(model, toy, step, place, 2 * STEP)
                       - loss_at(model, toy, step, place, -2 * STEP);

    return (8 * near - far) / (12 * STEP);
}

/* Some elements of a tensor, including the first and the last.  Forward passes
 * may change the model's gradients, so `all` is a copy. */
static void check_tensor(tr_model *model, const toy_batch *toy,
                         const tr_step *step, const real *all,
                         const tr_tensor *t)
{
    const size_t n = (size_t)t->rows * t->columns;
    const size_t stride = n / PLACES + 1;
    const real *const gradients = all + t->offset;
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

/* Forward and backward drop the same numbers. */
static void test_gradients(void **state)
{
    static const struct {
        tr_step step;
        double dropout;
        tr_family family;
    } cases[] = {
        {{.attention = TR_VARLEN}, 0, TR_BERT},
        {{.attention = TR_DENSE}, 0, TR_BERT},
        {{TR_VARLEN, true, 8, TR_UNPADDED, 0, false}, 0.3, TR_BERT},
        {{TR_DENSE, true, 8, TR_PADDED, 0, false}, 0.3, TR_BERT},
        {{.rows = TR_UNPADDED}, 0, TR_LLAMA},
        {{.rows = TR_PADDED}, 0, TR_MODERNBERT},
    };

    /* Those with dropout include everything that the others do. */
    for (size_t i = is_short() ? 2 : 0; i < END; i++) {
        const tr_step *const step = &cases[i].step;
        const toy_plan plan = toy_packed_plan();
        tr_config config = toy_config_of(cases[i].family);
        toy_batch toy;
        tr_model *model;
        real *gradients;

        if (!toy_can(step))
            continue;
        toy = toy_open(&plan);
        config.dropout = cases[i].dropout;
        model = toy_model(&config, 21);
        toy_run(model, &toy, step);
        gradients = malloc(tr_model_numbers(model) * sizeof *gradients);
        assert_non_null(gradients);
        memcpy(gradients, tr_model_gradients(model),
               tr_model_numbers(model) * sizeof *gradients);
        for (size_t k = 0; k < tr_model_tensors(model); k++)
            check_tensor(model, &toy, step, gradients,
                         tr_model_tensor(model, k));
        free(gradients);
        toy_free(&toy);
        tr_model_free(model);
    }
}

/* ---- Sites of dropout ---- */

#define LAYERS 4
#define SITES (1 + 3 * LAYERS)

/* The model's requests for dropout, one site after the other. */
static struct {
    const tr_ops *ops;
    uint32_t site[2 * SITES + 1]; /* forward, then backward */
    size_t n;
} asked;

static void note(const tr_dropout *dropout, uint32_t site)
{
    if (dropout == NULL || dropout->threshold == 0)
        return;
    if (asked.n < COUNT(asked.site))
        asked.site[asked.n] = site;
    asked.n++;
}

static void embed_forward(tr_device *d, const tr_tables *tables,
                          const tr_norm *norm, const tr_batch *batch,
                          const tr_dropout *dropout, uint32_t site,
                          const tr_norm_kept *kept, void *y)
{
    note(dropout, site);
    asked.ops->embed_forward(d, tables, norm, batch, dropout, site, kept, y);
}

static void embed_backward(tr_device *d, const tr_tables *tables,
                           const tr_norm *norm, const tr_batch *batch,
                           const tr_dropout *dropout, uint32_t site,
                           const tr_norm_kept *kept, void *dy)
{
    note(dropout, site);
    asked.ops->embed_backward(d, tables, norm, batch, dropout, site, kept,
                              dy);
}

static void attention_forward(tr_device *d, const tr_attend *a,
                              const void *qkv, void *out)
{
    note(&a->dropout, a->site);
    asked.ops->attention_forward(d, a, qkv, out);
}

static void attention_backward(tr_device *d, const tr_attend *a,
                               const void *qkv, const void *out,
                               const void *d_out, void *d_qkv)
{
    note(&a->dropout, a->site);
    asked.ops->attention_backward(d, a, qkv, out, d_out, d_qkv);
}

static void sum_norm_forward(tr_device *d, const tr_norm *norm,
                             size_t rows, const void *residual,
                             const void *branch, const real *bias,
                             const tr_dropout *dropout, uint32_t site,
                             const tr_norm_kept *kept, void *y)
{
    note(dropout, site);
    asked.ops->sum_norm_forward(d, norm, rows, residual, branch, bias,
                                dropout, site, kept, y);
}

static void norm_backward(tr_device *d, const tr_norm *norm, size_t rows,
                          const tr_norm_kept *kept, const void *dy,
                          const tr_dropout *dropout, uint32_t site,
                          void *dx, void *d_branch)
{
    note(dropout, site);
    asked.ops->norm_backward(d, norm, rows, kept, dy, dropout, site, dx,
                             d_branch);
}

/* A step of a model with dropout, recording its sites. */
static void note_step(void)
{
    const tr_step step = {TR_VARLEN, true, 8, TR_UNPADDED, 0, false};
    const toy_plan plan = toy_packed_plan();
    tr_config config = toy_config(53, 32);
    tr_device *const device = toy_device();
    toy_batch toy = toy_open(&plan);
    tr_model *model;
    tr_ops noting = *device->ops;

    noting.embed_forward = embed_forward;
    noting.embed_backward = embed_backward;
    noting.attention_forward = attention_forward;
    noting.attention_backward = attention_backward;
    noting.sum_norm_forward = sum_norm_forward;
    noting.norm_backward = norm_backward;
    asked.ops = device->ops;
    device->ops = &noting;
    config.layers = LAYERS;
    config.dropout = 0.5;
    model = toy_model(&config, 21);
    toy_run(model, &toy, &step);
    tr_model_free(model);
    device->ops = asked.ops;
    toy_free(&toy);
}

/* How many of 1000 numbers of a row agree at two sites. */
static unsigned alike(uint32_t site, uint32_t other)
{
    const tr_dropout dropout = tr_dropout_at(0.5, 8);
    const tr_dropout_key x = tr_dropout_row(&dropout, site, 3);
    const tr_dropout_key y = tr_dropout_row(&dropout, other, 3);
    unsigned n = 0;

    for (uint32_t i = 0; i < 1000; i++)
        n += tr_dropout_keeps(x, i, dropout.threshold)
             == tr_dropout_keeps(y, i, dropout.threshold);
    return n;
}

/* The embedding, and in each layer scores, attention and output, have different
 * masks; backward requests the masks of forward. */
static void test_sites(void **state)
{
    note_step();
    assert_int_equal(asked.n, 2 * SITES);
    for (size_t i = 0; i < SITES; i++) {
        assert_int_equal(asked.site[i], asked.site[2 * SITES - 1 - i]);
        for (size_t k = 0; k < i; k++)
            assert_in_range(alike(asked.site[i], asked.site[k]), 400, 600);
    }
}

/* Steps are so small that threads would slow them down. */
static int one_thread(void **state)
{
    omp_set_num_threads(1);
    return toy_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_gradients),
    };

    return run_as_tap("gradient", tests, one_thread);
}
