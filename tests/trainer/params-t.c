/*
 * params-t.c - names, shapes and initial values of parameters.
 *
 * SPDX-License-Identifier: MIT
 */
#include "toy.h"

#include <string.h>

#include <omp.h>

#include "model/bert/params.h"
#include "model/model_parts.h"

static const tr_config base = {.vocab_size = 30522, .hidden = 768,
                                 .layers = 12, .heads = 12,
                                 .intermediate = 3072, .positions = 512,
                                 .types = 2, .dropout = 0.1};

static const tr_tensor *find(const tr_model *model, const char *name)
{
    size_t i = 0;

    while (i < tr_model_tensors(model)
           && strcmp(tr_model_tensor(model, i)->name, name) != 0)
        i++;
    assert_true(i < tr_model_tensors(model));
    return tr_model_tensor(model, i);
}

/* Tensors follow one another without gaps or overlaps. */
static void assert_dense(const tr_model *model)
{
    size_t end = 0;

    for (size_t i = 0; i < tr_model_tensors(model); i++) {
        const tr_tensor *const t = tr_model_tensor(model, i);

        assert_int_equal(t->offset, end);
        end += (size_t)t->rows * t->columns;
    }
    assert_int_equal(end, tr_model_numbers(model));
}

static void test_table(void **state)
{
    static const struct {
        const char *name;
        uint32_t rows;
        uint32_t columns;
        bool decays;
    } cases[] = {
        {"bert.embeddings.word_embeddings.weight", 53, 24, true},
        {"bert.embeddings.LayerNorm.weight", 1, 24, false},
        {"bert.encoder.layer.1.intermediate.dense.weight", 40, 24, true},
        {"bert.encoder.layer.0.output.dense.weight", 24, 40, true},
        {"bert.encoder.layer.1.attention.self.key.bias", 1, 24, false},
        {"cls.predictions.bias", 1, 53, false},
        {"cls.seq_relationship.weight", 2, 24, true},
        {"cls.seq_relationship.bias", 1, 2, false},
    };
    tr_config config = toy_config(53, 32);
    tr_model *const model = tr_model_open(toy_device(), &config, 1);

    assert_non_null(model);
    assert_dense(model);
    assert_int_equal(tr_model_tensors(model), 5 + 2 * 16 + 9);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const tr_tensor *const t = find(model, cases[i].name);

        assert_int_equal(t->rows, cases[i].rows);
        assert_int_equal(t->columns, cases[i].columns);
        assert_int_equal(t->decays, cases[i].decays);
    }
    tr_model_free(model);
}

/* All tensors but the last hold whole vectors of 16 bytes, of bfloat16 too. */
static void test_aligned(void **state)
{
    tr_config config = toy_config(53, 32);
    tr_params params = {0};

    assert_true(bert_params_list(&params, &config));
    for (size_t i = 0; i < params.n_tensors - 1; i++)
        assert_int_equal(params.tensors[i].offset % 8, 0);
    assert_true(params.tensors[params.n_tensors - 1].offset % 8 != 0);
    tr_params_free(&params);
}

/* The size of the published model: 110,106,428 with both heads. */
static void test_size_of_base(void **state)
{
    tr_params params = {0};

    assert_true(bert_params_list(&params, &base));
    assert_int_equal(params.n_numbers, 110106428);
    tr_params_free(&params);
}

/* The longest possible name fits. */
static void test_many_layers(void **state)
{
    tr_config config = {.vocab_size = 1, .hidden = 1, .layers = 10001,
                          .heads = 1, .intermediate = 1, .positions = 1,
                          .types = 1};
    tr_params params = {0};
    const tr_tensor *t;

    assert_true(bert_params_list(&params, &config));
    t = params.tensors + bert_params_layer(10000, BERT_ATTENTION_GAIN);
    assert_string_equal(
        t->name,
        "bert.encoder.layer.10000.attention.output.LayerNorm.weight");
    tr_params_free(&params);
}

