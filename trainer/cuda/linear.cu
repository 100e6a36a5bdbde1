/*
 * linear.cu - a layer y = x W^T + b, and its gradients, as products.
 *
 * Where cuBLASLt has such products, GELU or its slope is applied as a product
 * is stored; else gelu.cu does it.  Biases' gradients are left to columns.cu:
 * cuBLASLt's epilogue for them is a kernel of its own, and on an H200 takes 15 %
 * longer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/columns.h"
#include "cuda/product.h"

static bert_product forward(bert_cuda *c, const bert_linear *l, size_t rows,
                            const void *x, bool bias, void *y)
{
    bert_product p = {};

    p.m = rows;
    p.n = l->out;
    p.k = l->in;
    p.a = x;
    p.a_stride = l->in;
    p.b = bert_cuda_weight(c, l->weight);
    p.b_turned = true;
    p.bias = bias ? bert_cuda_weight(c, l->bias) : NULL;
    p.c = y;
    p.c_stride = l->stride;
    return p;
}

static void linear_forward(bert_device *d, const bert_linear *l, size_t rows,
                           const void *x, bool bias, void *y)
{
    bert_cuda *const c = cuda_of(d);
    const bert_product p = forward(c, l, rows, x, bias, y);

    bert_cuda_multiply(c, &p);
}

static void linear_gelu_forward(bert_device *d, const bert_linear *l,
                                size_t rows, const void *x, void *u, void *y)
{
    bert_cuda *const c = cuda_of(d);
    bert_product p = forward(c, l, rows, x, true, y);

    p.gelu = BERT_GELU;
    p.u = u;
    if (bert_cuda_fuses(c, &p)) {
        bert_cuda_multiply(c, &p);
        return;
    }
    linear_forward(d, l, rows, x, true, u);
    bert_cuda_gelu(c, rows * l->out, u, y);
}

static bert_product backward(bert_cuda *c, const bert_linear *l, size_t rows,
                             const void *dy, int beta, void *dx)
{
    bert_product p = {};

    p.m = rows;
    p.n = l->in;
    p.k = l->out;
    p.a = dy;
    p.a_stride = l->stride;
    p.b = bert_cuda_weight(c, l->weight);
    p.beta = beta;
    p.c = dx;
    p.c_stride = l->in;
    return p;
}

static void linear_backward_input(bert_device *d, const bert_linear *l,
                                  size_t rows, const void *dy, int beta,
                                  void *dx)
{
    bert_cuda *const c = cuda_of(d);
    const bert_product p = backward(c, l, rows, dy, beta, dx);

    bert_cuda_multiply(c, &p);
}

static void linear_gelu_backward(bert_device *d, const bert_linear *l,
                                 size_t rows, const void *dy, const void *u,
                                 void *du)
{
    bert_cuda *const c = cuda_of(d);
    bert_product p = backward(c, l, rows, dy, 0, du);

    p.gelu = BERT_GELU_SLOPE;
    p.u = (void *)u;
    if (bert_cuda_fuses(c, &p)) {
        bert_cuda_multiply(c, &p);
        return;
    }
    linear_backward_input(d, l, rows, dy, 0, du);
    bert_cuda_gelu_backward(d, rows * l->in, u, du);
}

static void linear_backward_weight(bert_device *d, const bert_linear *l,
                                   size_t rows, const void *dy, const void *x)
{
    bert_cuda *const c = cuda_of(d);
    bert_product p = {};

    if (rows == 0)
        d->ops->fill(d, l->weight_gradient, 0,
                     l->out * l->in * sizeof(real));
    p.m = l->out;
    p.n = l->in;
    p.k = rows;
    p.a = dy;
    p.a_turned = true;
    p.a_stride = l->stride;
    p.b = x;
    p.c = l->weight_gradient;
    p.c_stride = l->in;
    p.c_real = true;
    bert_cuda_multiply(c, &p);
    by_value(c, [&](auto v) {
        using value = decltype(v);

        bert_columns_sum(c, rows, l->out, l->stride, (const value *)dy,
                         l->bias_gradient);
    });
}

void bert_cuda_linear_ops(bert_ops *ops)
{
    ops->linear_forward = linear_forward;
    ops->linear_gelu_forward = linear_gelu_forward;
    ops->linear_backward_input = linear_backward_input;
    ops->linear_gelu_backward = linear_gelu_backward;
    ops->linear_backward_weight = linear_backward_weight;
}
