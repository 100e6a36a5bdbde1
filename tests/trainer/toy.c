/*
 * toy.c - small batches for tests of the model.
 *
 * SPDX-License-Identifier: MIT
 */
#include "toy.h"

#include <stdlib.h>
#include <string.h>

#include "model/counter_rng.h"

/* TOY_DEVICE: the function that opens the device under test. */
#ifndef TOY_DEVICE
#define TOY_DEVICE tr_cpu_open
#endif
tr_device *TOY_DEVICE(void);

#define MASKED_MAX 128 /* masked tokens of a batch */

tr_device *toy_device(void)
{
    static tr_device *device;

    if (!device)
        device = TOY_DEVICE();
    assert_non_null(device);
    return device;
}

/* Lengths add up to less than the capacity, so that there are dummies. */
const toy_sequence toy_packed[3][TOY_DEPTH] = {
    {{1, 20}, {2, 7}, {3, 3}},
    {{4, 1}, {5, 31}},
    {{6, 12}, {7, 18}},
};

const toy_sequence toy_alone[7][TOY_DEPTH] = {
    {{7, 18}}, {{1, 20}}, {{4, 1}}, {{2, 7}},
    {{6, 12}}, {{3, 3}}, {{5, 31}},
};

toy_plan toy_packed_plan(void)
{
    return (toy_plan){.capacity = 32, .vocab_size = 53, .n_packs = 3,
                      .packs = toy_packed};
}

toy_plan toy_alone_plan(void)
{
    return (toy_plan){.capacity = 32, .vocab_size = 53, .n_packs = 7,
                      .packs = toy_alone};
}

/* The arrays, at their maximum sizes. */
typedef struct store {
    int32_t *row[4];   /* token, type, position, segment */
    int32_t *mlm[3];   /* row, label, sequence */
    int32_t *seq[2];   /* first row, label */
    int32_t *cu;
    real *mlm_weight;
    real *nsp_weight;
} store;

static void *take(unsigned char **at, size_t n, size_t size)
{
    void *const place = *at;

    *at += (n * size + 63) / 64 * 64;
    return place;
}

static store make_store(toy_batch *toy, size_t rows, size_t spans)
{
    const size_t size = (rows + 64) * 9 * sizeof(int32_t)
                        + (spans + 64) * sizeof(int32_t)
                        + (rows + 64) * 2 * sizeof(real);
    unsigned char *at = toy->arrays = calloc(1, size);
    store s;

    assert_non_null(at);
    for (int i = 0; i < 4; i++)
        s.row[i] = take(&at, rows, sizeof(int32_t));
    for (int i = 0; i < 3; i++)
        s.mlm[i] = take(&at, rows, sizeof(int32_t));
    for (int i = 0; i < 2; i++)
        s.seq[i] = take(&at, rows, sizeof(int32_t));
    s.cu = take(&at, spans + 1, sizeof(int32_t));
    s.mlm_weight = take(&at, rows, sizeof(real));
    s.nsp_weight = take(&at, rows, sizeof(real));
    return s;
}

static int32_t pick(uint64_t seed, uint64_t place, uint32_t below)
{
    return (int32_t)(tr_counter_rng(seed, place) % below);
}

static void put_span(toy_batch *toy, store *s, uint32_t length)
{
    tr_batch *const b = &toy->batch;

    s->cu[b->n_spans + 1] = s->cu[b->n_spans] + (int32_t)length;
    b->n_spans++;
    if (length > b->max_span)
        b->max_span = length;
}

/* Every fourth token is masked, the first of some, none of short ones. */
static void put_token(toy_batch *toy, store *s, const toy_plan *plan,
                      toy_sequence q, uint32_t i, int32_t segment)
{
    tr_batch *const b = &toy->batch;
    const uint32_t other = q.name == plan->altered ? 1000 : 0;
    const uint64_t seed = tr_counter_rng(q.name + other, 1);
    const uint32_t row = b->n_rows++;

    s->row[0][row] = pick(seed, 4 * i, plan->vocab_size);
    s->row[1][row] = i > q.length / 2;
    s->row[2][row] = (int32_t)i;
    s->row[3][row] = segment;
    if (q.length < 4 || i % 4 != (q.name + 1) % 4)
        return;
    s->mlm[0][b->n_mlm] = (int32_t)row;
    s->mlm[1][b->n_mlm] = pick(seed, 4 * i + 1, plan->vocab_size);
    s->mlm[2][b->n_mlm] = (int32_t)b->n_seq;
    s->mlm_weight[b->n_mlm] = 1 / (real)q.length;
    b->n_mlm++;
}

