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
 * sets a flag on the device, and later kernels change nothing.  Sums over
 * chunks are computed in order.
 *
 * If each rank updates its shards, the table has only their chunks, and the
 * gradients are values at the indices of moments.  The norm and the sums for
 * trust ratios are then also summed over ranks, which makes the same decisions
 * on all ranks.  In bfloat16, vectors are summed over ranks as real, each
 * number with zeros of the other ranks, because kernels read them as real.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <new>

#include "cuda/graphs.h"
#include "cuda/kernel.h"

#define CHUNK ((size_t)1 << 12) /* numbers in a chunk */
#define ONE_BLOCK 1024

/* Numbers `begin` to `end` - 1, within one tensor. */
struct chunk {
    unsigned long long begin;
    unsigned long long end;
    long long shift; /* index in the arenas minus index of the moments */
    unsigned part;
};

/* A tensor's chunks and shared values. */
struct tensor {
    unsigned first;
    unsigned count;
    int decays;
    double ratio;
    /* Without decay: the whole tensor, and its place in `vectors`. */
    unsigned long long offset, numbers, vector;
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
    /* With shards only. */
    double *norm;        /* square of the gradient's norm */
    double (*totals)[2]; /* [n_parts] `sums` of all chunks and ranks */
    real *vectors;
    size_t n_vectors; /* 0 in float */
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
    tr_cuda_free(c, t->norm);
    tr_cuda_free(c, t->totals);
    tr_cuda_free(c, t->vectors);
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

/*
 * Cuts a part's numbers in these shards into chunks, which end at multiples of
 * CHUNK.  Returns their number; `to` may be NULL.
 */
static unsigned cut(const tr_part *p, unsigned part, const tr_shards *shards,
                    chunk *to)
{
    unsigned n = 0;

    for (size_t i = 0; i < shards->n; i++) {
        const tr_shard *const s = &shards->list[i];
        const size_t end = std::min(p->offset + p->count, s->end);
        size_t at = std::max(p->offset, s->begin);

        for (; at < end; n++) {
            const size_t next = std::min((at / CHUNK + 1) * CHUNK, end);

            if (to)
                to[n] = {at, next, (long long)(s->begin - s->at), part};
            at = next;
        }
    }
    return n;
}

static void cut_all(const tr_chunks *t, const tr_shards *shards,
                    chunk *chunks, tensor *tensors)
{
    unsigned long long vectors = 0;
    unsigned n = 0;

    for (size_t i = 0; i < t->n_parts; i++) {
        const tr_part *const p = &t->parts[i];
        const unsigned count = cut(p, (unsigned)i, shards, chunks + n);

        tensors[i] = {n, count, p->decays, 1, p->offset, p->count, vectors};
        n += count;
        if (!p->decays)
            vectors += p->count;
    }
}

template <typename T> static bool make(tr_cuda *c, T **to, size_t n)
{
    return tr_cuda_good(c, cudaMalloc((void **)to, (n ? n : 1) * sizeof(T)),
                        "memory for LAMB");
}

/* Builds the table on the host and copies it to the device. */
static bool fill_table(tr_cuda *c, const tr_shards *shards)
{
    tr_chunks *const t = c->chunks;
    chunk *const chunks = (chunk *)calloc(t->n_chunks + 1, sizeof *chunks);
    tensor *const tensors = (tensor *)calloc(t->n_parts + 1, sizeof *tensors);

    if (chunks && tensors) {
        cut_all(t, shards, chunks, tensors);
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

static bool make_totals(tr_cuda *c)
{
    tr_chunks *const t = c->chunks;

    for (size_t i = 0; i < t->n_parts && c->bf16; i++)
        if (!t->parts[i].decays)
            t->n_vectors += t->parts[i].count;
    if (!make(c, &t->norm, 1) || !make(c, &t->totals, t->n_parts)
        || !make(c, &t->vectors, t->n_vectors))
        return false;
    c->table.fill(&c->device, t->totals, 0, t->n_parts * sizeof *t->totals);
    return !c->failed;
}

static bool make_table(tr_cuda *c, size_t n_parts, const tr_part *parts,
                       size_t numbers)
{
    tr_shard all = {0, numbers, 0};
    const tr_shards whole = {&all, 1, numbers};
    const tr_shards *const shards = c->exchange ? c->device.shards : &whole;
    tr_chunks *const t = c->chunks;

    t->parts = (tr_part *)calloc(n_parts + 1, sizeof *parts);
    if (t->parts == NULL)
        return tr_cuda_good(c, cudaErrorMemoryAllocation, "LAMB");
    if (n_parts > 0)
        memcpy(t->parts, parts, n_parts * sizeof *parts);
    t->n_parts = n_parts;
    t->numbers = numbers;
    for (size_t i = 0; i < n_parts; i++)
        t->n_chunks += cut(&parts[i], 0, shards, NULL);
    return make(c, &t->chunks, t->n_chunks) && make(c, &t->tensors, n_parts)
           && make(c, &t->norms, shards->numbers / CHUNK + 1)
           && make(c, &t->sums, t->n_chunks) && make(c, &t->clip, 1)
           && (c->exchange == NULL || make_totals(c)) && fill_table(c, shards);
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
template <int N, typename G>
static __global__ void __launch_bounds__(THREADS)
norm_kernel(size_t numbers, const G *gradients, double *norms)
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

static inline __device__ double sum_of(unsigned n, const double *norms)
{
    double sum[1] = {0};

    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        sum[0] += norms[i];
    block_sums(sum);
    return sum[0];
}

static inline __device__ bool are_finite(const double *loss)
{
    bool finite = true;

    for (int i = 0; i < TR_LOSSES; i++)
        finite = finite && isfinite(loss[i]);
    return finite;
}

/*
 * The square of a rank's norm for the sum over ranks, or NaN if a loss is not
 * finite.  Grid: one block; block: ONE_BLOCK threads.
 */
static __global__ void __launch_bounds__(ONE_BLOCK)
own_norm_kernel(unsigned n, const double *norms, const tr_sums *sums,
                double *norm)
{
    const double sum = sum_of(n, norms);

    if (threadIdx.x == 0)
        *norm = are_finite(sums->loss) ? sum : NAN;
}

/* Grid: one block; block: ONE_BLOCK threads. */
static __global__ void __launch_bounds__(ONE_BLOCK)
begin_kernel(unsigned n, const double *norms, step_numbers step, double *clip,
             tr_sums *sums)
{
    const double most = numbers_of(step).clip;
    const double norm = sqrt(sum_of(n, norms));

    if (threadIdx.x > 0)
        return;
    *clip = most > 0 && norm > most ? most / norm : 1;
    if (!isfinite(norm) || !are_finite(sums->loss))
        sums->halted = 1;
    if (sums->halted)
        return;
    sums->gradient = norm;
    sums->steps++;
    for (int i = 0; i < TR_LOSSES; i++)
        sums->sum[i] += sums->loss[i];
}

/* ---- Moments and updates ---- */

/* All but `weights` and `vectors` have the indices of moments. */
struct arenas {
    real *weights;
    const void *gradients;
    real *mean;
    real *square;
    void *values; /* copy of the weights, or weights to send; may be NULL */
    real *vectors; /* vectors to sum over ranks; may be NULL */
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
template <int N, typename G>
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
        load_within<N>((const G *)a.gradients - own.shift, i, begin, end, 0,
                       gradient);
        load_within<N>(a.mean - own.shift, i, begin, end, 0, mean);
        load_within<N>(a.square - own.shift, i, begin, end, 0, square);
        for (int j = 0; j < N; j++) {
            const real g = gradient[j] * scale;
            real update;

            mean[j] = s.beta1 * mean[j] + s.rest1 * g;
            square[j] = s.beta2 * square[j] + s.rest2 * g * g;
            update = update_of(s, s.decay, mean[j], square[j], weight[j]);
            sum[0] += (double)weight[j] * (double)weight[j];
            sum[1] += (double)update * (double)update;
        }
        store_within<N>(mean, a.mean - own.shift, i, begin, end);
        store_within<N>(square, a.square - own.shift, i, begin, end);
    }
    block_sums(sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x][0] = sum[0];
        sums[blockIdx.x][1] = sum[1];
    }
}

/* Returns the norm of the weights over the norm of the update. */
static inline __device__ double ratio_of(int trust, const double *sum)
{
    return trust && sum[0] > 0 && sum[1] > 0 ? sqrt(sum[0] / sum[1]) : 1;
}

/*
 * Computes trust ratios of tensors with decay, or only their sums if there are
 * `totals`.  Grid: one tensor per block.
 */
static __global__ void __launch_bounds__(THREADS)
ratios_kernel(step_numbers step, const int *halted, const double (*sums)[2],
              tensor *tensors, double (*totals)[2])
{
    const int trust = numbers_of(step).trust;
    tensor *const own = &tensors[blockIdx.x];
    double sum[2] = {0, 0};

    if (*halted || !own->decays)
        return;
    for (unsigned i = threadIdx.x; i < own->count; i += THREADS) {
        sum[0] += sums[own->first + i][0];
        sum[1] += sums[own->first + i][1];
    }
    block_sums(sum);
    if (threadIdx.x > 0)
        return;
    own->ratio = ratio_of(trust, sum);
    for (int i = 0; totals && i < 2; i++)
        totals[blockIdx.x][i] = sum[i];
}

/* Computes trust ratios from sums over ranks.  One tensor per thread. */
static __global__ void __launch_bounds__(THREADS)
total_ratios_kernel(step_numbers step, unsigned n, const double (*totals)[2],
                    tensor *tensors)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n && tensors[i].decays)
        tensors[i].ratio = ratio_of(numbers_of(step).trust, totals[i]);
}

