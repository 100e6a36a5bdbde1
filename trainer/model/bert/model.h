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
 * A device does the arithmetic, see ops.h.  On processors results are the
 * same bits for any number of threads; they are others on processors for
 * which OpenBLAS or the compiler has other code.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_MODEL_H
#define BERT_MODEL_H

#include "model/bert/config.h"
#include "model/ops.h"
#include "model/unpad.h"

/* How attention is kept inside sequences. */
typedef enum bert_attention {
    BERT_VARLEN, /* each span by itself, through cu: sum of len^2 */
    BERT_DENSE,  /* all L x L pairs of a pack, then a mask: the paper's */
    BERT_CUDNN   /* as BERT_VARLEN, on a GPU by cuDNN */
} bert_attention;

/* A parameter: rows x columns numbers, row after row, in one arena. */
typedef struct bert_tensor {
    char name[64]; /* as Hugging Face's BertForPreTraining calls it */
    uint32_t rows; /* 1 for a vector */
    uint32_t columns;
    size_t offset; /* in the arenas of parameters and of gradients */
    bool decays;   /* weight decay and trust ratio apply to it */
} bert_tensor;

/* `count` numbers of the gradients, from `first` on. */
typedef struct bert_bucket {
    size_t first;
    size_t count;
} bert_bucket;

typedef struct bert_model bert_model;

/*
 * A model with weights drawn from a normal distribution of deviation 0.02,
 * cut at two deviations, biases 0, gains 1; the same for the same seed.
 * NULL if there is no memory or the shape is none.  The device has to outlive
 * the model.
 */
bert_model *bert_model_open(tr_device *device, const bert_config *config,
                            uint64_t seed);
void bert_model_free(bert_model *model);

const bert_config *bert_model_config(const bert_model *model);
size_t bert_model_tensors(const bert_model *model);
const bert_tensor *bert_model_tensor(const bert_model *model, size_t i);

/*
 * The host's view of the arenas: so many numbers each; they live as long as
 * the model.  Where the device is on the host they are the arenas themselves.
 * Else fetch() brings weights from the device, fetch_gradients() gradients, and
 * store() takes weights there; they have to be called everywhere.
 */
size_t bert_model_numbers(const bert_model *model);
real *bert_model_weights(bert_model *model);
const real *bert_model_gradients(const bert_model *model);
void bert_model_fetch(bert_model *model);
void bert_model_fetch_gradients(bert_model *model);
void bert_model_store(bert_model *model);

/* Where they are on the device. */
real *bert_model_device_weights(bert_model *model);
real *bert_model_device_gradients(const bert_model *model);

/*
 * Parts of the gradients, in the order in which backward is done with them:
 * what is behind the layers, each layer from the last to the first, and the
 * embedding, whose words the head for masked tokens has a part in.
 */
size_t bert_model_buckets(const bert_model *model);
bert_bucket bert_model_bucket(const bert_model *model, size_t i);

/*
 * From now on backward tells when it is done with bucket i: nothing that is
 * asked for later adds to it.
 */
typedef void bert_bucket_done(void *context, size_t i);
void bert_model_watch(bert_model *model, bert_bucket_done *done,
                      void *context);

/* How a step is computed. */
typedef struct bert_step {
    bert_attention attention;
    bool training; /* dropout is applied */
    uint64_t seed; /* of dropout, with the number of the step mixed in */
    tr_rows rows; /* not TR_UNPADDED with BERT_DENSE */
} bert_step;

/*
 * Asks for the losses of a padded batch and keeps what bert_model_backward
 * needs.  The loss is the sum of weight times negative logarithm of likelihood
 * over masked tokens and next-sentence labels; finish() of the device tells it.
 * False if there is no memory for the activations (they grow to the largest
 * batch).
 */
bool bert_model_forward(bert_model *model, const tr_batch *padded,
                        const bert_step *step);

/* What steps whose batches are much alike have in common. */
typedef enum bert_graph_mode {
    BERT_EXACT,   /* nothing: each is as its batch is */
    BERT_ROUNDED, /* counts, which are rounded up: bucket_pad.h */
    BERT_GRAPHS   /* and how a device does them: step_begin() in ops.h */
} bert_graph_mode;

/*
 * From now on.  With BERT_GRAPHS backward and lamb() come after each forward,
 * and then step_end() of the device; nothing else does.
 */
void bert_model_set_graph_mode(bert_model *model, bert_graph_mode how);

/* The gradients become those of the last forward's losses. */
void bert_model_backward(bert_model *model);

/*
 * Of the last forward: the encoder's output, n_rows x hidden values of the
 * device, and the losses of masked tokens and of sequences, not weighted, in
 * each case with what rounding adds.
 */
void bert_model_hidden(const bert_model *model, void *values);
void bert_model_row_losses(const bert_model *model, double *mlm, double *nsp);

#endif /* BERT_MODEL_H */
