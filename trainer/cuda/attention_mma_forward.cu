/*
 * attention_mma_forward.cu - forward of attention in bfloat16
 * (attention_mma.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/attention.h"

#ifndef TR_DOUBLE
#include "cuda/attention_mma.h"

/*
 * Softmax state of a lane's two rows, to base 2: terms are 2^(x - base).  A
 * base is raised to the maximum only when the maximum exceeds it by more than
 * LAG, so that sums are seldom rescaled; this does not change the result.  The
 * four lanes that share a row have the same base.
 */
static constexpr float LAG = 8;

struct mma_softmax {
    float base[2];
    float sum[2]; /* partial sums of this lane */
};

/* Raises the bases if necessary, and then rescales the sums. */
template <int WIDTH>
static __device__ inline void raise_base(const mma_scores &s, float scale,
                                         mma_softmax &r, mma_sums<WIDTH> &o)
{
    float fade[2], top[2] = {s[0][0], s[0][2]};

#pragma unroll
    for (unsigned t = 0; t < MMA_TILES; t++)
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            top[i / 2] = fmaxf(top[i / 2], s[t][i]);
#pragma unroll
    for (unsigned half = 0; half < 2; half++) {
        top[half] = fmaxf(top[half], __shfl_xor_sync(ALL_LANES, top[half], 1));
        top[half] = fmaxf(top[half], __shfl_xor_sync(ALL_LANES, top[half], 2));
        top[half] *= scale;
    }
    if (!__any_sync(ALL_LANES, top[0] > r.base[0] + LAG
                                   || top[1] > r.base[1] + LAG))
        return;
#pragma unroll
    for (unsigned half = 0; half < 2; half++) {
        const bool rises = top[half] > r.base[half] + LAG;

        fade[half] = rises ? ex2_approx(r.base[half] - top[half]) : 1;
        r.base[half] = rises ? top[half] : r.base[half];
        r.sum[half] *= fade[half];
    }
#pragma unroll
    for (unsigned t = 0; t < WIDTH / 8; t++)
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            o.x[t][i] *= fade[i / 2];
}

/*
 * Processes 32 keys from row `column` of the span on, for a warp whose rows
 * start at `own`.  ALL is true if these rows meet all 32 keys.
 */
template <int WIDTH, bool ALL, bool MASKED>
static __device__ inline void
forward_step(const mma_own<WIDTH> &q, const bf16 *keys, const bf16 *values,
             uint32_t column, const attention_band<MASKED> &band, uint32_t own,
             float scale, uint32_t threshold, tr_dropout_key key,
             mma_softmax &r, mma_sums<WIDTH> &o)
{
    const mma_seen seen = seen_by(band, own, column);
    const unsigned lane = threadIdx.x % 32;
    mma_scores s;
    uint32_t p[MMA_TILES][2];

    score<WIDTH>(q, keys, s);
#pragma unroll
    for (unsigned i = 0; i < MMA_TILES * 4; i++)
        if (!ALL
            && !seen.row[i % 4 / 2].has(i / 4 * 8 + lane % 4 * 2 + i % 2))
            s[i / 4][i % 4] = -INFINITY;
    raise_base<WIDTH>(s, scale, r, o);
#pragma unroll
    for (unsigned t = 0; t < MMA_TILES; t += 2) {
#pragma unroll
        for (unsigned i = 0; i < 2; i++) {
            const tr_dropout_four four
                = tr_dropout_draw(key, column + 8 * t + lane % 4 * 2 + i);

#pragma unroll
            for (unsigned bits = 0; bits < 4; bits++) {
                const unsigned row = bits / 2, right = bits % 2;
                float &x = s[t + right][2 * row + i];

                x = ex2_approx(x * scale - r.base[row]);
                r.sum[row] += x;
                if (!MASKED
                    && !tr_dropout_stays(four.row[row], right, threshold))
                    x = 0;
            }
        }
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            p[t + i / 2][i % 2] = pack(s[t + i / 2][i % 2 * 2],
                                       s[t + i / 2][i % 2 * 2 + 1]);
    }
    weigh<WIDTH>(p, values, o);
}

/* Numbers in shared memory: two chunks of keys and values, and the queries. */
template <int WIDTH>
static constexpr unsigned FORWARD_SHARED
    = 4 * mma_layout<WIDTH>::PAST + MMA_WARPS * mma_layout<WIDTH>::OWN;

/*
 * Stores L and O of a warp's rows.  Recomputes the block's piece, because
 * keeping it would take registers.
 */
