/*
 * attention_mma_backward.cu - backward of attention in bfloat16
 * (attention_mma.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/attention.h"

#ifndef TR_DOUBLE
#include "cuda/attention_mma.h"

/* Scale of the scores, to base 2, and dropout's scale and threshold. */
struct mma_scale {
    float score;
    float dropout;
    uint32_t threshold;
};

static __device__ inline mma_scale scale_of(const attention_job<bf16> &job)
{
    return {job.scale * LOG2_E, job.dropout.scale, job.dropout.threshold};
}

/* ---- dQ ---- */

/* L to base 2, D and the dropout key of a lane's two rows. */
struct mma_known {
    float kept[2];
    float delta[2];
    tr_dropout_key key;
};

/*
 * Processes 32 keys from row `column` of the span on, for a warp's 16 queries
 * from row `own` on: computes P, dP and dS, and adds to dQ.  ALL is true if
 * these queries meet all 32 keys.
 */
template <int WIDTH, bool ALL, bool MASKED>
static __device__ inline void
queries_step(const mma_own<WIDTH> &q, const mma_own<WIDTH> &d_out,
             const bf16 *keys, const bf16 *values, uint32_t column,
             const attention_band<MASKED> &band, uint32_t own,
             const mma_scale &scale, const mma_known &r, mma_sums<WIDTH> &d_q)
{
    const mma_seen seen = seen_by(band, own, column);
    const unsigned lane = threadIdx.x % 32;
    mma_scores s, d_p;
    uint32_t d_s[MMA_TILES][2];

    score<WIDTH>(q, keys, s);
    score<WIDTH>(d_out, values, d_p);
#pragma unroll
    for (unsigned t = 0; t < MMA_TILES; t += 2) {
#pragma unroll
        for (unsigned i = 0; i < 2; i++) {
            const uint32_t at = 8 * t + lane % 4 * 2 + i;
            const tr_dropout_four four
                = tr_dropout_draw(r.key, column + at);

#pragma unroll
            for (unsigned bits = 0; bits < 4; bits++) {
                const unsigned row = bits / 2, right = bits % 2;
                float &x = s[t + right][2 * row + i];
                float d = -r.delta[row];

                if (MASKED
                    || tr_dropout_stays(four.row[row], right, scale.threshold))
                    d += d_p[t + right][2 * row + i] * scale.dropout;
                x = ex2_approx(x * scale.score - r.kept[row]) * d;
                if (!ALL && !seen.row[row].has(at + 8 * right))
                    x = 0;
            }
        }
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            d_s[t + i / 2][i % 2] = pack(s[t + i / 2][i % 2 * 2],
                                         s[t + i / 2][i % 2 * 2 + 1]);
    }
    weigh<WIDTH>(d_s, keys, d_q);
}

/* Loads L of a warp's rows, and computes and stores D for the next kernel. */
template <int WIDTH>
static __device__ inline mma_known
known_of(const attention_job<bf16> &job, const attention_piece &p,
         uint32_t row, const bf16 *own_d_out)
{
    const unsigned lane = threadIdx.x % 32;
    const size_t hidden = (size_t)job.heads * job.width;
    mma_known r = {{0, 0}, {0, 0}, key_of(job, p, row + lane / 4)};

#pragma unroll
    for (unsigned half = 0; half < 2; half++) {
        const unsigned mine = lane / 4 + 8 * half;
        const size_t at = (size_t)p.first + row + mine;
        const bf16 *const out = job.out + at * hidden + p.head * job.width;
        const bf16 *const d_out = own_d_out + mine * mma_layout<WIDTH>::LD;

        if (row + mine < p.n) {
            r.kept[half] = job.kept[p.head * job.rows + at] * LOG2_E;
            for (uint32_t i = lane % 4; i < job.width; i += 4)
                r.delta[half] += to_real(d_out[i]) * to_real(out[i]);
        }
        r.delta[half] += __shfl_xor_sync(ALL_LANES, r.delta[half], 1);
        r.delta[half] += __shfl_xor_sync(ALL_LANES, r.delta[half], 2);
        if (lane % 4 == 0 && row + mine < p.n)
            job.delta[p.head * job.rows + at] = r.delta[half];
    }
    return r;
}

/* Numbers in shared memory: two chunks and all warps' rows, of two matrices. */
template <int WIDTH>
static constexpr unsigned BACKWARD_SHARED
    = 4 * mma_layout<WIDTH>::PAST + 2 * MMA_WARPS * mma_layout<WIDTH>::OWN;

