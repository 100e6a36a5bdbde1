/*
 * sdpa_seed.cu - write the seed and offset of cuDNN's dropout.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/sdpa.h"

/* Grid and block: one thread. */
static __global__ void __launch_bounds__(1)
seed_kernel(int64_t *to, int64_t seed, int64_t offset)
{
    to[0] = seed;
    to[1] = offset;
}

void tr_sdpa_seed(tr_cuda *c, int64_t *to, int64_t seed, int64_t offset)
{
    launch(c, c->stream, "seed of dropout", dim3(1), 1, 0, seed_kernel, to,
           seed, offset);
}
