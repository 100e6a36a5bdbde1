/*
 * model.h - BERT's encoder with its two pre-training heads, and gradients.
 *
 * The model follows Devlin et al., "BERT: Pre-training of Deep Bidirectional
 * Transformers" (2018), section 3 and appendix A: a post-layer-norm encoder
 * with epsilon 1e-12 and the tanh form of GELU, a masked-LM head (dense, GELU,
 * layer norm, and a decoder with bias whose weight is the token embedding), and
 * a next-sentence head on the first row of each sequence.  In a pack, positions
 * restart with each sequence and attention is block-diagonal, as in Krell et
 * al., "Efficient Sequence Packing without Cross-contamination" (2021), section
 * 3.2.
 *
 * A device (ops.h) does the arithmetic.  On a CPU, results are bit-identical
 * for any number of threads, but can differ between CPU types for which
 * OpenBLAS or the compiler uses different code.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_MODEL_H
#define BERT_MODEL_H

#include "model/bert/config.h"
#include "model/ops.h"
#include "model/unpad.h"

/* Methods that confine attention to sequences. */
typedef enum bert_attention {
    BERT_VARLEN, /* each span separately; cost is the sum of len^2 */
    BERT_DENSE,  /* all L x L pairs of a pack, masked, as in the paper */
    BERT_CUDNN   /* as BERT_VARLEN, but computed by cuDNN on a GPU */
} bert_attention;

/* A parameter: a row-major rows x columns matrix in the arenas. */
typedef struct bert_tensor {
    char name[64]; /* as in Hugging Face's BertForPreTraining */
    uint32_t rows; /* 1 for a vector */
    uint32_t columns;
    size_t offset; /* in the arenas of parameters and gradients */
    bool decays;   /* subject to weight decay and the trust ratio */
} bert_tensor;

typedef struct bert_model bert_model;

/*
 * Creates a model.  Weights are drawn from a normal distribution with standard
 * deviation 0.02, truncated at two deviations; biases are 0, gains 1.  The
 * weights depend on the seed alone.  Returns NULL if out of memory or if the
 * config is invalid.  The device must outlive the model.
 */
bert_model *bert_model_open(tr_device *device, const bert_config *config,
                            uint64_t seed);
void bert_model_free(bert_model *model);

const bert_config *bert_model_config(const bert_model *model);
size_t bert_model_tensors(const bert_model *model);
const bert_tensor *bert_model_tensor(const bert_model *model, size_t i);

/*
 * Host copies of the arenas, bert_model_numbers() numbers each, valid until the
 * model is freed.  fetch() copies the weights from the device,
 * fetch_gradients() the gradients, and store() copies the weights to the
 * device.  Call them on the CPU too, where the copies are the arenas.
 */
size_t bert_model_numbers(const bert_model *model);
real *bert_model_weights(bert_model *model);
const real *bert_model_gradients(const bert_model *model);
void bert_model_fetch(bert_model *model);
void bert_model_fetch_gradients(bert_model *model);
void bert_model_store(bert_model *model);

/* Device addresses of the arenas. */
real *bert_model_device_weights(bert_model *model);
real *bert_model_device_gradients(const bert_model *model);

/*
 * Buckets of gradients, in the order in which backward completes them: the
 * heads (except the shared word embedding), each layer from the last to the
 * first, then the embedding.
 */
size_t bert_model_buckets(const bert_model *model);
tr_range bert_model_bucket(const bert_model *model, size_t i);

/*
 * Functions that are called for each bucket i: `needed` before forward queues
 * the first operation that reads the bucket's weights, `done` when backward has
 * queued all its gradients.  Either may be NULL.
 */
typedef struct bert_watch {
    void (*needed)(void *context, size_t i);
    void (*done)(void *context, size_t i);
    void *context;
} bert_watch;

void bert_model_watch(bert_model *model, const bert_watch *watch);

/* Options of a step. */
typedef struct bert_step {
    bert_attention attention;
    bool training; /* apply dropout */
    uint64_t seed; /* seed of dropout, different in every step */
    tr_rows rows; /* not TR_UNPADDED with BERT_DENSE */
} bert_step;

/*
 * Queues the forward pass of a padded batch and keeps the activations for
 * bert_model_backward().  The loss is the weighted sum of the negative
 * log-likelihoods of masked tokens and next-sentence labels; the device's
 * finish() reports it.  Returns false if out of memory for the activations,
 * which grow to fit the largest batch.
 */
bool bert_model_forward(bert_model *model, const tr_batch *padded,
                        const bert_step *step);

/* Properties that steps with similar batches share. */
typedef enum bert_graph_mode {
    BERT_EXACT,   /* nothing; each step has the shape of its batch */
    BERT_ROUNDED, /* shapes, because counts are rounded up (bucket_pad.h) */
    BERT_GRAPHS   /* shapes and recorded launches (step_begin() in ops.h) */
} bert_graph_mode;

/*
 * Sets the mode of later steps.  With BERT_GRAPHS, each forward must be
 * followed by backward, lamb() and the device's step_end(), with no other
 * operation in between.
 */
void bert_model_set_graph_mode(bert_model *model, bert_graph_mode how);

/* Computes the gradients of the last forward's loss. */
void bert_model_backward(bert_model *model);

/*
 * Copy results of the last forward: the encoder's output (n_rows x hidden
 * values, as the device stores them), and the unweighted losses of masked
 * tokens and of sequences.  All include the entries that rounding added.
 */
void bert_model_hidden(const bert_model *model, void *values);
void bert_model_row_losses(const bert_model *model, double *mlm, double *nsp);

#endif /* BERT_MODEL_H */
