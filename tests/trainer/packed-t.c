/*
 * packed-t.c - training on packs is equivalent to training on sequences.
 *
 * Built twice: with float, and with double, where more digits have to agree.
 *
 * SPDX-License-Identifier: MIT
 */
#include "toy.h"

#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "model/model_parts.h"

/* Relative tolerance. */
#ifdef TR_DOUBLE
#define NEAR 1e-10
#else
#define NEAR 1e-4
#endif

#define TRAINED(attention, seed, rows) {attention, true, seed, rows, 0, false}
static const tr_step varlen = {.attention = TR_VARLEN};
static const tr_step dense = {.attention = TR_DENSE};

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
 * The gradient of each tensor agrees, relative to its norm.  The gradient of
 * keys' biases is zero except for rounding, since softmax ignores a shift: the
 * queries' biases, stored before it, give the scale.
 */
static void assert_same_gradients(const tr_model *model, const real *x,
                                  const real *y)
{
    double size = 0;

    for (size_t i = 0; i < tr_model_tensors(model); i++) {
        const tr_tensor *const t = tr_model_tensor(model, i);
        const size_t n = (size_t)t->rows * t->columns;
        const double d = toy_distance(n, x + t->offset, y + t->offset);

        if (!ends_with(t->name, "key.bias"))
            size = toy_length(n, y + t->offset);
        assert_true(size > 0);
        if (!(d <= NEAR * size))
            fail_msg("%s is off by %g of %g", t->name, d, size);
    }
}

static real *copy_of(const real *x, size_t n)
{
    real *const copy = malloc(n * sizeof *copy);

    assert_non_null(copy);
    memcpy(copy, x, n * sizeof *copy);
    return copy;
}

static real *gradients_of(tr_model *model)
{
    return copy_of(tr_model_gradients(model), tr_model_numbers(model));
}