/* Grid: one chunk per block; block: THREADS. */
template <int N, typename V>
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
    const bool changes = !*halted;
    const bool is_vector = a.vectors && !its.decays;

    for (long long i = begin / N * N + threadIdx.x * N; i < end;
         i += THREADS * N) {
        real weight[N], mean[N], square[N];

        load_within<N>(a.weights, i, begin, end, 0, weight);
        load_within<N>(a.mean - own.shift, i, begin, end, 0, mean);
        load_within<N>(a.square - own.shift, i, begin, end, 0, square);
        for (int j = 0; j < N; j++) {
            const real update = update_of(s, decay, mean[j], square[j],
                                          weight[j]);

            weight[j] = changes ? weight[j] - rate * update : weight[j];
        }
        store_within<N>(weight, a.weights, i, begin, end);
        if (a.values)
            store_within<N>(weight, (V *)a.values - own.shift, i, begin, end);
        for (int j = 0; j < N; j++)
            if (is_vector && i + j >= begin && i + j < end)
                a.vectors[its.vector + i + j - its.offset] = weight[j];
    }
}

/* Stores vectors that were summed over ranks.  Grid: one tensor per block. */
static __global__ void __launch_bounds__(THREADS)
vectors_kernel(const tensor *tensors, const real *vectors, real *weights)
{
    const tensor own = tensors[blockIdx.x];

    for (unsigned long long i = threadIdx.x; !own.decays && i < own.numbers;
         i += THREADS)
        weights[own.offset + i] = vectors[own.vector + i];
}

