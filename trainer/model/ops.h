/*
 * ops.h - what a model asks of the device that it is computed on.
 *
 * A device has memory of its own, in which weights, gradients and activations
 * lie, and some twenty operations on them.  The model says which operation
 * comes after which, and on which arrays; it never looks into an array.
 * cpu/ has the operations for processors, cuda/ those for GPUs.
 *
 * Operations are asked for, not waited for: each begins after all that were
 * asked for before it.  None of them fails by itself: what fails on a device
 * is kept, all that is asked for later does nothing, and finish() tells.
 *
 * Arrays are row after row.  There are three kinds of numbers:
 *   value  activations and their gradients, device.value_size bytes each:
 *          real, or bfloat16 on a GPU;
 *   real   weights, gradients of weights, and what is kept of each row;
 *   index  int32_t.
 * Weights are used as values: a device that computes in bfloat16 has a copy
 * of them in bfloat16, and knows by the address where.
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

#define TR_LINE_BYTES 64 /* a cache line, where arrays begin */
#define TR_ROW_BYTES 16  /* rows of logits: tensor cores want that much */
#define TR_SPARE 8       /* readable numbers after an arena: heads_mlm.c */

typedef struct tr_device tr_device;

/* y = x W^T + b, W being out x in. */
typedef struct tr_linear {
    size_t in;
    size_t out;
    size_t stride; /* of y and dy: from one row to the next, out or more */
    const real *weight;
    const real *bias;
    real *weight_gradient;
    real *bias_gradient;
} tr_linear;

/* y = hat * gain + bias; hat is x with mean 0 and variance 1. */
typedef struct tr_norm {
    size_t width;
    const real *gain;
    const real *bias;
    real *gain_gradient;
    real *bias_gradient;
} tr_norm;

/* What a norm keeps for backward: rows x width values, and a real a row. */
typedef struct tr_norm_kept {
    void *hat;
    real *inverse; /* of the deviation */
} tr_norm_kept;

/* Which numbers are zeroed: see dropout.h. */
typedef struct tr_dropout {
    uint64_t seed;
    uint32_t threshold; /* of 2^32 numbers so many are zeroed; 0: none */
    real scale;         /* of those that stay */
    const int32_t *place; /* the staged batch's, see batch.h */
    const uint64_t *shared; /* step_begin()'s; NULL: `seed` is meant */
} tr_dropout;

/* The embedding: vectors of word, position and type, summed, normed. */
typedef struct tr_tables {
    const real *word;
    const real *position;
    const real *type;
    real *word_gradient;
    real *position_gradient;
    real *type_gradient;
} tr_tables;

/* Attention of a layer. */
typedef struct tr_attend {
    const tr_batch *batch; /* as staged */
    size_t hidden;
    size_t heads;
    bool dense; /* whole packs under a mask, not span by span */
    tr_dropout dropout;
    uint32_t site;
    void *kept;    /* attention_kept() bytes */
    void *scratch; /* attention_scratch() bytes */
} tr_attend;

/* Which sum a loss is added to. */
typedef enum tr_loss { TR_LOSS_MLM, TR_LOSS_NSP, TR_LOSSES } tr_loss;

/* A tensor: `count` numbers from `offset` on in the arenas. */
typedef struct tr_part {
    size_t offset;
    size_t count;
    bool decays; /* weight decay and trust ratio apply */
} tr_part;

/* A step of LAMB, see lamb.h. */
typedef struct tr_lamb_args {
    double beta1, beta2; /* to the power of the step's factor */
    double correct1, correct2;
    double epsilon;
    double decay;
    double clip; /* 0: none */
    double rate;
} tr_lamb_args;

/* What the operations came to. */
typedef struct tr_results {
    double loss[TR_LOSSES]; /* of the last forward */
    double gradient; /* norm before it was cut, of the last such step: */
    /* Since the last finish(): steps of LAMB that changed the weights, and
     * the sums of the losses in front of them. */
    uint64_t steps;
    double sum[TR_LOSSES];
    /* On a GPU, since then: steps that were launched as graphs, and kernels,
     * products and fills that were launched by themselves. */
    uint64_t graphs, launches;
} tr_results;

