/*
 * ablations-t.cu - what optimisations of a step gain: each part is computed
 * with and without one.
 *
 * usage: ablations-t [FILE]
 *
 * Checks that both results agree, and prints the median times of both for a
 * step of BERT-large in bfloat16, as JSON; with hostcuda, of a toy, as a check
 * only.  FILE holds the lengths of a step's spans; without it, lengths are
 * drawn.  Without their optimisations:
 *
 *   grouping   all spans are one group, launched for the longest
 *   streams    groups run one after another
 *   gelu       GELU and its derivative are kernels of their own
 *   norm       so are adding a bias, dropout, and adding the residual
 *   lamb       each tensor has its own kernels
 *   embedding  rows are added to the gradient's tables by atomicAdd()
 *
 * SPDX-License-Identifier: MIT
 */
#include <algorithm>
#include <functional>

#include "cuda/norm_row.h"
#include "rig.h"

#define SITE 3
#define RATE 0.1

struct shape {
    size_t layers, hidden, heads, inner, vocab, rows;
};

#ifdef HOSTCUDA
static const shape model = {2, 64, 2, 96, 300, 400};
static const int rounds = 1;
#else
static const shape model = {24, 1024, 16, 4096, 30522, 56 * 512};
static const int rounds = 9;
#endif

/* ---- Kernels that take one number per thread ---- */

static inline __device__ size_t number(void)
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

template <typename T>
static __global__ void draw_kernel(size_t n, uint64_t seed, real by, T *to)
{
    const size_t i = number();

    if (i < n)
        from_real(((real)(tr_counter_rng(seed, i) >> 40) / (1 << 23) - 1)
                  * by, to + i);
}

/* The maxima of |a - b| and of |b|, as the bits of floats. */
template <typename T>
static __global__ void apart_kernel(size_t n, const T *a, const T *b,
                                    unsigned *most)
{
    const size_t i = number();
    const float x = i < n ? (float)to_real(a[i]) : 0;
    const float y = i < n ? (float)to_real(b[i]) : 0;

    atomicMax(&most[0], __float_as_uint(x == x ? fabsf(x - y) : INFINITY));
    atomicMax(&most[1], __float_as_uint(fabsf(y)));
}

template <typename value>
static __global__ void bias_kernel(size_t n, unsigned width, const real *bias,
                                   value *x)
{
    const size_t i = number();

    if (i < n)
        from_real(to_real(x[i]) + bias[i % width], x + i);
}

template <typename value>
static __global__ void dropout_kernel(size_t n, unsigned width,
                                      tr_dropout dropout, const value *from,
                                      value *to)
{
    const size_t i = number();

    if (i < n)
        from_real(drop(dropout_of(dropout, SITE, i / width),
                       (uint32_t)(i % width), to_real(from[i])), to + i);
}

template <typename value>
static __global__ void add_kernel(size_t n, const value *from, value *to)
{
    const size_t i = number();

    if (i < n)
        from_real(to_real(from[i]) + to_real(to[i]), to + i);
}

template <typename value>
static __global__ void scatter_kernel(size_t n, unsigned width,
                                      const int32_t *index, const value *from,
                                      real *table)
{
    const size_t i = number();

    if (i < n)
        atomicAdd(table + (size_t)index[i / width] * width + i % width,
                  to_real(from[i]));
}

/* Adds the sum of squares to *sum. */
static __global__ void squares_kernel(size_t n, const real *x, double *sum)
{
    const size_t i = number();
    double square[1] = {i < n ? (double)x[i] * (double)x[i] : 0};

    block_sums(square);
    if (threadIdx.x == 0)
        atomicAdd(sum, square[0]);
}

static __global__ void moments_kernel(size_t n, tr_lamb_args s, real decay,
                                      const real *weight, const real *gradient,
                                      real *mean, real *square, real *update)
{
    const size_t i = number();

    if (i >= n)
        return;
    mean[i] = (real)s.beta1 * mean[i] + (real)(1 - s.beta1) * gradient[i];
    square[i] = (real)s.beta2 * square[i]
                + (real)(1 - s.beta2) * gradient[i] * gradient[i];
    update[i] = mean[i] / (real)s.correct1
                    / (sqrt(square[i] / (real)s.correct2) + (real)s.epsilon)
                + decay * weight[i];
}

