/*
 * bytes-t.cc - kernels read and write each tensor once, as hostcuda counts.
 *
 * Distinct bytes are those of the tensors.  Total bytes also include short
 * vectors, such as gain and bias, which every row reads again and which stay in
 * a cache; bytes written are all distinct.
 *
 * SPDX-License-Identifier: MIT
 */
#include <cuda_runtime.h>

#include "hostcuda.h"
#include "rig.h"

#define ROWS 70
#define WIDTH 768
#define LOGITS 763 /* of a row of WIDTH; the rest is not read */

/* `again`: bytes that are read more than once. */
static void check(const rig &r, const char *kernel, size_t read, size_t again,
                  size_t written)
{
    tr_results results;
    const char *why;
    hostcuda_count n;
    bool good = r.ops->finish(r.d, &results, &why);

    n = hostcuda_counts(kernel);
    good = good && n.read_distinct == read && n.read <= read + again
           && n.written_distinct == written && n.written == written;
    ok(good, "%s: %s reads %llu of %zu bytes, writes %llu of %zu", r.name,
       kernel, n.read, read, n.written, written);
    hostcuda_counts_reset();
}

static void test_kernels(const rig &r)
{
    const array place(r, INDEX, as_numbers(draw_places(ROWS, 4)));
    const tr_dropout dropout = dropout_by(0.1, place);
    const size_t n = ROWS * WIDTH, h = n * r.d->value_size;
    const size_t z = ROWS * LOGITS * r.d->value_size;
    const size_t vector = WIDTH * sizeof(real), column = ROWS * sizeof(real);
    const size_t index = ROWS * sizeof(int32_t);
    const array x(r, VALUES, draw(r, VALUES, n, 1)),
        b(r, VALUES, draw(r, VALUES, n, 2)), hat(r, VALUES, n),
        y(r, VALUES, n), d(r, VALUES, n), v(r, REALS, draw(r, REALS, WIDTH, 3)),
        inverse(r, REALS, ROWS), gain(r, REALS, numbers(WIDTH)),
        bias(r, REALS, numbers(WIDTH)), loss(r, DOUBLES, ROWS),
        label(r, INDEX, numbers(ROWS)), weight(r, REALS, numbers(ROWS));
    const tr_norm norm = {WIDTH, 1e-12, false, v, v, gain, bias, false};
    const tr_norm_kept kept = {hat.p, inverse};
    const array w(r, REALS, numbers(WIDTH * WIDTH + WIDTH));
    const tr_linear up = {WIDTH, WIDTH, WIDTH, w, (real *)w + WIDTH * WIDTH,
                            NULL, NULL, false};
    const tr_linear decoder = {1, LOGITS, WIDTH, NULL, NULL, gain, bias,
                               false};

    r.ops->weights_written(r.d, w, w.n);
    hostcuda_counts_reset();
    r.ops->sum_norm_forward(r.d, &norm, ROWS, x, b, v, &dropout, 0, &kept, y);
    check(r, "norm_kernel", 2 * h + vector + index,
          3 * ROWS * vector + 512 * index, 2 * h + column);
    r.ops->norm_backward(r.d, &norm, ROWS, &kept, x, &dropout, 0, d, y);
    check(r, "norm_backward_kernel", 2 * h + vector + column + index,
          ROWS * vector + 512 * (column + index), 2 * h + 5 * 2 * vector);
    r.ops->gelu_backward(r.d, TR_GELU_TANH, n, x, d);
    check(r, "gelu_backward_kernel", 2 * h, 0, h);
    r.ops->linear_gelu_forward(r.d, &up, TR_GELU_TANH, ROWS, x, d, y);
    check(r, "gelu_kernel", h, 0, h);
    r.ops->cross_entropy(r.d, TR_LOSS_MLM, ROWS, LOGITS, WIDTH, d, label,
                         weight, (double *)(void *)loss.p, false);
    /* The row again; all threads read its label, weight and own logit. */
    check(r, "cross_entropy_kernel", z + index + column,
          z + 512 * ROWS * 12, h + ROWS * sizeof(double));
    r.ops->linear_backward_weight(r.d, &decoder, ROWS, d, b);
    check(r, "slice_sums_kernel", z, 0, 9 * LOGITS * sizeof(real));
}

/* Those of models with norms before their blocks. */
static void test_prenorm(const rig &r)
{
    const size_t n = ROWS * WIDTH, h = n * r.d->value_size;
    const size_t vector = WIDTH * sizeof(real), column = ROWS * sizeof(real);
    const array x(r, VALUES, draw(r, VALUES, n, 1)),
        b(r, VALUES, draw(r, VALUES, n, 2)), hat(r, VALUES, n),
        y(r, VALUES, n), u(r, VALUES, draw(r, VALUES, 2 * n, 3)),
        du(r, VALUES, 2 * n), v(r, REALS, draw(r, REALS, WIDTH, 3)),
        inverse(r, REALS, ROWS), gain(r, REALS, WIDTH),
        position(r, INDEX, numbers(ROWS));
    const tr_norm norm = {WIDTH, 1e-6, true, v, NULL, gain, NULL, false};
    const tr_norm_kept kept = {hat.p, inverse};
    const tr_rotary rotary = {WIDTH / 2 / 64, 64, WIDTH, v};

    hostcuda_counts_reset();
    r.ops->add_norm_forward(r.d, &norm, ROWS, b, x, x, &kept, y);
    check(r, "norm_kernel", 2 * h + vector, ROWS * vector, 3 * h + column);
    r.ops->add_norm_backward(r.d, &norm, ROWS, &kept, y, x);
    check(r, "norm_backward_kernel", 3 * h + vector + column,
          ROWS * vector + 512 * column, h + 5 * vector);
    r.ops->gate_forward(r.d, TR_SILU, ROWS, WIDTH, u, y);
    check(r, "gate_kernel", 2 * h, 0, h);
    r.ops->gate_backward(r.d, TR_SILU, ROWS, WIDTH, u, y, du);
    check(r, "gate_backward_kernel", 3 * h, 0, 2 * h);
    r.ops->rotate(r.d, &rotary, ROWS, position, false, x);
    check(r, "rotate_kernel",
          h / 2 + 32 * sizeof(real) + ROWS * sizeof(int32_t),
          ROWS * 32 * (sizeof(real) + sizeof(int32_t)), h / 2);
}

static void test_all(tr_precision precision)
{
    const rig r = open_rig(precision);

    test_kernels(r);
    test_prenorm(r);
    tr_device_close(r.d);
}

int main(void)
{
    test_all(TR_FLOAT);
    test_all(TR_BF16);
    return done();
}
