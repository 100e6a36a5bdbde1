/*
 * attention_mma.h - shared code of the bfloat16 attention kernels.
 *
 * A block has 4 warps, each of which holds its 16 rows as tiles in registers.
 * Iterated rows pass through shared memory in chunks of 64; while the warps
 * process one chunk, in steps of 32 rows, the next chunk is copied.  Scores and
 * their weights never leave registers: a product's accumulators have the layout
 * of the next product's left operand, as in FlashAttention-2 (Dao 2023).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TR_CUDA_ATTENTION_MMA_H
#define TR_CUDA_ATTENTION_MMA_H

#include <cuda_pipeline_primitives.h>

#include "cuda/attention_kernel.h"
#include "cuda/ptx.h"

static constexpr unsigned MMA_WARPS = 4;   /* per block */
static constexpr unsigned MMA_CHUNK = 64;  /* iterated rows copied at a time */
static constexpr unsigned MMA_TILES = STEP / 8; /* tiles of scores per step */

static constexpr float LOG2_E = 1.4426950408889634f;
static constexpr float LN_2 = 0.6931471805599453f;

typedef __nv_bfloat16 bf16;

/* Sizes in shared memory, in numbers.  LD prevents bank conflicts. */
template <int WIDTH> struct mma_layout {
    static constexpr unsigned LD = WIDTH + 8; /* row stride */
    static constexpr unsigned OWN = TILE * LD;
    static constexpr unsigned PAST = MMA_CHUNK * LD;
};

/* A warp's scores in one step, 16 x 32: four tiles of 16 x 8. */
typedef float mma_scores[MMA_TILES][4];

/* A warp's sums, 16 x WIDTH. */
template <int WIDTH> struct mma_sums {
    float x[WIDTH / 8][4] = {};
};

/* ---- Load and store rows ---- */

/*
 * Starts to copy ROWS rows of a head to shared memory, using BY threads, of
 * which this is number `thread`.  Rows from `rows` on, and columns from `width`
 * on, are set to 0.  Readers must wait until the copies are complete.
 */
template <int WIDTH, unsigned ROWS, unsigned BY>
static __device__ inline void fetch(bf16 *to, const bf16 *from, size_t stride,
                                    uint32_t rows, uint32_t width,
                                    unsigned thread)
{
    constexpr unsigned LINE = WIDE<bf16>, LINES = WIDTH / LINE;
    constexpr unsigned LD = mma_layout<WIDTH>::LD;
    const unsigned first = thread / LINES, column = thread % LINES * LINE;

    if (width % LINE == 0) {
        const bf16 *at = from + first * stride + column;

#pragma unroll
        for (unsigned i = 0; i < ROWS; i += BY / LINES) {
            const bool in = first + i < rows && column < width;

            __pipeline_memcpy_async(to + (first + i) * LD + column,
                                    in ? at : from, 16, in ? 0 : 16);
            at += BY / LINES * stride;
        }
        return;
    }
    for (unsigned i = thread; i < ROWS * WIDTH; i += BY) {
        const unsigned row = i / WIDTH, x = i % WIDTH;
        const bool in = row < rows && x < width;

        from_real(in ? to_real(from[row * stride + x]) : 0.0f,
                  to + row * LD + x);
    }
}

/* Fetches a warp's own 16 rows, of which `rows` exist. */
template <int WIDTH>
static __device__ inline void fetch_own(bf16 *to, const bf16 *from,
                                        size_t stride, uint32_t rows,
                                        uint32_t width)
{
    fetch<WIDTH, TILE, 32>(to, from, stride, rows, width, threadIdx.x % 32);
}

/* Waits for a warp's own rows; `later` batches were fetched after them. */
static __device__ inline void wait_own(unsigned later)
{
    __pipeline_wait_prior(later);
    __syncwarp();
}

