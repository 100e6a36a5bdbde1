/*
 * model.h - BERT's encoder with its two pre-training heads, and gradients.
 *
 * Post-layer-norm encoder, layer norm's epsilon 1e-12, GELU in its tanh
 * form, masked-LM head (dense, GELU, layer norm, decoder tied to the token
 * embedding, bias), next-sentence head on the first row of each sequence:
 * Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers"
 * (2018), section 3 and appendix A.  Positions restart and attention is
 * block-diagonal in packs: Krell et al., "Efficient Sequence Packing without
 * Cross-contamination" (2021), section 3.2.
 *
 * A device does the arithmetic, see ops.h.  On a CPU, results are bit-identical
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

/* How attention is confined to sequences. */
typedef enum bert_attention {
    BERT_VARLEN, /* each span separately, by cu: cost is the sum of len^2 */
    BERT_DENSE,  /* all L x L pairs of a pack, then a mask, as in the paper */
    BERT_CUDNN   /* as BERT_VARLEN, by cuDNN on a GPU */
} bert_attention;

/* A parameter: a row-major rows x columns matrix in the arenas. */
typedef struct bert_tensor {
    char name[64]; /* as in Hugging Face's BertForPreTraining */
    uint32_t rows; /* 1 for a vector */
    uint32_t columns;
    size_t offset; /* in the arenas of parameters and gradients */
    bool decays;   /* weight decay and trust ratio apply to it */
} bert_tensor;

/* `count` gradients starting at `first`. */
typedef struct bert_bucket {
    size_t first;
    size_t count;
} bert_bucket;

typedef struct bert_model bert_model;

/*
 * Creates a model.  Weights are drawn from a normal distribution of deviation
 * 0.02, truncated at two deviations; biases are 0, gains 1.  They depend on the
 * seed alone.  NULL: out of memory, or the config is invalid.  The device must
 * outlive the model.
 */
bert_model *bert_model_open(tr_device *device, const bert_config *config,
                            uint64_t seed);
void bert_model_free(bert_model *model);

const bert_config *bert_model_config(const bert_model *model);
size_t bert_model_tensors(const bert_model *model);
const bert_tensor *bert_model_tensor(const bert_model *model, size_t i);

/*
 * The host's view of the arenas, bert_model_numbers() numbers each, valid as
 * long as the model.  On the host it is the arenas themselves.  Otherwise
 * fetch() copies weights from the device, fetch_gradients() copies gradients,
 * and store() copies weights to the device; call them for every device.
 */
size_t bert_model_numbers(const bert_model *model);
real *bert_model_weights(bert_model *model);
const real *bert_model_gradients(const bert_model *model);
void bert_model_fetch(bert_model *model);
void bert_model_fetch_gradients(bert_model *model);
void bert_model_store(bert_model *model);

/* The arenas on the device. */
real *bert_model_device_weights(bert_model *model);
real *bert_model_device_gradients(const bert_model *model);

/*
 * Buckets of gradients in the order in which backward completes them: the heads
 * (except the shared word embedding), each layer from the last to the first,
 * and the embedding.
 */
size_t bert_model_buckets(const bert_model *model);
bert_bucket bert_model_bucket(const bert_model *model, size_t i);

/* Has `done` called in backward when nothing more is added to bucket i. */
typedef void bert_bucket_done(void *context, size_t i);
void bert_model_watch(bert_model *model, bert_bucket_done *done,
                      void *context);

/* Options of a step. */
typedef struct bert_step {
    bert_attention attention;
    bool training; /* apply dropout */
    uint64_t seed; /* of dropout, with the step number mixed in */
    tr_rows rows; /* not TR_UNPADDED with BERT_DENSE */
} bert_step;

/*
 * Queues the forward pass of a padded batch and keeps what bert_model_backward
 * needs.  The loss is the weighted sum of negative log-likelihoods of masked
 * tokens and next-sentence labels; the device's finish() reports it.  False: no
 * memory for the activations, which grow to the largest batch.
 */
bool bert_model_forward(bert_model *model, const tr_batch *padded,
                        const bert_step *step);

/* Reuse between steps with similar batches. */
typedef enum bert_graph_mode {
    BERT_EXACT,   /* nothing; each has its batch's shape */
    BERT_ROUNDED, /* shapes, since counts are rounded up: bucket_pad.h */
    BERT_GRAPHS   /* also recorded launches: step_begin() in ops.h */
} bert_graph_mode;

/*
 * Applies to later steps.  With BERT_GRAPHS each forward must be followed by
 * backward, lamb() and the device's step_end(), with nothing else in between.
 */
void bert_model_set_graph_mode(bert_model *model, bert_graph_mode how);

/* Sets the gradients to those of the last forward's losses. */
void bert_model_backward(bert_model *model);

/*
 * Results of the last forward: the encoder's output, n_rows x hidden values of
 * the device, and the unweighted losses of masked tokens and of sequences.  All
 * include entries that were added by rounding.
 */
void bert_model_hidden(const bert_model *model, void *values);
void bert_model_row_losses(const bert_model *model, double *mlm, double *nsp);

#endif /* BERT_MODEL_H */