/* sums: squares of the weights and of the update */
static __global__ void update_kernel(size_t n, real rate, bool trust,
                                     const double *sums, const real *update,
                                     real *weight)
{
    const size_t i = number();

    if (i < n)
        weight[i] -= rate * (trust ? (real)sqrt(sums[0] / sums[1]) : 1)
                     * update[i];
}

template <typename... P, typename... A>
static void each(const rig &r, size_t n, void (*kernel)(P...), A... given)
{
    tr_cuda *const c = cuda_of(r.d);

    launch(c, c->stream, "each", dim3(blocks_of(n, THREADS)), THREADS, 0,
           kernel, n, given...);
}

/* ---- Arrays ---- */

/* Random numbers, at most `by`. */
static void redraw(const array &x, uint64_t seed, double by = 1)
{
    if (x.k == VALUES)
        by_value(cuda_of(x.r.d), [&](auto v) {
            each(x.r, x.n, draw_kernel<decltype(v)>, seed, (real)by,
                 (decltype(v) *)x.p);
        });
    else
        each(x.r, x.n, draw_kernel<real>, seed, (real)by, (real *)x.p);
}

static void copy(const array &from, const array &to)
{
    cudaMemcpyAsync(to, from, to.n * size_of(to.r, to.k),
                    cudaMemcpyDeviceToDevice, cuda_of(to.r.d)->stream);
}

/* The largest difference, relative to the largest number of b. */
static double apart(const array &a, const array &b)
{
    const array most(a.r, INDEX, 2);
    unsigned bits[2];
    float x[2];

    a.r.ops->fill(a.r.d, most, 0, sizeof bits);
    if (a.k == VALUES)
        by_value(cuda_of(a.r.d), [&](auto v) {
            using value = decltype(v);

            each(a.r, a.n, apart_kernel<value>, (value *)a.p, (value *)b.p,
                 (unsigned *)most.p);
        });
    else
        each(a.r, a.n, apart_kernel<real>, (real *)a.p, (real *)b.p,
             (unsigned *)most.p);
    a.r.ops->download(a.r.d, bits, most, sizeof bits);
    memcpy(x, bits, sizeof x);
    return x[1] > 0 ? x[0] / x[1] : INFINITY;
}

/* ---- Ablations ---- */

static float milliseconds(const rig &r, const std::function<void()> &f)
{
    tr_cuda *const c = cuda_of(r.d);
    cudaEvent_t begin, end;
    float ms = 0;

    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    cudaEventRecord(begin, c->stream);
    f();
    cudaEventRecord(end, c->stream);
    cudaEventSynchronize(end);
    cudaEventElapsedTime(&ms, begin, end);
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return ms;
}

static float median(std::vector<float> &x)
{
    std::nth_element(x.begin(), x.begin() + x.size() / 2, x.end());
    return x[x.size() / 2];
}

/*
 * run(true) computes `result` with the optimisation, run(false) without; a step
 * does so `times` times.  start() is called before each run.
 */
static void ablation(const rig &r, const char *what, size_t times,
                     const array &result, const std::function<void()> &start,
                     const std::function<void(bool)> &run)
{
    const double near = r.bf16 ? 0.03 : 1e-4;
    const array other(r, result.k, result.n);
    std::vector<float> ms[2];
    double off;

    start();
    run(false);
    copy(result, other);
    start();
    run(true);
    off = apart(result, other);
    ok(off <= near, "%s, %s: off by %.1e", r.name, what, off);
    if (!r.bf16)
        return;
    for (int i = 0; i < 2 * rounds; i++) {
        start();
        ms[i % 2].push_back(milliseconds(r, [&] { run(i % 2); }));
    }
    printf("{\"ablation\": \"%s\", \"with_ms\": %.3f, \"without_ms\": %.3f}\n",
           what, (double)times * median(ms[1]),
           (double)times * median(ms[0]));
}

static void nothing(void)
{
}

/* ---- Attention ---- */

static tr_attend attend_of(const tr_batch *batch, const array &kept,
                           const array &scratch)
{
    tr_attend a = {};

    a.batch = batch;
    a.heads = a.kv_heads = model.heads;
    a.width = model.hidden / model.heads;
    a.dropout = dropout_by(RATE, batch->place);
    a.site = SITE;
    a.kept = kept;
    a.scratch = scratch;
    return a;
}

