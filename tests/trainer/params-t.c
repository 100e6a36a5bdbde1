/*
 * params-t.c - names, shapes and first values of parameters.
 *
 * SPDX-License-Identifier: MIT
 */
#include "toy.h"

#include <string.h>

#include <omp.h>

#include "model_parts.h"

static const bert_config base = {.vocab_size = 30522, .hidden = 768,
                                 .layers = 12, .heads = 12,
                                 .intermediate = 3072, .positions = 512,
                                 .types = 2, .dropout = 0.1};

static const bert_tensor *find(const bert_model *model, const char *name)
{
    size_t i = 0;

    while (i < bert_model_tensors(model)
           && strcmp(bert_model_tensor(model, i)->name, name) != 0)
        i++;
    assert_true(i < bert_model_tensors(model));
    return bert_model_tensor(model, i);
}

static void assert_tensor(const bert_model *model, const char *name,
                          uint32_t rows, uint32_t columns, bool decays)
{
    const bert_tensor *const t = find(model, name);

    assert_int_equal(t->rows, rows);
    assert_int_equal(t->columns, columns);
    assert_int_equal(t->decays, decays);
}

/* Tensors follow one another without gaps and without overlaps. */
static void assert_dense(const bert_model *model)
{
    size_t end = 0;

    for (size_t i = 0; i < bert_model_tensors(model); i++) {
        const bert_tensor *const t = bert_model_tensor(model, i);

        assert_int_equal(t->offset, end);
        end += (size_t)t->rows * t->columns;
    }
    assert_int_equal(end, bert_model_numbers(model));
}

static void test_table(void **state)
{
    bert_config config = toy_config(53, 32);
    bert_model *const model = bert_model_open(&config, 1);

    assert_non_null(model);
    assert_dense(model);
    assert_int_equal(bert_model_tensors(model), 5 + 2 * 16 + 9);
    assert_tensor(model, "bert.embeddings.word_embeddings.weight", 53, 24,
                  true);
    assert_tensor(model, "bert.embeddings.LayerNorm.weight", 1, 24, false);
    assert_tensor(model, "bert.encoder.layer.1.intermediate.dense.weight",
                  40, 24, true);
    assert_tensor(model, "bert.encoder.layer.0.output.dense.weight", 24, 40,
                  true);
    assert_tensor(model, "bert.encoder.layer.1.attention.self.key.bias", 1,
                  24, false);
    assert_tensor(model, "cls.predictions.bias", 1, 53, false);
    assert_tensor(model, "cls.seq_relationship.weight", 2, 24, true);
    assert_tensor(model, "cls.seq_relationship.bias", 1, 2, false);
    bert_model_free(model);
}

/* What the published model has: 110,106,428 with both heads. */
static void test_size_of_base(void **state)
{
    bert_params params;

    assert_true(bert_params_open(&params, &base));
    assert_int_equal(params.n_numbers, 110106428);
    bert_params_free(&params);
}

/* The longest name that there can be has room. */
static void test_many_layers(void **state)
{
    bert_config config = {.vocab_size = 1, .hidden = 1, .layers = 10001,
                          .heads = 1, .intermediate = 1, .positions = 1,
                          .types = 1};
    bert_params params;
    const bert_tensor *t;

    assert_true(bert_params_open(&params, &config));
    t = params.tensors + bert_params_layer(10000, BERT_ATTENTION_GAIN);
    assert_string_equal(
        t->name,
        "bert.encoder.layer.10000.attention.output.LayerNorm.weight");
    bert_params_free(&params);
}

static void assert_refused(bert_config config)
{
    assert_null(bert_model_open(&config, 1));
}

static void test_no_shapes(void **state)
{
    bert_config config = base;
    uint32_t *const fields[] = {
        &config.vocab_size, &config.hidden, &config.layers, &config.heads,
        &config.intermediate, &config.positions, &config.types};

    for (size_t i = 0; i < COUNT(fields); i++) {
        config = base;
        *fields[i] = 0;
        assert_refused(config);
    }
    config = base;
    config.heads = 7;
    assert_refused(config);
    config.heads = 12;
    config.dropout = 1;
    assert_refused(config);
    config.dropout = -0.5;
    assert_refused(config);
    config.dropout = (double)NAN;
    assert_refused(config);
    bert_model_free(NULL);
}