/* ---- A step ---- */

/* Adds up the norm of the gradient. */
template <int N, typename G>
static void launch_norm(tr_cuda *c, const tr_chunks *t, const step_numbers &s,
                        const arenas &a)
{
    const size_t numbers = c->exchange ? c->device.shards->numbers
                                       : t->numbers;
    const unsigned blocks = blocks_of(numbers, CHUNK);

    launch(c, c->stream, "norm of the gradient", dim3(blocks), THREADS, 0,
           norm_kernel<N, G>, numbers, (const G *)a.gradients, t->norms);
    if (c->exchange) {
        launch(c, c->stream, "norm of the shards", dim3(1), ONE_BLOCK, 0,
               own_norm_kernel, blocks, t->norms, c->sums, t->norm);
        c->exchange->sum(c, t->norm, 1);
    }
    launch(c, c->stream, "clip", dim3(1), ONE_BLOCK, 0, begin_kernel,
           c->exchange ? 1 : blocks, c->exchange ? t->norm : t->norms, s,
           t->clip, c->sums);
}

static void launch_ratios(tr_cuda *c, const tr_chunks *t,
                          const step_numbers &s)
{
    const unsigned n = (unsigned)t->n_parts;

    launch(c, c->stream, "trust ratios", dim3(n), THREADS, 0, ratios_kernel,
           s, &c->sums->halted, t->sums, t->tensors, t->totals);
    if (c->exchange == NULL)
        return;
    c->exchange->sum(c, &t->totals[0][0], 2 * t->n_parts);
    launch(c, c->stream, "trust ratios", dim3(blocks_of(n, THREADS)), THREADS,
           0, total_ratios_kernel, s, n, t->totals, t->tensors);
}

