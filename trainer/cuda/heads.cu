/*
 * heads.cu - gather and scatter rows, tanh, and the losses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/kernel.h"
#include "cuda/stage.h"

#define LOSS_THREADS 512

/* ---- Rows ---- */

/* Grid: one row per block; block: up to THREADS. */
template <typename value, int N>
static __global__ void __launch_bounds__(THREADS)
gather_kernel(unsigned width, const int32_t *index, const value *x,
              value *rows)
{
    const value *const from = x + (size_t)index[blockIdx.x] * width;
    value *const to = rows + (size_t)blockIdx.x * width;

    for (unsigned i = threadIdx.x * N; i < width; i += blockDim.x * N)
        *(bunch<value, N> *)(to + i) = *(const bunch<value, N> *)(from + i);
}

static void gather_rows(tr_device *d, size_t n, size_t width,
                        const int32_t *index, const void *x, void *rows)
{
    tr_cuda *const c = cuda_of(d);

    tr_cuda_reads(c, index);
    by_value(c, [&](auto v) {
        using value = decltype(v);
        constexpr int N = WIDE<value>;
        const bool wide = width % N == 0 && aligned(x, rows);

        launch(c, c->stream, "gather", dim3((unsigned)n),
               threads_of(wide ? width / N : width, THREADS), 0,
               wide ? gather_kernel<value, N> : gather_kernel<value, 1>,
               width, index, (const value *)x, (value *)rows);
    });
}

/* True if an earlier row has the same index.  All threads must call it. */
static inline __device__ bool named_before(const int32_t *index)
{
    const int32_t own = index[blockIdx.x];
    int found = 0;

    for (unsigned i = threadIdx.x; i < blockIdx.x; i += blockDim.x)
        found |= index[i] == own;
    return __syncthreads_or(found);
}

/*
 * Grid: one row per block; block: up to THREADS.  The first row with an index
 * adds all rows with this index, in order.  `distinct` is true if no index
 * occurs twice.
 */
template <typename value, int N>
static __global__ void __launch_bounds__(THREADS)
scatter_kernel(unsigned n, unsigned width, const int32_t *index,
               bool distinct, const value *rows, value *x)
{
    const int32_t own = index[blockIdx.x];
    const unsigned end = distinct ? blockIdx.x + 1 : n;

    if (!distinct && named_before(index))
        return;
    for (unsigned i = threadIdx.x * N; i < width; i += blockDim.x * N) {
        value *const to = x + (size_t)own * width + i;
        real sum[N];

        load<N>(to, sum);
        for (unsigned r = blockIdx.x; r < end; r++) {
            real one[N];

            if (index[r] != own)
                continue;
            load<N>(rows + (size_t)r * width + i, one);
            for (int j = 0; j < N; j++)
                sum[j] += one[j];
        }
        store<N>(sum, to);
    }
}

/* True if an index is known to have no duplicates. */
static bool is_distinct(const tr_cuda *c, const int32_t *index)
{
    const tr_staged *const s = tr_cuda_holder(c, index);

    return s
           && ((index == s->batch.mlm_row && s->mlm_distinct)
               || (index == s->batch.cls_row && s->cls_distinct));
}

static void scatter_rows(tr_device *d, size_t n, size_t width,
                         const int32_t *index, const void *rows, void *x)
{
    tr_cuda *const c = cuda_of(d);

    tr_cuda_reads(c, index);
    by_value(c, [&](auto v) {
        using value = decltype(v);
        constexpr int N = WIDE<value>;
        const bool wide = width % N == 0 && aligned(x, rows);

        launch(c, c->stream, "scatter", dim3((unsigned)n),
               threads_of(wide ? width / N : width, THREADS), 0,
               wide ? scatter_kernel<value, N> : scatter_kernel<value, 1>, n,
               width, index, is_distinct(c, index), (const value *)rows,
               (value *)x);
    });
}

/* ---- tanh ---- */

/* Grid and block: N numbers per thread.  Computes forward if dy is NULL. */
template <typename value, int N>
static __global__ void __launch_bounds__(THREADS)
tanh_kernel(size_t n, value *y, value *dy)
{
    const long long at = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * N;
    real x[N], d[N];

    load_within<N>(y, at, 0, (long long)n, 0, x);
    if (!dy) {
        for (int j = 0; j < N; j++)
            x[j] = tanh(x[j]);
        store_within<N>(x, y, at, 0, (long long)n);
        return;
    }
    load_within<N>(dy, at, 0, (long long)n, 0, d);
    for (int j = 0; j < N; j++)
        d[j] *= 1 - x[j] * x[j];
    store_within<N>(d, dy, at, 0, (long long)n);
}

static void launch_tanh(tr_cuda *c, const char *name, size_t n, void *y,
                        void *dy)
{
    by_value(c, [&](auto v) {
        using value = decltype(v);
        constexpr int N = WIDE<value>;
        const bool wide = aligned(y, dy);

        launch(c, c->stream, name, dim3(blocks_of(n, wide ? THREADS * N
                                                          : THREADS)),
               THREADS, 0, wide ? tanh_kernel<value, N>
                                : tanh_kernel<value, 1>,
               n, (value *)y, (value *)dy);
    });
}

static void tanh_forward(tr_device *d, size_t n, void *x)
{
    launch_tanh(cuda_of(d), "tanh", n, x, NULL);
}

static void tanh_backward(tr_device *d, size_t n, const void *y, void *dy)
{
    launch_tanh(cuda_of(d), "tanh backward", n, (void *)y, dy);
}

/* ---- Losses ---- */

/* Running maximum of a row, and the sum of e^(x - largest). */
struct online {
    real largest;
    real sum;
};

