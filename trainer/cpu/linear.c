/*
 * linear.c - a layer y = x W^T + b.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/device.h"

#include <string.h>

#include "cpu/columns.h"
#include "cpu/gemm.h"

/* Fills y with the bias, to which the product is then added. */
static void spread_bias(const tr_linear *l, size_t rows, real *y)
{
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++)
        memcpy(y + r * l->stride, l->bias, l->out * sizeof *y);
}

void tr_cpu_linear_forward(tr_device *d, const tr_linear *l,
                           size_t rows, const void *x, bool bias, void *y)
{
    (void)d;
    bias = bias && l->bias;
    if (bias)
        spread_bias(l, rows, y);
    tr_multiply(&(tr_product){
                .m = rows, .n = l->out, .k = l->in,
                .a = x, .a_stride = l->in, .b = l->weight, .b_turned = true,
                .beta = bias, .c = y, .c_stride = l->stride});
}

void tr_cpu_linear_gelu_forward(tr_device *d, const tr_linear *l,
                                tr_activation act, size_t rows, const void *x,
                                void *u, void *y)
{
    tr_cpu_linear_forward(d, l, rows, x, true, u);
    tr_cpu_gelu_forward(act, rows * l->out, u, y);
}

void tr_cpu_linear_backward_input(tr_device *d, const tr_linear *l,
                                  size_t rows, const void *dy, int beta,
                                  void *dx)
{
    (void)d;
    tr_multiply(&(tr_product){.m = rows,
                .n = l->in,
                .k = l->out,
                .a = dy,
                .a_stride = l->stride,
                .b = l->weight,
                .beta = (real)beta,
                .c = dx,
                .c_stride = l->in});
}

void tr_cpu_linear_gelu_backward(tr_device *d, const tr_linear *l,
                                 tr_activation act, size_t rows,
                                 const void *dy, const void *u, void *du)
{
    tr_cpu_linear_backward_input(d, l, rows, dy, 0, du);
    tr_cpu_gelu_backward(d, act, rows * l->in, u, du);
}

void tr_cpu_linear_backward_weight(tr_device *d, const tr_linear *l,
                                   size_t rows, const void *dy,
                                   const void *x)
{
    (void)d;
    if (l->bias_gradient)
        tr_columns_sum(rows, l->out, l->stride, dy, l->adds,
                       l->bias_gradient);
    if (rows == 0) { /* some BLAS libraries then leave it unset */
        if (!l->adds)
            memset(l->weight_gradient, 0, l->out * l->in * sizeof(real));
        return;
    }
    tr_multiply(&(tr_product){
                .m = l->out, .n = l->in, .k = rows,
                .a = dy, .a_turned = true, .a_stride = l->stride, .b = x,
                .beta = l->adds,
                .c = l->weight_gradient, .c_stride = l->in});
}