/* Sends the new weights of the shards. */
static void send(tr_cuda *c, const tr_chunks *t, real *weights)
{
    if (t->n_vectors > 0) {
        c->exchange->sum_reals(c, t->vectors, t->n_vectors);
        launch(c, c->stream, "vectors", dim3((unsigned)t->n_parts), THREADS,
               0, vectors_kernel, t->tensors, t->vectors, weights);
    }
    c->exchange->send_weights(c, weights);
}

/* G: type of gradients; V: type of `values`. */
template <int N, typename G, typename V>
static void launch_step(tr_cuda *c, const tr_chunks *t,
                        const step_numbers &s, const arenas &a)
{
    const int *const halted = &c->sums->halted;
    const dim3 chunks((unsigned)t->n_chunks);

    launch_norm<N, G>(c, t, s, a);
    launch(c, c->stream, "moments", chunks, THREADS, 0, moments_kernel<N, G>,
           s, t->chunks, t->clip, halted, a, t->sums);
    launch_ratios(c, t, s);
    if (a.vectors)
        c->table.fill(&c->device, a.vectors, 0, t->n_vectors * sizeof(real));
    launch(c, c->stream, "update", chunks, THREADS, 0, update_kernel<N, V>, s,
           t->chunks, t->tensors, halted, a);
    if (c->exchange)
        send(c, t, a.weights);
}

template <int N>
static void launch_typed(tr_cuda *c, const tr_chunks *t,
                         const step_numbers &s, const arenas &a)
{
    if (c->bf16 && c->exchange)
        launch_step<N, __nv_bfloat16, __nv_bfloat16>(c, t, s, a);
    else if (c->bf16)
        launch_step<N, real, __nv_bfloat16>(c, t, s, a);
    else
        launch_step<N, real, real>(c, t, s, a);
}

static arenas arenas_of(tr_cuda *c, const tr_chunks *t, real *weights,
                        const real *gradients, real *mean, real *square)
{
    const tr_exchange *const x = c->exchange;
    void *const copy = c->bf16 ? (void *)tr_cuda_weight(c, weights) : NULL;

    return {weights,
            x ? x->own : (const void *)gradients,
            mean,
            square,
            x ? x->own : copy,
            t->n_vectors > 0 ? t->vectors : NULL};
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
    const tr_chunks *t;
    arenas a;

    if (c->failed)
        return;
    t = table_of(c, n_parts, parts, numbers);
    if (t == NULL)
        return;
    a = arenas_of(c, t, weights, gradients, mean, square);
    if (aligned(weights, mean, square) && aligned((const char *)a.gradients)
        && (uintptr_t)a.values % (N * c->device.value_size) == 0)
        launch_typed<N>(c, t, s, a);
    else
        launch_typed<1>(c, t, s, a);
}

void tr_cuda_lamb_ops(tr_ops *ops)
{
    ops->lamb = lamb;
}
