/*
 * attention-t.c - both kinds of attention beside a naive one.
 *
 * Built twice: with float and with double.
 *
 * SPDX-License-Identifier: MIT
 */
#include "toy.h"

#include <math.h>
#include <stdlib.h>

#include "attention.h"

#ifdef BERT_DOUBLE
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
static double pull(const bert_batch *b, const real *qkv, size_t head,
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

static double naive_out(const bert_batch *b, const real *qkv, size_t row,
                        size_t column)
{
    const size_t head = column / HEAD;
    double sum = 0;
    double all = 0;

    for (size_t r = 0; r < b->n_rows; r++) {
        const double p = pull(b, qkv, head, row, r);

        all += p;
        sum += p * (double)vector_at(qkv, r, 2, head)[column % HEAD];
    }
    return sum / all;
}

/* What both kinds are given. */
typedef struct stand {
    toy_batch toy;
    bert_dropout dropout;
    bert_attend attend;
    size_t *kept_at;
    real *kept;
    real *qkv;
    real *out;
} stand;

static void open_stand(stand *s)
{
    const toy_plan plan = toy_packed_plan();
    const bert_batch *b = &s->toy.batch;
    size_t size;

    s->toy = toy_open(&plan);
    s->dropout = bert_dropout_at(0, 0);
    s->kept_at = calloc(b->n_spans, sizeof *s->kept_at);
    assert_non_null(s->kept_at);
    assert_true(bert_varlen_kept(b, HEADS, s->kept_at)
                < bert_dense_kept(b, HEADS));
    size = bert_dense_scratch(b);
    s->kept = toy_numbers(1, bert_dense_kept(b, HEADS));
    s->qkv = toy_numbers(2, (size_t)b->n_rows * 3 * HIDDEN);
    s->out = toy_numbers(3, (size_t)b->n_rows * HIDDEN);
    s->attend = (bert_attend){
        .batch = b, .hidden = HIDDEN, .heads = HEADS,
        .dropout = &s->dropout, .kept_at = s->kept_at,
        .scratch = toy_numbers(4, 3 * size), .scratch_size = size,
        .threads = 3};
}

static void close_stand(stand *s)
{
    free(s->attend.scratch);
    free(s->kept_at);
    free(s->kept);
    free(s->qkv);
    free(s->out);
    toy_free(&s->toy);
}

static void test_naive(void **state)
{
    for (int is_dense = 0; is_dense < 2; is_dense++) {
        stand s;

        open_stand(&s);
        (is_dense ? bert_dense_forward : bert_varlen_forward)(
            &s.attend, s.qkv, s.kept, s.out);
        for (size_t r = 0; r < s.toy.batch.n_rows; r++)
            for (size_t c = 0; c < HIDDEN; c++) {
                const double y = naive_out(&s.toy.batch, s.qkv, r, c);

                if (!(fabs((double)s.out[r * HIDDEN + c] - y) <= NEAR))
                    fail_msg("row %zu: %g instead of %g", r,
                             (double)s.out[r * HIDDEN + c], y);
            }
        close_stand(&s);
    }
}

/* The signs in a row of the first span, as one number. */
static uint64_t dropped_in(const stand *s, size_t row)
{
    const size_t n = (size_t)s->toy.batch.cu[1];
    uint64_t signs = 0;

    for (size_t i = 0; i < n; i++)
        signs = 2 * signs + (s->kept[row * n + i] < 0);
    return signs;
}

/* What is dropped differs from row to row, from head to head, by site. */
static void test_dropout(void **state)
{
    stand s;
    uint64_t first;

    open_stand(&s);
    s.dropout = bert_dropout_at(0.5, 1);
    bert_varlen_forward(&s.attend, s.qkv, s.kept, s.out);
    first = dropped_in(&s, 0);
    assert_int_not_equal(first, 0);
    assert_int_not_equal(first, dropped_in(&s, 1));
    assert_int_not_equal(first,
                         dropped_in(&s, (size_t)s.toy.batch.cu[1]));
    s.attend.site++;
    bert_varlen_forward(&s.attend, s.qkv, s.kept, s.out);
    assert_int_not_equal(first, dropped_in(&s, 0));
    close_stand(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_naive),
        cmocka_unit_test(test_dropout),
    };

    return run_as_tap("attention", tests, toy_setup);
}