/*
 * Computes dQ, and the D that the next kernel reads.
 *
 * Grid: 64 rows of one head and span per block; shared: BACKWARD_SHARED.
 */
template <int WIDTH, bool MASKED>
static __global__ void __launch_bounds__(MMA_WARPS * 32, WIDTH <= 64 ? 3 : 2)
attention_queries_mma_kernel(const attention_job<bf16> job)
{
    typedef mma_layout<WIDTH> shared;
    const attention_piece p = piece_of(job, job.heads);
    const auto band = band_of_queries<MASKED>(job, p);
    const unsigned warp = threadIdx.x / 32;
    const uint32_t tile = p.tile * MMA_WARPS * TILE, row = tile + warp * TILE;
    const size_t hidden = (size_t)job.heads * job.width;
    const size_t stride = stride_of<MASKED>(job);
    const size_t after = keys_after<MASKED>(job, p.head);
    const size_t length = keys_length<MASKED>(job);
    const size_t q_at = p.first * stride + p.head * job.width;
    const size_t out_at = (p.first + row) * hidden + p.head * job.width;
    bf16 *const past = (bf16 *)dynamic_shared;
    bf16 *const own = past + 4 * shared::PAST + 2 * warp * shared::OWN;
    const mma_scale scale = scale_of(job);
    mma_known r;
    mma_own<WIDTH> queries, d_out;
    mma_sums<WIDTH> d_q;
    const auto fetch_next = [&](uint32_t at) {
        const bf16 *const k = job.qkv + q_at + at * stride + after;
        bf16 *const to = past + at / MMA_CHUNK % 2 * 2 * shared::PAST;

        fetch_past<WIDTH>(to, k, stride, p.n - at, job.width);
        fetch_past<WIDTH>(to + shared::PAST, k + length, stride, p.n - at,
                          job.width);
        __pipeline_commit();
    };
    const uint32_t start = band.start(tile, MMA_CHUNK);
    const uint32_t end = band.end(tile + MMA_WARPS * TILE - 1);

    if (tile >= p.n)
        return;
    if (row < p.n) {
        fetch_own<WIDTH>(own, job.qkv + q_at + row * stride, stride, p.n - row,
                         job.width);
        fetch_own<WIDTH>(own + shared::OWN, job.d_out + out_at, hidden,
                         p.n - row, job.width);
    }
    __pipeline_commit();
    fetch_next(start);
    if (row < p.n) {
        wait_own(1);
        queries.take(own);
        d_out.take(own + shared::OWN);
        r = known_of<WIDTH>(job, p, row, own + shared::OWN);
    }
    for (uint32_t at = start; at < end; at += MMA_CHUNK) {
        const bf16 *const keys = past + at / MMA_CHUNK % 2 * 2 * shared::PAST;
        const bf16 *const values = keys + shared::PAST;

        __pipeline_wait_prior(0);
        __syncthreads(); /* rows are complete, earlier rows were read */
        if (at + MMA_CHUNK < end)
            fetch_next(at + MMA_CHUNK);
        if (row >= p.n)
            continue;
        for_steps<WIDTH>(
            band, row, at, keys, values, [&](auto all, auto... rows) {
                queries_step<WIDTH, all>(queries, d_out, rows..., band, row,
                                         scale, r, d_q);
            });
    }
    if (row < p.n)
        store_sums<WIDTH>(job.d_qkv + q_at + row * stride, stride, p.n - row,
                          job.width, d_q, {job.scale, job.scale}, own);
}

/* ---- dK and dV ---- */

/* L, D and dropout keys of a chunk of queries. */
struct mma_past {
    float kept[MMA_CHUNK]; /* L */
    float delta[MMA_CHUNK];
    tr_dropout_key key[MMA_CHUNK]; /* unset for rows with TR_DRAW_BIT */
};

/*
 * Processes 16 queries for a warp's 16 keys: computes the transposes of dS and
 * of the unscaled P', and adds to dV and dK.  Unless ALL is true, a lane's keys
 * meet only the queries in `seen`.  Queries outside the span are rows of 0 with
 * L = D = 0, which add nothing.
 */
