/*
 * lamb.cu - a LAMB step over all tensors at once.
 *
 * The arenas are divided into chunks, each within one tensor.  The table of
 * chunks is built once.  A step consists of three launches over all chunks and
 * two small launches in between:
 *
 *   norm     sums the squares of the gradient, per chunk
 *   begin    computes the total norm and clipping, and checks for finite values
 *   moments  updates the moments, and sums squares of weights and of updates
 *   ratios   computes trust ratios, one block per tensor
 *   update   updates the weights and their bfloat16 copy
 *
 * The host does not check results: if a norm or a loss is not finite, `begin`
 * sets a flag on the device, and later kernels return at once.  Sums over
 * chunks are computed in order.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include <new>

#include "cuda/graphs.h"
#include "cuda/kernel.h"

#define CHUNK ((size_t)1 << 12) /* numbers in a chunk */
#define ONE_BLOCK 1024

/* Numbers `begin` to `end` - 1, within one tensor. */
struct chunk {
    unsigned long long begin;
    unsigned long long end;
    unsigned part;
};

/* A tensor's chunks and shared values. */
struct tensor {
    unsigned first;
    unsigned count;
    int decays;
    double ratio;
};

/* The table of chunks.  The norm of the gradient does not use it, but covers
 * `numbers` in blocks of CHUNK. */
struct tr_chunks {
    tr_part *parts; /* key of the table */
    size_t n_parts;
    size_t numbers;
    size_t n_chunks;
    chunk *chunks;     /* [n_chunks] on the device, like all below */
    tensor *tensors;   /* [n_parts] */
    double *norms;     /* [blocks] sums of squared gradients */
    double (*sums)[2]; /* [n_chunks] squares of weights and of updates */
    double *clip;      /* factor applied to the gradients */
};

/* ---- The table ---- */

static void free_table(tr_cuda *c)
{
    tr_chunks *const t = c->chunks;

    cudaStreamSynchronize(c->stream);
    free(t->parts);
    tr_cuda_free(c, t->chunks);
    tr_cuda_free(c, t->tensors);
    tr_cuda_free(c, t->norms);
    tr_cuda_free(c, t->sums);
    tr_cuda_free(c, t->clip);
    *t = {};
}

void tr_chunks_close(tr_cuda *c)
{
    if (c->chunks == NULL)
        return;
    free_table(c);
    delete c->chunks;
    c->chunks = NULL;
}

/* Chunks end at multiples of CHUNK and at the end of the part. */
static size_t chunks_of(const tr_part *p)
{
    return p->count ? (p->offset + p->count - 1) / CHUNK - p->offset / CHUNK
                          + 1
                    : 0;
}

static void cut(const tr_part *parts, size_t n_parts, chunk *chunks,
                tensor *tensors)
{
    unsigned n = 0;

    for (size_t i = 0; i < n_parts; i++) {
        const tr_part *const p = &parts[i];
        const unsigned long long end = p->offset + p->count;

        tensors[i] = {n, (unsigned)chunks_of(p), p->decays, 1};
        for (unsigned long long at = p->offset; at < end; n++) {
            const unsigned long long next = (at / CHUNK + 1) * CHUNK;

            chunks[n] = {at, next < end ? next : end, (unsigned)i};
            at = chunks[n].end;
        }
    }
}

template <typename T> static bool make(tr_cuda *c, T **to, size_t n)
{
    return tr_cuda_good(c, cudaMalloc((void **)to, (n ? n : 1) * sizeof(T)),
                        "memory for LAMB");
}

/* Builds the table on the host and copies it to the device. */
static bool fill_table(tr_cuda *c)
{
    tr_chunks *const t = c->chunks;
    chunk *const chunks = (chunk *)calloc(t->n_chunks + 1, sizeof *chunks);
    tensor *const tensors = (tensor *)calloc(t->n_parts + 1, sizeof *tensors);

    if (chunks && tensors) {
        cut(t->parts, t->n_parts, chunks, tensors);
        c->table.upload(&c->device, t->chunks, chunks,
                        t->n_chunks * sizeof *chunks);
        c->table.upload(&c->device, t->tensors, tensors,
                        t->n_parts * sizeof *tensors);
    } else {
        tr_cuda_good(c, cudaErrorMemoryAllocation, "LAMB");
    }
    free(chunks);
    free(tensors);
    return !c->failed;
}

static bool make_table(tr_cuda *c, size_t n_parts, const tr_part *parts,
                       size_t numbers)
{
    tr_chunks *const t = c->chunks;

    t->parts = (tr_part *)calloc(n_parts + 1, sizeof *parts);
    if (t->parts == NULL)
        return tr_cuda_good(c, cudaErrorMemoryAllocation, "LAMB");
    if (n_parts > 0)
        memcpy(t->parts, parts, n_parts * sizeof *parts);
    t->n_parts = n_parts;
    t->numbers = numbers;
    for (size_t i = 0; i < n_parts; i++)
        t->n_chunks += chunks_of(&parts[i]);
    return make(c, &t->chunks, t->n_chunks) && make(c, &t->tensors, n_parts)
           && make(c, &t->norms, numbers / CHUNK + 1)
           && make(c, &t->sums, t->n_chunks) && make(c, &t->clip, 1)
           && fill_table(c);
}

