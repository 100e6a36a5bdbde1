/*
 * device.h - the operations of ops.h on processors.
 *
 * Values are real.  All is done when an operation returns.  Threads are
 * OpenMP's; work is cut into pieces whatever their number, so results are the
 * same bits for any number of threads.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_CPU_DEVICE_H
#define BERT_CPU_DEVICE_H

#include "model/ops.h"

typedef struct bert_cpu {
    bert_device device; /* first */
    bert_results results;
    bool halted;        /* a loss or a gradient was not finite */
    const char *failed; /* NULL: nothing did */
    int threads;        /* attention's scratch has room for */
    double (*sums)[2];  /* LAMB's, of blocks */
    size_t n_sums;
} bert_cpu;

static inline bert_cpu *bert_cpu_of(bert_device *d)
{
    return (bert_cpu *)d;
}

/*
 * The processors of this machine.  Tells the BLAS to use one thread, since we
 * share the work out ourselves.  NULL: no memory.
 */
bert_device *bert_cpu_open(void);

/* ---- The operations, by file ---- */

void bert_cpu_linear_forward(bert_device *d, const bert_linear *l,
                             size_t rows, const void *x, bool bias, void *y);
void bert_cpu_linear_gelu_forward(bert_device *d, const bert_linear *l,
                                  size_t rows, const void *x, void *u,
                                  void *y);
void bert_cpu_linear_backward_input(bert_device *d, const bert_linear *l,
                                    size_t rows, const void *dy, int beta,
                                    void *dx);
void bert_cpu_linear_gelu_backward(bert_device *d, const bert_linear *l,
                                   size_t rows, const void *dy, const void *u,
                                   void *du);
void bert_cpu_linear_backward_weight(bert_device *d, const bert_linear *l,
                                     size_t rows, const void *dy,
                                     const void *x);

/* Not an operation by itself. */
void bert_cpu_gelu_forward(size_t n, const real *u, real *y);
void bert_cpu_gelu_backward(bert_device *d, size_t n, const void *u,
                            void *dy);

void bert_cpu_norm_forward(bert_device *d, const bert_norm *norm, size_t rows,
                           const void *x, const bert_norm_kept *kept,
                           void *y);
void bert_cpu_sum_norm_forward(bert_device *d, const bert_norm *norm,
                               size_t rows, const void *residual,
                               const void *branch, const real *bias,
                               const bert_dropout *dropout, uint32_t site,
                               const bert_norm_kept *kept, void *y);
void bert_cpu_norm_backward(bert_device *d, const bert_norm *norm,
                            size_t rows, const bert_norm_kept *kept,
                            const void *dy, const bert_dropout *dropout,
                            uint32_t site, void *dx, void *d_branch);

void bert_cpu_embed_forward(bert_device *d, const bert_tables *tables,
                            const bert_norm *norm, const bert_batch *batch,
                            const bert_dropout *dropout, uint32_t site,
                            const bert_norm_kept *kept, void *y);
void bert_cpu_embed_backward(bert_device *d, const bert_tables *tables,
                             const bert_norm *norm, const bert_batch *batch,
                             const bert_dropout *dropout, uint32_t site,
                             const bert_norm_kept *kept, void *dy);

size_t bert_cpu_attention_kept(bert_device *d, const bert_batch *batch,
                               size_t hidden, size_t heads, bool dense);
size_t bert_cpu_attention_scratch(bert_device *d, const bert_batch *batch,
                                  size_t hidden, size_t heads, bool dense);
void bert_cpu_attention_forward(bert_device *d, const bert_attend *a,
                                const void *qkv, void *out);
void bert_cpu_attention_backward(bert_device *d, const bert_attend *a,
                                 const void *qkv, const void *out,
                                 const void *d_out, void *d_qkv);

void bert_cpu_gather_rows(bert_device *d, size_t n, size_t width,
                          const int32_t *index, const void *x, void *rows);
void bert_cpu_scatter_rows(bert_device *d, size_t n, size_t width,
                           const int32_t *index, const void *rows, void *x);
void bert_cpu_tanh_forward(bert_device *d, size_t n, void *x);
void bert_cpu_tanh_backward(bert_device *d, size_t n, const void *y,
                            void *dy);
void bert_cpu_cross_entropy(bert_device *d, bert_loss which, size_t rows,
                            size_t columns, size_t stride, void *x,
                            const int32_t *label, const real *weight,
                            double *loss);

void bert_cpu_lamb(bert_device *d, const bert_lamb_step *step, size_t n_parts,
                   const bert_part *parts, size_t numbers, real *weights,
                   const real *gradients, real *mean, real *square);

#endif /* BERT_CPU_DEVICE_H */