template <int WIDTH, bool ALL, bool MASKED>
static __device__ inline void
keys_step(const mma_own<WIDTH> &k, const mma_own<WIDTH> &v,
          const bf16 *queries, const bf16 *d_out, const mma_past *known,
          unsigned first, uint32_t column, const mma_seen &seen,
          const mma_scale &scale, mma_sums<WIDTH> &d_k, mma_sums<WIDTH> &d_v)
{
    float s[2][4], d_p[2][4];
    uint32_t p[2][2], d_s[2][2];

    score<WIDTH>(k, queries, s);
    score<WIDTH>(v, d_out, d_p);
#pragma unroll
    for (unsigned i = 0; i < 2; i++) {
        const unsigned query = first + threadIdx.x % 4 * 2 + i;
        const tr_dropout_four four
            = tr_dropout_draw(known->key[query], column);

#pragma unroll
        for (unsigned bits = 0; bits < 4; bits++) {
            const unsigned below = bits / 2, low = bits % 2;
            const unsigned at = query + 8 * below;
            float &x = s[below][2 * low + i];
            float &y = d_p[below][2 * low + i];
            const bool stays
                = MASKED
                  || tr_dropout_stays(four.row[below], low, scale.threshold);
            float d = -known->delta[at];

            if (stays)
                d += y * scale.dropout;
            x = ex2_approx(x * scale.score - known->kept[at] * LOG2_E);
            y = x * d;
            if (!stays)
                x = 0;
            if (!ALL && !seen.row[low].has(at - first))
                x = y = 0;
        }
    }
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        const unsigned tile = i / 2, half = i % 2;

        p[tile][half] = pack(s[tile][2 * half], s[tile][2 * half + 1]);
        d_s[tile][half] = pack(d_p[tile][2 * half], d_p[tile][2 * half + 1]);
    }
    weigh<WIDTH>(p, d_out, d_v);
    weigh<WIDTH>(d_s, queries, d_k);
}

/* Fetches L, D and dropout keys of a head's next queries, from row q of the
 * span. */
template <bool MASKED>
static __device__ inline void fetch_known(const attention_job<bf16> &job,
                                          const attention_piece &p,
                                          uint32_t head, mma_past *known,
                                          uint32_t q)
{
    const unsigned i = threadIdx.x % MMA_CHUNK;
    const bool in = q + i < p.n;
    const size_t at = head * job.rows + p.first + (in ? q + i : 0);

    if (threadIdx.x < MMA_CHUNK) {
        __pipeline_memcpy_async(&known->kept[i], &job.kept[at], 4, in ? 0 : 4);
        __pipeline_memcpy_async(&known->delta[i], &job.delta[at], 4,
                                in ? 0 : 4);
    } else if (!MASKED && !(i & TR_DRAW_BIT)) {
        known->key[i] = key_of(job, p, q + i);
    }
}

/*
 * Fetches the queries of the chunk at `i` of the block's rounds, with their
 * d_out, L, D and dropout keys.  Recomputes the block's piece, because keeping
 * it would take registers.
 */
template <int WIDTH, bool MASKED>
static __device__ inline void
fetch_queries(const attention_job<bf16> &job,
              const attention_rounds<MASKED> &rounds, uint32_t i, bf16 *past,
              mma_past *known)
{
    typedef mma_layout<WIDTH> shared;
    const attention_piece p = piece_of(job, job.kv_heads);
    const size_t hidden = (size_t)job.heads * job.width;
    const size_t stride = stride_of<MASKED>(job);
    const uint32_t q = rounds.row(i), head = MASKED ? rounds.head(i) : p.head;
    const size_t first = (size_t)p.first + q, column = head * job.width;
    const unsigned half = i / MMA_CHUNK % 2;
    bf16 *const to = past + half * 2 * shared::PAST;

    fetch_past<WIDTH>(to, job.qkv + first * stride + column, stride, p.n - q,
                      job.width);
    fetch_past<WIDTH>(to + shared::PAST, job.d_out + first * hidden + column,
                      hidden, p.n - q, job.width);
    fetch_known<MASKED>(job, p, head, known + half, q);
    __pipeline_commit();
}

/* Stores dK and dV of a warp's rows. */
template <int WIDTH, bool MASKED>
static __device__ inline void
keys_end(const attention_job<bf16> &job, uint32_t row,
         const mma_sums<WIDTH> &d_k, const mma_sums<WIDTH> &d_v, bf16 *own)
{
    const attention_piece p = piece_of(job, job.kv_heads);
    const size_t hidden = (size_t)job.heads * job.width;
    const size_t stride = stride_of<MASKED>(job);
    bf16 *const d_key = job.d_qkv + ((size_t)p.first + row) * stride + hidden
                        + p.head * job.width;

    store_sums<WIDTH>(d_key, stride, p.n - row, job.width, d_k,
                      {job.scale, job.scale}, own);
    store_sums<WIDTH>(d_key + keys_length<MASKED>(job), stride, p.n - row,
                      job.width, d_v, {job.dropout.scale, job.dropout.scale},
                      own);
}