template <int WIDTH>
static __device__ inline void
forward_end(const attention_job<bf16> &job, uint32_t row, mma_softmax &r,
            const mma_sums<WIDTH> &o, bf16 *own)
{
    const attention_piece p = piece_of(job, job.heads);
    const unsigned lane = threadIdx.x % 32;
    const size_t hidden = (size_t)job.heads * job.width;
    const size_t first = (size_t)p.first + row;
    float scale[2];

#pragma unroll
    for (unsigned half = 0; half < 2; half++) {
        const unsigned mine = lane / 4 + 8 * half;

        r.sum[half] += __shfl_xor_sync(ALL_LANES, r.sum[half], 1);
        r.sum[half] += __shfl_xor_sync(ALL_LANES, r.sum[half], 2);
        scale[half] = job.dropout.scale / r.sum[half];
        if (lane % 4 == 0 && row + mine < p.n)
            job.kept[p.head * job.rows + first + mine]
                = r.base[half] * LN_2 + logf(r.sum[half]);
    }
    store_sums<WIDTH>(job.out + first * hidden + p.head * job.width, hidden,
                      p.n - row, job.width, o, scale, own);
}

/* Grid: 64 rows of one head and span per block; shared: FORWARD_SHARED. */
template <int WIDTH, bool MASKED>
static __global__ void __launch_bounds__(MMA_WARPS * 32, WIDTH <= 64 ? 4 : 2)
attention_forward_mma_kernel(const attention_job<bf16> job)
{
    typedef mma_layout<WIDTH> shared;
    const attention_piece p = piece_of(job, job.heads);
    const auto band = band_of_queries<MASKED>(job, p);
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint32_t tile = p.tile * MMA_WARPS * TILE, row = tile + warp * TILE;
    const size_t stride = stride_of<MASKED>(job);
    const bf16 *const q = job.qkv + p.first * stride + p.head * job.width;
    bf16 *const past = (bf16 *)dynamic_shared;
    bf16 *const own = past + 4 * shared::PAST + warp * shared::OWN;
    const float scale = job.scale * LOG2_E;
    const tr_dropout_key key = key_of(job, p, row + lane / 4);
    mma_softmax r = {{LOWEST, LOWEST}, {0, 0}};
    mma_own<WIDTH> queries;
    mma_sums<WIDTH> o;
    const auto fetch_next = [&](uint32_t at) {
        const bf16 *const k
            = q + at * stride + keys_after<MASKED>(job, p.head);
        bf16 *const to = past + at / MMA_CHUNK % 2 * 2 * shared::PAST;

        fetch_past<WIDTH>(to, k, stride, p.n - at, job.width);
        fetch_past<WIDTH>(to + shared::PAST, k + keys_length<MASKED>(job),
                          stride, p.n - at, job.width);
        __pipeline_commit();
    };
    const uint32_t start = band.start(tile, MMA_CHUNK);
    const uint32_t end = band.end(tile + MMA_WARPS * TILE - 1);

    if (tile >= p.n)
        return;
    if (row < p.n)
        fetch_own<WIDTH>(own, q + row * stride, stride, p.n - row, job.width);
    __pipeline_commit();
    fetch_next(start);
    if (row < p.n) {
        wait_own(1);
        queries.take(own);
    }
    for (uint32_t at = start; at < end; at += MMA_CHUNK) {
        const bf16 *const keys = past + at / MMA_CHUNK % 2 * 2 * shared::PAST;
        const bf16 *const values = keys + shared::PAST;

        __pipeline_wait_prior(0);
        __syncthreads(); /* rows arrived, earlier ones were read */
        if (at + MMA_CHUNK < end)
            fetch_next(at + MMA_CHUNK);
        if (row >= p.n)
            continue;
        for_steps<WIDTH>(
            band, row, at, keys, values, [&](auto all, auto... rows) {
                forward_step<WIDTH, all>(queries, rows..., band, row, scale,
                                         job.dropout.threshold, key, r, o);
            });
    }
    if (row < p.n)
        forward_end<WIDTH>(job, row, r, o, own);
}

void attention_forward_mma(tr_cuda *c, const tr_attend *a, const void *qkv,
                           void *out)
{
    attention_job<bf16> job = job_of<bf16>(a, qkv);

    job.out = (bf16 *)out;
    by_kernel(a, [&](auto width, auto masked) {
        for_groups(c, a->batch, [&](const tr_group &group,
                                    cudaStream_t stream) {
            launch_mma(c, stream, "attention_forward", group, job.heads,
                       FORWARD_SHARED<width> * sizeof(bf16),
                       attention_forward_mma_kernel<width, masked>, job);
        });
    });
}

#endif /* !TR_DOUBLE */