/* All spans as the group of the longest ones. */
static void merge(struct tr_group *group)
{
    for (unsigned g = TR_GROUPS - 1; g-- > 0;) {
        struct tr_group *const all = &group[TR_GROUPS - 1];

        if (all->count == 0)
            *all = group[g];
        else
            all->count += group[g].count;
        group[g].count = 0;
    }
}

static void ablate_attention(const rig &r, const tr_batch *batch)
{
    tr_cuda *const c = cuda_of(r.d);
    tr_staged *const staged = (tr_staged *)tr_cuda_staged(batch);
    const size_t rows = batch->n_rows, n = rows * model.hidden;
    const array qkv(r, VALUES, 3 * n), out(r, VALUES, n), d_out(r, VALUES, n),
        d_qkv(r, VALUES, 3 * n), kept(r, REALS, rows * model.heads),
        scratch(r, REALS, rows * model.heads);
    const tr_attend a = attend_of(batch, kept, scratch);
    tr_staged grouped = *staged;
    cudaStream_t side[TR_GROUPS];
    const auto compute = [&] {
        r.ops->attention_forward(r.d, &a, qkv, out);
        r.ops->attention_backward(r.d, &a, qkv, out, d_out, d_qkv);
    };

    memcpy(side, c->side, sizeof side);
    redraw(qkv, 1);
    redraw(d_out, 2);
    ablation(r, "grouping", model.layers, d_qkv, nothing, [&](bool with) {
        if (!with)
            merge(staged->group);
        compute();
        *staged = grouped;
    });
    ablation(r, "streams", model.layers, d_qkv, nothing, [&](bool with) {
        if (!with)
            std::fill(c->side, c->side + TR_GROUPS, c->stream);
        compute();
        memcpy(c->side, side, sizeof side);
    });
}

/* ---- Fusion ---- */

static void ablate_gelu(const rig &r)
{
    const size_t rows = model.rows, n = rows * model.inner;
    const array weights(r, REALS, (model.hidden + 1) * model.inner),
        x(r, VALUES, rows * model.hidden), dy(r, VALUES, x.n),
        u(r, VALUES, n), y(r, VALUES, n), du(r, VALUES, n);
    real *const bias = (real *)weights + model.hidden * model.inner;
    const tr_linear in = {model.hidden, model.inner, model.inner, weights,
                          bias, NULL, NULL, false};
    const tr_linear out = {model.inner, model.hidden, model.hidden, weights,
                           NULL, NULL, NULL, false};

    redraw(weights, 1, 0.1);
    r.ops->weights_written(r.d, weights, weights.n);
    redraw(x, 3);
    redraw(dy, 4);
    ablation(r, "gelu", model.layers, du, nothing, [&](bool with) {
        if (with) {
            r.ops->linear_gelu_forward(r.d, &in, TR_GELU_TANH, rows, x, u, y);
            r.ops->linear_gelu_backward(r.d, &out, TR_GELU_TANH, rows, dy, u,
                                        du);
            return;
        }
        r.ops->linear_forward(r.d, &in, rows, x, true, u);
        tr_cuda_gelu(cuda_of(r.d), TR_GELU_TANH, n, u, y);
        r.ops->linear_backward_input(r.d, &out, rows, dy, 0, du);
        r.ops->gelu_backward(r.d, TR_GELU_TANH, n, u, du);
    });
}

struct norm_arrays {
    array gain, bias, d_gain, d_bias, hat, inverse;
    tr_norm norm;
    tr_norm_kept kept;

    norm_arrays(const rig &r, size_t rows)
        : gain(r, REALS, model.hidden), bias(r, REALS, model.hidden),
          d_gain(r, REALS, model.hidden), d_bias(r, REALS, model.hidden),
          hat(r, VALUES, rows * model.hidden), inverse(r, REALS, rows),
          norm{model.hidden, 1e-12, false, gain, bias, d_gain, d_bias, false},
          kept{hat, inverse}
    {
        redraw(gain, 11);
        redraw(bias, 12);
        redraw(hat, 13);
        redraw(inverse, 14);
    }
};

/* Forward and backward, without the norm itself. */
template <typename value>
static void sum_norm_apart(const rig &r, const norm_arrays &a,
                           const tr_dropout &dropout, const array &residual,
                           const array &branch, const array &y,
                           const array &dx, const array &d_branch)
{
    const unsigned width = (unsigned)model.hidden;
    const tr_dropout none = {};
    value *const x = (value *)branch.p;

    each(r, y.n, bias_kernel<value>, width, (real *)a.bias, x);
    each(r, y.n, dropout_kernel<value>, width, dropout, x, x);
    each(r, y.n, add_kernel<value>, (value *)residual.p, x);
    r.ops->norm_forward(r.d, &a.norm, y.n / width, x, &a.kept, y);
    r.ops->norm_backward(r.d, &a.norm, y.n / width, &a.kept, y, &none, SITE,
                         dx, NULL);
    each(r, y.n, dropout_kernel<value>, width, dropout, (value *)dx.p,
         (value *)d_branch.p);
}

