/*
 * ops.h - the operations that a model needs from a compute device.
 *
 * A device has its own memory for weights, gradients and activations, and some
 * twenty operations on it.  The model decides the order of operations and their
 * arrays; it never reads an array.  cpu/ implements the operations for
 * processors, cuda/ for GPUs.
 *
 * Operations are asynchronous and run in the order in which they were queued.
 * None returns an error: after a failure all later operations do nothing, and
 * finish() reports it.
 *
 * Arrays are row-major.  There are three types of numbers:
 *   value  activations and their gradients, device.value_size bytes each:
 *          real, or bfloat16 on a GPU;
 *   real   weights, their gradients, and statistics of rows;
 *   index  int32_t.
 * Operations take weights as values: a device that computes in bfloat16 keeps
 * a bfloat16 copy and finds it by the address of the weight.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_OPS_H
#define TR_MODEL_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/batch.h"
#include "model/scalar.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TR_LINE_BYTES 64 /* cache line; arrays start at a multiple */
#define TR_ROW_BYTES 16  /* row alignment of logits, for tensor cores */
#define TR_SPARE 8       /* readable numbers after an arena: heads_mlm.c */

typedef struct tr_device tr_device;

/* y = x W^T + b; W is out x in. */
typedef struct tr_linear {
    size_t in;
    size_t out;
    size_t stride; /* row stride of y and dy, in values; at least `out` */
    const real *weight;
    const real *bias;
    real *weight_gradient;
    real *bias_gradient;
} tr_linear;

/* y = hat * gain + bias; hat is x normalised to mean 0 and variance 1. */
typedef struct tr_norm {
    size_t width;
    const real *gain;
    const real *bias;
    real *gain_gradient;
    real *bias_gradient;
} tr_norm;

/* What norm_forward keeps for backward. */
typedef struct tr_norm_kept {
    void *hat;     /* rows x width values */
    real *inverse; /* [rows] 1 / deviation */
} tr_norm_kept;

/* The parameters of dropout.h. */
typedef struct tr_dropout {
    uint64_t seed;
    uint32_t threshold; /* number of dropped draws out of 2^32; 0: none */
    real scale;         /* factor of kept values */
    const int32_t *place; /* the staged batch's, see batch.h */
    const uint64_t *shared; /* from step_begin(); NULL: use `seed` */
} tr_dropout;

/* The embedding tables: word, position and type vectors are summed. */
typedef struct tr_tables {
    const real *word;
    const real *position;
    const real *type;
    real *word_gradient;
    real *position_gradient;
    real *type_gradient;
} tr_tables;

/* Attention of one layer. */
typedef struct tr_attend {
    const tr_batch *batch; /* staged */
    size_t hidden;
    size_t heads;
    bool dense; /* whole packs with a mask, not span by span */
    tr_dropout dropout;
    uint32_t site;
    void *kept;    /* attention_kept() bytes */
    void *scratch; /* attention_scratch() bytes */
} tr_attend;

/* The sum that a loss is added to. */
typedef enum tr_loss { TR_LOSS_MLM, TR_LOSS_NSP, TR_LOSSES } tr_loss;

/* A tensor: `count` numbers starting at `offset` in the arenas. */
typedef struct tr_part {
    size_t offset;
    size_t count;
    bool decays; /* weight decay and trust ratio apply */
} tr_part;

/* Arguments of one LAMB step, see lamb.h. */
typedef struct tr_lamb_args {
    double beta1, beta2; /* raised to the power of the step's factor */
    double correct1, correct2;
    double epsilon;
    double decay;
    double clip; /* 0: off */
    double rate;
} tr_lamb_args;

/* Results, as of finish(). */
typedef struct tr_results {
    double loss[TR_LOSSES]; /* of the last forward */
    double gradient; /* norm before clipping, in the last lamb() */
    /* Since the last finish(): lamb() calls that changed the weights, and the
     * sums of the losses before them. */
    uint64_t steps;
    double sum[TR_LOSSES];
    /* On a GPU, since the last finish(): steps launched as graphs, and kernels,
     * products and fills launched one by one. */
    uint64_t graphs, launches;
} tr_results;

