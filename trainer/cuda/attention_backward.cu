/*
 * attention_backward.cu - backward of attention without tensor cores
 * (attention.h).
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/attention_kernel.h"

/* L, D and the dropout key of a row. */
struct known_row {
    real kept;
    real delta;
    tr_dropout_key key;
};

/* Computes D of a lane's row, from `d_out` in shared memory. */
template <int WIDTH>
static __device__ inline real delta_of(const attention_job<real> &job,
                                       const real *d_out, const real *out)
{
    const unsigned row = threadIdx.x % 32 / 2, half = threadIdx.x % 2;
    const real *const d_row = d_out + row * attention_layout<WIDTH>::LD;
    real sum = 0;

    for (uint32_t i = half; i < job.width; i += 2)
        sum += d_row[i] * out[i];
    return sum;
}

/*
 * Processes 32 keys, of which a lane's query meets those in `seen`, for a
 * warp's 16 queries: computes P, dP and dS, and adds to dQ.
 */
template <int WIDTH, bool MASKED>
static __device__ inline void
queries_step(const attention_job<real> &job, const real *own, const real *keys,
             const real *values, uint32_t column, attention_range seen,
             real *scores, const known_row &r, tile_sum (&d_q)[WIDTH / TILE])
{
    constexpr unsigned LD = attention_layout<WIDTH>::LD;
    const unsigned row = threadIdx.x % 32 / 2, half = threadIdx.x % 2;
    const real *const mine = scores + row * SCORES_LD + half;
    real x[PART];

    score<WIDTH>(own, keys, scores);
#pragma unroll
    for (unsigned i = 0; i < PART; i++)
        x[i] = seen.has(2 * i + half)
                   ? exp(mine[2 * i] * job.scale - r.kept)
                   : 0;
    __syncwarp(); /* before dP overwrites S */
    score<WIDTH>(own + TILE * LD, values, scores);
#pragma unroll
    for (unsigned i = 0; i < PART; i++) {
        const bool stays
            = MASKED
              || tr_dropout_score_stays(r.key, row, column + 2 * i + half,
                                        job.dropout.threshold);

        x[i] *= (stays ? mine[2 * i] * job.dropout.scale : 0) - r.delta;
    }
    weigh<WIDTH>(x, keys, scores, d_q);
}

/*
 * Computes dQ, and the D that the next kernel reads.
 *
 * Grid: job.tiles blocks for each head of each span.  Block: up to 8 warps,
 * each processing 16 queries at a time.  Shared memory: keys and values; for
 * each warp, its queries, their d_out and 16 x 32 scores.
 */
template <int WIDTH, bool MASKED>
static __global__ void __launch_bounds__(MOST_WARPS * 32, WIDTH <= 64 ? 2 : 1)
attention_queries_kernel(const attention_job<real> job)
{
    typedef attention_layout<WIDTH> shared;
    const attention_piece p = piece_of(job, job.heads);
    const auto band = band_of_queries<MASKED>(job, p);
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const size_t hidden = (size_t)job.heads * job.width;
    const size_t stride = stride_of<MASKED>(job);
    const size_t qkv_at = p.first * stride + p.head * job.width;
    const size_t key_at = qkv_at + keys_after<MASKED>(job, p.head);
    const size_t out_at = p.first * hidden + p.head * job.width;
    real *const keys = (real *)dynamic_shared;
    real *const values = keys + job.chunk * shared::LD;
    real *const own = values + job.chunk * shared::LD + warp * shared::BACKWARD;
    real *const own_d_out = own + TILE * shared::LD;
    real *const scores = (real *)(own_d_out + TILE * shared::LD);
    const uint32_t tile = blockDim.x / 32 * TILE;

    for (uint32_t at = p.tile * tile; at < p.n; at += job.tiles * tile) {
        const uint32_t row = at + warp * TILE;
        const size_t lanes_row = (size_t)p.first + row + lane / 2;
        const size_t lanes_at = p.head * job.rows + lanes_row;
        const bool in = row + lane / 2 < p.n;
        known_row r = {0, 0, key_of(job, p, row + lane / 2)};
        tile_sum d_q[WIDTH / TILE];

        for (unsigned i = 0; i < WIDTH / TILE; i++)
            tile_zero(d_q[i]);
        if (row < p.n) {
            load_own<WIDTH>(own, job.qkv + qkv_at + row * stride, stride,
                            p.n - row, job.width);
            load_own<WIDTH>(own_d_out, job.d_out + out_at + row * hidden,
                            hidden, p.n - row, job.width);
            if (in) {
                r.kept = job.kept[lanes_at];
                r.delta = delta_of<WIDTH>(
                    job, own_d_out,
                    job.out + out_at + (row + lane / 2) * hidden);
            }
            r.delta += __shfl_xor_sync(ALL_LANES, r.delta, 1);
            if (in && lane % 2 == 0)
                job.delta[lanes_at] = r.delta;
        }
        for (uint32_t k = band.start(at, job.chunk);
             k < band.end(at + tile - 1); k += job.chunk) {
            const real *const key = job.qkv + key_at + k * stride;

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
                    queries_step<WIDTH, MASKED>(
                        job, own, keys + j * shared::LD,
                        values + j * shared::LD, k + j,
                        band.within(row + lane / 2, k + j), scores, r, d_q);
        }
        if (row < p.n)
            store_rows<WIDTH>(job.d_qkv + qkv_at + row * stride, stride,
                              p.n - row, job.width, d_q, job.scale, scores);
    }
}

