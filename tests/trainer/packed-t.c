/*
 * packed-t.c - training on packs is training on sequences.
 *
 * Built twice: with float, and with double, where more digits have to agree.
 *
 * SPDX-License-Identifier: MIT
 */
#include "toy.h"

#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "model_parts.h"

/* How near, relative to its size, is equal. */
#ifdef BERT_DOUBLE
#define NEAR 1e-10
#else
#define NEAR 1e-4
#endif

static const bert_step varlen = {.attention = BERT_VARLEN};
static const bert_step dense = {.attention = BERT_DENSE};

static void assert_near(double x, double y)
{
    if (!(fabs(x - y) <= NEAR * fabs(y)))
        fail_msg("%.17g instead of %.17g", x, y);
}

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name);
    const size_t m = strlen(end);

    return n >= m && strcmp(name + n - m, end) == 0;
}

/*
 * The gradient of each tensor agrees, relative to its length.  That of keys'
 * biases is zero but for rounding, since softmax does not feel a shift: there
 * the query's, which lies in front of it, says what is small.
 */
static void assert_same_gradients(const bert_model *model, const real *x,
                                  const real *y)
{
    double size = 0;

    for (size_t i = 0; i < bert_model_tensors(model); i++) {
        const bert_tensor *const t = bert_model_tensor(model, i);
        const size_t n = (size_t)t->rows * t->columns;
        const double d = toy_distance(n, x + t->offset, y + t->offset);

        if (!ends_with(t->name, "key.bias"))
            size = toy_length(n, y + t->offset);
        assert_true(size > 0);
        if (!(d <= NEAR * size))
            fail_msg("%s is off by %g of %g", t->name, d, size);
    }
}

/* A copy of the gradients. */
static real *gradients_of(bert_model *model)
{
    const size_t n = bert_model_numbers(model);
    real *const copy = malloc(n * sizeof *copy);

    assert_non_null(copy);
    memcpy(copy, bert_model_gradients(model), n * sizeof *copy);
    return copy;
}

static bert_model *open_model(double dropout)
{
    bert_config config = toy_config(53, 32);

    config.dropout = dropout;
    return toy_model(&config, 5);
}

static void compare_losses(const toy_batch *a, const toy_result *x,
                           const toy_batch *b, const toy_result *y)
{
    assert_int_equal(a->batch.n_seq, b->batch.n_seq);
    assert_near(x->losses.total, y->losses.total);
    assert_near(x->losses.mlm, y->losses.mlm);
    assert_near(x->losses.nsp, y->losses.nsp);
    for (uint32_t i = 0; i < a->batch.n_seq; i++) {
        const uint32_t j = toy_find(b, a->sequences[i].name);

        assert_near(x->seq_mlm[i], y->seq_mlm[j]);
        assert_near(x->seq_nsp[i], y->seq_nsp[j]);
    }
}

/* Two plans, computed in two ways, come to the same. */
static void compare(const toy_plan *plan, const bert_step *step,
                    const toy_plan *other_plan, const bert_step *other_step,
                    double dropout)
{
    bert_model *const model = open_model(dropout);
    toy_batch a = toy_open(plan);
    toy_batch b = toy_open(other_plan);
    const toy_result x = toy_run(model, &a, step);
    real *const gradients = gradients_of(model);
    const toy_result y = toy_run(model, &b, other_step);

    compare_losses(&a, &x, &b, &y);
    assert_same_gradients(model, gradients, bert_model_gradients(model));
    free(gradients);
    toy_free(&a);
    toy_free(&b);
    bert_model_free(model);
}

static void test_packed_is_unpacked(void **state)
{
    const toy_plan packed = toy_packed_plan();
    const toy_plan alone = toy_alone_plan();

    compare(&packed, &varlen, &alone, &varlen, 0);
    compare(&packed, &dense, &alone, &dense, 0);
    compare(&packed, &dense, &alone, &varlen, 0);
}

static void test_varlen_is_dense(void **state)
{
    const toy_plan packed = toy_packed_plan();

    compare(&packed, &varlen, &packed, &dense, 0);
}

static void test_varlen_is_dense_under_dropout(void **state)
{
    const toy_plan packed = toy_packed_plan();
    const bert_step a = {BERT_VARLEN, true, 99};
    const bert_step b = {BERT_DENSE, true, 99};

    compare(&packed, &a, &packed, &b, 0.25);
}

