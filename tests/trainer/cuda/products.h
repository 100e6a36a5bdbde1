/*
 * products.h - layers y = x W^T + b and their gradients, compared with loops in
 * double.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PRODUCTS_H
#define PRODUCTS_H

#include <cuda_runtime.h>

#include "prenorm.h"

/* c += a b, m x k and k x n; steps such as (1, k) are their strides. */
static inline void multiply(size_t m, size_t n, size_t k, const double *a,
                            size_t a_row, size_t a_step, const double *b,
                            size_t b_step, size_t b_column, double *c)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            for (size_t l = 0; l < k; l++)
                c[i * n + j] += a[i * a_row + l * a_step]
                                * b[l * b_step + j * b_column];
}

/*
 * True if a product is rounded to bfloat16 only after its bias has been added.
 * On a GPU cuBLASLt does so if 8 divides the width and the stride of its rows.
 */
static inline bool rounds_once(size_t width, size_t stride)
{
#ifdef HOSTCUDA
    (void)width;
    (void)stride;
    return true;
#else
    return width % 8 == 0 && stride % 8 == 0;
#endif
}

/* A layer with x W^T + b expected to be `right`, followed by GELU. */
static inline bool is_gelu_forward(const rig &r, const tr_linear *l,
                                   size_t rows, const array &x,
                                   const numbers &right, const numbers &first)
{
    bool good = true;

    for (tr_activation act : {TR_GELU_TANH, TR_GELU}) {
        const array u(r, VALUES, right.size()), y(r, VALUES, right.size());
        numbers after = right;

        for (double &z : after)
            z = active(act, z);
        r.ops->linear_gelu_forward(r.d, l, act, rows, x, u, y);
        good = rounded(r, u.back(), right, first) && good;
        good = same(y.back(), after, 2 * r.near) && good;
    }
    return good;
}

/* GELU followed by a layer whose dy W is d. */
static inline bool is_gelu_backward(const rig &r, const tr_linear *l,
                                    size_t rows, const array &dy,
                                    const numbers &d)
{
    const numbers u = draw(r, VALUES, d.size(), 35, 4);
    const array au(r, VALUES, u), du(r, VALUES, d.size());
    numbers right(d.size());
    bool good = true;

    for (tr_activation act : {TR_GELU_TANH, TR_GELU}) {
        for (size_t i = 0; i < d.size(); i++)
            right[i] = d[i] * active_slope(act, u[i]);
        r.ops->linear_gelu_backward(r.d, l, act, rows, dy, au, du);
        good = same(du.back(), right, 2 * r.near + 1e-9) && good;
    }
    return good;
}

/* Weight gradients set to `once`, added to, and without those of the bias. */
static inline bool is_weight_backward(const rig &r, tr_linear l, size_t rows,
                                      const array &dy, const array &x,
                                      array *gradients, const numbers &once)
{
    const double near = r.bf16 ? 1e-5 : r.near;
    numbers right = draw(r, REALS, once.size(), 36);
    bool good;

    r.ops->linear_backward_weight(r.d, &l, rows, dy, x);
    l.adds = true;
    good = same(gradients->back(), once, near);
    gradients->set(right);
    for (size_t i = 0; i < once.size(); i++)
        right[i] += once[i];
    r.ops->linear_backward_weight(r.d, &l, rows, dy, x);
    good = same(gradients->back(), right, near) && good;
    for (size_t i = 0; i < l.out * l.in; i++)
        right[i] += once[i];
    l.bias = l.bias_gradient = NULL;
    r.ops->linear_backward_weight(r.d, &l, rows, dy, x);
    return same(gradients->back(), right, near) && good;
}

/* Rows of y and dy are `stride` apart. */
static inline void test_linear(const rig &r, size_t rows, size_t in,
                               size_t out, size_t stride)
{
    const size_t n = out * in + out;
    const array weights(r, REALS, draw(r, VALUES, n, 30));
    array gradients(r, REALS, draw(r, REALS, n, 31));
    const numbers w = weights.back(), x = draw(r, VALUES, rows * in, 32);
    const numbers dy = draw(r, VALUES, rows * out, 33);
    const array ax(r, VALUES, x), ady(r, VALUES, spread(dy, out, stride));
    const array y(r, VALUES, rows * stride), dx(r, VALUES, rows * in);
    tr_linear l = {in,        out, stride,
                   weights,   (real *)weights + out * in,
                   gradients, (real *)gradients + out * in,
                   false};
    numbers product(rows * out), d(rows * in), after(n);
    bool good;

    r.ops->weights_written(r.d, weights, n);
    multiply(rows, out, in, x.data(), in, 1, w.data(), 1, in, product.data());
    r.ops->linear_forward(r.d, &l, rows, ax, false, y);
    good = rounded(r, narrow(y.back(), out, stride), product);

    numbers sum = product;
    const numbers unbiased = product;

    for (size_t i = 0; i < sum.size(); i++)
        sum[i] += w[out * in + i % out];
    if (rounds_once(out, stride))
        product.clear();
    r.ops->linear_forward(r.d, &l, rows, ax, true, y);
    good = rounded(r, narrow(y.back(), out, stride), sum, product) && good;
    if (out == stride)
        good = is_gelu_forward(r, &l, rows, ax, sum, product) && good;
    l.bias = NULL;
    r.ops->linear_forward(r.d, &l, rows, ax, true, y);
    good = rounded(r, narrow(y.back(), out, stride), unbiased) && good;
    if (out == stride)
        good = is_gelu_forward(r, &l, rows, ax, unbiased, {}) && good;
    l.bias = (real *)weights + out * in;
    for (int beta = 0; beta < 2; beta++) {
        multiply(rows, in, out, dy.data(), out, 1, w.data(), in, 1, d.data());
        r.ops->linear_backward_input(r.d, &l, rows, ady, beta, dx);
        good = same(dx.back(), d, 2 * r.near) && good;
        if (beta == 0)
            good = is_gelu_backward(r, &l, rows, ady, d) && good;
    }
    multiply(out, in, rows, dy.data(), 1, out, x.data(), in, 1, after.data());
    for (size_t i = 0; i < dy.size(); i++)
        after[out * in + i % out] += dy[i];
    good = is_weight_backward(r, l, rows, ady, ax, &gradients, after) && good;
    ok(good, "%s: linear, %zu x %zu -> %zu, %zu apart", r.name, rows, in, out,
       stride);
}

static inline void test_products(const rig &r)
{
    for (size_t rows : {0, 1, 70}) {
        test_linear(r, rows, 5, 1, 1);
        test_linear(r, rows, 24, 7, 7);
        test_linear(r, rows, 24, 7, 8);
        test_linear(r, rows, 32, 96, 96);
        test_linear(r, rows, 32, 93, 96);
        test_linear(r, rows, 300, 64, 65);
    }
}

#endif /* PRODUCTS_H */