typedef struct tr_ops {
    /* ---- Memory ---- */

    /*
     * Starts at a cache line.  NULL: there is no such memory left, which is no
     * failure of the device, or something failed before.
     */
    void *(*alloc)(tr_device *d, size_t bytes);
    void (*release)(tr_device *d, void *block);
    /* All bytes become `byte`: 0 is 0, and 0xff NaN. */
    void (*fill)(tr_device *d, void *to, int byte, size_t bytes);
    /* From and to the host's memory; waits until it is done. */
    void (*upload)(tr_device *d, void *to, const void *from, size_t bytes);
    void (*download)(tr_device *d, void *to, const void *from, size_t bytes);

    /*
     * The weights were written by upload(): a device that has a copy of them
     * in another format makes it anew.
     */
    void (*weights_written)(tr_device *d, const real *weights, size_t n);

    /*
     * The batch where the operations can read it; the host's arrays may be
     * overwritten when this returns, or after finish() where the device has
     * on_host.  What it returns is there until the next but one is staged; it
     * lacks arrays that no operation reads.  NULL as alloc().
     */
    const tr_batch *(*stage)(tr_device *d, const tr_batch *batch);

    /*
     * A step begins, and step_end() ends it: what is asked for in between hangs
     * on nothing but the shape of this staged batch, `seed`, which dropout goes
     * by, the numbers of lamb(), and memory that is not released.  So a device
     * may do it as it did another step of the same shape.  Nothing in between
     * waits.  Gives where the seed lies, for tr_dropout, or NULL.  A step may
     * go without both.
     */
    const uint64_t *(*step_begin)(tr_device *d, const tr_batch *batch,
                                  uint64_t seed);
    void (*step_end)(tr_device *d);

    /* Waits for all of it.  False: something failed; `why` says what. */
    bool (*finish)(tr_device *d, tr_results *results, const char **why);

    /* ---- Products ---- */

    /* bias: whether it is added here; else the next operation does it. */
    void (*linear_forward)(tr_device *d, const tr_linear *l, size_t rows,
                           const void *x, bool bias, void *y);
    /* y = gelu(u), in its tanh form, with u = x W^T + b */
    void (*linear_gelu_forward)(tr_device *d, const tr_linear *l,
                                size_t rows, const void *x, void *u, void *y);
    /* dx = dy W + beta dx, beta 0 or 1 */
    void (*linear_backward_input)(tr_device *d, const tr_linear *l,
                                  size_t rows, const void *dy, int beta,
                                  void *dx);
    /* du = dy W gelu'(u), where the layer's input is gelu(u) */
    void (*linear_gelu_backward)(tr_device *d, const tr_linear *l,
                                 size_t rows, const void *dy, const void *u,
                                 void *du);
    /* The gradients become dy^T x and the sums of dy's columns. */
    void (*linear_backward_weight)(tr_device *d, const tr_linear *l,
                                   size_t rows, const void *dy,
                                   const void *x);

    /* ---- Row by row ---- */

    /* dy becomes du = dy gelu'(u). */
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
     * dx of the norm's input, and the gradients.  dx may be dy.  With
     * dropout, d_branch is what of dx goes into the branch; without, it is
     * not written and may be NULL.
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
    /* The norm's gradients, and adds to those of the tables.  Overwrites dy. */
    void (*embed_backward)(tr_device *d, const tr_tables *tables,
                           const tr_norm *norm, const tr_batch *batch,
                           const tr_dropout *dropout, uint32_t site,
                           const tr_norm_kept *kept, void *dy);

    /* ---- Attention ---- */

    /* Bytes for a batch, as the host has it; SIZE_MAX: more than can be. */
    size_t (*attention_kept)(tr_device *d, const tr_batch *batch,
                             size_t hidden, size_t heads, bool dense);
    size_t (*attention_scratch)(tr_device *d, const tr_batch *batch,
                                size_t hidden, size_t heads, bool dense);
    /*
     * qkv: n_rows x 3 hidden, queries, keys and values side by side, in each
     * of which the heads lie side by side; out: n_rows x hidden.
     */
    void (*attention_forward)(tr_device *d, const tr_attend *a,
                              const void *qkv, void *out);
    void (*attention_backward)(tr_device *d, const tr_attend *a,
                               const void *qkv, const void *out,
                               const void *d_out, void *d_qkv);

    /* ---- Heads ---- */

    /* rows[i] = x[index[i]], and its reverse, x[index[i]] += rows[i]. */
    void (*gather_rows)(tr_device *d, size_t n, size_t width,
                        const int32_t *index, const void *x, void *rows);
    void (*scatter_rows)(tr_device *d, size_t n, size_t width,
                         const int32_t *index, const void *rows, void *x);
    /* x = tanh(x); dy becomes dy (1 - y^2) */
    void (*tanh_forward)(tr_device *d, size_t n, void *x);
    void (*tanh_backward)(tr_device *d, size_t n, const void *y, void *dy);
    /*
     * The negative logarithm of the likelihood of each row's label goes to
     * loss, and the sum of weight times it is the loss that finish() tells
     * of; x becomes the gradient of that sum.  A row with a label below 0 has
     * a loss and gradients of 0.  Rows of x lie `stride` values apart, which
     * are a multiple of TR_ROW_BYTES; those behind `columns` are not read,
     * and become 0.
     */
    void (*cross_entropy)(tr_device *d, tr_loss which, size_t rows,
                          size_t columns, size_t stride, void *x,
                          const int32_t *label, const real *weight,
                          double *loss);

    /* ---- Ranks, where the device is not on the host ---- */

    /*
     * Begins to sum x[i] over all ranks, in place, while what is asked for
     * next goes on; sum_end(): what is asked for from now on has the sums of
     * all that were begun.  False: something failed; then some ranks have no
     * sums, but all return.  All ranks ask for the same sums in the same
     * order, also where something has failed.
     */
    void (*sum_begin)(tr_device *d, real *x, size_t n);
    bool (*sum_end)(tr_device *d);

    /* ---- The optimiser ---- */

    /*
     * One step over all tensors.  Where the norm of the gradient or one of
     * the losses is not finite, nothing is changed, now and in all later
     * steps up to finish(), whose `steps` tells.
     */
    void (*lamb)(tr_device *d, const tr_lamb_args *step, size_t n_parts,
                 const tr_part *parts, size_t numbers, real *weights,
                 const real *gradients, real *mean, real *square);

    /* ---- The end ---- */

    /* Its blocks were released before. */
    void (*close)(tr_device *d);
} tr_ops;

struct tr_device {
    const tr_ops *ops;
    size_t value_size; /* bytes */
    /* Values are real, memory is the host's, and an operation is done when it
     * returns. */
    bool on_host;
    /* Those of other ranks wait for it: when it fails, they do for ever. */
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