static void test_refused(void **state)
{
    tr_config config = base;
    uint32_t *const fields[] = {
        &config.vocab_size, &config.hidden, &config.layers, &config.heads,
        &config.intermediate, &config.positions, &config.types};
    const double dropouts[] = {1, -0.5, (double)NAN};

    for (size_t i = 0; i < COUNT(fields); i++) {
        config = base;
        *fields[i] = 0;
        assert_null(tr_model_open(toy_device(), &config, 1));
    }
    config = base;
    config.heads = 7;
    assert_null(tr_model_open(toy_device(), &config, 1));
    config = base;
    for (size_t i = 0; i < COUNT(dropouts); i++) {
        config.dropout = dropouts[i];
        assert_null(tr_model_open(toy_device(), &config, 1));
    }
    /* Too large to count. */
    config = base;
    config.vocab_size = UINT32_MAX;
    assert_null(tr_model_open(toy_device(), &config, 1));
    config.vocab_size = config.intermediate = config.hidden = 700000000;
    config.heads = 1;
    config.layers = 4;
    assert_null(tr_model_open(toy_device(), &config, 1));
    tr_model_free(NULL);
}

/* A deviation of 0.02, truncated at two deviations, leaves 0.88 of it. */
static void test_first_weights(void **state)
{
    tr_config config = {.vocab_size = 5000, .hidden = 64, .layers = 1,
                          .heads = 1, .intermediate = 64, .positions = 8,
                          .types = 2};
    tr_model *const model = tr_model_open(toy_device(), &config, 17);
    const real *w;
    const size_t n = (size_t)5000 * 64;
    double sum = 0;
    double squares = 0;

    assert_non_null(model);
    w = tr_model_weights(model);
    for (size_t i = 0; i < n; i++) {
        assert_true(fabs((double)w[i]) <= 0.04000001);
        sum += (double)w[i];
        squares += (double)w[i] * (double)w[i];
    }
    assert_true(fabs(sum / (double)n) < 0.0002);
    assert_true(fabs(sqrt(squares / (double)n) - 0.017593) < 0.0001);
    w = tr_model_weights(model);
    assert_true(w[find(model, "bert.embeddings.LayerNorm.weight")->offset]
                == 1);
    assert_true(w[find(model, "bert.embeddings.LayerNorm.bias")->offset]
                == 0);
    tr_model_free(model);
}

/* Determined by the seed, for any number of threads. */
static void test_seeds(void **state)
{
    const tr_config config = toy_config(53, 32);
    const int threads = omp_get_max_threads();
    tr_model *const a = tr_model_open(toy_device(), &config, 17);
    tr_model *const b = tr_model_open(toy_device(), &config, 18);
    tr_model *c;
    size_t size;

    omp_set_num_threads(threads + 3);
    c = tr_model_open(toy_device(), &config, 17);
    omp_set_num_threads(threads);
    assert_true(a && b && c);
    size = tr_model_numbers(a) * sizeof(real);
    assert_memory_equal(tr_model_weights(a), tr_model_weights(c), size);
    assert_memory_not_equal(tr_model_weights(a), tr_model_weights(b),
                            size);
    tr_model_free(a);
    tr_model_free(b);
    tr_model_free(c);
}

/* A batch too large for memory is refused, and the next one works. */
static void test_batch_too_large(void **state)
{
    const tr_config config = toy_config(53, 32);
    const tr_step dense = {.attention = TR_DENSE};
    const tr_step varlen = {.attention = TR_VARLEN};
    const int32_t cu[2] = {0, INT32_MAX};
    const toy_plan plan = toy_packed_plan();
    tr_model *const model = toy_model(&config, 1);
    toy_batch toy = toy_open(&plan);
    tr_batch large[5];

    for (size_t i = 0; i < COUNT(large); i++)
        large[i] = toy.batch;
    /* Sizes that would wrap around to small ones. */
    large[0].n_packs = large[1].n_packs = UINT32_C(1) << 31;
    large[0].capacity = UINT32_C(1) << 16;
    large[1].capacity = UINT32_C(1) << 31;
    large[2].cu = cu;
    large[2].n_spans = 1;
    large[2].max_span = INT32_MAX;
    /* More than BLAS can count. */
    large[3].n_rows = UINT32_C(1) << 31;
    large[4].n_mlm = UINT32_C(1) << 31;
    for (size_t i = 0; i < COUNT(large); i++)
        assert_false(tr_model_forward(model, &large[i],
                                      i == 2 ? &varlen : &dense));
    assert_true(tr_model_forward(model, &toy.batch, &dense));
    toy_free(&toy);
    tr_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_aligned),
        cmocka_unit_test(test_size_of_base),
        cmocka_unit_test(test_many_layers),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_first_weights),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_batch_too_large),
    };

    return run_as_tap("params", tests, toy_setup);
}