template <int N>
static inline __device__ void take(online *o, const real (&x)[N])
{
    real largest = o->largest;

    for (int j = 0; j < N; j++)
        largest = x[j] > largest ? x[j] : largest;
    o->sum *= exp(o->largest - largest);
    for (int j = 0; j < N; j++)
        o->sum += exp(x[j] - largest);
    o->largest = largest;
}

template <int N, typename value>
static inline __device__ void clear_row(value *x, size_t stride)
{
    const real zero[N] = {};

    for (size_t i = threadIdx.x * N; i < stride; i += blockDim.x * N)
        store<N>(zero, x + i);
}

/* Grid: one row per block, 16-byte aligned; block: up to LOSS_THREADS. */
template <typename value>
static __global__ void __launch_bounds__(LOSS_THREADS, 4)
cross_entropy_kernel(unsigned columns, size_t stride, value *x,
                     const int32_t *labels, const real *weights, double *loss)
{
    constexpr int N = WIDE<value>;
    const int32_t label = labels[blockIdx.x];
    const real weight = weights[blockIdx.x];
    value *const row = x + blockIdx.x * stride;
    online o = {-3e38f, 0};
    real largest, sum[1], own;

    if (label < 0) {
        clear_row<N>(row, stride);
        if (threadIdx.x == 0)
            loss[blockIdx.x] = 0;
        return;
    }
    for (unsigned i = threadIdx.x * N; i < columns; i += blockDim.x * N) {
        real some[N];

        load_within<N>(row, i, 0, columns, -INFINITY, some);
        take(&o, some);
    }
    own = to_real(row[label]);
    largest = block_max(o.largest);
    sum[0] = o.sum * exp(o.largest - largest);
    block_sums(sum);
    __syncthreads(); /* the label's value must be read before it changes */
    if (threadIdx.x == 0)
        loss[blockIdx.x] = log((double)sum[0]) + (double)largest - (double)own;
    for (unsigned i = threadIdx.x * N; i < stride; i += blockDim.x * N) {
        real some[N];

        load_within<N>(row, i, 0, columns, -INFINITY, some);
        for (int j = 0; j < N; j++) {
            some[j] = exp(some[j] - largest) * (weight / sum[0]);
            some[j] -= i + j == (unsigned)label ? weight : 0;
        }
            store<N>(some, row + i); /* sets values after the columns to 0 */
    }
}

/* Grid: one row per block; block: up to LOSS_THREADS. */
template <typename value>
static __global__ void __launch_bounds__(LOSS_THREADS)
compare_kernel(unsigned columns, size_t stride, const value *x,
               const int32_t *labels, int32_t *right)
{
    constexpr int N = WIDE<value>;
    const int32_t wanted = labels[blockIdx.x];
    const value *const logits = x + blockIdx.x * stride;
    real most = -3e38f, own;

    for (unsigned i = threadIdx.x * N; i < columns; i += blockDim.x * N) {
        real some[N];

        load_within<N>(logits, i, 0, columns, -INFINITY, some);
        for (int j = 0; j < N; j++)
            most = some[j] > most ? some[j] : most;
    }
    own = wanted < 0 ? 0 : to_real(logits[wanted]);
    most = block_max(most);
    if (threadIdx.x == 0)
        right[blockIdx.x] = wanted >= 0 && own >= most;
}

static void compare_logits(tr_device *d, size_t rows, size_t columns,
                           size_t stride, const void *x, const int32_t *label,
                           int32_t *right)
{
    tr_cuda *const c = cuda_of(d);

    tr_cuda_reads(c, label);
    by_value(c, [&](auto v) {
        using value = decltype(v);

        launch(c, c->stream, "comparison of logits", dim3((unsigned)rows),
               threads_of(blocks_of(columns, WIDE<value>), LOSS_THREADS), 0,
               compare_kernel<value>, (unsigned)columns, stride,
               (const value *)x, label, right);
    });
}

/* Grid: one block; block: LOSS_THREADS. */
static __global__ void __launch_bounds__(LOSS_THREADS)
total_kernel(size_t rows, const int32_t *labels, const real *weights,
             const double *loss, bool more, double *total)
{
    double sum[1] = {0};

    for (size_t i = threadIdx.x; i < rows; i += blockDim.x)
        if (labels[i] >= 0)
            sum[0] += (double)weights[i] * loss[i];
    block_sums(sum);
    if (threadIdx.x == 0)
        *total = (more ? *total : 0) + sum[0];
}

static void cross_entropy(tr_device *d, tr_loss which, size_t rows,
                          size_t columns, size_t stride, void *x,
                          const int32_t *label, const real *weight,
                          double *loss, bool more)
{
    tr_cuda *const c = cuda_of(d);

    tr_cuda_reads(c, label);
    tr_cuda_reads(c, weight);
    by_value(c, [&](auto v) {
        using value = decltype(v);

        launch(c, c->stream, "cross-entropy", dim3((unsigned)rows),
               threads_of(blocks_of(columns, WIDE<value>), LOSS_THREADS), 0,
               cross_entropy_kernel<value>, columns, stride, (value *)x,
               label, weight, loss);
    });
    launch(c, c->stream, "sum of losses", dim3(1),
           threads_of(rows, LOSS_THREADS), 0, total_kernel, rows, label,
           weight, loss, more, &c->sums->loss[which]);
}

void tr_cuda_heads_ops(tr_ops *ops)
{
    ops->gather_rows = gather_rows;
    ops->scatter_rows = scatter_rows;
    ops->tanh_forward = tanh_forward;
    ops->tanh_backward = tanh_backward;
    ops->compare_logits = compare_logits;
    ops->cross_entropy = cross_entropy;
}