typedef struct tr_ops {
    /* ---- Memory ---- */

    /*
     * Aligned to a cache line.  NULL: out of memory, which is not a failure of
     * the device, or an earlier operation failed.
     */
    void *(*alloc)(tr_device *d, size_t bytes);
    void (*release)(tr_device *d, void *block);
    /* Sets all bytes to `byte`: 0 gives zeros, 0xff gives NaN. */
    void (*fill)(tr_device *d, void *to, int byte, size_t bytes);
    /* Copies from or to host memory, and waits until it is done. */
    void (*upload)(tr_device *d, void *to, const void *from, size_t bytes);
    void (*download)(tr_device *d, void *to, const void *from, size_t bytes);

    /*
     * Reports that upload() wrote the weights, so that the device refreshes a
     * copy that it has in another format.
     */
    void (*weights_written)(tr_device *d, const real *weights, size_t n);

    /*
     * Copies the batch to the device.  The host's arrays may be overwritten
     * once this returns, with on_host only after finish().  The result omits
     * arrays that no operation reads.  It is valid until the call after next.
     * NULL as with alloc().
     */
    const tr_batch *(*stage)(tr_device *d, const tr_batch *batch);

    /*
     * Marks the operations of a step, up to step_end().  They may depend only
     * on the shape of this staged batch, on `seed` (for dropout), on the values
     * that lamb() supplies, and on memory that stays allocated, so that a
     * device can replay an earlier step of the same shape.  None of them may
     * wait.  Returns the address of the seed for tr_dropout, or NULL.
     * Optional: a step works without step_begin() and step_end(), too.
     */
    const uint64_t *(*step_begin)(tr_device *d, const tr_batch *batch,
                                  uint64_t seed);
    void (*step_end)(tr_device *d);

    /* Waits for all operations.  False: one failed; `why` has the reason. */
    bool (*finish)(tr_device *d, tr_results *results, const char **why);

    /* ---- Products ---- */

    /* bias: add the bias here; otherwise the next operation adds it. */
    void (*linear_forward)(tr_device *d, const tr_linear *l, size_t rows,
                           const void *x, bool bias, void *y);
    /* y = gelu(u), tanh form, with u = x W^T + b */
    void (*linear_gelu_forward)(tr_device *d, const tr_linear *l,
                                size_t rows, const void *x, void *u, void *y);
    /* dx = dy W + beta dx; beta is 0 or 1 */
    void (*linear_backward_input)(tr_device *d, const tr_linear *l,
                                  size_t rows, const void *dy, int beta,
                                  void *dx);
    /* du = dy W gelu'(u), for a layer whose input is gelu(u) */
    void (*linear_gelu_backward)(tr_device *d, const tr_linear *l,
                                 size_t rows, const void *dy, const void *u,
                                 void *du);
    /* Sets the gradients to dy^T x and to the column sums of dy. */
    void (*linear_backward_weight)(tr_device *d, const tr_linear *l,
                                   size_t rows, const void *dy,
                                   const void *x);

    /* ---- Row by row ---- */

    /* dy is replaced by du = dy gelu'(u). */
    void (*gelu_backward)(tr_device *d, size_t n, const void *u, void *dy);

    /* y = norm(x) */
    void (*norm_forward)(tr_device *d, const tr_norm *norm, size_t rows,
                         const void *x, const tr_norm_kept *kept, void *y);
    /* y = norm(residual + dropout(branch + bias)) */
    void (*sum_norm_forward)(tr_device *d, const tr_norm *norm,
                             size_t rows, const void *residual,
                             const void *branch, const real *bias,
                             const tr_dropout *dropout, uint32_t site,
                             const tr_norm_kept *kept, void *y);
    /*
     * Computes dx, the gradient of the norm's input, and the gradients of gain
     * and bias.  dx may be dy.  With dropout, d_branch is the branch's share
     * of dx; without, it is not written and may be NULL.
     */
    void (*norm_backward)(tr_device *d, const tr_norm *norm, size_t rows,
                          const tr_norm_kept *kept, const void *dy,
                          const tr_dropout *dropout, uint32_t site,
                          void *dx, void *d_branch);

    /* y = dropout(norm(word[token] + position[position] + type[type])) */
    void (*embed_forward)(tr_device *d, const tr_tables *tables,
                          const tr_norm *norm, const tr_batch *batch,
                          const tr_dropout *dropout, uint32_t site,
                          const tr_norm_kept *kept, void *y);
    /*
     * Overwrites the norm's gradients, and adds to those of the tables.
     * Overwrites dy.
     */
    void (*embed_backward)(tr_device *d, const tr_tables *tables,
                           const tr_norm *norm, const tr_batch *batch,
                           const tr_dropout *dropout, uint32_t site,
                           const tr_norm_kept *kept, void *dy);

    /* ---- Attention ---- */

    /* Bytes for an unstaged batch; SIZE_MAX: too large. */
    size_t (*attention_kept)(tr_device *d, const tr_batch *batch,
                             size_t hidden, size_t heads, bool dense);
    size_t (*attention_scratch)(tr_device *d, const tr_batch *batch,
                                size_t hidden, size_t heads, bool dense);
    /*
     * qkv: n_rows x 3 hidden: queries, keys and values side by side, and the
     * heads side by side in each.  out: n_rows x hidden.
     */
    void (*attention_forward)(tr_device *d, const tr_attend *a,
                              const void *qkv, void *out);
    void (*attention_backward)(tr_device *d, const tr_attend *a,
                               const void *qkv, const void *out,
                               const void *d_out, void *d_qkv);

    /* ---- Heads ---- */

    /* rows[i] = x[index[i]], and the reverse, x[index[i]] += rows[i]. */
    void (*gather_rows)(tr_device *d, size_t n, size_t width,
                        const int32_t *index, const void *x, void *rows);
    void (*scatter_rows)(tr_device *d, size_t n, size_t width,
                         const int32_t *index, const void *rows, void *x);
    /* x = tanh(x); dy is replaced by dy (1 - y^2) */
    void (*tanh_forward)(tr_device *d, size_t n, void *x);
    void (*tanh_backward)(tr_device *d, size_t n, const void *y, void *dy);
    /*
     * loss[i] is the negative log-likelihood of row i's label; finish() reports
     * the weighted sum.  x is replaced by the gradient of that sum.  A row with
     * a negative label has a loss and gradients of 0.  The row stride is a
     * multiple of TR_ROW_BYTES; values after `columns` are not read, and are
     * set to 0.
     */
    void (*cross_entropy)(tr_device *d, tr_loss which, size_t rows,
                          size_t columns, size_t stride, void *x,
                          const int32_t *label, const real *weight,
                          double *loss);

    /* ---- Ranks, for devices that are not on the host ---- */

    /*
     * sum_begin starts to sum x[i] over all ranks, in place, while operations
     * queued next continue; operations queued after sum_end see all sums.
     * False: something failed; some ranks then have no sums, but all return.
     * All ranks start the same sums in the same order, even after a failure.
     */
    void (*sum_begin)(tr_device *d, real *x, size_t n);
    bool (*sum_end)(tr_device *d);

    /* ---- The optimiser ---- */

    /*
     * One step over all tensors.  If the gradient's norm or a loss is not
     * finite, this step and all later ones until finish() change nothing; the
     * results' `steps` does not count them.
     */
    void (*lamb)(tr_device *d, const tr_lamb_args *step, size_t n_parts,
                 const tr_part *parts, size_t numbers, real *weights,
                 const real *gradients, real *mean, real *square);

    /* ---- The end ---- */

    /* All blocks must be released. */
    void (*close)(tr_device *d);
} tr_ops;

struct tr_device {
    const tr_ops *ops;
    size_t value_size; /* bytes */
    /* Values are real, memory is the host's, and operations are complete when
     * they return. */
    bool on_host;
    /* Other ranks' devices wait for this one; if it fails, they hang. */
    bool is_waited_for;
};

static inline void tr_device_close(tr_device *device)
{
    if (device)
        device->ops->close(device);
}

#ifdef __cplusplus
}
#endif

#endif /* TR_MODEL_OPS_H */
