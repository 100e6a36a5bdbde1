/*
 * attention_forward.cu - forward of attention without tensor cores
 * (attention.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/attention_kernel.h"

/* Softmax state of a row.  Both lanes of the row have the same max. */
struct online_row {
    real max;
    real sum; /* partial sum of this lane */
    tr_dropout_key key;
};

/*
 * Processes 32 keys, of which `there` are in the span: computes scores, updates
 * the running maximum, rescales the sums, and adds to them.
 */
template <int WIDTH>
static __device__ inline void
forward_step(const attention_job<real> &job, const real *own, const real *keys,
             const real *values, uint32_t column, uint32_t there, real *scores,
             online_row &r, tile_sum (&o)[WIDTH / TILE])
{
    const unsigned row = threadIdx.x % 32 / 2, half = threadIdx.x % 2;
    const real before = r.max;
    real x[PART], fade;

    score<WIDTH>(own, keys, scores);
#pragma unroll
    for (unsigned i = 0; i < PART; i++) {
        x[i] = 2 * i + half < there
                   ? scores[row * SCORES_LD + 2 * i + half] * job.scale
                   : -(real)INFINITY;
        r.max = x[i] > r.max ? x[i] : r.max;
    }
    r.max = max(r.max, __shfl_xor_sync(ALL_LANES, r.max, 1));
    fade = exp(before - r.max);
    r.sum *= fade;
#pragma unroll
    for (unsigned i = 0; i < PART; i++) {
        x[i] = exp(x[i] - r.max);
        r.sum += x[i];
        if (!tr_dropout_score_stays(r.key, row, column + 2 * i + half,
                                    job.dropout.threshold))
            x[i] = 0;
    }
    if (__any_sync(ALL_LANES, fade != 1)) /* some row's maximum has grown */
        scale_rows<WIDTH>(fade, scores, o);
    weigh<WIDTH>(x, values, scores, o);
}

/*
 * Grid: job.tiles blocks for each head of each span.  Block: up to 8 warps,
 * each processing 16 queries at a time.  Shared memory: keys and values; for
 * each warp, its queries and 16 x 32 scores.
 */
template <int WIDTH>
static __global__ void __launch_bounds__(MOST_WARPS * 32, WIDTH <= 64 ? 2 : 1)
attention_forward_kernel(const attention_job<real> job)
{
    typedef attention_layout<WIDTH> shared;
    const attention_piece p = piece_of(job);
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const size_t hidden = (size_t)job.heads * job.width;
    const real *const q = job.qkv + p.first * 3 * hidden + p.head * job.width;
    real *const out = job.out + p.first * hidden + p.head * job.width;
    real *const keys = (real *)dynamic_shared;
    real *const values = keys + job.chunk * shared::LD;
    real *const own = values + job.chunk * shared::LD + warp * shared::FORWARD;
    real *const scores = (real *)(own + TILE * shared::LD);
    const uint32_t tile = blockDim.x / 32 * TILE;

    for (uint32_t at = p.tile * tile; at < p.n; at += job.tiles * tile) {
        const uint32_t row = at + warp * TILE;
        const size_t lanes_row = (size_t)p.first + row + lane / 2;
        online_row r = {-(real)INFINITY, 0, key_of(job, p, row + lane / 2)};
        tile_sum o[WIDTH / TILE];

        for (unsigned i = 0; i < WIDTH / TILE; i++)
            tile_zero(o[i]);
        if (row < p.n)
            load_own<WIDTH>(own, q + row * 3 * hidden, 3 * hidden, p.n - row,
                            job.width);
        for (uint32_t k = 0; k < p.n; k += job.chunk) {
            const real *const key = q + k * 3 * hidden + hidden;

            if (at == p.tile * tile) {
                __syncthreads(); /* earlier rows have been read */
                load_past<WIDTH>(job, keys, key, 3 * hidden, key + hidden,
                                 3 * hidden, p.n - k);
                __syncthreads();
            }
            if (row >= p.n)
                continue;
            for (uint32_t j = 0; j < min(job.chunk, p.n - k); j += STEP)
                forward_step<WIDTH>(job, own, keys + j * shared::LD,
                                    values + j * shared::LD, k + j, p.n - k - j,
                                    scores, r, o);
        }
        if (row >= p.n)
            continue;
        r.sum += __shfl_xor_sync(ALL_LANES, r.sum, 1);
        if (lane % 2 == 0 && row + lane / 2 < p.n)
            job.kept[p.head * job.rows + lanes_row] = r.max + log(r.sum);
        store_rows<WIDTH>(out + row * hidden, hidden, p.n - row, job.width, o,
                          job.dropout.scale / r.sum, scores);
    }
}

template <int WIDTH>
static void forward(tr_cuda *c, const tr_attend *a, const void *qkv, void *out)
{
    typedef attention_layout<WIDTH> shared;
    attention_job<real> job = job_of<real>(a, qkv);

    job.out = (real *)out;
    for_groups(c, a->batch, [&](const tr_group &group, cudaStream_t stream) {
        launch_group(c, stream, "attention_forward", group,
                     2 * shared::LD * sizeof(real),
                     shared::FORWARD * sizeof(real),
                     attention_forward_kernel<WIDTH>, job);
    });
}

void attention_forward_plain(tr_cuda *c, const tr_attend *a,
                             const void *qkv, void *out)
{
    by_width(a, [&](auto width) { forward<width>(c, a, qkv, out); });
}
