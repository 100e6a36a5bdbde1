/*
 * ops.h - the operations that a model needs from a compute device.
 *
 * A device owns the memory for weights, gradients and activations, and provides
 * operations on it.  The model chooses the order of operations and
 * their arrays, but never reads an array.  cpu/ implements the operations for
 * CPUs, cuda/ for GPUs.
 *
 * Operations are asynchronous and run in the order in which they were queued.
 * Operations do not return errors: after a failure, all later operations do
 * nothing, and finish() reports the failure.
 *
 * Arrays are row-major.  There are three types of numbers:
 *   value  activations and their gradients, device.value_size bytes each:
 *          real, or bfloat16 on a GPU;
 *   real   weights, their gradients, and statistics of rows;
 *   index  int32_t.
 * Operations take weights as values: a device that computes in bfloat16 keeps
 * a bfloat16 copy of the weights and finds it by a weight's address.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_OPS_H
#define TR_MODEL_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/batch.h"
#include "model/config.h"
#include "model/scalar.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TR_LINE_BYTES 64 /* size of a cache line; arrays are aligned to it */
#define TR_ROW_BYTES 16  /* alignment of rows of logits, for tensor cores */
#define TR_SPARE 8       /* readable numbers after an arena, see heads_mlm.c */

typedef struct tr_device tr_device;

/* y = x W^T + b; W is out x in.  Without a bias, both its pointers are NULL. */
typedef struct tr_linear {
    size_t in;
    size_t out;
    size_t stride; /* row stride of y and dy, in values; at least `out` */
    const real *weight;
    const real *bias;
    real *weight_gradient;
    real *bias_gradient;
    bool adds; /* backward adds to the gradients instead of setting them */
} tr_linear;

/*
 * y = hat * gain + bias; hat is x normalised to mean 0 and variance 1 or, in an
 * RMS norm (Zhang and Sennrich, 2019), to mean square 1.  Without a bias, both
 * its pointers are NULL.
 */
typedef struct tr_norm {
    size_t width;
    double epsilon; /* added to the variance, or to the mean square */
    bool rms;
    const real *gain;
    const real *bias;
    real *gain_gradient;
    real *bias_gradient;
    bool adds; /* as in tr_linear */
} tr_norm;

/* Values that a forward norm keeps for norm_backward. */
typedef struct tr_norm_kept {
    void *hat;     /* rows x width values */
    real *inverse; /* [rows] 1 / standard deviation, or 1 / RMS */
} tr_norm_kept;

/* The parameters of dropout.h. */
typedef struct tr_dropout {
    uint64_t seed;
    uint32_t threshold; /* rate times 2^32; 0: no dropout */
    real scale;         /* factor applied to kept values */
    const int32_t *place; /* the staged batch's `place`, see batch.h */
    const uint64_t *shared; /* seed from step_begin(); NULL: use `seed` */
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
    size_t heads;    /* of queries */
    size_t kv_heads; /* of keys and values; divides `heads`.  Head h of the
                      * queries uses head h / (heads / kv_heads) */
    size_t width;    /* of a head */
    bool dense;  /* mask whole packs instead of processing spans */
    bool causal; /* a row attends to no later row... */
    size_t window; /* ...and only to rows at a distance below this; 0: all */
    tr_dropout dropout; /* all zeros in a model without dropout: then a device
                         * need not keep the scores */
    uint32_t site;
    void *kept;    /* attention_kept() bytes */
    void *scratch; /* attention_scratch() bytes */
} tr_attend;

/* Rotary positions (Su et al., 2021): numbers i and i + width / 2 of a head are
 * a pair, which turns by position * frequency[i]. */
typedef struct tr_rotary {
    size_t heads;  /* to turn, side by side at the row's start */
    size_t width;  /* of a head */
    size_t stride; /* of rows */
    const real *frequency; /* [width / 2] in radians per position */
} tr_rotary;

/* The loss terms, each with its own sum. */
typedef enum tr_loss { TR_LOSS_MLM, TR_LOSS_NSP, TR_LOSSES } tr_loss;