/* Fetches a block's next 64 rows of a matrix, of which `rows` exist. */
template <int WIDTH>
static __device__ inline void fetch_past(bf16 *to, const bf16 *from,
                                         size_t stride, uint32_t rows,
                                         uint32_t width)
{
    fetch<WIDTH, MMA_CHUNK, MMA_WARPS * 32>(to, from, stride, rows, width,
                                            threadIdx.x);
}

static __device__ inline uint32_t pack(float low, float high)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    uint32_t bits;

    memcpy(&bits, &both, sizeof bits);
    return bits;
}

/*
 * Writes a warp's sums to its 16 rows, using shared memory as a buffer.  Each
 * lane holds rows lane / 4 and lane / 4 + 8, and passes their scales.
 */
template <int WIDTH>
static __device__ inline void
store_sums(bf16 *to, size_t stride, uint32_t rows, uint32_t width,
           const mma_sums<WIDTH> &sums, const float (&scale)[2], bf16 *own)
{
    constexpr unsigned LINE = WIDE<bf16>;
    constexpr unsigned LD = mma_layout<WIDTH>::LD;
    const unsigned lane = threadIdx.x % 32;

    __syncwarp(); /* the earlier contents have been read */
#pragma unroll
    for (unsigned t = 0; t < WIDTH / 8; t++)
#pragma unroll
        for (unsigned half = 0; half < 2; half++)
            *(uint32_t *)(own + (lane / 4 + 8 * half) * LD + 8 * t
                          + lane % 4 * 2)
                = pack(sums.x[t][2 * half] * scale[half],
                       sums.x[t][2 * half + 1] * scale[half]);
    __syncwarp();
    if (width % LINE == 0) {
#pragma unroll
        for (unsigned i = lane; i < TILE * WIDTH / LINE; i += 32) {
            const unsigned row = i / (WIDTH / LINE);
            const unsigned column = i % (WIDTH / LINE) * LINE;

            if (row < rows && column < width)
                *(float4 *)(to + row * stride + column)
                    = *(const float4 *)(own + row * LD + column);
        }
    } else {
        for (unsigned i = lane; i < TILE * WIDTH; i += 32)
            if (i / WIDTH < rows && i % WIDTH < width)
                to[i / WIDTH * stride + i % WIDTH]
                    = own[i / WIDTH * LD + i % WIDTH];
    }
    __syncwarp();
}

/* ---- Products ---- */

/*
 * A warp's own rows as left operands, one tile per 16 columns.  They stay in
 * registers or, if the head is too wide, are reloaded for each product.
 */
template <int WIDTH, bool KEPT = WIDTH <= 64> struct mma_own;

template <int WIDTH> static __device__ inline unsigned left_offset()
{
    const unsigned lane = threadIdx.x % 32;

    return lane % 16 * mma_layout<WIDTH>::LD + lane / 16 * 8;
}

template <int WIDTH> struct mma_own<WIDTH, true> {
    uint32_t tile[WIDTH / 16][4];

    __device__ void take(const bf16 *rows)
    {
#pragma unroll
        for (unsigned k = 0; k < WIDTH / 16; k++)
            ldmatrix_x4(tile[k], rows + left_offset<WIDTH>() + 16 * k);
    }

    __device__ void read(uint32_t (&a)[4], unsigned k) const
    {
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            a[i] = tile[k][i];
    }
};

template <int WIDTH> struct mma_own<WIDTH, false> {
    const bf16 *at;

    __device__ void take(const bf16 *rows)
    {
        at = rows + left_offset<WIDTH>();
    }

    __device__ void read(uint32_t (&a)[4], unsigned k) const
    {
        ldmatrix_x4(a, at + 16 * k);
    }
};

