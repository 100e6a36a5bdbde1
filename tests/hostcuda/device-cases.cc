/*
 * device-cases.cc - valid and invalid operations of kernels.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cases.h"

#include <cuda_bf16.h>
#include <cuda_pipeline_primitives.h>
#include <hostcuda_ptx.h>

#include <cmath>
#include <cstring>

#define FULL 0xffffffffu

/* -- numbers ------------------------------------------------------------- */

static __global__ void set_numbers(float *f, unsigned *u)
{
    f[0] = rsqrtf(4.0f);
    f[1] = __expf(1.0f);
    f[2] = __logf(2.0f);
    f[3] = __fsqrt_rn(9.0f);
    f[4] = __frcp_rn(8.0f);
    f[5] = __fmaf_rn(1.0f + 0x1p-23f, 1.0f + 0x1p-23f, -1.0f);
    f[6] = tanhf(0.5f);
    f[7] = __fdividef(1.0f, 4.0f);
    f[8] = min(1.5f, 2.5f);
    f[9] = fmaxf(-1.0f, 3.0f);
    f[10] = __uint_as_float(0x40490fdbu);
    u[0] = __umulhi(0xffffffffu, 0x80000001u);
    u[1] = (unsigned)__popc(0xf0f0u);
    u[2] = (unsigned)__clz(1);
    u[3] = (unsigned)__clz(0);
    u[4] = (unsigned)__ffs(8);
    u[5] = (unsigned)__ffs(0);
    u[6] = __float_as_uint(1.0f);
    u[7] = max(3u, 7u);
    u[8] = (unsigned)__popcll(~0ull);
}