/* A tensor: `count` numbers starting at `offset` in the arenas. */
typedef struct tr_part {
    size_t offset;
    size_t count;
    /* True: subject to weight decay and the trust ratio.  False: a vector,
     * which operations read as real. */
    bool decays;
} tr_part;

/* A range of `count` numbers that starts at index `first` of the arenas. */
typedef struct tr_range {
    size_t first;
    size_t count;
} tr_range;

/*
 * Numbers `begin` to `end` - 1 of the arenas, of which a device keeps moments.
 * The first is at index `at` of the device's moments.
 */
typedef struct tr_shard {
    size_t begin;
    size_t end;
    size_t at;
} tr_shard;

/* A device's part of the moments, with one shard for each bucket. */
typedef struct tr_shards {
    tr_shard *list;
    size_t n;
    size_t numbers; /* length of the device's arrays, including padding */
} tr_shards;

/* Arguments of one step of LAMB or, without trust ratios, AdamW (lamb.h). */
typedef struct tr_lamb_args {
    bool trust; /* false: all trust ratios are 1 */
    double beta1, beta2; /* raised to the power of the step's factor */
    double correct1, correct2;
    double epsilon;
    double decay;
    double clip; /* 0: off */
    double rate;
} tr_lamb_args;

/* Results that finish() reports. */
typedef struct tr_results {
    double loss[TR_LOSSES]; /* losses of the last forward */
    double gradient; /* norm before clipping, in the last lamb() */
    /* lamb() calls since the last finish() that changed the weights, and the
     * sums of the losses of these steps. */
    uint64_t steps;
    double sum[TR_LOSSES];
    /* On a GPU, counts since the last finish(): steps launched as graphs, and
     * kernels, products and fills launched one by one. */
    uint64_t graphs, launches;
} tr_results;