/*
 * Computes dK and dV.
 *
 * Grid: 64 rows of one head of keys and span per block; shared:
 * BACKWARD_SHARED and two mma_past.
 */
template <int WIDTH, bool MASKED>
static __global__ void __launch_bounds__(MMA_WARPS * 32, WIDTH <= 64 ? 3 : 2)
attention_keys_mma_kernel(const attention_job<bf16> job)
{
    typedef mma_layout<WIDTH> shared;
    const attention_piece p = piece_of(job, job.kv_heads);
    const auto band = band_of_keys<MASKED>(job, p);
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const uint32_t tile = p.tile * MMA_WARPS * TILE, row = tile + warp * TILE;
    const auto rounds = rounds_of<MASKED>(job, p, tile, MMA_WARPS * TILE,
                                          MMA_CHUNK);
    mma_past *const known = (mma_past *)dynamic_shared;
    bf16 *const past = (bf16 *)(known + 2);
    bf16 *const own = past + 4 * shared::PAST + 2 * warp * shared::OWN;
    const mma_scale scale = scale_of(job);
    mma_own<WIDTH> keys, values;
    mma_sums<WIDTH> d_k, d_v;

    if (tile >= p.n)
        return;
    if (row < p.n) {
        const size_t hidden = (size_t)job.heads * job.width;
        const size_t stride = stride_of<MASKED>(job);
        const bf16 *const k = job.qkv + ((size_t)p.first + row) * stride
                              + hidden + p.head * job.width;

        fetch_own<WIDTH>(own, k, stride, p.n - row, job.width);
        fetch_own<WIDTH>(own + shared::OWN, k + keys_length<MASKED>(job),
                         stride, p.n - row, job.width);
    }
    __pipeline_commit();
    fetch_queries<WIDTH>(job, rounds, 0, past, known);
    if (row < p.n) {
        wait_own(1);
        keys.take(own);
        values.take(own + shared::OWN);
    }
    for (uint32_t i = 0; i < rounds.all; i += MMA_CHUNK) {
        const unsigned half = i / MMA_CHUNK % 2;
        const bf16 *const queries = past + half * 2 * shared::PAST;
        const bf16 *const d_out = queries + shared::PAST;
        const uint32_t at = rounds.row(i);
        const auto step = [&](auto all, uint32_t j) {
            keys_step<WIDTH, all, MASKED>(
                keys, values, queries + j * shared::LD, d_out + j * shared::LD,
                known + half, j, row + lane / 4, seen_by(band, row, at + j),
                scale, d_k, d_v);
        };

        __pipeline_wait_prior(0);
        __syncthreads(); /* rows are complete, earlier rows were read */
        if (i + MMA_CHUNK < rounds.all)
            fetch_queries<WIDTH>(job, rounds, i + MMA_CHUNK, past, known);
        if (row >= p.n)
            continue;
#pragma unroll 1
        for (uint32_t j = 0; j < min(MMA_CHUNK, p.n - at); j += TILE) {
            if (band.misses(row, at + j, TILE))
                continue;
            if (!MASKED || band.covers(row, at + j, TILE))
                step(std::true_type(), j);
            else
                step(std::false_type(), j);
        }
    }
    if (row < p.n)
        keys_end<WIDTH, MASKED>(job, row, d_k, d_v, own);
}

void attention_backward_mma(tr_cuda *c, const tr_attend *a,
                            const void *qkv, const void *out,
                            const void *d_out, void *d_qkv)
{
    attention_job<bf16> job = job_of<bf16>(a, qkv);

    job.out = (bf16 *)const_cast<void *>(out);
    job.d_out = (const bf16 *)d_out;
    job.d_qkv = (bf16 *)d_qkv;
    by_kernel(a, [&](auto width, auto masked) {
        const size_t shared = BACKWARD_SHARED<width> * sizeof(bf16);

        for_groups(c, a->batch, [&](const tr_group &group,
                                    cudaStream_t stream) {
            launch_mma(c, stream, "attention_queries", group, job.heads,
                       shared, attention_queries_mma_kernel<width, masked>,
                       job);
            launch_mma(c, stream, "attention_keys", group, job.kv_heads,
                       shared + 2 * sizeof(mma_past),
                       attention_keys_mma_kernel<width, masked>, job);
        });
    });
}

#endif /* !TR_DOUBLE */