static void numbers()
{
    static const float F[] = {0.5f, 2.7182817f, 0.6931472f, 3.0f, 0.125f,
                              0x1p-22f, 0.46211717f, 0.25f, 1.5f, 3.0f,
                              3.1415927f};
    static const unsigned U[]
        = {0x80000000u, 8, 31, 32, 4, 0, 0x3f800000u, 7, 64};
    float *f = device_array<float>(11), f_back[11];
    unsigned *u = device_array<unsigned>(9), u_back[9];

    OK(launch(1, 1, 0, 0, set_numbers, f, u));
    OK(cudaMemcpy(f_back, f, sizeof f_back, cudaMemcpyDeviceToHost));
    OK(cudaMemcpy(u_back, u, sizeof u_back, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 11; i++)
        CHECK(std::fabs(f_back[i] - F[i]) <= 1e-6f * F[i]);
    CHECK(!std::memcmp(u_back, U, sizeof U));
}

static void bfloat16()
{
    static const struct { unsigned from; unsigned short to; } ROUNDED[] = {
        {0x3f800000, 0x3f80}, /* 1 */
        {0x3f808000, 0x3f80}, /* a tie: to even */
        {0x3f818000, 0x3f82},
        {0x3f808001, 0x3f81}, {0x3f807fff, 0x3f80},
        {0x7f7fffff, 0x7f80}, /* beyond the greatest */
        {0xff800000, 0xff80}, {0x7f800000, 0x7f80},
        {0x7f800001, 0x7fff}, /* NaN stays one */
        {0x00000001, 0x0000}, {0x80000000, 0x8000},
    };

    for (const auto &r : ROUNDED) {
        float from;

        std::memcpy(&from, &r.from, sizeof from);
        CHECK(__bfloat16_as_ushort(__float2bfloat16(from)) == r.to);
    }
    for (unsigned i = 0; i < 0x7f80; i++)
        CHECK(__bfloat16_as_ushort(__float2bfloat16(
                  __bfloat162float(__ushort_as_bfloat16((unsigned short)i))))
              == i);
    const __nv_bfloat162 two = __floats2bfloat162_rn(1.0f, -2.0f);

    CHECK(sizeof two == 4 && __low2float(two) == 1.0f);
    CHECK(__bfloat1622float2(two).y == -2.0f);
}

/* -- operations of a warp and a block ------------------------------------ */

static __global__ void exchange_all(unsigned *out)
{
    const unsigned lane = threadIdx.x;
    unsigned *mine = out + lane * 8;

    mine[0] = __shfl_sync(FULL, lane, 5);
    mine[1] = __shfl_xor_sync(FULL, lane, 16);
    mine[2] = __shfl_down_sync(FULL, lane, 1);
    mine[3] = __shfl_up_sync(FULL, lane, 1, 8);
    mine[4] = __ballot_sync(FULL, lane % 2);
    mine[5] = (unsigned)__any_sync(FULL, lane == 31);
    mine[6] = (unsigned)__all_sync(FULL, lane < 31);
    mine[7] = lane < 16 ? __shfl_sync(0xffffu, lane, 3, 4) : 0;
}

static void exchanges()
{
    unsigned *out = device_array<unsigned>(256), back[256];

    OK(launch(1, 32, 0, 0, exchange_all, out));
    OK(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
    for (unsigned l = 0; l < 32; l++) {
        const unsigned want[] = {5, l ^ 16, l < 31 ? l + 1 : l,
                                 l % 8 ? l - 1 : l, 0xaaaaaaaau, 1, 0,
                                 l < 16 ? l / 4 * 4 + 3 : 0};

        CHECK(!std::memcmp(want, back + 8 * l, sizeof want));
    }
}

static __global__ void vote(int *out)
{
    const int count = __syncthreads_count(threadIdx.x % 3 == 0);
    const int none = __syncthreads_or(threadIdx.x == 100);
    const int one = __syncthreads_or(threadIdx.x == 99);
    const int all = __syncthreads_and(threadIdx.x < 100);
    const int most = __syncthreads_and(threadIdx.x < 99);

    if (threadIdx.x == 42)
        out[blockIdx.x]
            = count * 10000 + none * 1000 + one * 100 + all * 10 + most;
}

static void votes()
{
    int *out = device_array<int>(2);

    OK(launch(2, 100, 0, 0, vote, out));
    CHECK(value_at(out) == 34 * 10000 + 110);
    CHECK(value_at(out + 1) == 34 * 10000 + 110);
}

/* The last block adds up the results of all, as two-step reductions do. */
static __global__ void sum_in_two_steps(const float *x, int n, float *parts,
                                        unsigned *arrived, float *sum)
{
    __shared__ unsigned order;
    float s = 0.0f;

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += gridDim.x * blockDim.x)
        s += x[i];
    for (int by = 16; by; by /= 2)
        s += __shfl_xor_sync(FULL, s, by);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = s;
        __threadfence();
        order = atomicAdd(arrived, 1u);
    }
    __syncthreads();
    if (order != gridDim.x - 1)
        return;
    __threadfence();
    if (threadIdx.x == 0) {
        s = 0.0f;
        for (unsigned i = 0; i < gridDim.x; i++)
            s += parts[i];
        *sum = s;
    }
}

static __global__ void add_up(float *f, double *d, int *i, unsigned *u,
                              unsigned long long *l)
{
    atomicAdd(f, 1.0f);
    atomicAdd(d, 0.5);
    atomicAdd(i, -1);
    atomicMax(u, threadIdx.x);
    for (unsigned long long seen = 0, want = 1; seen != want;) {
        want = seen;
        seen = atomicCAS(l, want, want + 2);
    }
}

static void atomics()
{
    float x[1000], *f = device_array<float>(1);
    double *d = device_array<double>(1);
    int *i = device_array<int>(1);
    unsigned *u = device_array<unsigned>(1);
    unsigned *arrived = device_array<unsigned>(1);
    unsigned long long *l = device_array<unsigned long long>(1);

    for (float &v : x)
        v = 1.0f;
    for (void *p : {(void *)f, (void *)i, (void *)u, (void *)arrived})
        OK(cudaMemset(p, 0, 4));
    OK(cudaMemset(d, 0, 8));
    OK(cudaMemset(l, 0, 8));
    OK(launch(8, 64, 0, 0, add_up, f, d, i, u, l));
    CHECK(value_at(f) == 512.0f && value_at(d) == 256.0);
    CHECK(value_at(i) == -512 && value_at(u) == 63 && value_at(l) == 1024);
    OK(launch(6, 32, 0, 0, sum_in_two_steps,
              (const float *)device_array(1000, x), 1000,
              device_array<float>(6), arrived, f));
    CHECK(value_at(f) == 1000.0f);
}