static void put_sequence(toy_batch *toy, store *s, const toy_plan *plan,
                         toy_sequence q, int32_t segment)
{
    tr_batch *const b = &toy->batch;

    s->seq[0][b->n_seq] = (int32_t)b->n_rows;
    s->seq[1][b->n_seq] = pick(q.name, 3, 3) - 1;
    s->nsp_weight[b->n_seq] =
        s->seq[1][b->n_seq] < 0 ? 0 : (real)0.125;
    for (uint32_t i = 0; i < q.length; i++)
        put_token(toy, s, plan, q, i, segment);
    put_span(toy, s, q.length);
    toy->sequences[b->n_seq++] = q;
}

static void put_ghost(toy_batch *toy, store *s, const toy_plan *plan,
                      uint32_t length)
{
    tr_batch *const b = &toy->batch;

    for (uint32_t i = 0; i < length; i++) {
        s->row[0][b->n_rows] = pick(plan->noise, b->n_rows,
                                    plan->vocab_size);
        s->row[1][b->n_rows] = pick(plan->noise, b->n_rows, 2);
        s->row[2][b->n_rows] = (int32_t)i;
        b->n_rows++;
    }
    put_span(toy, s, length);
}

static void put_pack(toy_batch *toy, store *s, const toy_plan *plan,
                     uint32_t pack)
{
    const uint32_t end = (pack + 1) * plan->capacity;

    for (uint32_t i = 0; i < TOY_DEPTH && plan->packs[pack][i].name; i++)
        put_sequence(toy, s, plan, plan->packs[pack][i], (int32_t)i + 1);
    put_ghost(toy, s, plan, end - toy->batch.n_rows);
    for (uint32_t i = 0; i < plan->spare_spans; i++)
        put_span(toy, s, 0);
}

static void point_at(tr_batch *b, const store *s)
{
    b->token = s->row[0];
    b->type = s->row[1];
    b->position = s->row[2];
    b->segment = s->row[3];
    b->cu = s->cu;
    b->cls_row = s->seq[0];
    b->nsp_label = s->seq[1];
    b->nsp_weight = s->nsp_weight;
    b->mlm_row = s->mlm[0];
    b->mlm_label = s->mlm[1];
    b->mlm_seq = s->mlm[2];
    b->mlm_weight = s->mlm_weight;
}

toy_batch toy_open(const toy_plan *plan)
{
    const size_t rows = (size_t)plan->n_packs * plan->capacity;
    const size_t spans =
        plan->n_packs * ((size_t)TOY_DEPTH + 1 + plan->spare_spans);
    toy_batch toy = {.batch = {.n_packs = plan->n_packs,
                     .capacity = plan->capacity}};
    store s = make_store(&toy, rows, spans);

    toy.sequences = calloc(rows, sizeof *toy.sequences);
    assert_non_null(toy.sequences);
    for (uint32_t i = 0; i < plan->n_packs; i++)
        put_pack(&toy, &s, plan, i);
    point_at(&toy.batch, &s);
    return toy;
}

void toy_free(toy_batch *toy)
{
    free(toy->sequences);
    free(toy->arrays);
}

uint32_t toy_find(const toy_batch *toy, uint32_t name)
{
    uint32_t i = 0;

    while (i < toy->batch.n_seq && toy->sequences[i].name != name)
        i++;
    assert_true(i < toy->batch.n_seq);
    return i;
}

tr_config toy_config(uint32_t vocab_size, uint32_t positions)
{
    return (tr_config){.vocab_size = vocab_size, .hidden = 24,
                         .layers = 2, .heads = 4, .intermediate = 40,
                         .positions = positions, .types = 2};
}