/*
 * Processes 32 queries, of which a lane's key meets those in `seen`, for a
 * warp's 16 keys: computes the transposes of dS and of the unscaled P', and
 * adds to dV and dK.
 */
template <int WIDTH, bool MASKED>
static __device__ inline void
keys_step(const attention_job<real> &job, const real *own, const real *queries,
          const real *d_out, const known_row *known, uint32_t column,
          attention_range seen, real *scores, tile_sum (&d_k)[WIDTH / TILE],
          tile_sum (&d_v)[WIDTH / TILE])
{
    constexpr unsigned LD = attention_layout<WIDTH>::LD;
    const unsigned row = threadIdx.x % 32 / 2, half = threadIdx.x % 2;
    const real *const mine = scores + row * SCORES_LD + half;
    real x[PART], y[PART];
    unsigned stay = 0;

    score<WIDTH>(own, queries, scores);
#pragma unroll
    for (unsigned i = 0; i < PART; i++) {
        const unsigned query = 2 * i + half;

        x[i] = y[i] = 0;
        if (!seen.has(query))
            continue;
        x[i] = exp(mine[2 * i] * job.scale - known[query].kept);
        if (MASKED
            || tr_dropout_score_stays(known[query].key, query, column + row,
                                      job.dropout.threshold)) {
            y[i] = x[i];
            stay |= 1u << i;
        }
    }
    weigh<WIDTH>(y, d_out, scores, d_v);
    score<WIDTH>(own + TILE * LD, d_out, scores);
#pragma unroll
    for (unsigned i = 0; i < PART; i++) {
        const unsigned query = 2 * i + half;
        const real d_p = stay >> i & 1 ? mine[2 * i] * job.dropout.scale : 0;

        if (seen.has(query))
            x[i] *= d_p - known[query].delta;
    }
    weigh<WIDTH>(x, queries, scores, d_k);
}

/* Loads L, D and dropout keys of a head's next queries, from row q of the
 * span. */
static __device__ inline void load_known(const attention_job<real> &job,
                                         const attention_piece &p,
                                         uint32_t head, known_row *known,
                                         uint32_t q)
{
    const size_t at = head * job.rows + p.first + q;

    for (uint32_t i = threadIdx.x; i < min(job.chunk, p.n - q);
         i += blockDim.x)
        known[i] = {job.kept[at + i], job.delta[at + i],
                    key_of(job, p, q + i)};
}

/*
 * Computes dK and dV.
 *
 * Grid: job.tiles blocks for each head of keys of each span.  Block: up to 8
 * warps, each processing 16 keys at a time.  Shared memory: queries, their
 * d_out, L, D and dropout keys; for each warp, its keys, their values and 16 x
 * 32 scores.
 */