/* scores = own past^T, for 8 TILES iterated rows. */
template <int WIDTH, unsigned TILES>
static __device__ inline void score(const mma_own<WIDTH> &own,
                                    const bf16 *past, float (&scores)[TILES][4])
{
    constexpr unsigned LD = mma_layout<WIDTH>::LD;
    const unsigned lane = threadIdx.x % 32;
    const bf16 *const at
        = past + (lane % 8 + lane / 16 * 8) * LD + lane / 8 % 2 * 8;

#pragma unroll
    for (unsigned t = 0; t < TILES; t++)
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            scores[t][i] = 0;
#pragma unroll
    for (unsigned k = 0; k < WIDTH / 16; k++) {
        uint32_t a[4], b[4];

        own.read(a, k);
#pragma unroll
        for (unsigned n = 0; n < TILES; n += 2) {
            ldmatrix_x4(b, at + 8 * n * LD + 16 * k);
            mma_m16n8k16(scores[n], a, b[0], b[1]);
            mma_m16n8k16(scores[n + 1], a, b[2], b[3]);
        }
    }
}

/* sums += x past; x is 16 x (8 TILES), as pairs of bfloat16. */
template <int WIDTH, unsigned TILES>
static __device__ inline void weigh(const uint32_t (&x)[TILES][2],
                                    const bf16 *past, mma_sums<WIDTH> &sums)
{
    constexpr unsigned LD = mma_layout<WIDTH>::LD;
    const bf16 *const at = past + left_offset<WIDTH>();

#pragma unroll
    for (unsigned k = 0; k < TILES; k += 2) {
        const uint32_t a[4] = {x[k][0], x[k][1], x[k + 1][0], x[k + 1][1]};

#pragma unroll
        for (unsigned n = 0; n < WIDTH / 8; n += 2) {
            uint32_t b[4];

            ldmatrix_x4_trans(b, at + 8 * k * LD + 8 * n);
            mma_m16n8k16(sums.x[n], a, b[0], b[1]);
            mma_m16n8k16(sums.x[n + 1], a, b[2], b[3]);
        }
    }
}

/*
 * Calls step(all, x, y, column) for every 32 rows of a chunk that a warp meets.
 * `own` is the warp's first row, `at` the chunk's.  x and y point to the 32
 * rows in shared memory, and `column` is the number of the first one.  The type
 * of `all` is true if each of the warp's rows meets all 32.
 */
template <int WIDTH, bool MASKED, typename F>
static __device__ inline void
for_steps(const attention_band<MASKED> &band, uint32_t own, uint32_t at,
          const bf16 *x, const bf16 *y, const F &step)
{
    constexpr unsigned LD = mma_layout<WIDTH>::LD;

#pragma unroll 1
    for (uint32_t j = 0; j < min(MMA_CHUNK, band.n - at); j += STEP) {
        if (band.misses(own, at + j, STEP))
            continue;
        if (band.covers(own, at + j, STEP))
            step(std::true_type(), x + j * LD, y + j * LD, at + j);
        else
            step(std::false_type(), x + j * LD, y + j * LD, at + j);
    }
}

/* The rows of a step that a lane's two rows meet. */
struct mma_seen {
    attention_range row[2];
};

template <bool MASKED>
static __device__ inline mma_seen seen_by(const attention_band<MASKED> &band,
                                          uint32_t own, uint32_t at)
{
    const uint32_t row = own + threadIdx.x % 32 / 4;

    return {{band.within(row, at), band.within(row + 8, at)}};
}

/* ---- Host code ---- */

/* Launches a kernel with blocks for `heads` heads and `shared` bytes of shared
 * memory for a group. */
static inline void launch_mma(tr_cuda *c, cudaStream_t stream,
                              const char *name, const tr_group &group,
                              uint32_t heads, size_t shared,
                              void (*kernel)(attention_job<bf16>),
                              attention_job<bf16> job)
{
    const uint32_t rows = MMA_WARPS * TILE;

    if (!allow_shared(c, name, kernel))
        return;
    job.span = group.span;
    job.tiles = (group.longest + rows - 1) / rows;
    launch(c, stream, name, dim3(group.count * heads * job.tiles),
           MMA_WARPS * 32, shared, kernel, job);
}

#endif /* TR_CUDA_ATTENTION_MMA_H */
