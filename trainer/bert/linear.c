/*
 * linear.c - a layer y = x W^T + b.
 *
 * SPDX-License-Identifier: MIT
 */
#include "linear.h"

#include <string.h>

#include "columns.h"
#include "gemm.h"

/* The bias is laid down first, and the product added to it. */
static void spread_bias(const bert_linear *layer, size_t rows, real *y)
{
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++)
        memcpy(y + r * layer->out, layer->bias, layer->out * sizeof *y);
}

void bert_linear_forward(const bert_linear *layer, size_t rows,
                         const real *x, real *y)
{
    spread_bias(layer, rows, y);
    bert_multiply(&(bert_product){
        .m = rows, .n = layer->out, .k = layer->in,
        .a = x, .b = layer->weight, .b_turned = true, .beta = 1, .c = y});
}

void bert_linear_backward_input(const bert_linear *layer, size_t rows,
                                const real *dy, real beta, real *dx)
{
    bert_multiply(&(bert_product){
        .m = rows, .n = layer->in, .k = layer->out,
        .a = dy, .b = layer->weight, .beta = beta, .c = dx});
}

void bert_linear_backward_weight(const bert_linear *layer, size_t rows,
                                 const real *dy, const real *x)
{
    bert_multiply(&(bert_product){
        .m = layer->out, .n = layer->in, .k = rows,
        .a = dy, .a_turned = true, .b = x, .beta = 1,
        .c = layer->weight_gradient});
    bert_columns_add(rows, layer->out, dy, layer->bias_gradient);
}
