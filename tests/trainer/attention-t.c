/*
 * attention-t.c - both kinds of attention compared with naive attention, with
 * and without dropout.
 *
 * Built twice: with float and with double.
 *
 * SPDX-License-Identifier: MIT
 */
#include "toy.h"

#include <math.h>
#include <stdlib.h>

#include "model/dropout.h"

#ifdef TR_DOUBLE
#define NEAR 1e-13
#else
#define NEAR 1e-5
#endif

#define HIDDEN 24
#define HEADS 4
#define HEAD (HIDDEN / HEADS)

static const real *vector_at(const real *qkv, size_t row, size_t which,
                             size_t head)
{
    return qkv + row * 3 * HIDDEN + which * HIDDEN + head * HEAD;
}

/* exp(q k / sqrt(d)), 0 for rows of another sequence or pack. */
static double pull(const tr_batch *b, const real *qkv, size_t head,
                   size_t from, size_t to)
{
    const real *const q = vector_at(qkv, from, 0, head);
    const real *const k = vector_at(qkv, to, 1, head);
    double sum = 0;

    if (from / b->capacity != to / b->capacity
        || b->segment[from] != b->segment[to])
        return 0;
    for (size_t i = 0; i < HEAD; i++)
        sum += (double)q[i] * (double)k[i];
    return exp(sum / sqrt((double)HEAD));
}

/* The first row of a row's sequence. */
static size_t first_of(const tr_batch *b, size_t row)
{
    while (row % b->capacity && b->segment[row - 1] == b->segment[row])
        row--;
    return row;
}

/* The weight of a score after dropout; it is 1 before. */
static double kept_of(const tr_batch *b, const tr_attend *a, size_t head,
                      size_t from, size_t to)
{
    const uint32_t first = (uint32_t)first_of(b, from);
    const uint32_t row = (uint32_t)from - first;
    const tr_dropout_key key = tr_dropout_scores(
        &a->dropout, a->site, first, row, (uint32_t)head, HEADS);

    return tr_dropout_score_stays(key, row, (uint32_t)to - first,
                                  a->dropout.threshold)
               ? (double)a->dropout.scale
               : 0;
}

static double naive_out(const tr_batch *b, const tr_attend *a,
                        const real *qkv, size_t row, size_t column)
{
    const size_t head = column / HEAD;
    double sum = 0;
    double all = 0;

    for (size_t r = 0; r < b->n_rows; r++) {
        const double p = pull(b, qkv, head, row, r);

        all += p;
        if (p > 0)
            sum += p * kept_of(b, a, head, row, r)
                   * (double)vector_at(qkv, r, 2, head)[column % HEAD];
    }
    return sum / all;
}

static void *on_device(const void *from, size_t bytes)
{
    tr_device *const d = toy_device();
    void *const to = d->ops->alloc(d, bytes);

    assert_non_null(to);
    d->ops->fill(d, to, 0xff, bytes);
    if (from)
        d->ops->upload(d, to, from, bytes);
    return to;
}

/* Attention of a batch on the device; the caller frees the result. */
static real *run(const tr_batch *b, tr_attend *a, const real *qkv)
{
    tr_device *const d = toy_device();
    const size_t size = (size_t)b->n_rows * HIDDEN * sizeof(real);
    void *const x = on_device(qkv, 3 * size);
    void *const y = on_device(NULL, size);
    real *const out = malloc(size);

    assert_non_null(out);
    a->heads = a->kv_heads = HEADS;
    a->width = HEAD;
    a->batch = d->ops->stage(d, b);
    assert_non_null(a->batch);
    a->kept = on_device(NULL, d->ops->attention_kept(d, a));
    a->scratch = on_device(NULL, d->ops->attention_scratch(d, a));
    d->ops->attention_forward(d, a, x, y);
    d->ops->download(d, out, y, size);
    (void)toy_finish();
    d->ops->release(d, x);
    d->ops->release(d, y);
    d->ops->release(d, a->kept);
    d->ops->release(d, a->scratch);
    return out;
}

static void compare(tr_attend a)
{
    const toy_plan plan = toy_packed_plan();
    toy_batch toy = toy_open(&plan);
    const tr_batch *const b = &toy.batch;
    real *const qkv = toy_numbers(2, (size_t)b->n_rows * 3 * HIDDEN);
    real *const out = run(b, &a, qkv);

    for (size_t r = 0; r < b->n_rows; r++)
        for (size_t c = 0; c < HIDDEN; c++) {
            const double y = naive_out(b, &a, qkv, r, c);

            if (!(fabs((double)out[r * HIDDEN + c] - y) <= NEAR))
                fail_msg("row %zu: %g instead of %g", r,
                         (double)out[r * HIDDEN + c], y);
        }
    free(qkv);
    free(out);
    toy_free(&toy);
}

static void test_naive(void **state)
{
    compare((tr_attend){.dropout = tr_dropout_at(0, 0)});
    compare((tr_attend){.dropout = tr_dropout_at(0, 0), .dense = true});
}

/* Dropout depends on row, head, column, site and seed. */
static void test_dropout(void **state)
{
    compare((tr_attend){.dropout = tr_dropout_at(0.5, 1), .site = 4});
    compare((tr_attend){.dropout = tr_dropout_at(0.25, 2),
                        .site = 7,
                        .dense = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_naive),
        cmocka_unit_test(test_dropout),
    };

    return run_as_tap("attention", tests, toy_setup);
}
