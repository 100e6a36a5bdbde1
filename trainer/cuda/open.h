/*
 * open.h - the CUDA back end, as C sees it: a device of ops.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_OPEN_H
#define TR_CUDA_OPEN_H

#include "model/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How values are stored and multiplied.  Sums, weights and gradients of
 * weights are float in all of them.
 */
typedef enum tr_precision {
    TR_FLOAT, /* as they are, and as processors have them */
    TR_TF32,  /* stored as float, multiplied with 10 bits of mantissa */
    TR_BF16   /* stored as bfloat16 */
} tr_precision;

#define TR_CUDA_HEAD_MAX 128    /* the widest head of attention */
#define TR_CUDNN_HEAD 8         /* divides the width of cuDNN's heads */
#define TR_CUDA_HIDDEN_MAX 8192 /* the widest row that is normalised */

struct tr_workers;

/*
 * Opens GPU `nth`, modulo the number of GPUs.  NULL: `why`, of `size` bytes,
 * says why not.  Only the thread that opened it may use it, except for GPU 0:
 * each thread has a current GPU, which is GPU 0 until it chooses another.
 */
tr_device *tr_cuda_open(unsigned nth, tr_precision precision, char *why,
                        size_t size);

/* Whether this build has cuDNN. */
extern const bool tr_cudnn_is_built;

/*
 * From now on cuDNN computes attention, with this many heads side by side in
 * rows of `hidden`.  The device stores bfloat16, and TR_CUDNN_HEAD divides the
 * width of a head.  Call it before a batch is staged.  False: `why` says why
 * not.
 */
bool tr_cuda_use_cudnn(tr_device *d, size_t hidden, size_t heads,
                       double dropout, char *why, size_t size);

/*
 * Makes sum_begin() and sum_end() ready, for up to n_sums at a time, of
 * n_gradients numbers in all.  All ranks join at once.  False: something
 * failed, which finish() tells.
 */
bool tr_cuda_join(tr_device *d, const struct tr_workers *w,
                  real *gradients, size_t n_gradients, size_t n_sums);

#ifdef __cplusplus
}
#endif

#endif /* TR_CUDA_OPEN_H */