tr_config toy_config_of(tr_family family)
{
    static const tr_rope rope = {100, 8, 1, 4, 16}, local = {.theta = 30};
    tr_config c = toy_config(53, 32);

    c.family = family;
    if (family == TR_BERT)
        return c;
    c.head_width = 6;
    c.epsilon = 1e-5;
    c.rope = rope;
    c.local_rope = local;
    c.local_rope.factor = 1;
    c.tied = family == TR_MODERNBERT;
    c.qkv_bias = family == TR_LLAMA;
    c.kv_heads = family == TR_LLAMA ? 2 : 4;
    c.activation = family == TR_LLAMA ? TR_SILU : TR_GELU;
    c.window = 5;
    c.windowed[1] = family == TR_MODERNBERT;
    return c;
}

tr_model *toy_model_on(tr_device *device, const tr_config *config,
                       uint64_t seed)
{
    tr_model *const model = tr_model_open(device, config, seed);
    real *weights;

    assert_non_null(model);
    weights = tr_model_weights(model);
    for (size_t i = 0; i < tr_model_tensors(model); i++) {
        const tr_tensor *const t = tr_model_tensor(model, i);
        const size_t end = t->offset + (size_t)t->rows * t->columns;

        for (size_t j = t->offset; j < end; j++)
            weights[j] = (t->decays ? 0 : weights[j])
                         + toy_number(seed, j) / 4;
    }
    tr_model_store(model);
    return model;
}

tr_model *toy_model(const tr_config *config, uint64_t seed)
{
    return toy_model_on(toy_device(), config, seed);
}

tr_results toy_finish_on(tr_device *device)
{
    tr_results results;
    const char *why = NULL;

    if (!device->ops->finish(device, &results, &why))
        fail_msg("%s", why);
    return results;
}

tr_results toy_finish(void)
{
    return toy_finish_on(toy_device());
}

static toy_losses finish_losses(void)
{
    const tr_results r = toy_finish();

    return (toy_losses){
        .total = r.loss[TR_LOSS_MLM] + r.loss[TR_LOSS_NSP],
        .mlm = r.loss[TR_LOSS_MLM],
        .nsp = r.loss[TR_LOSS_NSP]};
}

toy_losses toy_forward(tr_model *model, const toy_batch *toy,
                       const tr_step *step)
{
    assert_true(tr_model_forward(model, &toy->batch, step));
    return finish_losses();
}

/* The mean loss of each sequence's masked tokens. */
static void share_mlm(const tr_batch *batch, const double *loss,
                      double *seq_mlm)
{
    for (size_t i = 0; i < batch->n_mlm;) {
        const int32_t seq = batch->mlm_seq[i];
        const size_t first = i;
        double sum = 0;

        for (; i < batch->n_mlm && batch->mlm_seq[i] == seq; i++)
            sum += loss[i];
        seq_mlm[seq] = sum / (double)(i - first);
    }
}

toy_result toy_run(tr_model *model, const toy_batch *toy,
                   const tr_step *step)
{
    toy_result result = {0};
    double mlm[MASKED_MAX];

    assert_true(toy->batch.n_seq <= COUNT(result.seq_nsp));
    assert_true(toy->batch.n_mlm <= MASKED_MAX);
    assert_true(tr_model_forward(model, &toy->batch, step));
    tr_model_backward(model);
    tr_model_row_losses(model, mlm, result.seq_nsp);
    share_mlm(&toy->batch, mlm, result.seq_mlm);
    result.losses = finish_losses();
    tr_model_fetch(model);
    tr_model_fetch_gradients(model);
    return result;
}

real *toy_hidden(const tr_model *model, const toy_batch *toy)
{
    const size_t n =
        (size_t)toy->batch.n_rows * tr_model_config(model)->hidden;
    real *const hidden = malloc(n * sizeof *hidden);

    assert_non_null(hidden);
    assert_int_equal(toy_device()->value_size, sizeof *hidden);
    tr_model_hidden(model, hidden);
    return hidden;
}

double toy_length(size_t n, const real *x)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

double toy_distance(size_t n, const real *x, const real *y)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += ((double)x[i] - (double)y[i])
               * ((double)x[i] - (double)y[i]);
    return sqrt(sum);
}

real toy_number(uint64_t seed, uint64_t place)
{
    return (real)((double)(tr_counter_rng(seed, place) >> 11) * 0x1p-52 - 1);
}

real *toy_numbers(uint64_t seed, size_t n)
{
    real *const x = malloc((n + 1) * sizeof *x);

    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = toy_number(seed, i);
    return x;
}

int toy_setup(void **state)
{
    (void)toy_device();
    return 0;
}