/* -- tensor cores ------------------------------------------------------- */

/* c = 1 + 2 a b, of 16 x 8, a warp of its own for each c. */
template <bool turned>
static __global__ void multiply_tiles(const __nv_bfloat16 *a,
                                      const __nv_bfloat16 *b, float *c)
{
    const unsigned lane = threadIdx.x % 32;
    float sum[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    uint32_t left[4], right[4];

    ldmatrix_x4(left, a + lane % 16 * 24 + lane / 16 * 8);
    if (turned)
        ldmatrix_x4(right, b + lane % 8 * 24 + lane / 8 % 2 * 8);
    else
        ldmatrix_x4_trans(right, b + lane % 16 * 24);
    mma_m16n8k16(sum, left, right[0], right[1]);
    mma_m16n8k16(sum, left, right[0], right[1]);
    for (unsigned i = 0; i < 4; i++)
        c[threadIdx.x / 32 * 128 + (lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2
          + i % 2]
            = sum[i];
}

static void tensor_tiles()
{
    __nv_bfloat16 a[16 * 24], b[16 * 24];
    float *c = device_array<float>(2 * 128), back[128];

    for (int i = 0; i < 16 * 24; i++) {
        a[i] = (float)(i * 7 % 13 - 6);
        b[i] = (float)(i * 5 % 11 - 5);
    }
    const __nv_bfloat16 *da = device_array(16 * 24, a);
    const __nv_bfloat16 *db = device_array(16 * 24, b);

    for (int turned = 0; turned < 2; turned++) {
        OK(launch(1, 64, 0, 0,
                  turned ? multiply_tiles<true> : multiply_tiles<false>, da,
                  db, c));
        OK(cudaMemcpy(back, c + 128, sizeof back, cudaMemcpyDeviceToHost));
        for (int i = 0; i < 16; i++)
            for (int j = 0; j < 8; j++) {
                float s = 1.0f;

                for (int k = 0; k < 16; k++)
                    s += 2.0f * (float)a[i * 24 + k]
                         * (float)b[turned ? j * 24 + k : k * 24 + j];
                CHECK(back[i * 8 + j] == s);
            }
    }
}

static __global__ void load_tiles(const __nv_bfloat16 *p, int odd_lane)
{
    uint32_t tile[4];

    ldmatrix_x4(tile, p + (threadIdx.x % 2 ? odd_lane : 0));
}

static void tile_misaligned()
{
    OK(launch(1, 32, 0, 0, load_tiles,
              (const __nv_bfloat16 *)device_array<float>(512), 4));
    cudaDeviceSynchronize();
}

static void tile_half_a_warp()
{
    OK(launch(1, 16, 0, 0, load_tiles,
              (const __nv_bfloat16 *)device_array<float>(512), 0));
    cudaDeviceSynchronize();
}

/* -- asynchronous copies ------------------------------------------------- */

/* Two batches; `prior` of them are still pending when out is written. */
static __global__ void copy_twice(const float *in, float *out, int prior,
                                  int ends)
{
    __shared__ float s[2][32];
    const unsigned i = threadIdx.x;

    for (int batch = 0; batch < 2; batch++) {
        __pipeline_memcpy_async(&s[batch][i], &in[32 * batch + i], 4,
                                i < 8 ? 4 : 0);
        __pipeline_commit();
    }
    __pipeline_wait_prior((size_t)prior);
    out[i] = s[0][i];
    out[32 + i] = s[1][i];
    if (!ends)
        __pipeline_wait_prior(0);
}

static void async_copies()
{
    float x[64], back[64];
    float *out = device_array<float>(64);

    for (int i = 0; i < 64; i++)
        x[i] = (float)i + 1.0f;
    const float *in = device_array(64, x);

    for (int prior = 0; prior < 3; prior++) {
        OK(launch(1, 32, 0, 0, copy_twice, in, out, prior, 0));
        OK(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
        for (int i = 0; i < 64; i++) {
            const bool here = i / 32 + prior < 2;

            CHECK(here ? back[i] == (i % 32 < 8 ? 0.0f : x[i])
                       : back[i] != back[i]);
        }
    }
}

static void async_copy_left()
{
    OK(launch(1, 32, 0, 0, copy_twice,
              (const float *)device_array<float>(64), device_array<float>(64),
              1, 1));
    cudaDeviceSynchronize();
}

static __global__ void copy_odd(const float *in, int size)
{
    __shared__ __align__(16) float s[8];

    __pipeline_memcpy_async(s + (size == 16), in, (size_t)size);
    __pipeline_commit();
    __pipeline_wait_prior(0);
}

template <int size> static void async_copy_odd()
{
    OK(launch(1, 1, 0, 0, copy_odd, (const float *)device_array<float>(8),
              size));
    cudaDeviceSynchronize();
}

/* -- invalid barriers and exchanges -------------------------------------- */

enum wrong {
    SKIPS, ENDS, OTHER_LINE, NEVER, FROM_OUTSIDE, LEFT_OUT, NO_LANE, LANE_ENDED,
    OTHER_MASK, WIDTH
};

static __global__ void meet_wrongly(int how)
{
    const unsigned t = threadIdx.x, lane = t % 32;

    if (how == SKIPS && t < 32)
        __syncthreads();
    if (how == ENDS && t >= 32)
        return;
    if (how == OTHER_LINE && t < 32)
        __syncthreads();
    else if (how == OTHER_LINE)
        __syncthreads();
    if (how == NEVER && t < 16)
        __syncwarp();
    if (how == FROM_OUTSIDE && lane < 16)
        __shfl_sync(0xffffu, t, 20);
    if (how == LEFT_OUT)
        __syncwarp(0xffffu);
    if (how == NO_LANE && t >= 32)
        __syncwarp();
    if (how == LANE_ENDED && t >= 31)
        return;
    if (how == LANE_ENDED)
        __syncwarp();
    if (how == OTHER_MASK)
        __syncwarp(lane < 16 ? 0xffffffffu : 0xffff0001u | 1u << lane);
    if (how == WIDTH)
        __shfl_xor_sync(FULL, t, 1, 12);
    if (how == ENDS || how == NEVER)
        __syncthreads();
}

template <int how> static void meets()
{
    OK(launch(1, 48, 0, 0, meet_wrongly, how));
    cudaDeviceSynchronize();
}

/* -- memory -------------------------------------------------------------- */

static __global__ void read_unwritten(unsigned *out, const unsigned *fresh)
{
    __shared__ unsigned fixed[64];
    const unsigned *dynamic = (const unsigned *)dynamic_shared;

    out[3 * blockIdx.x] = fixed[7];
    out[3 * blockIdx.x + 1] = dynamic[7];
    out[3 * blockIdx.x + 2] = *fresh;
    __syncthreads();
    fixed[threadIdx.x] = 1;
    ((unsigned *)dynamic_shared)[threadIdx.x] = 1;
}

static void unwritten()
{
    unsigned *out = device_array<unsigned>(60), back[60];

    OK(launch(20, 1, 256, 0, read_unwritten, out,
              (const unsigned *)device_array<unsigned>(1)));
    OK(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
    for (unsigned x : back)
        CHECK(x == FULL);
}

static __global__ void write_at(char *p, long long offset) { p[offset] = 1; }

static void write_past_end()
{
    char *p = device_array<char>(1000);

    OK(launch(1, 1, 0, 0, write_at, p, 1000LL));
    OK(cudaDeviceSynchronize());
    OK(cudaFree(p));
}

static void write_far_past_end()
{
    OK(launch(1, 1, 0, 0, write_at, device_array<char>(1000), 1030LL));
    OK(cudaDeviceSynchronize());
}

static void write_before()
{
    OK(launch(1, 1, 0, 0, write_at, device_array<char>(4096), -1LL));
    OK(cudaDeviceSynchronize());
}

static __global__ void write_through(char **p) { **p = 1; }

static void write_freed()
{
    char *p = device_array<char>(100), **table = device_array(1, &p);

    OK(cudaFree(p));
    OK(launch(1, 1, 0, 0, write_through, table));
    OK(cudaDeviceSynchronize());
}

static __global__ void write_shared(int i)
{
    ((volatile float *)dynamic_shared)[i] = 1.0f;
}

static void write_past_shared()
{
    OK(launch(1, 1, 64, 0, write_shared, 16));
    OK(cudaDeviceSynchronize());
}

static __device__ void recur(int depth, volatile char *out)
{
    volatile char frame[4096];

    frame[depth % 4096] = 1;
    if (depth)
        recur(depth - 1, frame);
    out[0] = frame[depth % 4096];
}

static __global__ void go_deep(int depth, volatile char *out)
{
    recur(depth, out);
}

static void stack_overflow()
{
    OK(launch(1, 1, 0, 0, go_deep, 100,
              (volatile char *)device_array<char>(1)));
    OK(cudaDeviceSynchronize());
}

/* -- races --------------------------------------------------------------- */

static __global__ void add_plainly(int *sum) { *sum += 1; }

static __global__ void reverse_in_shared(int *out, bool wait)
{
    __shared__ int x[64];

    x[threadIdx.x] = (int)threadIdx.x;
    if (wait)
        __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = x[63 - threadIdx.x];
}

static void plain_sum()
{
    int *sum = device_array<int>(1);

    OK(cudaMemset(sum, 0, 4));
    OK(launch(4, 32, 0, 0, add_plainly, sum));
    OK(cudaDeviceSynchronize());
}

static void no_barrier()
{
    OK(launch(2, 64, 0, 0, reverse_in_shared, device_array<int>(128), false));
    OK(cudaDeviceSynchronize());
}

static void with_barrier()
{
    int *out = device_array<int>(8 * 64);

    for (int i = 0; i < 3; i++) /* __shared__ is written in turn */
        OK(launch(8, 64, 0, 0, reverse_in_shared, out, true));
    CHECK(value_at(out + 100) == 27);
}

/* -- counters ------------------------------------------------------------ */

template <typename T> static __global__ void copy_each(const T *from, T *to)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    to[i] = from[i];
}

static __global__ void read_all(const __nv_bfloat16 *x, float *sum)
{
    __shared__ float local[4]; /* does not count */

    local[threadIdx.x] = 0.0f;
    for (int i = 0; i < 64; i++)
        local[threadIdx.x] += __bfloat162float(x[i]);
    atomicAdd(sum, local[threadIdx.x]);
}

static void counters()
{
    float *x = device_array<float>(1024), *y = device_array<float>(1024);
    hostcuda_count c;

    OK(launch(2, 128, 0, 0, copy_each<float4>, (const float4 *)x, (float4 *)y));
    OK(launch(1, 128, 0, 0, copy_each<float>, (const float *)x, y));
    OK(launch(1, 4, 0, 0, read_all, (const __nv_bfloat16 *)x, y));
    OK(cudaDeviceSynchronize());
    c = hostcuda_counts("copy_each<float4>");
    CHECK(c.launches == 1 && c.read == 4096 && c.written == 4096);
    c = hostcuda_counts("copy_each");
    CHECK(c.launches == 2 && c.read == 4608 && c.written_distinct == 4608);
    c = hostcuda_counts("read_all");
    CHECK(c.read == 4 * 64 * 2 + 4 * 4 && c.read_distinct == 128 + 4);
    CHECK(c.written == 16 && c.written_distinct == 4);
    CHECK(hostcuda_counts("copy").launches == 0);
    CHECK(hostcuda_counts(nullptr).launches == 3);
    hostcuda_counts_reset();
    CHECK(hostcuda_counts(nullptr).launches == 0);
}

#define ORDERS(name, run)                                                     \
    {name, run, nullptr, ALL, "HOSTCUDA_ORDER=reverse"},                      \
        {name, run, nullptr, PLAIN, "HOSTCUDA_ORDER=1"},                      \
        {name, run, nullptr, PLAIN, "HOSTCUDA_ORDER=2"},                      \
    {                                                                         \
        name, run, nullptr, ALL, nullptr                                      \
    }

const test_case device_cases[] = {
    {"numbers", numbers, nullptr, ALL, nullptr},
    {"bfloat16", bfloat16, nullptr, ALL, nullptr},
    ORDERS("exchanges", exchanges),
    ORDERS("votes", votes),
    ORDERS("atomics", atomics),
    ORDERS("tensor_tiles", tensor_tiles),
    {"tile_misaligned", tile_misaligned, "not lie at 16 bytes", ALL, nullptr},
    {"tile_half_a_warp", tile_half_a_warp, "lanes that the block has not", ALL,
     nullptr},
    ORDERS("async_copies", async_copies),
    {"async_copy_left", async_copy_left, "never waited for", ALL, nullptr},
    {"async_copy_size", async_copy_odd<12>, "4, 8 or 16 bytes", ALL, nullptr},
    {"async_copy_misaligned", async_copy_odd<16>, "not aligned to its size",
     ALL, nullptr},
    {"barrier_skipped", meets<SKIPS>, "that ended threads never reach", ALL,
     "HOSTCUDA_ORDER=reverse"},
    {"barrier_skipped_forward", meets<SKIPS>, "threads that never come", ALL,
     nullptr},
    {"barrier_ended", meets<ENDS>, "threads that never come", ALL, nullptr},
    {"barrier_other_line", meets<OTHER_LINE>, "met another of another line",
     ALL, nullptr},
    {"barrier_and_warp", meets<NEVER>, "threads that never come", ALL, nullptr},
    {"shuffle_from_outside", meets<FROM_OUTSIDE>, "not in the mask", ALL,
     nullptr},
    {"mask_without_self", meets<LEFT_OUT>, "own mask leaves out", ALL, nullptr},
    {"mask_beyond_block", meets<NO_LANE>, "that the block has not", ALL,
     nullptr},
    {"mask_of_ended", meets<LANE_ENDED>, "lanes that have ended", ALL,
     "HOSTCUDA_ORDER=reverse"},
    {"mask_unlike", meets<OTHER_MASK>, "other masks or operations", ALL,
     nullptr},
    {"shuffle_width", meets<WIDTH>, "not a power of two", ALL, nullptr},
    {"unwritten", unwritten, nullptr, ALL, nullptr},
    {"unwritten_one_thread", unwritten, nullptr, PLAIN, "HOSTCUDA_THREADS=1"},
    {"write_past_end", write_past_end, "past the end of 1000 bytes",
     PLAIN | TSAN | COUNTERS, nullptr},
    {"write_past_end", write_past_end, "use-after-poison", ASAN, nullptr},
    {"write_far_past_end", write_far_past_end,
     "1030 bytes past the start of 1000 bytes of device memory",
     PLAIN | COUNTERS, nullptr},
    {"write_far_past_end", write_far_past_end, "SEGV", ASAN | TSAN, nullptr},
    {"write_before", write_before, "1 bytes before 4096 bytes",
     PLAIN | COUNTERS, nullptr},
    {"write_freed", write_freed, "device memory that was freed",
     PLAIN | COUNTERS, nullptr},
    {"write_freed", write_freed, "use-after-poison", ASAN, nullptr},
    {"write_past_shared", write_past_shared, "use-after-poison", ASAN, nullptr},
    {"stack_overflow", stack_overflow, "a thread's stack overflows", PLAIN,
     nullptr},
    {"plain_sum", plain_sum, "data race", TSAN, nullptr},
    {"no_barrier", no_barrier, "data race", TSAN, nullptr},
    ORDERS("with_barrier", with_barrier),
    {"counters", counters, nullptr, COUNTERS, nullptr},
    {nullptr, nullptr, nullptr, 0, nullptr},
};
