/*
 * model.h - a model, its training objectives, and gradients.
 *
 * A device (ops.h) does the arithmetic.  On a CPU, results are bit-identical
 * for any number of threads, but can differ between CPU types for which
 * OpenBLAS or the compiler uses different code.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_MODEL_MODEL_H
#define TR_MODEL_MODEL_H

#include "model/config.h"
#include "model/ops.h"
#include "model/tensor.h"
#include "model/unpad.h"

/* Methods that confine attention to sequences. */
typedef enum tr_attention {
    TR_VARLEN, /* each span separately; cost is the sum of len^2 */
    TR_DENSE,  /* all L x L pairs of a pack, masked, as in the paper */
    TR_CUDNN   /* as TR_VARLEN, but computed by cuDNN on a GPU */
} tr_attention;

typedef struct tr_model tr_model;

/*
 * Creates a model.  Weights are drawn from a normal distribution, truncated at
 * two standard deviations; biases are 0, gains 1.  The
 * weights depend on the seed alone.  Returns NULL if out of memory or if the
 * config is invalid.  The device must outlive the model.
 */
tr_model *tr_model_open(tr_device *device, const tr_config *config,
                        uint64_t seed);
void tr_model_free(tr_model *model);

const tr_config *tr_model_config(const tr_model *model);
size_t tr_model_tensors(const tr_model *model);
const tr_tensor *tr_model_tensor(const tr_model *model, size_t i);

/*
 * Host copies of the arenas, tr_model_numbers() numbers each, valid until the
 * model is freed.  fetch() copies the weights from the device,
 * fetch_gradients() the gradients, and store() copies the weights to the
 * device.  Call them on the CPU too, where the copies are the arenas.
 */
size_t tr_model_numbers(const tr_model *model);
real *tr_model_weights(tr_model *model);
const real *tr_model_gradients(const tr_model *model);
void tr_model_fetch(tr_model *model);
void tr_model_fetch_gradients(tr_model *model);
void tr_model_store(tr_model *model);

/* Device addresses of the arenas. */
real *tr_model_device_weights(tr_model *model);
real *tr_model_device_gradients(const tr_model *model);

/*
 * Buckets of gradients, in the order in which backward completes them: the
 * heads (except the shared word embedding), each layer from the last to the
 * first, then the embedding.
 */
size_t tr_model_buckets(const tr_model *model);
tr_range tr_model_bucket(const tr_model *model, size_t i);

/*
 * Functions that are called for each bucket i: `needed` before forward queues
 * the first operation that reads the bucket's weights, `done` when backward has
 * queued all its gradients.  Either may be NULL.
 */
typedef struct tr_watch {
    void (*needed)(void *context, size_t i);
    void (*done)(void *context, size_t i);
    void *context;
} tr_watch;

void tr_model_watch(tr_model *model, const tr_watch *watch);

/* Options of a step. */
typedef struct tr_step {
    tr_attention attention;
    bool training; /* apply dropout */
    uint64_t seed; /* seed of dropout, different in every step */
    tr_rows rows; /* not TR_UNPADDED with TR_DENSE */
    /* Compute this many packs at a time, and add up their gradients; 0: all.
     * Otherwise, steps cannot be graphs. */
    uint32_t micro_batch;
    /* Keep only the input of each layer; backward computes the rest again, with
     * the same results (Chen et al., "Training Deep Nets with Sublinear Memory
     * Cost", 2016). */
    bool recompute;
} tr_step;

/*
 * Queues the forward pass of a padded batch and keeps the activations for
 * tr_model_backward().  The loss is the weighted sum of the negative
 * log-likelihoods of targets and next-sentence labels; the device's finish()
 * reports it.  Returns false if out of memory for the activations, which grow
 * to fit the largest batch.  In micro-batches, it also queues the backward
 * passes of all but the last.
 */
bool tr_model_forward(tr_model *model, const tr_batch *padded,
                      const tr_step *step);

/* The same without gradients: no tr_model_backward() may follow, and
 * tr_model_row_right() has results. */
bool tr_model_evaluate(tr_model *model, const tr_batch *padded,
                       const tr_step *step);

/* Properties that steps with similar batches share. */
typedef enum tr_graph_mode {
    TR_EXACT,   /* nothing; each step has the shape of its batch */
    TR_ROUNDED, /* shapes, because counts are rounded up (bucket_pad.h) */
    TR_GRAPHS   /* shapes and recorded launches (step_begin() in ops.h) */
} tr_graph_mode;

/*
 * Sets the mode of later steps.  With TR_GRAPHS, each forward must be
 * followed by backward, lamb() and the device's step_end(), with no other
 * operation in between.
 */
void tr_model_set_graph_mode(tr_model *model, tr_graph_mode how);

/* Queues the gradients of the last forward's loss. */
void tr_model_backward(tr_model *model);

/*
 * Copy results of the last forward, or of its last micro-batch: the encoder's
 * output (n_rows x hidden
 * values, as the device stores them), and the unweighted losses of masked
 * tokens and of sequences.  All include the entries that rounding added.
 */
void tr_model_hidden(const tr_model *model, void *values);
void tr_model_row_losses(const tr_model *model, double *mlm, double *nsp);

/* Copies, after tr_model_evaluate(), 1 for each target whose label
 * had the highest logit, otherwise 0. */
void tr_model_row_right(const tr_model *model, int32_t *right);

#endif /* TR_MODEL_MODEL_H */
