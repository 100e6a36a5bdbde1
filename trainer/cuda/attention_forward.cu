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
 * Processes 32 keys, of which a lane's row meets those in `seen`: computes
 * scores, updates the running maximum, rescales the sums, and adds to them.
 */
template <int WIDTH, bool MASKED>
static __device__ inline void
forward_step(const attention_job<real> &job, const real *own, const real *keys,
             const real *values, uint32_t column, attention_range seen,
             real *scores, online_row &r, tile_sum (&o)[WIDTH / TILE])
{
    const unsigned row = threadIdx.x % 32 / 2, half = threadIdx.x % 2;
    const real before = r.max;
    real x[PART], fade;

    score<WIDTH>(own, keys, scores);
#pragma unroll
    for (unsigned i = 0; i < PART; i++) {
        x[i] = seen.has(2 * i + half)
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
        if (!MASKED
            && !tr_dropout_score_stays(r.key, row, column + 2 * i + half,
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
template <int WIDTH, bool MASKED>
static __global__ void __launch_bounds__(MOST_WARPS * 32, WIDTH <= 64 ? 2 : 1)
attention_forward_kernel(const attention_job<real> job)
{
    typedef attention_layout<WIDTH> shared;
    const attention_piece p = piece_of(job, job.heads);
    const auto band = band_of_queries<MASKED>(job, p);
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const size_t hidden = (size_t)job.heads * job.width;
    const size_t stride = stride_of<MASKED>(job);
    const size_t key_at = keys_after<MASKED>(job, p.head);
    const real *const q = job.qkv + p.first * stride + p.head * job.width;
    real *const out = job.out + p.first * hidden + p.head * job.width;
    real *const keys = (real *)dynamic_shared;
    real *const values = keys + job.chunk * shared::LD;
    real *const own = values + job.chunk * shared::LD + warp * shared::FORWARD;
    real *const scores = (real *)(own + TILE * shared::LD);
    const uint32_t tile = blockDim.x / 32 * TILE;

    for (uint32_t at = p.tile * tile; at < p.n; at += job.tiles * tile) {
        const uint32_t row = at + warp * TILE;
        const size_t lanes_row = (size_t)p.first + row + lane / 2;
        online_row r = {LOWEST, 0, key_of(job, p, row + lane / 2)};
        tile_sum o[WIDTH / TILE];

        for (unsigned i = 0; i < WIDTH / TILE; i++)
            tile_zero(o[i]);
        if (row < p.n)
            load_own<WIDTH>(own, q + row * stride, stride, p.n - row,
                            job.width);
        for (uint32_t k = band.start(at, job.chunk);
             k < band.end(at + tile - 1); k += job.chunk) {
            const real *const key = q + k * stride + key_at;

            if (at == p.tile * tile) {
                __syncthreads(); /* earlier rows have been read */
                load_past<WIDTH>(job, keys, key, stride,
                                 key + keys_length<MASKED>(job), stride,
                                 p.n - k);
                __syncthreads();
            }
            if (row >= p.n)
                continue;
            for (uint32_t j = 0; j < min(job.chunk, p.n - k); j += STEP)
                if (!band.misses(row, k + j, STEP))
                    forward_step<WIDTH, MASKED>(
                        job, own, keys + j * shared::LD,
                        values + j * shared::LD, k + j,
                        band.within(row + lane / 2, k + j), scores, r, o);
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

template <int WIDTH, bool MASKED>
static void forward(tr_cuda *c, const tr_attend *a, const void *qkv, void *out)
{
    typedef attention_layout<WIDTH> shared;
    attention_job<real> job = job_of<real>(a, qkv);

    job.out = (real *)out;
    for_groups(c, a->batch, [&](const tr_group &group, cudaStream_t stream) {
        launch_group(c, stream, "attention_forward", group, job.heads,
                     2 * shared::LD * sizeof(real),
                     shared::FORWARD * sizeof(real),
                     attention_forward_kernel<WIDTH, MASKED>, job);
    });
}

void attention_forward_plain(tr_cuda *c, const tr_attend *a,
                             const void *qkv, void *out)
{
    by_kernel(a, [&](auto width, auto masked) {
        forward<width, masked>(c, a, qkv, out);
    });
}