/* The parts, weighted, are the total; weights are alike in a sequence. */
static void test_losses_add_up(void **state)
{
    const toy_plan plan = toy_packed_plan();
    bert_model *const model = open_model(0);
    toy_batch toy = toy_open(&plan);
    const toy_result x = toy_run(model, &toy, &varlen);
    double mlm = 0;
    double nsp = 0;

    for (uint32_t i = 0; i < toy.batch.n_mlm; i++)
        mlm += (double)toy.batch.mlm_weight[i]
               * x.seq_mlm[toy.batch.mlm_seq[i]];
    assert_near(x.losses.mlm, mlm);
    for (uint32_t i = 0; i < toy.batch.n_seq; i++) {
        if (toy.batch.nsp_label[i] < 0)
            assert_true(x.seq_nsp[i] == 0);
        else
            assert_true(x.seq_nsp[i] > 0);
        nsp += (double)toy.batch.nsp_weight[i] * x.seq_nsp[i];
    }
    assert_near(x.losses.nsp, nsp);
    assert_near(x.losses.total, x.losses.mlm + nsp);
    assert_true(x.seq_mlm[toy_find(&toy, 3)] == 0);
    assert_true(x.seq_mlm[toy_find(&toy, 1)] > 0);
    toy_free(&toy);
    bert_model_free(model);
}

/* ---- bit for bit ---- */

static size_t hidden_size(const bert_model *model, const toy_batch *toy)
{
    return (size_t)toy->batch.n_rows * bert_model_config(model)->hidden;
}

static real *hidden_of(const bert_model *model, const toy_batch *toy)
{
    const size_t n = hidden_size(model, toy);
    real *const copy = malloc(n * sizeof *copy);

    assert_non_null(copy);
    memcpy(copy, bert_model_hidden(model), n * sizeof *copy);
    return copy;
}

/* The output for the k-th sequence. */
static const real *output_of(const bert_model *model, const toy_batch *toy,
                             uint32_t k, const real *hidden)
{
    return hidden
           + (size_t)toy->batch.cls_row[k] * bert_model_config(model)->hidden;
}

static void check_one_altered(const bert_step *step, uint32_t altered)
{
    bert_model *const model = open_model(0);
    toy_plan plan = toy_packed_plan();
    toy_batch a = toy_open(&plan);
    const toy_result x = toy_run(model, &a, step);
    real *const before = hidden_of(model, &a);
    toy_batch b;
    toy_result y;

    plan.altered = altered;
    b = toy_open(&plan);
    y = toy_run(model, &b, step);
    for (uint32_t i = 0; i < a.batch.n_seq; i++) {
        const size_t size = a.sequences[i].length
                            * bert_model_config(model)->hidden
                            * sizeof *before;
        const bool same =
            memcmp(output_of(model, &a, i, before),
                   output_of(model, &b, i, bert_model_hidden(model)), size)
                == 0
            && memcmp(x.seq_mlm + i, y.seq_mlm + i, sizeof *x.seq_mlm) == 0
            && memcmp(x.seq_nsp + i, y.seq_nsp + i, sizeof *x.seq_nsp) == 0;

        assert_int_equal(same, a.sequences[i].name != altered);
    }
    free(before);
    toy_free(&a);
    toy_free(&b);
    bert_model_free(model);
}

static void test_sequences_do_not_see_one_another(void **state)
{
    for (uint32_t altered = 1; altered <= 7; altered++) {
        check_one_altered(&varlen, altered);
        check_one_altered(&dense, altered);
    }
}

static void check_permuted(const bert_step *step)
{
    static const toy_sequence permuted[3][TOY_DEPTH] = {
        {{3, 3}, {1, 20}, {2, 7}}, {{5, 31}, {4, 1}}, {{7, 18}, {6, 12}}};
    bert_model *const model = open_model(0);
    toy_plan plan = toy_packed_plan();
    toy_batch a = toy_open(&plan);
    const toy_result x = toy_run(model, &a, step);
    real *const before = hidden_of(model, &a);
    toy_batch b;
    toy_result y;

    plan.packs = permuted;
    b = toy_open(&plan);
    y = toy_run(model, &b, step);
    compare_losses(&a, &x, &b, &y);
    for (uint32_t i = 0; i < a.batch.n_seq; i++) {
        const size_t n = a.sequences[i].length
                         * bert_model_config(model)->hidden;
        const real *const was = output_of(model, &a, i, before);
        const real *const is =
            output_of(model, &b, toy_find(&b, a.sequences[i].name),
                      bert_model_hidden(model));

        assert_true(toy_distance(n, is, was) <= NEAR * toy_length(n, was));
    }
    free(before);
    toy_free(&a);
    toy_free(&b);
    bert_model_free(model);
}

static void test_permuted_packs_permute_outputs(void **state)
{
    check_permuted(&varlen);
    check_permuted(&dense);
}

/* Zeros count as equal, whatever their sign. */
static void assert_same_numbers(size_t n, const real *x, const real *y)
{
    for (size_t i = 0; i < n; i++)
        assert_true(x[i] == y[i]);
}

/* Losses and gradients of a plan are those of another, to the bit. */
static void check_same_bits(bert_model *model, const toy_plan *plan,
                            const toy_plan *other, const bert_step *step)
{
    toy_batch a = toy_open(plan);
    toy_batch b = toy_open(other);
    const toy_result x = toy_run(model, &a, step);
    real *const gradients = gradients_of(model);
    toy_result y;

    model->poison = true;
    y = toy_run(model, &b, step);
    model->poison = false;
    assert_memory_equal(&x, &y, sizeof x);
    assert_true(x.losses.total > 0);
    assert_same_numbers(bert_model_numbers(model), gradients,
                        bert_model_gradients(model));
    free(gradients);
    toy_free(&a);
    toy_free(&b);
}

