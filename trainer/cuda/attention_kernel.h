/*
 * attention_kernel.h - shared code of the three attention kernels.
 *
 * WIDTH is the width of a head, rounded up.  MASKED kernels take masks and
 * heads of keys that several heads of queries share, but no dropout.  Only
 * templates over V are used in bfloat16.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_ATTENTION_KERNEL_H
#define TR_CUDA_ATTENTION_KERNEL_H

#include <algorithm>
#include <cfloat>
#include <type_traits>

#include "cuda/attention_tile.h"

static constexpr unsigned SCORES_LD = STEP + 4;
static constexpr unsigned PART = STEP / 2; /* two lanes share a row */

/*
 * Less than any score.  It is finite, because the first keys that a warp
 * processes can all be masked for some of its rows.
 */
static constexpr real LOWEST = (real)-FLT_MAX;

extern __shared__ __align__(128) float4 dynamic_shared[];

/* Arguments of a launch.  V is the type of values. */
template <typename V> struct attention_job {
    const V *qkv;
    V *out; /* output of forward, input of backward */
    const V *d_out;
    V *d_qkv;
    real *kept;  /* [heads][rows] L */
    real *delta; /* [heads][rows] D */
    const int32_t *cu;
    const int32_t *span; /* indices of the group's spans */
    size_t rows;         /* rows in the batch */
    uint32_t heads;
    uint32_t kv_heads;
    uint32_t share; /* heads of queries per head of keys */
    uint32_t width;
    uint32_t back;  /* rows before a row that it attends to */
    uint32_t ahead; /* rows after it */
    uint32_t chunk;
    uint32_t tiles; /* blocks per head of a span */
    real scale;     /* factor applied to scores */
    tr_dropout dropout; /* scale is 1 if dropout is off */
    uint32_t site;
};

/* The work of a block. */
struct attention_piece {
    uint32_t head;  /* of queries; in `keys`, of keys */
    uint32_t first; /* index of the span's first row in the batch */
    uint32_t place; /* first row's number in the padded batch, for dropout */
    uint32_t n;     /* rows */
    uint32_t tile;  /* index of the block's first tile */
};

/* `heads`: job.heads, or job.kv_heads in `keys`. */
template <typename V>
static __device__ inline attention_piece piece_of(const attention_job<V> &job,
                                                  uint32_t heads)
{
    const uint32_t piece = blockIdx.x / job.tiles;
    const int32_t span = job.span[piece / heads];
    const uint32_t first = (uint32_t)job.cu[span];

    return {piece % heads, first, tr_dropout_place(&job.dropout, first),
            (uint32_t)(job.cu[span + 1] - job.cu[span]),
            blockIdx.x % job.tiles};
}

/* The dropout key of a row of scores; `row` is relative to the span. */
template <typename V>
static __device__ inline tr_dropout_key key_of(const attention_job<V> &job,
                                               const attention_piece &p,
                                               uint32_t row)
{
    return tr_dropout_scores(&job.dropout, job.site, p.place, row, p.head,
                             job.heads);
}

/* Row stride of qkv, in values. */
template <bool MASKED, typename V>
static __device__ inline size_t stride_of(const attention_job<V> &job)
{
    if (MASKED)
        return (size_t)(job.heads + 2 * job.kv_heads) * job.width;
    return 3 * ((size_t)job.heads * job.width);
}

/* Length of a row's keys, in values. */
template <bool MASKED, typename V>
static __device__ inline size_t keys_length(const attention_job<V> &job)
{
    return (size_t)(MASKED ? job.kv_heads : job.heads) * job.width;
}

/* Distance in a row from the queries of a head to its keys, in values. */
template <bool MASKED, typename V>
static __device__ inline size_t keys_after(const attention_job<V> &job,
                                           uint32_t head)
{
    const uint32_t heads = job.heads - head + head / job.share;

    return (size_t)(MASKED ? heads : job.heads) * job.width;
}

/* ---- Masks ---- */

/* Iterated rows that a row meets, numbered from the first row of a step. */
struct attention_range {
    uint32_t from, end;

    __device__ bool has(uint32_t i) const { return i >= from && i < end; }
};

/*
 * In a span of n rows, an own row meets the iterated rows from `down` before it
 * to `up` after it.  The others are masked.
 */