static bool is_same(const tr_part *a, const tr_part *b)
{
    return a->offset == b->offset && a->count == b->count
           && a->decays == b->decays;
}

static bool fits(const tr_chunks *t, size_t n_parts, const tr_part *parts,
                 size_t numbers)
{
    if (t->parts == NULL || t->n_parts != n_parts || t->numbers != numbers)
        return false;
    for (size_t i = 0; i < n_parts; i++)
        if (!is_same(&t->parts[i], &parts[i]))
            return false;
    return true;
}

/* Returns the table for these parts, and rebuilds it if they have changed. */
static tr_chunks *table_of(tr_cuda *c, size_t n_parts,
                           const tr_part *parts, size_t numbers)
{
    if (c->chunks == NULL)
        c->chunks = new (std::nothrow) tr_chunks();
    if (c->chunks == NULL) {
        tr_cuda_good(c, cudaErrorMemoryAllocation, "LAMB");
        return NULL;
    }
    if (fits(c->chunks, n_parts, parts, numbers))
        return c->chunks;
    free_table(c);
    return make_table(c, n_parts, parts, numbers) ? c->chunks : NULL;
}

/* ---- The gradient ---- */

/* A step's arguments: a copy, or an address if the step runs as a graph. */
struct step_numbers {
    tr_lamb_numbers here;
    const tr_lamb_numbers *shared; /* NULL: use `here` */
};

static inline __device__ tr_lamb_numbers numbers_of(const step_numbers &s)
{
    return s.shared ? *s.shared : s.here;
}

/* Grid: CHUNK numbers per block; block: THREADS. */
template <int N>
static __global__ void __launch_bounds__(THREADS)
norm_kernel(size_t numbers, const real *gradients, double *norms)
{
    const long long begin = (long long)blockIdx.x * CHUNK;
    double sum[1] = {0};

    for (int k = threadIdx.x * N; k < (int)CHUNK; k += THREADS * N) {
        real x[N];

        load_within<N>(gradients, begin + k, 0, (long long)numbers, 0, x);
        for (int j = 0; j < N; j++)
            sum[0] += (double)x[j] * (double)x[j];
    }
    block_sums(sum);
    if (threadIdx.x == 0)
        norms[blockIdx.x] = sum[0];
}

/* Grid: one block; block: ONE_BLOCK threads. */
static __global__ void __launch_bounds__(ONE_BLOCK)
begin_kernel(unsigned n, const double *norms, step_numbers step, double *clip,
             tr_sums *sums)
{
    const double most = numbers_of(step).clip;
    double sum[1] = {0};
    double norm;
    bool finite;

    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        sum[0] += norms[i];
    block_sums(sum);
    if (threadIdx.x > 0)
        return;
    norm = sqrt(sum[0]);
    *clip = most > 0 && norm > most ? most / norm : 1;
    finite = isfinite(norm);
    for (int i = 0; i < TR_LOSSES; i++)
        finite = finite && isfinite(sums->loss[i]);
    if (!finite)
        sums->halted = 1;
    if (sums->halted)
        return;
    sums->gradient = norm;
    sums->steps++;
    for (int i = 0; i < TR_LOSSES; i++)
        sums->sum[i] += sums->loss[i];
}

/* ---- Moments and updates ---- */

struct arenas {
    real *weights;
    const real *gradients;
    real *mean;
    real *square;
    __nv_bfloat16 *copy; /* bfloat16 weights; may be NULL */
};

/* Returns the update of a weight, before learning rate and trust ratio. */
static inline __device__ real update_of(const tr_lamb_numbers &s,
                                        real decay, real mean, real square,
                                        real weight)
{
    return mean * s.correct1 / (sqrt(square * s.correct2) + s.epsilon)
           + decay * weight;
}

/*
 * Updates the moments and computes sums for trust ratios, which tensors without
 * decay do not use.  Grid: one chunk per block; block: THREADS.
 */
template <int N>
static __global__ void __launch_bounds__(THREADS)
moments_kernel(step_numbers step, const chunk *chunks, const double *clip,
               const int *halted, arenas a, double (*sums)[2])
{
    const tr_lamb_numbers s = numbers_of(step);
    const chunk own = chunks[blockIdx.x];
    const long long begin = (long long)own.begin, end = (long long)own.end;
    const real scale = (real)*clip;
    double sum[2] = {0, 0};

    if (*halted)
        return;
    for (long long i = begin / N * N + threadIdx.x * N; i < end;
         i += THREADS * N) {
        real weight[N], gradient[N], mean[N], square[N];

        load_within<N>(a.weights, i, begin, end, 0, weight);
        load_within<N>(a.gradients, i, begin, end, 0, gradient);
        load_within<N>(a.mean, i, begin, end, 0, mean);
        load_within<N>(a.square, i, begin, end, 0, square);
        for (int j = 0; j < N; j++) {
            const real g = gradient[j] * scale;
            real update;

            mean[j] = s.beta1 * mean[j] + s.rest1 * g;
            square[j] = s.beta2 * square[j] + s.rest2 * g * g;
            update = update_of(s, s.decay, mean[j], square[j], weight[j]);
            sum[0] += (double)weight[j] * (double)weight[j];
            sum[1] += (double)update * (double)update;
        }
        store_within<N>(mean, a.mean, i, begin, end);
        store_within<N>(square, a.square, i, begin, end);
    }
    block_sums(sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x][0] = sum[0];
        sums[blockIdx.x][1] = sum[1];
    }
}

