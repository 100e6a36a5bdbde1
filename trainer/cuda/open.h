/*
 * open.h - the CUDA back end, as C sees it: a device of ops.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_CUDA_OPEN_H
#define BERT_CUDA_OPEN_H

#include "model/bert/config.h"
#include "model/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How values are stored and multiplied.  Sums, weights and gradients of
 * weights are float in all of them.
 */
typedef enum bert_precision {
    BERT_FLOAT, /* as they are, and as processors have them */
    BERT_TF32,  /* stored as float, multiplied with 10 bits of mantissa */
    BERT_BF16   /* stored as bfloat16 */
} bert_precision;

#define BERT_CUDA_HEAD_MAX 128    /* the widest head of attention */
#define BERT_CUDNN_HEAD 8         /* divides the width of cuDNN's heads */
#define BERT_CUDA_HIDDEN_MAX 8192 /* the widest row that is normalised */

struct workers;

/*
 * The nth GPU from 0, counted round where there are fewer.  NULL: `why`, of
 * `size` bytes, says why there is none.  Only the thread that opened it may call
 * for it, except for the first GPU: each thread has a GPU that its calls go to,
 * and that is the first one until the thread chooses another.
 */
bert_device *bert_cuda_open(unsigned nth, bert_precision precision, char *why,
                            size_t size);

/* Whether this build has cuDNN. */
extern const bool bert_cudnn_is_built;

/*
 * Attention of such a model is computed by cuDNN from now on; the device
 * stores bfloat16, and BERT_CUDNN_HEAD divides the width of a head.  Called
 * before a batch is staged.  False: `why` says why not.
 */
bool bert_cuda_use_cudnn(bert_device *d, const bert_config *config, char *why,
                         size_t size);

/*
 * Makes sum_begin() and sum_end() ready, for up to n_sums at a time, of
 * n_gradients numbers in all.  All ranks join at once.  False: something
 * failed, which finish() tells.
 */
bool bert_cuda_join(bert_device *d, const struct workers *w,
                    real *gradients, size_t n_gradients, size_t n_sums);

#ifdef __cplusplus
}
#endif

#endif /* BERT_CUDA_OPEN_H */
