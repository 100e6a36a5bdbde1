/*
 * linear.cu - a layer y = x W^T + b and its gradients, as matrix products.
 *
 * If cuBLASLt supports it, GELU by tanh or its derivative is fused into a
 * product; otherwise gelu.cu applies it.  columns.cu computes the gradients of
 * biases: cuBLASLt's epilogue for them runs as a separate kernel and is 15 %
 * slower on an H200.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/columns.h"
#include "cuda/product.h"

static tr_product forward(tr_cuda *c, const tr_linear *l, size_t rows,
                          const void *x, bool bias, void *y)
{
    tr_product p = {};

    p.m = rows;
    p.n = l->out;
    p.k = l->in;
    p.a = x;
    p.a_stride = l->in;
    p.b = tr_cuda_weight(c, l->weight);
    p.b_turned = true;
    p.bias = bias && l->bias ? tr_cuda_weight(c, l->bias) : NULL;
    p.c = y;
    p.c_stride = l->stride;
    return p;
}

static void linear_forward(tr_device *d, const tr_linear *l, size_t rows,
                           const void *x, bool bias, void *y)
{
    tr_cuda *const c = cuda_of(d);
    const tr_product p = forward(c, l, rows, x, bias, y);

    tr_cuda_multiply(c, &p);
}

static void linear_gelu_forward(tr_device *d, const tr_linear *l,
                                tr_activation act, size_t rows, const void *x,
                                void *u, void *y)
{
    tr_cuda *const c = cuda_of(d);
    tr_product p = forward(c, l, rows, x, true, y);

    p.gelu = TR_GELU_VALUE;
    p.u = u;
    if (act == TR_GELU_TANH && l->bias && tr_cuda_fuses(c, &p)) {
        tr_cuda_multiply(c, &p);
        return;
    }
    linear_forward(d, l, rows, x, true, u);
    tr_cuda_gelu(c, act, rows * l->out, u, y);
}

static tr_product backward(tr_cuda *c, const tr_linear *l, size_t rows,
                           const void *dy, int beta, void *dx)
{
    tr_product p = {};

    p.m = rows;
    p.n = l->in;
    p.k = l->out;
    p.a = dy;
    p.a_stride = l->stride;
    p.b = tr_cuda_weight(c, l->weight);
    p.beta = beta;
    p.c = dx;
    p.c_stride = l->in;
    return p;
}

static void linear_backward_input(tr_device *d, const tr_linear *l,
                                  size_t rows, const void *dy, int beta,
                                  void *dx)
{
    tr_cuda *const c = cuda_of(d);
    const tr_product p = backward(c, l, rows, dy, beta, dx);

    tr_cuda_multiply(c, &p);
}

static void linear_gelu_backward(tr_device *d, const tr_linear *l,
                                 tr_activation act, size_t rows,
                                 const void *dy, const void *u, void *du)
{
    tr_cuda *const c = cuda_of(d);
    tr_product p = backward(c, l, rows, dy, 0, du);

    p.gelu = TR_GELU_SLOPE;
    p.u = (void *)u;
    if (act == TR_GELU_TANH && tr_cuda_fuses(c, &p)) {
        tr_cuda_multiply(c, &p);
        return;
    }
    linear_backward_input(d, l, rows, dy, 0, du);
    tr_cuda_gelu_backward(d, act, rows * l->in, u, du);
}

static void linear_backward_weight(tr_device *d, const tr_linear *l,
                                   size_t rows, const void *dy, const void *x)
{
    tr_cuda *const c = cuda_of(d);
    const int beta = l->adds;
    tr_product p = {};

    if (rows == 0 && !beta)
        d->ops->fill(d, l->weight_gradient, 0,
                     l->out * l->in * sizeof(real));
    p.m = l->out;
    p.n = l->in;
    p.k = rows;
    p.a = dy;
    p.a_turned = true;
    p.a_stride = l->stride;
    p.b = x;
    p.beta = beta;
    p.c = l->weight_gradient;
    p.c_stride = l->in;
    p.c_real = true;
    tr_cuda_multiply(c, &p);
    if (!l->bias_gradient)
        return;
    by_value(c, [&](auto v) {
        using value = decltype(v);

        tr_columns_sum(c, rows, l->out, l->stride, (const value *)dy,
                       beta, l->bias_gradient);
    });
}

void tr_cuda_linear_ops(tr_ops *ops)
{
    ops->linear_forward = linear_forward;
    ops->linear_gelu_forward = linear_gelu_forward;
    ops->linear_backward_input = linear_backward_input;
    ops->linear_gelu_backward = linear_gelu_backward;
    ops->linear_backward_weight = linear_backward_weight;
}