static tr_model *open_model(double dropout)
{
    tr_config config = toy_config(53, 32);

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

/* Two batches run by one model, and the results of the first run. */
typedef struct pair {
    tr_model *model;
    toy_batch a, b;
    toy_result x, y;
    real *gradients;
    real *hidden;
    real *other_hidden; /* of the second run */
} pair;

/* `poison` fills the model's memory with NaN before the second run. */
static pair run_pair(double dropout, const toy_plan *plan,
                     const tr_step *step, const toy_plan *other_plan,
                     const tr_step *other_step, bool poison)
{
    pair p = {.model = open_model(dropout),
              .a = toy_open(plan),
              .b = toy_open(other_plan)};

    p.x = toy_run(p.model, &p.a, step);
    p.gradients = gradients_of(p.model);
    p.hidden = toy_hidden(p.model, &p.a);
    p.model->poison = poison;
    p.y = toy_run(p.model, &p.b, other_step);
    p.other_hidden = toy_hidden(p.model, &p.b);
    return p;
}

static void close_pair(pair *p)
{
    free(p->gradients);
    free(p->hidden);
    free(p->other_hidden);
    toy_free(&p->a);
    toy_free(&p->b);
    tr_model_free(p->model);
}

/* Two plans, computed in two ways, have the same results. */
static void test_ways_agree(void **state)
{
    static const tr_step trained = TRAINED(TR_VARLEN, 99, TR_PADDED);
    static const tr_step trained_dense = TRAINED(TR_DENSE, 99, TR_PADDED);
    static const tr_step stripped = TRAINED(TR_VARLEN, 99, TR_STRIPPED);
    static const tr_step stripped_dense = TRAINED(TR_DENSE, 99, TR_STRIPPED);
    static const tr_step unpadded = TRAINED(TR_VARLEN, 99, TR_UNPADDED);
    const toy_plan packed = toy_packed_plan();
    const toy_plan alone = toy_alone_plan();
    const struct {
        const toy_plan *plan;
        const tr_step *step;
        const toy_plan *other_plan;
        const tr_step *other_step;
        double dropout;
    } cases[] = {
        /* Packed or not. */
        {&packed, &varlen, &alone, &varlen, 0},
        {&packed, &dense, &alone, &dense, 0},
        {&packed, &dense, &alone, &varlen, 0},
        /* Both kinds of attention, with and without dropout. */
        {&packed, &varlen, &packed, &dense, 0},
        {&packed, &trained, &packed, &trained_dense, 0.25},
        /* With less padding, or none. */
        {&packed, &trained, &packed, &unpadded, 0.25},
        {&alone, &trained, &alone, &unpadded, 0.25},
        {&alone, &trained, &alone, &stripped, 0.25},
        {&alone, &trained, &alone, &stripped_dense, 0.25},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        pair p;

        if (!toy_can(cases[i].step) || !toy_can(cases[i].other_step))
            continue;
        p = run_pair(cases[i].dropout, cases[i].plan, cases[i].step,
                     cases[i].other_plan, cases[i].other_step, false);

        compare_losses(&p.a, &p.x, &p.b, &p.y);
        assert_same_gradients(p.model, p.gradients,
                              tr_model_gradients(p.model));
        close_pair(&p);
    }
}

/* The weighted parts add up to the total; weights in a sequence are equal. */
static void test_losses_add_up(void **state)
{
    const toy_plan plan = toy_packed_plan();
    tr_model *const model = open_model(0);
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
    tr_model_free(model);
}

/* ---- padding ---- */

/* A sequence starts at its first row, and records where it was. */
static void check_stripped(const tr_batch *was, const tr_batch *is,
                           uint32_t i, uint32_t n)
{
    const size_t from = (size_t)was->cls_row[i];
    const size_t to = (size_t)is->cls_row[i];
    const size_t size = n * sizeof(int32_t);

    assert_memory_equal(is->token + to, was->token + from, size);
    assert_memory_equal(is->type + to, was->type + from, size);
    assert_memory_equal(is->position + to, was->position + from, size);
    assert_memory_equal(is->segment + to, was->segment + from, size);
    for (uint32_t k = 0; k < n; k++)
        assert_int_equal(is->place[to + k], from + k);
}

static void check_strip(tr_rows rows, uint32_t n_rows, uint32_t capacity)
{
    const toy_plan plan = toy_alone_plan();
    toy_batch toy = toy_open(&plan);
    tr_unpad strip = {0};
    const tr_batch *const was = &toy.batch;
    const tr_batch *const is = tr_unpad_rows(&strip, was, rows);

    assert_int_equal(is->n_rows, n_rows);
    assert_int_equal(is->capacity, capacity);
    assert_int_equal(is->cu[is->n_spans], n_rows);
    assert_int_equal(is->max_span, 31);
    for (uint32_t i = 0; i < is->n_seq; i++) {
        const uint32_t n = toy.sequences[i].length;

        /* A dummy sequence follows each sequence. */
        assert_int_equal(is->cu[2 * i], is->cls_row[i]);
        assert_int_equal(is->cu[2 * i + 1], (uint32_t)is->cls_row[i] + n);
        check_stripped(was, is, i, n);
    }
    for (uint32_t i = 0; i < is->n_mlm; i++)
        assert_int_equal(is->place[is->mlm_row[i]], was->mlm_row[i]);
    tr_unpad_free(&strip);
    toy_free(&toy);
}

static void test_padding_is_left_out(void **state)
{
    const int32_t cu = 0;
    const tr_batch none = {.capacity = 8, .cu = &cu};
    tr_unpad strip = {0};

    check_strip(TR_STRIPPED, 7 * 31, 31);
    check_strip(TR_UNPADDED, 18 + 20 + 1 + 7 + 12 + 3 + 31, 0);
    assert_ptr_equal(tr_unpad_rows(&strip, &none, TR_PADDED), &none);
    for (int rows = TR_STRIPPED; rows <= TR_UNPADDED; rows++)
        assert_int_equal(
            tr_unpad_rows(&strip, &none, (tr_rows)rows)->n_rows, 0);
    tr_unpad_free(&strip);
}

/* ---- bit for bit ---- */

/* The results of the first run for its k-th sequence. */
static const real *output_before(const pair *p, uint32_t k)
{
    return p->hidden
           + (size_t)p->a.batch.cls_row[k]
                 * tr_model_config(p->model)->hidden;
}

/* And of the second run for the same sequence. */
static const real *output_after(const pair *p, uint32_t k)
{
    const uint32_t at = toy_find(&p->b, p->a.sequences[k].name);

    return p->other_hidden
           + (size_t)p->b.batch.cls_row[at]
                 * tr_model_config(p->model)->hidden;
}

static size_t output_size(const pair *p, uint32_t k)
{
    return (size_t)p->a.sequences[k].length
           * tr_model_config(p->model)->hidden;
}

static void test_sequences_do_not_see_one_another(void **state)
{
    /* Alters each of seven, or the one in the middle of a pack, both ways. */
    const uint32_t first = is_short() ? 2 : 0, end = is_short() ? 4 : 14;

    for (uint32_t turn = first; turn < end; turn++) {
        const tr_step *const step = turn % 2 ? &dense : &varlen;
        const toy_plan plan = toy_packed_plan();
        toy_plan other = plan;
        pair p;

        if (!toy_can(step))
            continue;
        other.altered = turn / 2 + 1;
        p = run_pair(0, &plan, step, &other, step, false);
        for (uint32_t i = 0; i < p.a.batch.n_seq; i++) {
            const bool same =
                memcmp(output_before(&p, i), output_after(&p, i),
                       output_size(&p, i) * sizeof(real)) == 0
                && memcmp(p.x.seq_mlm + i, p.y.seq_mlm + i,
                          sizeof *p.x.seq_mlm) == 0
                && memcmp(p.x.seq_nsp + i, p.y.seq_nsp + i,
                          sizeof *p.x.seq_nsp) == 0;

            assert_int_equal(same, p.a.sequences[i].name != other.altered);
        }
        close_pair(&p);
    }
}

static void test_permuted_packs_permute_outputs(void **state)
{
    static const toy_sequence permuted[3][TOY_DEPTH] = {
        {{3, 3}, {1, 20}, {2, 7}}, {{5, 31}, {4, 1}}, {{7, 18}, {6, 12}}};

    for (int turn = 0; turn < 2; turn++) {
        const tr_step *const step = turn ? &dense : &varlen;
        const toy_plan plan = toy_packed_plan();
        toy_plan other = plan;
        pair p;

        if (!toy_can(step))
            continue;
        other.packs = permuted;
        p = run_pair(0, &plan, step, &other, step, false);
        compare_losses(&p.a, &p.x, &p.b, &p.y);
        for (uint32_t i = 0; i < p.a.batch.n_seq; i++) {
            const size_t n = output_size(&p, i);
            const real *const was = output_before(&p, i);

            assert_true(toy_distance(n, output_after(&p, i), was)
                        <= NEAR * toy_length(n, was));
        }
        close_pair(&p);
    }
}

/*
 * Neither other tokens in the padding, with NaN in all memory that was not
 * written, nor spare spans change a bit of losses or gradients.
 */
static void test_poison_and_spans_do_nothing(void **state)
{
    static const tr_step trained = TRAINED(TR_VARLEN, 3, TR_PADDED);
    static const tr_step trained_dense = TRAINED(TR_DENSE, 3, TR_PADDED);
    static const tr_step unpadded = TRAINED(TR_VARLEN, 3, TR_UNPADDED);
    static const struct {
        const tr_step *step;
        double dropout;
        uint32_t noise;
        uint32_t spare_spans;
    } cases[] = {
        {&varlen, 0.1, 77, 0}, {&trained, 0.1, 77, 0},
        {&dense, 0.1, 77, 0},  {&trained_dense, 0.1, 77, 0},
        {&varlen, 0, 0, 13},   {&dense, 0, 0, 13},
        {&unpadded, 0.1, 77, 0}, {&unpadded, 0.1, 0, 13},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const toy_plan plan = toy_packed_plan();
        toy_plan other = plan;
        const real *after;
        pair p;

        if (!toy_can(cases[i].step))
            continue;
        other.noise = cases[i].noise;
        other.spare_spans = cases[i].spare_spans;
        p = run_pair(cases[i].dropout, &plan, cases[i].step, &other,
                     cases[i].step, true);
        assert_memory_equal(&p.x, &p.y, sizeof p.x);
        assert_true(p.x.losses.total > 0);
        after = tr_model_gradients(p.model);
        /* Zeros of either sign are equal. */
        for (size_t k = 0; k < tr_model_numbers(p.model); k++)
            assert_true(p.gradients[k] == after[k]);
        close_pair(&p);
    }
}

/* Bit by bit; zeros of either sign are equal. */
static void assert_equal_gradients(const tr_model *a, const tr_model *b)
{
    const real *const x = tr_model_gradients(a);
    const real *const y = tr_model_gradients(b);

    for (size_t i = 0; i < tr_model_numbers(a); i++)
        assert_true(x[i] == y[i]);
}

/* A batch after a larger one, after a smaller one, and one without tasks. */
static void test_batches_of_any_size_follow(void **state)
{
    static const toy_sequence short_ones[1][TOY_DEPTH] = {{{3, 3}, {8, 2}}};
    const tr_step *const other = toy_can(&dense) ? &dense : &varlen;
    const toy_plan plan = toy_packed_plan();
    toy_plan small = plan;
    tr_model *const model = open_model(0);
    tr_model *const fresh = open_model(0);
    tr_model *const unused = open_model(0);
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
    x = toy_run(model, &b, other);
    y = toy_run(fresh, &b, other);
    assert_memory_equal(&x, &y, sizeof x);
    assert_equal_gradients(model, fresh);
    x = toy_run(model, &a, &varlen);
    y = toy_run(unused, &a, &varlen);
    assert_memory_equal(&x, &y, sizeof x);
    assert_equal_gradients(model, unused);
    toy_free(&a);
    toy_free(&b);
    tr_model_free(model);
    tr_model_free(fresh);
    tr_model_free(unused);
}

/* ---- rounded counts ---- */

static void learn_from(tr_model *model, const toy_batch *toy,
                       const tr_step *step, tr_graph_mode how)
{
    tr_model_set_graph_mode(model, how);
    assert_true(tr_model_forward(model, &toy->batch, step));
    tr_model_backward(model);
    tr_model_fetch_gradients(model);
}

/* Added elements change no loss and no gradient, whatever they contain. */
static void test_rounding_adds_nothing(void **state)
{
    static const tr_step steps[] = {TRAINED(TR_VARLEN, 3, TR_PADDED),
                                      TRAINED(TR_DENSE, 3, TR_PADDED),
                                      TRAINED(TR_VARLEN, 3, TR_STRIPPED),
                                      TRAINED(TR_VARLEN, 3, TR_UNPADDED)};
    const toy_plan plan = toy_packed_plan();

    for (size_t i = 0; i < COUNT(steps); i += is_short() ? 3 : 1) {
        tr_model *const model = open_model(0.1);
        toy_batch toy = toy_open(&plan);
        tr_results x, y;
        real *gradients;

        if (toy_can(&steps[i])) {
            learn_from(model, &toy, &steps[i], TR_EXACT);
            x = toy_finish();
            gradients = gradients_of(model);
            model->poison = true;
            learn_from(model, &toy, &steps[i], TR_ROUNDED);
            y = toy_finish();
            for (int l = 0; l < TR_LOSSES; l++)
                assert_near(y.loss[l], x.loss[l]);
            assert_same_gradients(model, tr_model_gradients(model),
                                  gradients);
            free(gradients);
        }
        toy_free(&toy);
        tr_model_free(model);
    }
}

/* ---- Families, micro-batches and recomputation ---- */

static tr_model *open_family(tr_family family)
{
    tr_config config = toy_config_of(family);

    config.dropout = family == TR_BERT ? 0.1 : 0;
    return toy_model(&config, 5);
}

/* A step; the caller frees the gradients that it returns. */
static real *step_of(tr_model *model, const toy_batch *toy,
                     const tr_step *step, tr_results *results)
{
    assert_true(tr_model_forward(model, &toy->batch, step));
    tr_model_backward(model);
    *results = toy_finish();
    tr_model_fetch_gradients(model);
    return gradients_of(model);
}

/* `exact`: bit for bit */
static void compare_steps(tr_family family, const toy_plan *plan,
                          const tr_step *step, const toy_plan *other_plan,
                          const tr_step *other_step, bool exact)
{
    tr_model *const model = open_family(family);
    toy_batch a = toy_open(plan), b = toy_open(other_plan);
    tr_results x, y;
    real *const before = step_of(model, &a, step, &x);
    real *after;

    model->poison = true;
    after = step_of(model, &b, other_step, &y);
    assert_near(y.loss[TR_LOSS_MLM], x.loss[TR_LOSS_MLM]);
    if (family == TR_BERT)
        assert_near(y.loss[TR_LOSS_NSP], x.loss[TR_LOSS_NSP]);
    assert_same_gradients(model, after, before);
    for (size_t i = 0; exact && i < tr_model_numbers(model); i++)
        assert_true(before[i] == after[i]);
    free(before);
    free(after);
    toy_free(&a);
    toy_free(&b);
    tr_model_free(model);
}

static void test_families(void **state)
{
    static const tr_step padded = {.rows = TR_PADDED, .training = true},
                         unpadded = {.rows = TR_UNPADDED, .training = true};
    const toy_plan packed = toy_packed_plan(), alone = toy_alone_plan();

    for (int f = TR_MODERNBERT; f < TOY_FAMILIES; f++) {
        compare_steps((tr_family)f, &packed, &padded, &alone, &padded, false);
        compare_steps((tr_family)f, &packed, &padded, &alone, &unpadded,
                      false);
    }
}

/* Gradients of any number of packs at a time add up to those of a step. */
static void test_micro_batches(void **state)
{
    const toy_plan plans[] = {toy_packed_plan(), toy_alone_plan()};
    const tr_step whole = TRAINED(TR_VARLEN, 8, TR_PADDED);

    for (int f = 0; f < TOY_FAMILIES; f++)
        for (uint32_t n = 1; n <= 4; n += is_short() ? 2 : 1)
            for (int rows = TR_PADDED; rows <= TR_UNPADDED; rows++) {
                tr_step step = whole;

                step.rows = (tr_rows)rows;
                step.micro_batch = n;
                step.recompute = n > 1;
                compare_steps((tr_family)f, &plans[n % 2], &whole,
                              &plans[n % 2], &step,
                              n == 4 && rows == TR_PADDED);
            }
}

static void test_recompute(void **state)
{
    const toy_plan plan = toy_packed_plan();
    const tr_step kept = TRAINED(TR_VARLEN, 8, TR_UNPADDED);
    tr_step step = kept;

    step.recompute = true;
    for (int f = 0; f < TOY_FAMILIES; f++)
        compare_steps((tr_family)f, &plan, &kept, &plan, &step, true);
}

/* ---- threads ---- */

static void test_threads_change_no_bit(void **state)
{
    static const tr_step steps[] = {TRAINED(TR_VARLEN, 3, TR_PADDED),
                                      TRAINED(TR_DENSE, 3, TR_PADDED),
                                      TRAINED(TR_VARLEN, 3, TR_UNPADDED)};
    const int usual = omp_get_max_threads();
    const toy_plan plan = toy_packed_plan();

    for (size_t i = 0; i < COUNT(steps) && toy_can(&steps[i]);
         i += is_short() ? 2 : 1) {
        tr_model *const model = open_model(0.1);
        toy_batch toy = toy_open(&plan);
        toy_result x;
        real *gradients;

        omp_set_num_threads(1);
        x = toy_run(model, &toy, &steps[i]);
        gradients = gradients_of(model);
        for (int threads = 2; threads <= 5; threads++) {
            toy_result y;

            omp_set_num_threads(threads);
            y = toy_run(model, &toy, &steps[i]);
            assert_memory_equal(&x, &y, sizeof x);
            assert_memory_equal(gradients, tr_model_gradients(model),
                                tr_model_numbers(model)
                                    * sizeof *gradients);
        }
        free(gradients);
        toy_free(&toy);
        tr_model_free(model);
    }
    omp_set_num_threads(usual);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways_agree),
        cmocka_unit_test(test_losses_add_up),
        cmocka_unit_test(test_padding_is_left_out),
        cmocka_unit_test(test_sequences_do_not_see_one_another),
        cmocka_unit_test(test_permuted_packs_permute_outputs),
        cmocka_unit_test(test_poison_and_spans_do_nothing),
        cmocka_unit_test(test_batches_of_any_size_follow),
        cmocka_unit_test(test_rounding_adds_nothing),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_micro_batches),
        cmocka_unit_test(test_recompute),
        cmocka_unit_test(test_threads_change_no_bit),
    };

    return run_as_tap("packed", tests, toy_setup);
}
