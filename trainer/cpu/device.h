/*
 * device.h - the operations of ops.h on the CPU.
 *
 * Values are real.  Operations are complete when they return.  They use OpenMP
 * threads; the number of threads affects neither the division of work nor the
 * results, which are bit-identical.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CPU_DEVICE_H
#define TR_CPU_DEVICE_H

#include "cpu/rotary.h"
#include "model/ops.h"

typedef struct tr_cpu {
    tr_device device; /* first */
    tr_results results;
    bool halted;        /* true after a nonfinite loss or gradient */
    const char *failed; /* first failure, or NULL */
    int threads;        /* maximum threads; scratch has room for them */
    double (*sums)[2];  /* LAMB's sums, per block */
    size_t n_sums;
    tr_turns turns[TR_CPU_TURNS]; /* of rotary positions */
    size_t next_turns;            /* the table to replace next */
} tr_cpu;

static inline tr_cpu *tr_cpu_of(tr_device *d)
{
    return (tr_cpu *)d;
}

/*
 * Opens the CPU.  Limits the BLAS to one thread, because operations are already
 * parallel.  Returns NULL if out of memory.
 */
tr_device *tr_cpu_open(void);

/* ---- The operations, by file ---- */

void tr_cpu_linear_forward(tr_device *d, const tr_linear *l,
                           size_t rows, const void *x, bool bias, void *y);
void tr_cpu_linear_gelu_forward(tr_device *d, const tr_linear *l,
                                tr_activation act, size_t rows, const void *x,
                                void *u, void *y);
void tr_cpu_linear_backward_input(tr_device *d, const tr_linear *l,
                                  size_t rows, const void *dy, int beta,
                                  void *dx);
void tr_cpu_linear_gelu_backward(tr_device *d, const tr_linear *l,
                                 tr_activation act, size_t rows,
                                 const void *dy, const void *u, void *du);
void tr_cpu_linear_backward_weight(tr_device *d, const tr_linear *l,
                                   size_t rows, const void *dy,
                                   const void *x);

/* Used by other operations. */
void tr_cpu_gelu_forward(tr_activation act, size_t n, const real *u, real *y);
void tr_cpu_gelu_backward(tr_device *d, tr_activation act, size_t n,
                          const void *u, void *dy);
void tr_cpu_gate_forward(tr_device *d, tr_activation act, size_t rows,
                         size_t width, const void *u, void *y);
void tr_cpu_gate_backward(tr_device *d, tr_activation act, size_t rows,
                          size_t width, const void *u, const void *dy,
                          void *du);
void tr_cpu_rotate(tr_device *d, const tr_rotary *r, size_t rows,
                   const int32_t *position, bool back, void *x);

void tr_cpu_norm_forward(tr_device *d, const tr_norm *norm, size_t rows,
                         const void *x, const tr_norm_kept *kept,
                         void *y);
void tr_cpu_sum_norm_forward(tr_device *d, const tr_norm *norm,
                             size_t rows, const void *residual,
                             const void *branch, const real *bias,
                             const tr_dropout *dropout, uint32_t site,
                             const tr_norm_kept *kept, void *y);
void tr_cpu_norm_backward(tr_device *d, const tr_norm *norm,
                          size_t rows, const tr_norm_kept *kept,
                          const void *dy, const tr_dropout *dropout,
                          uint32_t site, void *dx, void *d_branch);
void tr_cpu_add_norm_forward(tr_device *d, const tr_norm *norm, size_t rows,
                             const void *branch, const void *x, void *sum,
                             const tr_norm_kept *kept, void *y);
void tr_cpu_add_norm_backward(tr_device *d, const tr_norm *norm, size_t rows,
                              const tr_norm_kept *kept, const void *dy,
                              void *dx);

void tr_cpu_head_norm_forward(tr_device *d, const tr_norm *norm, size_t rows,
                              size_t heads, size_t stride,
                              const tr_norm_kept *kept, void *x);
void tr_cpu_head_norm_backward(tr_device *d, const tr_norm *norm, size_t rows,
                               size_t heads, size_t stride,
                               const tr_norm_kept *kept, void *dx);

void tr_cpu_lookup_forward(tr_device *d, size_t rows, size_t width,
                           const int32_t *token, const real *table, void *y);
void tr_cpu_lookup_backward(tr_device *d, size_t rows, size_t width,
                            const int32_t *token, const void *dy,
                            real *table_gradient);

void tr_cpu_embed_forward(tr_device *d, const tr_tables *tables,
                          const tr_norm *norm, const tr_batch *batch,
                          const tr_dropout *dropout, uint32_t site,
                          const tr_norm_kept *kept, void *y);
void tr_cpu_embed_backward(tr_device *d, const tr_tables *tables,
                           const tr_norm *norm, const tr_batch *batch,
                           const tr_dropout *dropout, uint32_t site,
                           const tr_norm_kept *kept, void *dy);

size_t tr_cpu_attention_kept(tr_device *d, const tr_attend *a);
size_t tr_cpu_attention_scratch(tr_device *d, const tr_attend *a);
void tr_cpu_attention_forward(tr_device *d, const tr_attend *a,
                              const void *qkv, void *out);
void tr_cpu_attention_backward(tr_device *d, const tr_attend *a,
                               const void *qkv, const void *out,
                               const void *d_out, void *d_qkv);

void tr_cpu_gather_rows(tr_device *d, size_t n, size_t width,
                        const int32_t *index, const void *x, void *rows);
void tr_cpu_scatter_rows(tr_device *d, size_t n, size_t width,
                         const int32_t *index, const void *rows, void *x);
void tr_cpu_tanh_forward(tr_device *d, size_t n, void *x);
void tr_cpu_tanh_backward(tr_device *d, size_t n, const void *y, void *dy);
void tr_cpu_cross_entropy(tr_device *d, tr_loss which, size_t rows,
                          size_t columns, size_t stride, void *x,
                          const int32_t *label, const real *weight,
                          double *loss, bool more);
void tr_cpu_compare_logits(tr_device *d, size_t rows, size_t columns,
                           size_t stride, const void *x, const int32_t *label,
                           int32_t *right);

void tr_cpu_lamb(tr_device *d, const tr_lamb_args *step, size_t n_parts,
                 const tr_part *parts, size_t numbers, real *weights,
                 const real *gradients, real *mean, real *square);

#endif /* TR_CPU_DEVICE_H */