template <bool MASKED> struct attention_band {
    uint32_t down, up, n;

    __device__ uint32_t first(uint32_t row) const
    {
        return MASKED && row > down ? row - down : 0;
    }

    __device__ uint32_t end(uint32_t row) const
    {
        return MASKED ? min(row + up + 1, n) : n;
    }

    /* True if none of a warp's rows meets any of `rows` rows. */
    __device__ bool misses(uint32_t own, uint32_t at, uint32_t rows) const
    {
        return MASKED
               && (at + rows <= first(own) || at >= end(own + TILE - 1));
    }

    /* True if each of a warp's rows meets each of `rows` rows. */
    __device__ bool covers(uint32_t own, uint32_t at, uint32_t rows) const
    {
        return MASKED ? first(own + TILE - 1) <= at && at + rows <= end(own)
                      : n - at >= rows;
    }

    /* The rows that a row meets in a step that starts at row `at`. */
    __device__ attention_range within(uint32_t row, uint32_t at) const
    {
        if (!MASKED)
            return {0, n - at};
        return {max(first(row), at) - at, max(end(row), at) - at};
    }

    /* First row of the first chunk that a tile meets. */
    __device__ uint32_t start(uint32_t tile, uint32_t chunk) const
    {
        return MASKED ? first(tile) / chunk * chunk : 0;
    }
};

/* The keys that queries meet, and the queries that keys meet. */
template <bool MASKED, typename V>
static __device__ inline attention_band<MASKED>
band_of_queries(const attention_job<V> &job, const attention_piece &p)
{
    return {job.back, job.ahead, p.n};
}

template <bool MASKED, typename V>
static __device__ inline attention_band<MASKED>
band_of_keys(const attention_job<V> &job, const attention_piece &p)
{
    return {job.ahead, job.back, p.n};
}

/*
 * The queries that a tile of keys iterates over: rows of one head or, if
 * MASKED, of each head that shares the keys, one head after another.
 */
template <bool MASKED> struct attention_rounds {
    uint32_t all;    /* rows of all heads */
    uint32_t start;  /* first row of each head */
    uint32_t length; /* rows of a head, rounded up to whole chunks */
    uint32_t first;  /* first head */

    __device__ uint32_t row(uint32_t i) const
    {
        return MASKED ? start + i % length : i;
    }

    __device__ uint32_t head(uint32_t i) const
    {
        return MASKED ? first + i / length : first;
    }
};

/* `tile`: first of `rows` keys. */
template <bool MASKED, typename V>
static __device__ inline attention_rounds<MASKED>
rounds_of(const attention_job<V> &job, const attention_piece &p, uint32_t tile,
          uint32_t rows, uint32_t chunk)
{
    const auto band = band_of_keys<MASKED>(job, p);
    const uint32_t start = band.start(tile, chunk);
    const uint32_t n = band.end(tile + rows - 1) - start;
    const uint32_t length = (n + chunk - 1) / chunk * chunk;

    if (!MASKED)
        return {p.n, 0, p.n, p.head};
    return {length * job.share, start, length, p.head * job.share};
}

/* Sizes in shared memory, in numbers; see attention.h. */
template <int WIDTH>
struct attention_layout {
    static constexpr unsigned LD = WIDTH + 16 / sizeof(real); /* row stride */
    static constexpr unsigned SCORES = TILE * SCORES_LD;
    static constexpr unsigned FORWARD = TILE * LD + SCORES;  /* per warp */
    static constexpr unsigned BACKWARD = 2 * TILE * LD + SCORES;
};

/* ---- Load and store rows ---- */

/*
 * Copies `all` rows of a head to shared memory.  Rows from `rows` on, and
 * columns from `width` on, are set to 0.  `threads` threads share the work;
 * this is number `thread`.
 */
template <int WIDTH>
static __device__ inline void
load_rows(real *to, const real *from, size_t stride, uint32_t rows,
          uint32_t all, uint32_t width, unsigned thread, unsigned threads)
{
    constexpr unsigned LINE = WIDE<real>;
    constexpr unsigned LD = attention_layout<WIDTH>::LD;

    if (width % LINE == 0) {
#pragma unroll 4
        for (unsigned i = thread; i < all * (WIDTH / LINE); i += threads) {
            const unsigned row = i / (WIDTH / LINE);
            const unsigned column = i % (WIDTH / LINE) * LINE;
            float4 line = {0, 0, 0, 0};

            if (row < rows && column < width)
                line = *(const float4 *)(from + row * stride + column);
            *(float4 *)(to + row * LD + column) = line;
        }
        return;
    }
    for (unsigned i = thread; i < all * WIDTH; i += threads) {
        const unsigned row = i / WIDTH, column = i % WIDTH;
        const bool in = row < rows && column < width;

        to[row * LD + column] = in ? from[row * stride + column] : (real)0;
    }
}