/* Computes trust ratios of tensors with decay.  Grid: one tensor per block. */
static __global__ void __launch_bounds__(THREADS)
ratios_kernel(step_numbers step, const int *halted, const double (*sums)[2],
              tensor *tensors)
{
    const bool trust = numbers_of(step).trust;
    tensor *const own = &tensors[blockIdx.x];
    double sum[2] = {0, 0};

    if (*halted || !own->decays)
        return;
    for (unsigned i = threadIdx.x; i < own->count; i += THREADS) {
        sum[0] += sums[own->first + i][0];
        sum[1] += sums[own->first + i][1];
    }
    block_sums(sum);
    if (threadIdx.x == 0)
        own->ratio = trust && sum[0] > 0 && sum[1] > 0
                         ? sqrt(sum[0] / sum[1]) : 1;
}

/* Grid: one chunk per block; block: THREADS. */
template <int N>
static __global__ void __launch_bounds__(THREADS)
update_kernel(step_numbers step, const chunk *chunks, const tensor *tensors,
              const int *halted, arenas a)
{
    const tr_lamb_numbers s = numbers_of(step);
    const chunk own = chunks[blockIdx.x];
    const long long begin = (long long)own.begin, end = (long long)own.end;
    const tensor its = tensors[own.part];
    const real decay = its.decays ? s.decay : 0;
    const real rate = (real)(s.rate * its.ratio);

    if (*halted)
        return;
    for (long long i = begin / N * N + threadIdx.x * N; i < end;
         i += THREADS * N) {
        real weight[N], mean[N], square[N];

        load_within<N>(a.weights, i, begin, end, 0, weight);
        load_within<N>(a.mean, i, begin, end, 0, mean);
        load_within<N>(a.square, i, begin, end, 0, square);
        for (int j = 0; j < N; j++)
            weight[j] -= rate * update_of(s, decay, mean[j], square[j],
                                          weight[j]);
        store_within<N>(weight, a.weights, i, begin, end);
        if (a.copy)
            store_within<N>(weight, a.copy, i, begin, end);
    }
}

/* ---- A step ---- */

template <int N>
static void launch_step(tr_cuda *c, const tr_chunks *t,
                        const step_numbers &s, const arenas &a)
{
    const unsigned blocks = blocks_of(t->numbers, CHUNK);
    const int *const halted = &c->sums->halted;
    const dim3 chunks((unsigned)t->n_chunks);

    launch(c, c->stream, "norm of the gradient", dim3(blocks), THREADS, 0,
           norm_kernel<N>, t->numbers, a.gradients, t->norms);
    launch(c, c->stream, "clip", dim3(1), ONE_BLOCK, 0, begin_kernel, blocks,
           t->norms, s, t->clip, c->sums);
    launch(c, c->stream, "moments", chunks, THREADS, 0, moments_kernel<N>, s,
           t->chunks, t->clip, halted, a, t->sums);
    launch(c, c->stream, "trust ratios", dim3((unsigned)t->n_parts), THREADS,
           0, ratios_kernel, s, halted, t->sums, t->tensors);
    launch(c, c->stream, "update", chunks, THREADS, 0, update_kernel<N>, s,
           t->chunks, t->tensors, halted, a);
}

static void lamb(tr_device *d, const tr_lamb_args *step, size_t n_parts,
                 const tr_part *parts, size_t numbers, real *weights,
                 const real *gradients, real *mean, real *square)
{
    constexpr int N = WIDE<real>;
    tr_cuda *const c = cuda_of(d);
    const tr_lamb_numbers given = {
        step->trust,
        (real)step->beta1,          (real)(1 - step->beta1),
        (real)step->beta2,          (real)(1 - step->beta2),
        (real)(1 / step->correct1), (real)(1 / step->correct2),
        (real)step->epsilon,        (real)step->decay,
        step->clip,                 step->rate};
    const step_numbers s = {given, tr_graphs_lamb(c, &given)};
    const arenas a = {weights, gradients, mean, square,
                      c->bf16 ? (__nv_bfloat16 *)tr_cuda_weight(c, weights)
                              : NULL};
    const tr_chunks *t;

    if (c->failed)
        return;
    t = table_of(c, n_parts, parts, numbers);
    if (t == NULL)
        return;
    if (aligned(weights, gradients, mean, square)
        && (uintptr_t)a.copy % (N * sizeof *a.copy) == 0)
        launch_step<N>(c, t, s, a);
    else
        launch_step<1>(c, t, s, a);
}

void tr_cuda_lamb_ops(tr_ops *ops)
{
    ops->lamb = lamb;
}