template <int WIDTH, bool MASKED>
static __global__ void __launch_bounds__(MOST_WARPS * 32, 1)
attention_keys_kernel(const attention_job<real> job)
{
    typedef attention_layout<WIDTH> shared;
    const attention_piece p = piece_of(job, job.kv_heads);
    const auto band = band_of_keys<MASKED>(job, p);
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const size_t hidden = (size_t)job.heads * job.width;
    const size_t stride = stride_of<MASKED>(job);
    const size_t keys = keys_length<MASKED>(job);
    real *const queries = (real *)dynamic_shared;
    real *const d_out = queries + job.chunk * shared::LD;
    known_row *const known = (known_row *)(d_out + job.chunk * shared::LD);
    real *const own = (real *)(known + job.chunk) + warp * shared::BACKWARD;
    real *const own_values = own + TILE * shared::LD;
    real *const scores = (real *)(own_values + TILE * shared::LD);
    const uint32_t tile = blockDim.x / 32 * TILE;

    for (uint32_t at = p.tile * tile; at < p.n; at += job.tiles * tile) {
        const uint32_t row = at + warp * TILE;
        const size_t key_at
            = ((size_t)p.first + row) * stride + hidden + p.head * job.width;
        const auto rounds
            = rounds_of<MASKED>(job, p, at, tile, job.chunk);
        tile_sum d_k[WIDTH / TILE], d_v[WIDTH / TILE];

        for (unsigned i = 0; i < WIDTH / TILE; i++) {
            tile_zero(d_k[i]);
            tile_zero(d_v[i]);
        }
        if (row < p.n) {
            load_own<WIDTH>(own, job.qkv + key_at, stride, p.n - row,
                            job.width);
            load_own<WIDTH>(own_values, job.qkv + key_at + keys, stride,
                            p.n - row, job.width);
        }
        for (uint32_t i = 0; i < rounds.all; i += job.chunk) {
            const uint32_t q = rounds.row(i), head = rounds.head(i);

            if (at == p.tile * tile || (MASKED && job.share > 1)) {
                const size_t first = (size_t)p.first + q;

                __syncthreads(); /* earlier rows have been read */
                load_past<WIDTH>(
                    job, queries, job.qkv + first * stride + head * job.width,
                    stride, job.d_out + first * hidden + head * job.width,
                    hidden, p.n - q);
                load_known(job, p, head, known, q);
                __syncthreads();
            }
            if (row >= p.n)
                continue;
            for (uint32_t j = 0; j < min(job.chunk, p.n - q); j += STEP)
                if (!band.misses(row, q + j, STEP))
                    keys_step<WIDTH, MASKED>(
                        job, own, queries + j * shared::LD,
                        d_out + j * shared::LD, known + j, row,
                        band.within(row + lane / 2, q + j), scores, d_k, d_v);
        }
        if (row >= p.n)
            continue;
        store_rows<WIDTH>(job.d_qkv + key_at, stride, p.n - row, job.width,
                          d_k, job.scale, scores);
        store_rows<WIDTH>(job.d_qkv + key_at + keys, stride, p.n - row,
                          job.width, d_v, job.dropout.scale, scores);
    }
}

template <int WIDTH, bool MASKED>
static void backward(tr_cuda *c, const tr_attend *a, const void *qkv,
                     const void *out, const void *d_out, void *d_qkv)
{
    typedef attention_layout<WIDTH> shared;
    const size_t row = 2 * shared::LD * sizeof(real);
    const size_t warp = shared::BACKWARD * sizeof(real);
    attention_job<real> job = job_of<real>(a, qkv);

    job.out = (real *)const_cast<void *>(out);
    job.d_out = (const real *)d_out;
    job.d_qkv = (real *)d_qkv;
    for_groups(c, a->batch, [&](const tr_group &group, cudaStream_t stream) {
        launch_group(c, stream, "attention_queries", group, job.heads, row,
                     warp, attention_queries_kernel<WIDTH, MASKED>, job);
        launch_group(c, stream, "attention_keys", group, job.kv_heads,
                     row + sizeof(known_row), warp,
                     attention_keys_kernel<WIDTH, MASKED>, job);
    });
}

void attention_backward_plain(tr_cuda *c, const tr_attend *a,
                              const void *qkv, const void *out,
                              const void *d_out, void *d_qkv)
{
    by_kernel(a, [&](auto width, auto masked) {
        backward<width, masked>(c, a, qkv, out, d_out, d_qkv);
    });
}