static void ablate_norm(const rig &r, const tr_batch *batch)
{
    const size_t rows = batch->n_rows, n = rows * model.hidden;
    const array residual(r, VALUES, n), branch(r, VALUES, n), y(r, VALUES, n),
        dx(r, VALUES, n), d_branch(r, VALUES, n);
    const norm_arrays a(r, rows);
    const tr_dropout dropout = dropout_by(RATE, batch->place);

    redraw(residual, 2);
    ablation(r, "norm", 2 * model.layers, d_branch,
             [&] { redraw(branch, 1); }, [&](bool with) {
        if (!with) {
            by_value(cuda_of(r.d), [&](auto v) {
                sum_norm_apart<decltype(v)>(r, a, dropout, residual, branch,
                                            y, dx, d_branch);
            });
            return;
        }
        r.ops->sum_norm_forward(r.d, &a.norm, rows, residual, branch, a.bias,
                                &dropout, SITE, &a.kept, y);
        r.ops->norm_backward(r.d, &a.norm, rows, &a.kept, y, &dropout, SITE,
                             dx, d_branch);
    });
}

/* ---- The embedding ---- */

static void ablate_embedding(const rig &r, const tr_batch *batch)
{
    const size_t width = model.hidden, rows = batch->n_rows;
    const size_t position = model.vocab * width, type = position + 512 * width;
    const array gradients(r, REALS, type + 2 * width),
        dy(r, VALUES, rows * width);
    real *const g = gradients;
    const norm_arrays a(r, rows);
    const tr_dropout dropout = dropout_by(RATE, batch->place);
    const tr_tables tables = {NULL, NULL, NULL, g, g + position, g + type};
    const auto apart = [&](auto v) {
        using value = decltype(v);
        norm_back<value> back = norm_back_of<value>(&a.norm, rows, &a.kept,
                                                    dy, dy);

        back.before = dropout;
        back.site = SITE;
        tr_norm_backward_rows(cuda_of(r.d), &a.norm, back);
        each(r, dy.n, scatter_kernel<value>, (unsigned)width, batch->token,
             (value *)dy.p, g);
        each(r, dy.n, scatter_kernel<value>, (unsigned)width, batch->position,
             (value *)dy.p, g + position);
        each(r, dy.n, scatter_kernel<value>, (unsigned)width, batch->type,
             (value *)dy.p, g + type);
    };

    ablation(r, "embedding", 1, gradients, [&] {
        redraw(dy, 1);
        r.ops->fill(r.d, g, 0, gradients.n * sizeof(real));
    }, [&](bool with) {
        if (with)
            r.ops->embed_backward(r.d, &tables, &a.norm, batch, &dropout,
                                  SITE, &a.kept, dy);
        else
            by_value(cuda_of(r.d), apart);
    });
}

/* ---- LAMB ---- */

/* The tensors of a model: word vectors, then 8 matrices and vectors a layer. */
static std::vector<tr_part> make_parts(void)
{
    const size_t h = model.hidden, inner = model.inner;
    const size_t layer[] = {3 * h * h, 3 * h, h * h, h, inner * h, inner,
                            h * inner, h, h, h, h, h};
    std::vector<tr_part> parts = {{0, model.vocab * h, true}};

    for (size_t i = 0; i < model.layers; i++)
        for (size_t count : layer)
            parts.push_back({parts.back().offset + parts.back().count, count,
                             count > 3 * h && count != inner});
    return parts;
}

struct moments {
    array weights, gradients, mean, square;

    moments(const rig &r, size_t n)
        : weights(r, REALS, n), gradients(r, REALS, n), mean(r, REALS, n),
          square(r, REALS, n)
    {
        redraw(gradients, 2);
    }
    void start() const
    {
        redraw(weights, 1);
        redraw(mean, 3);
        weights.r.ops->fill(weights.r.d, square, 0, square.n * sizeof(real));
    }
};

