/*
 * open.h - the CUDA back end, as C sees it: a device of ops.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_CUDA_OPEN_H
#define BERT_CUDA_OPEN_H

#include "ops.h"

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
#define BERT_CUDA_HIDDEN_MAX 8192 /* the widest row that is normalised */

/* The first GPU.  NULL: `why`, of `size` bytes, says why there is none. */
bert_device *bert_cuda_open(bert_precision precision, char *why, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* BERT_CUDA_OPEN_H */