/* Too large to be counted. */
static void test_too_large(void **state)
{
    bert_config config = base;

    config.vocab_size = UINT32_MAX;
    assert_refused(config);
    config.vocab_size = config.intermediate = config.hidden = 700000000;
    config.heads = 1;
    config.layers = 4;
    assert_refused(config);
}

/* Deviation 0.02 before the cut at two leaves 0.88 of it. */
static void test_first_weights(void **state)
{
    bert_config config = {.vocab_size = 5000, .hidden = 64, .layers = 1,
                          .heads = 1, .intermediate = 64, .positions = 8,
                          .types = 2};
    bert_model *const model = bert_model_open(&config, 17);
    const real *w;
    const size_t n = (size_t)5000 * 64;
    double sum = 0;
    double squares = 0;

    assert_non_null(model);
    w = bert_model_weights(model);
    for (size_t i = 0; i < n; i++) {
        assert_true(fabs((double)w[i]) <= 0.04000001);
        sum += (double)w[i];
        squares += (double)w[i] * (double)w[i];
    }
    assert_true(fabs(sum / (double)n) < 0.0002);
    assert_true(fabs(sqrt(squares / (double)n) - 0.017593) < 0.0001);
    w = bert_model_weights(model);
    assert_true(w[find(model, "bert.embeddings.LayerNorm.weight")->offset]
                == 1);
    assert_true(w[find(model, "bert.embeddings.LayerNorm.bias")->offset]
                == 0);
    bert_model_free(model);
}

/* By seed, whatever the number of threads. */
static void test_seeds(void **state)
{
    const bert_config config = toy_config(53, 32);
    const int threads = omp_get_max_threads();
    bert_model *const a = bert_model_open(&config, 17);
    bert_model *const b = bert_model_open(&config, 18);
    bert_model *c;
    size_t size;

    omp_set_num_threads(threads + 3);
    c = bert_model_open(&config, 17);
    omp_set_num_threads(threads);
    assert_true(a && b && c);
    size = bert_model_numbers(a) * sizeof(real);
    assert_memory_equal(bert_model_weights(a), bert_model_weights(c), size);
    assert_memory_not_equal(bert_model_weights(a), bert_model_weights(b),
                            size);
    bert_model_free(a);
    bert_model_free(b);
    bert_model_free(c);
}

static void assert_too_large(bert_model *model, const bert_batch *batch,
                             bert_attention attention)
{
    const bert_step step = {.attention = attention};
    bert_losses losses = {0};

    assert_false(bert_model_forward(model, batch, &step, &losses));
}

/* Batches for which there is no memory are refused, and the next one works. */
static void test_batch_too_large(void **state)
{
    const bert_config config = toy_config(53, 32);
    const bert_step dense = {.attention = BERT_DENSE};
    const int32_t cu[2] = {0, INT32_MAX};
    const toy_plan plan = toy_packed_plan();
    bert_model *const model = toy_model(&config, 1);
    toy_batch toy = toy_open(&plan);
    bert_batch large = toy.batch;
    bert_losses losses = {0};

    /* Sizes that would wrap, and be small. */
    large.n_packs = UINT32_C(1) << 31;
    large.capacity = UINT32_C(1) << 16;
    assert_too_large(model, &large, BERT_DENSE);
    large.capacity = UINT32_C(1) << 31;
    assert_too_large(model, &large, BERT_DENSE);
    large = toy.batch;
    large.cu = cu;
    large.n_spans = 1;
    large.max_span = INT32_MAX;
    assert_too_large(model, &large, BERT_VARLEN);
    /* Too many for the BLAS to count. */
    large = toy.batch;
    large.n_rows = UINT32_C(1) << 31;
    assert_too_large(model, &large, BERT_DENSE);
    large = toy.batch;
    large.n_mlm = UINT32_C(1) << 31;
    assert_too_large(model, &large, BERT_DENSE);
    assert_true(bert_model_forward(model, &toy.batch, &dense, &losses));
    toy_free(&toy);
    bert_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_size_of_base),
        cmocka_unit_test(test_many_layers),
        cmocka_unit_test(test_no_shapes),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_first_weights),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_batch_too_large),
    };

    return run_as_tap("params", tests, toy_setup);
}