/* Loads a warp's own 16 rows, of which `rows` exist. */
template <int WIDTH>
static __device__ inline void load_own(real *to, const real *from,
                                       size_t stride, uint32_t rows,
                                       uint32_t width)
{
    load_rows<WIDTH>(to, from, stride, rows, TILE, width, threadIdx.x % 32,
                     32);
    __syncwarp();
}

/* Loads the block's next rows of both iterated matrices. */
template <int WIDTH>
static __device__ inline void
load_past(const attention_job<real> &job, real *to, const real *x,
          size_t x_stride, const real *y, size_t y_stride, uint32_t rows)
{
    const uint32_t all = min(job.chunk, (rows + STEP - 1) / STEP * STEP);

    load_rows<WIDTH>(to, x, x_stride, rows, all, job.width, threadIdx.x,
                     blockDim.x);
    load_rows<WIDTH>(to + job.chunk * attention_layout<WIDTH>::LD, y, y_stride,
                     rows, all, job.width, threadIdx.x, blockDim.x);
}

/*
 * Writes a warp's sums to its 16 rows, using `scores` as a buffer.  Lanes 2 i
 * and 2 i + 1 pass the scale of row i.
 */
template <int WIDTH>
static __device__ inline void
store_rows(real *to, size_t stride, uint32_t rows, uint32_t width,
           const tile_sum (&sums)[WIDTH / TILE], real scale, real *scores)
{
    const unsigned lane = threadIdx.x % 32;

#pragma unroll
    for (unsigned i = 0; i < WIDTH; i += STEP) {
        tile_store(scores, sums[i / TILE], SCORES_LD);
        tile_store(scores + TILE, sums[i / TILE + 1], SCORES_LD);
        __syncwarp();
        for (unsigned row = 0; row < TILE; row++) {
            const real by = __shfl_sync(ALL_LANES, scale, (int)(2 * row));

            if (row < rows && i + lane < width)
                to[row * stride + i + lane] =
                    scores[row * SCORES_LD + lane] * by;
        }
        __syncwarp();
    }
}

/* ---- Products ---- */

/* scores = own past^T, 16 x 32; both operands have WIDTH columns. */
template <int WIDTH>
static __device__ inline void score(const real *own, const real *past,
                                    real *scores)
{
    constexpr unsigned LD = attention_layout<WIDTH>::LD;
    tile_sum s[2];

    tile_zero(s[0]);
    tile_zero(s[1]);
/* Full unrolling would need too many registers. */
#pragma unroll(WIDTH <= 64 ? 2 : 1)
    for (unsigned k = 0; k < WIDTH; k += TILE) {
        tile_multiply<true>(s[0], own + k, LD, past + k, LD);
        tile_multiply<true>(s[1], own + k, LD, past + TILE * LD + k, LD);
    }
    tile_store(scores, s[0], SCORES_LD);
    tile_store(scores + TILE, s[1], SCORES_LD);
    __syncwarp();
}

/* Scales the rows of sums.  Lanes 2 i and 2 i + 1 pass the factor of row i. */
template <int WIDTH>
static __device__ inline void scale_rows(real by, real *scores,
                                         tile_sum (&sums)[WIDTH / TILE])
{
    const unsigned row = threadIdx.x % 32 / 2, half = threadIdx.x % 2;
    tile_sum tile;

    __syncwarp(); /* the scores have been read */
#pragma unroll
    for (unsigned i = half; i < TILE; i += 2)
        scores[row * SCORES_LD + i] = by;
    __syncwarp();
    tile_load(tile, scores, SCORES_LD);
#pragma unroll
    for (unsigned i = 0; i < WIDTH / TILE; i++)
        tile_scale(sums[i], tile);
}

/*
 * sums += x past.  x is 16 x 32, with half a row per lane, and overwrites the
 * scores.
 */
template <int WIDTH>
static __device__ inline void weigh(const real (&x)[PART], const real *past,
                                    real *scores,
                                    tile_sum (&sums)[WIDTH / TILE])
{
    constexpr unsigned LD = attention_layout<WIDTH>::LD;
    const unsigned row = threadIdx.x % 32 / 2, half = threadIdx.x % 2;

    __syncwarp(); /* the scores have been read */
#pragma unroll
    for (unsigned i = 0; i < PART; i++)
        scores[row * SCORES_LD + 2 * i + half] = x[i];
    __syncwarp();
#pragma unroll(WIDTH <= 64 ? 2 : 1)
    for (unsigned k = 0; k < STEP; k += TILE)
#pragma unroll
        for (unsigned i = 0; i < WIDTH / TILE; i++)
            tile_multiply<false>(sums[i], scores + k, SCORES_LD,
                                 past + k * LD + i * TILE, LD);
    __syncwarp(); /* before other scores are written */
}