typedef struct tr_ops {
    /* ---- Memory ---- */

    /*
     * Allocates memory, aligned to a cache line.  Returns NULL if an earlier
     * operation failed, or if out of memory, which does not count as a failure
     * of the device.
     */
    void *(*alloc)(tr_device *d, size_t bytes);
    void (*release)(tr_device *d, void *block);
    /* Sets all bytes to `byte`: 0 gives zeros, 0xff gives NaN. */
    void (*fill)(tr_device *d, void *to, int byte, size_t bytes);
    /* Copy to or from host memory, and wait for completion. */
    void (*upload)(tr_device *d, void *to, const void *from, size_t bytes);
    void (*download)(tr_device *d, void *to, const void *from, size_t bytes);

    /*
     * Must be called after upload() wrote weights, so that the device updates
     * any copy that it keeps in another format.
     */
    void (*weights_written)(tr_device *d, const real *weights, size_t n);

    /*
     * Copies a batch to the device.  The caller may overwrite its arrays when
     * stage() returns or, if `on_host` is set, after finish().  The result
     * omits arrays that no operation reads, and is valid until the second call
     * after this one.  Returns NULL in the same cases as alloc().
     */
    const tr_batch *(*stage)(tr_device *d, const tr_batch *batch);

    /*
     * Marks the operations up to step_end() as a step that the device may
     * replay for another batch of the same shape.  They may depend only on the
     * shape of this staged batch, on `seed` (for dropout), on the arguments of
     * lamb(), and on memory that stays allocated, and they must not wait.
     * Returns the address of the seed for tr_dropout, or NULL.  Calling
     * step_begin() and step_end() is optional.
     */
    const uint64_t *(*step_begin)(tr_device *d, const tr_batch *batch,
                                  uint64_t seed);
    void (*step_end)(tr_device *d);

    /* Waits for all operations.  Returns false if any failed; `why` has the
     * reason. */
    bool (*finish)(tr_device *d, tr_results *results, const char **why);

    /* ---- Products ---- */

    /* Adds the bias if `bias` is set; otherwise the next operation must. */
    void (*linear_forward)(tr_device *d, const tr_linear *l, size_t rows,
                           const void *x, bool bias, void *y);
    /* y = act(u) with u = x W^T + b; act is TR_GELU_TANH or TR_GELU */
    void (*linear_gelu_forward)(tr_device *d, const tr_linear *l,
                                tr_activation act, size_t rows, const void *x,
                                void *u, void *y);
    /* dx = dy W + beta dx; beta is 0 or 1 */
    void (*linear_backward_input)(tr_device *d, const tr_linear *l,
                                  size_t rows, const void *dy, int beta,
                                  void *dx);
    /* du = dy W act'(u), for a layer whose input is act(u) */
    void (*linear_gelu_backward)(tr_device *d, const tr_linear *l,
                                 tr_activation act, size_t rows,
                                 const void *dy, const void *u, void *du);
    /* Computes the weight gradient, dy^T x, and the bias gradient, the column
     * sums of dy. */
    void (*linear_backward_weight)(tr_device *d, const tr_linear *l,
                                   size_t rows, const void *dy,
                                   const void *x);

    /* ---- Row by row ---- */

    /* Replaces dy by du = dy act'(u). */
    void (*gelu_backward)(tr_device *d, tr_activation act, size_t n,
                          const void *u, void *dy);
    /* y = act(u1) u2; a row of u holds u1 and u2 side by side, `width` each. */
    void (*gate_forward)(tr_device *d, tr_activation act, size_t rows,
                         size_t width, const void *u, void *y);
    void (*gate_backward)(tr_device *d, tr_activation act, size_t rows,
                          size_t width, const void *u, const void *dy,
                          void *du);
    /* Turns heads by their rows' positions, or back if `back` is set, which is
     * also the gradient. */
    void (*rotate)(tr_device *d, const tr_rotary *r, size_t rows,
                   const int32_t *position, bool back, void *x);

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
     * and bias (see tr_norm).  dx may be dy.  With dropout, d_branch receives
     * the gradient of the branch; without, it is not written and may be
     * NULL.
     */
    void (*norm_backward)(tr_device *d, const tr_norm *norm, size_t rows,
                          const tr_norm_kept *kept, const void *dy,
                          const tr_dropout *dropout, uint32_t site,
                          void *dx, void *d_branch);

    /* sum = x + branch and y = norm(sum); sum may be x.  Without a branch, sum
     * is x, and only y is computed.  On a GPU, these and RMS norms must have no
     * bias. */
    void (*add_norm_forward)(tr_device *d, const tr_norm *norm, size_t rows,
                             const void *branch, const void *x, void *sum,
                             const tr_norm_kept *kept, void *y);
    /* dx += the gradient of the norm's input.  Computes the gradients of gain
     * and bias.  dx is not dy. */
    void (*add_norm_backward)(tr_device *d, const tr_norm *norm, size_t rows,
                              const tr_norm_kept *kept, const void *dy,
                              void *dx);

    /*
     * Normalizes `heads` heads of norm->width values in place, side by side at
     * the start of rows that are `stride` values apart.  The norm has no bias;
     * `kept` has a row for each head of each row.
     */
    void (*head_norm_forward)(tr_device *d, const tr_norm *norm, size_t rows,
                              size_t heads, size_t stride,
                              const tr_norm_kept *kept, void *x);
    /* Replaces the gradient of such norms' output by that of their input, and
     * computes the gradient of gain, which all heads share. */
    void (*head_norm_backward)(tr_device *d, const tr_norm *norm, size_t rows,
                               size_t heads, size_t stride,
                               const tr_norm_kept *kept, void *dx);

    /* y[i] = table[token[i]], and table_gradient[token[i]] += dy[i] */
    void (*lookup_forward)(tr_device *d, size_t rows, size_t width,
                           const int32_t *token, const real *table, void *y);
    void (*lookup_backward)(tr_device *d, size_t rows, size_t width,
                            const int32_t *token, const void *dy,
                            real *table_gradient);
    /* y = dropout(norm(word[token] + position[position] + type[type])) */
    void (*embed_forward)(tr_device *d, const tr_tables *tables,
                          const tr_norm *norm, const tr_batch *batch,
                          const tr_dropout *dropout, uint32_t site,
                          const tr_norm_kept *kept, void *y);
    /*
     * Computes the gradients of the norm, adds to the gradients of the tables,
     * and overwrites dy.
     */
    void (*embed_backward)(tr_device *d, const tr_tables *tables,
                           const tr_norm *norm, const tr_batch *batch,
                           const tr_dropout *dropout, uint32_t site,
                           const tr_norm_kept *kept, void *dy);

    /* ---- Attention ---- */

    /* Sizes of `kept` and `scratch` in bytes, where a->batch need not be
     * staged; SIZE_MAX if too large. */
    size_t (*attention_kept)(tr_device *d, const tr_attend *a);
    size_t (*attention_scratch)(tr_device *d, const tr_attend *a);
    /*
     * A row of `qkv` holds queries, keys and values side by side, each with its
     * heads side by side: (heads + 2 kv_heads) width values.  A row of `out`
     * has heads x width values.
     */
    void (*attention_forward)(tr_device *d, const tr_attend *a,
                              const void *qkv, void *out);
    void (*attention_backward)(tr_device *d, const tr_attend *a,
                               const void *qkv, const void *out,
                               const void *d_out, void *d_qkv);

    /* ---- Heads ---- */

    /* gather: rows[i] = x[index[i]].  scatter: x[index[i]] += rows[i]. */
    void (*gather_rows)(tr_device *d, size_t n, size_t width,
                        const int32_t *index, const void *x, void *rows);
    void (*scatter_rows)(tr_device *d, size_t n, size_t width,
                         const int32_t *index, const void *rows, void *x);
    /* Forward replaces x by tanh(x), backward replaces dy by dy (1 - y^2). */
    void (*tanh_forward)(tr_device *d, size_t n, void *x);
    void (*tanh_backward)(tr_device *d, size_t n, const void *y, void *dy);
    /* right[i] = 1 if no logit of row i exceeds the label's, otherwise 0; 0
     * also if the label is negative. */
    void (*compare_logits)(tr_device *d, size_t rows, size_t columns,
                           size_t stride, const void *x, const int32_t *label,
                           int32_t *right);
    /*
     * Sets loss[i] to the negative log-likelihood of row i's label, and
     * replaces x by the gradient of the weighted sum, which finish() reports;
     * if `more` is set, it is added to the sum of the last call.
     * A row with a negative label has loss 0 and gradient 0.  The row stride is
     * a multiple of TR_ROW_BYTES; values after `columns` are not read and are
     * set to 0.
     */
    void (*cross_entropy)(tr_device *d, tr_loss which, size_t rows,
                          size_t columns, size_t stride, void *x,
                          const int32_t *label, const real *weight,
                          double *loss, bool more);

    /* ---- Ranks, for devices that are not on the host ---- */

    /*
     * sum_begin starts to sum a bucket's gradients over all ranks; operations
     * queued after it run meanwhile.  After sum_end, lamb() uses the sums.
     * sum_end returns false on failure; some ranks then lack the sums, but
     * sum_end returns on every rank.  All ranks must start the same sums in the
     * same order, even after a failure.
     */
    void (*sum_begin)(tr_device *d, size_t bucket);
    bool (*sum_end)(tr_device *d);

    /*
     * On a device with shards, lamb() starts to send new weights to all ranks.
     * Operations queued after this call see a bucket's new weights.  It must be
     * called for every bucket between two calls of lamb().
     */
    void (*await_weights)(tr_device *d, size_t bucket);

    /* ---- The optimiser ---- */

    /*
     * Updates all tensors.  If the gradient's norm or a loss is not finite,
     * this step and all later steps until finish() change nothing and are not
     * counted in the results' `steps`.  On a device with shards, moments have
     * shards->numbers numbers, and only this device's shards of the weights,
     * and vectors, are up to date afterwards.
     */
    void (*lamb)(tr_device *d, const tr_lamb_args *step, size_t n_parts,
                 const tr_part *parts, size_t numbers, real *weights,
                 const real *gradients, real *mean, real *square);

    /* ---- The end ---- */

    /* Closes the device.  All blocks must have been released. */
    void (*close)(tr_device *d);
} tr_ops;

struct tr_device {
    const tr_ops *ops;
    size_t value_size; /* bytes */
    /* True if values are real, memory is host memory, and operations are
     * complete when they return. */
    bool on_host;
    /* True if other ranks' devices would wait forever if this device failed. */
    bool is_waited_for;
    /* Set if each rank updates a part of the weights; NULL: all of them. */
    const tr_shards *shards;
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