/* The step of one tensor; `sums` has room for three numbers. */
static void step_apart(const rig &r, const tr_part &p, const tr_lamb_args &s,
                       const moments &m, real *update, double *sums)
{
    real *const weight = (real *)m.weights + p.offset;
    real *const gradient = (real *)m.gradients + p.offset;

    r.ops->fill(r.d, sums, 0, 3 * sizeof *sums);
    each(r, p.count, squares_kernel, gradient, sums + 2);
    each(r, p.count, moments_kernel, s, p.decays ? (real)s.decay : 0, weight,
         gradient, (real *)m.mean + p.offset, (real *)m.square + p.offset,
         update);
    each(r, p.count, squares_kernel, weight, sums);
    each(r, p.count, squares_kernel, update, sums + 1);
    each(r, p.count, update_kernel, (real)s.rate, p.decays, sums, update,
         weight);
}

static void ablate_lamb(const rig &r)
{
    const std::vector<tr_part> parts = make_parts();
    const size_t n = parts.back().offset + parts.back().count;
    const tr_lamb_args s = {true, 0.9, 0.999, 0.1, 0.001, 1e-6, 0.01, 0,
                            0.004};
    const moments m(r, n);
    const array update(r, REALS, model.vocab * model.hidden),
        sums(r, DOUBLES, 3);
    tr_cuda *const c = cuda_of(r.d);

    r.ops->weights_written(r.d, m.weights, n);
    ablation(r, "lamb", 1, m.weights, [&] { m.start(); }, [&](bool with) {
        if (with) {
            r.ops->lamb(r.d, &s, parts.size(), parts.data(), n, m.weights,
                        m.gradients, m.mean, m.square);
            return;
        }
        for (const tr_part &p : parts)
            step_apart(r, p, s, m, update, (double *)sums.p);
        if (c->bf16)
            tr_cuda_to_values(c, c->stream, n, m.weights, c->copy);
    });
}

/* ---- A step's rows ---- */

static std::vector<int32_t> lengths_of(const char *name)
{
    std::vector<int32_t> lengths;
    FILE *const file = name ? fopen(name, "r") : NULL;
    int32_t n;

    while (file && fscanf(file, "%d", &n) == 1 && n > 0 && n <= 512)
        lengths.push_back(n);
    if (file)
        fclose(file);
    for (size_t rows = 0, i = 0; !name && rows < model.rows; i++) {
        const double u = (double)(tr_counter_rng(5, i) >> 11) / (1ll << 53);

        n = (int32_t)std::min(1 + 300 * u * u, (double)(model.rows - rows));
        lengths.push_back(n);
        rows += (size_t)n;
    }
    return lengths;
}

struct host_rows {
    std::vector<int32_t> token, position, place, zero, cu = {0};
    tr_batch batch = {};

    explicit host_rows(const std::vector<int32_t> &lengths)
    {
        for (int32_t n : lengths) {
            for (int32_t i = 0; i < n; i++)
                position.push_back(i);
            cu.push_back(cu.back() + n);
        }
        batch.n_rows = (uint32_t)position.size();
        token = draw_index(batch.n_rows, 14, (uint32_t)model.vocab);
        place = draw_places(batch.n_rows, 15);
        zero.assign(batch.n_rows, 0);
        batch.n_packs = 1;
        batch.n_spans = (uint32_t)lengths.size();
        batch.cu = cu.data();
        batch.token = token.data();
        batch.type = batch.segment = zero.data();
        batch.position = position.data();
        batch.place = place.data();
    }
};

static void ablate(const rig &r, const host_rows &rows)
{
    const tr_batch *const batch = r.ops->stage(r.d, &rows.batch);
    tr_results results;
    const char *why = "no memory";

    if (batch) {
        ablate_attention(r, batch);
        ablate_norm(r, batch);
        ablate_embedding(r, batch);
        ablate_gelu(r);
        ablate_lamb(r);
    }
    if (!batch || !r.ops->finish(r.d, &results, &why)) {
        printf("Bail out! %s\n", why);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    const host_rows rows(lengths_of(argc > 1 ? argv[1] : NULL));

    if (rows.batch.n_rows == 0) {
        printf("Bail out! %s has no lengths\n", argv[1]);
        return 1;
    }
    for (tr_precision precision : {TR_FLOAT, TR_BF16}) {
        const rig r = open_rig(precision);

        ablate(r, rows);
        tr_device_close(r.d);
    }
    return done();
}