/* Other tokens in the padding, and NaN wherever something was forgotten. */
static void test_poison_does_nothing(void **state)
{
    toy_plan plan = toy_packed_plan();
    toy_plan poisoned = plan;
    bert_model *const model = open_model(0.1);
    const bert_step training[2] = {{BERT_VARLEN, true, 3},
                                   {BERT_DENSE, true, 3}};

    poisoned.noise = 77;
    for (int i = 0; i < 2; i++) {
        check_same_bits(model, &plan, &poisoned, i ? &dense : &varlen);
        check_same_bits(model, &plan, &poisoned, training + i);
    }
    bert_model_free(model);
}

static void test_spare_spans_do_nothing(void **state)
{
    toy_plan plan = toy_packed_plan();
    toy_plan deeper = plan;
    bert_model *const model = open_model(0);

    deeper.spare_spans = 13;
    check_same_bits(model, &plan, &deeper, &varlen);
    check_same_bits(model, &plan, &deeper, &dense);
    bert_model_free(model);
}

/* A batch after a larger one, one after a smaller one, one without tasks. */
static void test_batches_of_any_size_follow(void **state)
{
    static const toy_sequence short_ones[1][TOY_DEPTH] = {{{3, 3}, {8, 2}}};
    const toy_plan plan = toy_packed_plan();
    toy_plan small = plan;
    bert_model *const model = open_model(0);
    bert_model *const fresh = open_model(0);
    toy_batch a;
    toy_batch b;
    toy_result x;
    toy_result y;

    small.n_packs = 1;
    small.packs = short_ones;
    a = toy_open(&small);
    b = toy_open(&plan);
    assert_int_equal(a.batch.n_mlm, 0);
    toy_run(model, &a, &varlen);
    x = toy_run(model, &b, &dense);
    y = toy_run(fresh, &b, &dense);
    assert_memory_equal(&x, &y, sizeof x);
    x = toy_run(model, &a, &varlen);
    y = toy_run(fresh, &a, &varlen);
    assert_memory_equal(&x, &y, sizeof x);
    toy_free(&a);
    toy_free(&b);
    bert_model_free(model);
    bert_model_free(fresh);
}

/* Gradients add up until they are cleared. */
static void test_gradients_accumulate(void **state)
{
    const toy_plan plan = toy_packed_plan();
    bert_model *const model = open_model(0);
    toy_batch toy = toy_open(&plan);
    bert_losses losses = {0};
    real *once;

    toy_run(model, &toy, &varlen);
    once = gradients_of(model);
    for (size_t i = 0; i < bert_model_numbers(model); i++)
        once[i] *= 2;
    assert_true(bert_model_forward(model, &toy.batch, &varlen, &losses));
    bert_model_backward(model, &toy.batch, &varlen);
    assert_same_gradients(model, bert_model_gradients(model), once);
    free(once);
    toy_free(&toy);
    bert_model_free(model);
}

/* ---- threads ---- */

static void check_threads(const bert_step *step)
{
    const toy_plan plan = toy_packed_plan();
    bert_model *const model = open_model(0.1);
    toy_batch toy = toy_open(&plan);
    toy_result x;
    real *gradients;

    omp_set_num_threads(1);
    x = toy_run(model, &toy, step);
    gradients = gradients_of(model);
    for (int threads = 2; threads <= 5; threads++) {
        toy_result y;

        omp_set_num_threads(threads);
        y = toy_run(model, &toy, step);
        assert_memory_equal(&x, &y, sizeof x);
        assert_memory_equal(gradients, bert_model_gradients(model),
                            bert_model_numbers(model) * sizeof *gradients);
    }
    free(gradients);
    toy_free(&toy);
    bert_model_free(model);
}

static void test_threads_change_no_bit(void **state)
{
    const int threads = omp_get_max_threads();
    const bert_step training[2] = {{BERT_VARLEN, true, 3},
                                   {BERT_DENSE, true, 3}};

    check_threads(training);
    check_threads(training + 1);
    omp_set_num_threads(threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed_is_unpacked),
        cmocka_unit_test(test_varlen_is_dense),
        cmocka_unit_test(test_varlen_is_dense_under_dropout),
        cmocka_unit_test(test_losses_add_up),
        cmocka_unit_test(test_sequences_do_not_see_one_another),
        cmocka_unit_test(test_permuted_packs_permute_outputs),
        cmocka_unit_test(test_poison_does_nothing),
        cmocka_unit_test(test_spare_spans_do_nothing),
        cmocka_unit_test(test_batches_of_any_size_follow),
        cmocka_unit_test(test_gradients_accumulate),
        cmocka_unit_test(test_threads_change_no_bit),
    };

    return run_as_tap("packed", tests, toy_setup);
}
