/*
 * open.h - C interface of the CUDA back end, which implements ops.h.
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
 * Formats for storing and multiplying values.  Sums, weights and gradients of
 * weights are always float.
 */
typedef enum tr_precision {
    TR_FLOAT, /* float, as on the CPU */
    TR_TF32,  /* stored as float, multiplied with a 10-bit mantissa */
    TR_BF16   /* stored as bfloat16 */
} tr_precision;

#define TR_CUDA_HEAD_MAX 128    /* maximum width of a head */
#define TR_CUDNN_HEAD 8         /* cuDNN head widths are multiples of this */
#define TR_CUDA_HIDDEN_MAX 8192 /* maximum width of a layer norm */

struct tr_workers;

/*
 * Opens GPU `nth`, modulo the number of GPUs.  Returns NULL on failure, with
 * the reason in `why`, which has `size` bytes.  Only the thread that opened the
 * GPU may use it, because CUDA selects a GPU per thread.  GPU 0 is selected by
 * default, so other threads may use it too.
 */
tr_device *tr_cuda_open(unsigned nth, tr_precision precision, char *why,
                        size_t size);

/* True if this build has cuDNN. */
extern const bool tr_cudnn_is_built;

/*
 * Makes cuDNN compute attention, for `heads` heads in rows of `hidden` values.
 * The device must store bfloat16, and the width of a head must be a multiple of
 * TR_CUDNN_HEAD.  Call it before the first stage().  Returns false on failure,
 * with the reason in `why`.
 */
bool tr_cuda_use_cudnn(tr_device *d, size_t hidden, size_t heads,
                       double dropout, char *why, size_t size);

/*
 * Prepares sum_begin() and sum_end() for gradients in these buckets.  If each
 * rank has a GPU of its own and NCCL is built, also gives the device its
 * shards, for which moments can then be allocated.  All ranks must call it.
 * Returns false on failure, also if `buckets` is NULL; finish() reports the
 * reason.
 */
bool tr_cuda_join(tr_device *d, const struct tr_workers *w, real *gradients,
                  const tr_range *buckets, size_t n_buckets);

#ifdef __cplusplus
}
#endif

#endif /* TR_CUDA_OPEN_H */
