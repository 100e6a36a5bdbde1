/*
 * prenorm-t.c - models with norms before their blocks, on the CPU and with the
 * CUDA back end: losses, gradients and right targets; and steps as graphs.
 *
 * Built twice: with float, which also tests bfloat16, and with double.
 *
 * SPDX-License-Identifier: MIT
 */
#include "toy.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/device.h"
#include "cuda/open.h"

#ifdef TR_DOUBLE
#define NEAR 1e-11
#else
#define NEAR 1e-5
#endif
#define NEAR_BF16 0.05

#define TARGETS 64 /* more than the toy batches have */

typedef struct family {
    const char *name;
    tr_config config;
} family;

#define SIZES(w) \
    .vocab_size = 53, .hidden = 32, .layers = 3, .heads = 4, \
    .intermediate = 40, .positions = 32, .epsilon = 1e-3, .head_width = (w), \
    .rope = {.theta = 100, .factor = 1}, \
    .local_rope = {.theta = 10, .factor = 1}

static const family families[] = {
    {"ModernBERT without windows",
     {.family = TR_MODERNBERT, SIZES(8), .kv_heads = 4, .activation = TR_GELU,
      .tied = true}},
    {"ModernBERT",
     {.family = TR_MODERNBERT, SIZES(8), .kv_heads = 4, .activation = TR_GELU,
      .window = 5, .windowed = {false, true, true}}},
    {"Llama",
     {.family = TR_LLAMA, SIZES(8), .kv_heads = 2, .activation = TR_SILU}},
    {"Qwen2",
     {.family = TR_LLAMA, SIZES(6), .kv_heads = 4, .activation = TR_SILU,
      .qkv_bias = true, .tied = true}},
    {"Qwen3",
     {.family = TR_LLAMA, SIZES(16), .kv_heads = 1, .activation = TR_SILU,
      .qk_norm = true, .tied = true}},
    {"Mistral",
     {.family = TR_LLAMA, SIZES(16), .kv_heads = 2,
      .activation = TR_GELU_TANH, .window = 7,
      .windowed = {true, true, true}}}};

/* A device's results for a batch. */
typedef struct answer {
    double loss, evaluated;
    size_t n; /* numbers */
    real *gradients;
    int32_t right[TARGETS];
} answer;

static tr_device *open_cuda(const family *f, tr_precision precision)
{
    char why[200] = "";
    tr_device *const d = tr_cuda_open(0, precision, why, sizeof why);

    assert_non_null(d);
    print_message("# %s\n", f->name);
    return d;
}

/* ---- The CPU and CUDA ---- */

/* Closes the device; the caller frees the gradients. */
static answer ask(tr_device *d, const tr_config *config, tr_rows rows)
{
    const toy_plan plan = toy_packed_plan();
    const tr_step step = {.attention = TR_VARLEN, .rows = rows};
    toy_batch toy = toy_open(&plan);
    tr_model *const model = toy_model_on(d, config, 3);
    answer a = {.n = tr_model_numbers(model)};

    assert_true(toy.batch.n_mlm > 0 && toy.batch.n_mlm <= TARGETS);
    assert_true(tr_model_evaluate(model, &toy.batch, &step));
    a.evaluated = toy_finish_on(d).loss[TR_LOSS_MLM];
    tr_model_row_right(model, a.right);
    assert_true(tr_model_forward(model, &toy.batch, &step));
    tr_model_backward(model);
    a.loss = toy_finish_on(d).loss[TR_LOSS_MLM];
    tr_model_fetch_gradients(model);
    a.gradients = calloc(a.n, sizeof *a.gradients);
    assert_non_null(a.gradients);
    for (size_t i = 0; i < a.n; i++)
        a.gradients[i] = tr_model_gradients(model)[i];
    tr_model_free(model);
    toy_free(&toy);
    tr_device_close(d);
    return a;
}