/* ---- Host code ---- */

/* Calls f(width, masked) with a kernel's template arguments as types. */
template <typename F> static inline void by_kernel(const tr_attend *a, F f)
{
    const auto masked_or_not = [&](auto width) {
        if (keeps_dropout(a))
            f(width, std::false_type());
        else
            f(width, std::true_type());
    };

    if (a->width <= 32)
        masked_or_not(std::integral_constant<int, 32>());
    else if (a->width <= 64)
        masked_or_not(std::integral_constant<int, 64>());
    else
        masked_or_not(std::integral_constant<int, TR_CUDA_HEAD_MAX>());
}

/* Returns the arguments that all groups share. */
template <typename V>
static inline attention_job<V> job_of(const tr_attend *a, const void *qkv)
{
    attention_job<V> job = {};
    const size_t back = a->window ? a->window - 1 : INT32_MAX;

    job.qkv = (const V *)qkv;
    job.kept = (real *)a->kept;
    job.delta = (real *)a->scratch;
    job.cu = a->batch->cu;
    job.rows = a->batch->n_rows;
    job.heads = (uint32_t)a->heads;
    job.kv_heads = (uint32_t)a->kv_heads;
    job.share = job.heads / job.kv_heads;
    job.back = (uint32_t)std::min(back, (size_t)INT32_MAX);
    job.ahead = a->causal ? 0 : job.back;
    job.width = (uint32_t)a->width;
    job.scale = (real)(1 / sqrt((double)a->width));
    job.dropout = a->dropout;
    if (job.dropout.threshold == 0)
        job.dropout.scale = 1;
    job.site = a->site;
    return job;
}

/* Raises a kernel's shared-memory limit to the maximum, once per kernel. */
template <typename V>
static inline bool allow_shared(tr_cuda *c, const char *name,
                                void (*kernel)(attention_job<V>))
{
    const void **place = c->allowed;

    for (; *place; place++)
        if (*place == (const void *)kernel)
            return true;
    *place = (const void *)kernel;
    return tr_cuda_good(
        c,
        cudaFuncSetAttribute(kernel,
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             (int)c->properties.sharedMemPerBlockOptin),
        name);
}

/*
 * Launches a kernel with blocks for `heads` heads for a group; see
 * tr_attention_shape_of().
 */
template <typename V>
static inline void launch_group(tr_cuda *c, cudaStream_t stream,
                                const char *name, const tr_group &group,
                                uint32_t heads, size_t row, size_t warp,
                                void (*kernel)(attention_job<V>),
                                attention_job<V> job)
{
    const tr_attention_shape s = tr_attention_shape_of(
        c->properties.sharedMemPerBlockOptin, group.longest, row, warp);

    if (!allow_shared(c, name, kernel))
        return;
    job.span = group.span;
    job.chunk = s.chunk;
    job.tiles = s.tiles;
    launch(c, stream, name, dim3(group.count * heads * s.tiles),
           s.warps * 32, s.shared, kernel, job);
}

/*
 * Calls launch(group, stream) for each nonempty group, longest spans first.
 * The groups run in separate streams, after all earlier operations and before
 * all later operations.
 */
template <typename L>
static inline void for_groups(tr_cuda *c, const tr_batch *batch,
                              const L &launch)
{
    const tr_staged *const staged = tr_cuda_staged(batch);

    if (tr_cuda_replays(c)) {
        for (int g = TR_GROUPS - 1; g >= 0; g--)
            launch(staged->group[g], c->side[g]);
        return;
    }
    tr_cuda_good(c, cudaEventRecord(c->fork, c->stream), "attention");
    for (unsigned g = TR_GROUPS; g-- > 0;) {
        if (staged->group[g].count == 0)
            continue;
        tr_cuda_good(c, cudaStreamWaitEvent(c->side[g], c->fork, 0),
                     "attention");
        launch(staged->group[g], c->side[g]);
        tr_cuda_good(c, cudaEventRecord(c->joined[g], c->side[g]),
                     "attention");
        tr_cuda_good(c, cudaStreamWaitEvent(c->stream, c->joined[g], 0),
                     "attention");
    }
}

#endif /* TR_CUDA_ATTENTION_KERNEL_H */