/* Each tensor's gradient, relative to its length. */
static void compare(const tr_config *config, const answer *got,
                    const answer *want, double near)
{
    tr_device *const d = tr_cpu_open();
    tr_model *const model = tr_model_open(d, config, 1);

    assert_non_null(model);
    assert_true(got->loss == got->evaluated);
    if (!(fabs(got->loss - want->loss) <= near * want->loss))
        fail_msg("the loss is %.12g, not %.12g", got->loss, want->loss);
    for (size_t i = 0; i < tr_model_tensors(model); i++) {
        const tr_tensor *const t = tr_model_tensor(model, i);
        const size_t n = (size_t)t->rows * t->columns;
        const double length = toy_length(n, want->gradients + t->offset);
        const double apart = toy_distance(n, got->gradients + t->offset,
                                          want->gradients + t->offset);

        assert_true(length > 0);
        /* Softmax ignores a shift: these are rounding errors. */
        if (strstr(t->name, "k_proj.bias") != NULL)
            continue;
        if (!(apart <= near * length))
            fail_msg("%s: %.3g of %.3g", t->name, apart, length);
    }
    tr_model_free(model);
    tr_device_close(d);
}

static void check(const family *f, tr_precision precision, tr_rows rows,
                  double near)
{
    answer got = ask(open_cuda(f, precision), &f->config, rows);
    answer want = ask(tr_cpu_open(), &f->config, rows);

    compare(&f->config, &got, &want, near);
    if (precision != TR_BF16)
        assert_memory_equal(got.right, want.right, sizeof got.right);
    free(got.gradients);
    free(want.gradients);
}

static void test_families(void **state)
{
    for (size_t i = 0; i < COUNT(families); i++) {
        if (!is_short())
            check(families + i, TR_FLOAT, TR_PADDED, NEAR);
        check(families + i, TR_FLOAT, TR_UNPADDED, NEAR);
    }
}

#ifndef TR_DOUBLE
static void test_bf16(void **state)
{
    for (size_t i = 0; i < COUNT(families); i++)
        check(families + i, TR_BF16, TR_UNPADDED, NEAR_BF16);
}
#endif

/* ---- Graphs ---- */

/* The third step of a shape is a graph, because batches have two addresses. */
#define STEPS 6
#define SINGLE 2

/*
 * Sets the gradients of each step, with batches of one shape but other tokens
 * in two of them.  Returns their size in bytes.
 */
static size_t learn(const family *f, tr_graph_mode mode,
                    real *gradients[STEPS])
{
    const tr_step step = {.attention = TR_VARLEN, .rows = TR_UNPADDED};
    tr_device *const d = open_cuda(f, TR_FLOAT);
    tr_model *const model = toy_model_on(d, &f->config, 3);
    const size_t n = tr_model_numbers(model);

    tr_model_set_graph_mode(model, mode);
    for (int i = 0; i < STEPS; i++) {
        toy_plan plan = toy_packed_plan();
        toy_batch toy;

        plan.altered = i == 3 || i == 4;
        toy = toy_open(&plan);
        assert_true(tr_model_forward(model, &toy.batch, &step));
        tr_model_backward(model);
        d->ops->step_end(d);
        assert_int_equal(toy_finish_on(d).graphs,
                         mode == TR_GRAPHS && i >= SINGLE);
        tr_model_fetch_gradients(model);
        gradients[i] = calloc(n, sizeof *gradients[i]);
        assert_non_null(gradients[i]);
        memcpy(gradients[i], tr_model_gradients(model),
               n * sizeof *gradients[i]);
        toy_free(&toy);
    }
    assert_memory_not_equal(gradients[0], gradients[3],
                            n * sizeof **gradients);
    assert_memory_equal(gradients[0], gradients[STEPS - 1],
                        n * sizeof **gradients);
    tr_model_free(model);
    tr_device_close(d);
    return n * sizeof **gradients;
}

static void test_graphs(void **state)
{
    /* ModernBERT and Qwen3 use every operation. */
    for (size_t i = 1; i < COUNT(families); i += is_short() ? 3 : 1) {
        real *singly[STEPS], *graphs[STEPS];
        const size_t bytes = learn(families + i, TR_ROUNDED, singly);

        learn(families + i, TR_GRAPHS, graphs);
        for (int k = 0; k < STEPS; k++) {
            assert_memory_equal(singly[k], graphs[k], bytes);
            free(singly[k]);
            free(graphs[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_graphs),
#ifndef TR_DOUBLE
        cmocka_unit_test(test_bf16),
#endif
    };

    return run_as_tap("prenorm", tests, NULL);
}
