/*
 * norm.cu - layer norm or RMS norm of a row, of a sum of rows, or of heads.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/columns.h"
#include "cuda/norm_row.h"

/* Maximum blocks of backward; each writes two rows of partial sums. */
#define BACK_BLOCKS 2048
#define BACK_ROWS 16 /* minimum rows per block */

/* Otherwise, ptxas spills some registers of wide rows to fit two blocks. */
template <int K, bool BIASED> static constexpr int MIN_BLOCKS
    = BIASED || K == 1 ? 0 : 1;

template <typename value> struct norm_in {
    const value *x;
    const value *branch; /* NULL if x alone is the input */
    const real *bias;    /* of the branch; BIASED only */
    value *sum;          /* receives x + branch, and is x; not BIASED */
    tr_dropout dropout;
    uint32_t site;
};

/* Grid: one row per block; block: see by_width(). */
template <typename value, int N, int K, bool BIASED>
static __global__ void __launch_bounds__(ROW_THREADS, MIN_BLOCKS<K, BIASED>)
norm_kernel(norm_in<value> in, norm_out<value> out)
{
    const size_t row = blockIdx.x;
    const size_t at = BIASED ? row * out.width
                             : row_at(out.rows, row, out.width);
    const dropout_row dropout = dropout_of(in.dropout, in.site, row);
    real x[K][N] = {};

#pragma unroll
    for (int k = 0; k < K; k++) {
        const unsigned i = column_of<N>(k);
        real branch[N], bias[N] = {};

        if (i >= out.width)
            break;
        load<N>(in.x + at + i, x[k]);
        if (!in.branch)
            continue;
        load<N>(in.branch + at + i, branch);
        if (BIASED)
            load<N>(in.bias + i, bias);
        for (int j = 0; j < N; j++) {
            const real sum = branch[j] + bias[j];

            x[k][j] += BIASED && dropout.threshold
                           ? drop(dropout, i + j, sum)
                           : sum;
        }
        if (!BIASED)
            store<N>(x[k], in.sum + at + i);
    }
    norm_row<value, N, K, BIASED>(out, row, dropout_row(), x);
}

template <typename value>
static void forward(tr_cuda *c, size_t rows, const norm_in<value> &in,
                    const norm_out<value> &out)
{
    const bool wide = out.rows.stride % WIDE<value> == 0
                      && aligned(in.x, in.branch, in.bias, in.sum, out.gain,
                                 out.bias, out.hat, out.y);

    tr_cuda_takes(c, out.bias ? !out.rms && out.rows.heads == 1 && !in.sum
                              : !in.bias, "norm");
    by_width<value>(c, out.width, wide, [&](auto s, unsigned threads) {
        by_bias(out.bias != NULL, [&](auto biased) {
            using shape = decltype(s);

            launch(c, c->stream, "norm", dim3((unsigned)rows), threads, 0,
                   norm_kernel<value, shape::N, shape::K, biased>, in, out);
        });
    });
}

static void norm_forward(tr_device *d, const tr_norm *norm, size_t rows,
                         const void *x, const tr_norm_kept *kept, void *y)
{
    by_value(cuda_of(d), [&](auto v) {
        using value = decltype(v);
        norm_in<value> in = {};

        in.x = (const value *)x;
        forward(cuda_of(d), rows, in, norm_out_of<value>(norm, kept, y));
    });
}

static void sum_norm_forward(tr_device *d, const tr_norm *norm,
                             size_t rows, const void *residual,
                             const void *branch, const real *bias,
                             const tr_dropout *dropout, uint32_t site,
                             const tr_norm_kept *kept, void *y)
{
    tr_cuda_reads(cuda_of(d), dropout->place);
    by_value(cuda_of(d), [&](auto v) {
        using value = decltype(v);
        const norm_in<value> in = {(const value *)residual,
                                   (const value *)branch, bias, NULL,
                                   *dropout, site};

        forward(cuda_of(d), rows, in, norm_out_of<value>(norm, kept, y));
    });
}

static void add_norm_forward(tr_device *d, const tr_norm *norm, size_t rows,
                             const void *branch, const void *x, void *sum,
                             const tr_norm_kept *kept, void *y)
{
    by_value(cuda_of(d), [&](auto v) {
        using value = decltype(v);
        norm_in<value> in = {};

        in.x = (const value *)x;
        in.branch = (const value *)branch;
        in.sum = branch ? (value *)sum : NULL;
        forward(cuda_of(d), rows, in, norm_out_of<value>(norm, kept, y));
    });
}

/*
 * Grid: blocks that process every gridDim.x-th row; block: see by_width().
 * `partial` receives the sums of dy * hat and, with a bias, of dy over a
 * block's rows.
 */
template <typename value, int N, int K, bool BIASED>
static __global__ void __launch_bounds__(ROW_THREADS, MIN_BLOCKS<K, BIASED>)
norm_backward_kernel(norm_back<value> p, real *partial)
{
    real sum_gain[K][N] = {}, sum_bias[K][N] = {};

    for (size_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
        const size_t hat_at = row * p.width;
        const size_t at = BIASED ? hat_at : row_at(p.in, row, p.width);
        const dropout_row before = dropout_of(p.before, p.site, row);
        const dropout_row after = dropout_of(p.dropout, p.site, row);
        const real inverse = p.inverse[row];
        real dy[K][N] = {}, hat[K][N] = {};
        real sums[2] = {0, 0};

#pragma unroll
        for (int k = 0; k < K; k++) {
            const unsigned i = column_of<N>(k);
            real gain[N];

            if (i >= p.width)
                break;
            load<N>(p.dy + at + i, dy[k]);
            load<N>(p.hat + hat_at + i, hat[k]);
            load<N>(p.gain + i, gain);
            for (int j = 0; j < N; j++) {
                if (BIASED && before.threshold)
                    dy[k][j] = drop(before, i + j, dy[k][j]);
                sum_gain[k][j] += dy[k][j] * hat[k][j];
                sum_bias[k][j] += dy[k][j];
                dy[k][j] *= gain[j];
                sums[0] += dy[k][j];
                sums[1] += dy[k][j] * hat[k][j];
            }
        }
        block_sums(sums);
        sums[0] = BIASED || !p.rms ? sums[0] / (real)p.width : 0;
        sums[1] /= (real)p.width;
#pragma unroll
        for (int k = 0; k < K; k++) {
            const unsigned i = column_of<N>(k);
            real dx[N] = {};

            if (i >= p.width)
                break;
            if (!BIASED && p.adds)
                load<N>(p.dx + at + i, dx);
            for (int j = 0; j < N; j++)
                dy[k][j] = dx[j]
                           + inverse * (dy[k][j] - sums[0]
                                        - hat[k][j] * sums[1]);
            store<N>(dy[k], p.dx + at + i);
            if (BIASED && p.d_branch) {
                for (int j = 0; j < N; j++)
                    dy[k][j] = drop(after, i + j, dy[k][j]);
                store<N>(dy[k], p.d_branch + at + i);
            }
        }
    }
    partial += blockIdx.x * (size_t)p.width * (BIASED ? 2 : 1);
#pragma unroll
    for (int k = 0; k < K; k++) {
        const unsigned i = column_of<N>(k);

        if (i >= p.width)
            break;
        store<N>(sum_gain[k], partial + i);
        if (BIASED)
            store<N>(sum_bias[k], partial + p.width + i);
    }
}

template <typename value>
void tr_norm_backward_rows(tr_cuda *c, const tr_norm *norm,
                           norm_back<value> back)
{
    const unsigned most = blocks_of(back.rows, BACK_ROWS);
    const unsigned blocks = most < BACK_BLOCKS ? most : BACK_BLOCKS;
    const bool has_bias = norm->bias_gradient != NULL;
    real *const partial = (real *)tr_cuda_scratch(
        c, (has_bias ? 2 : 1) * blocks * norm->width * sizeof(real));
    const bool wide = back.in.stride % WIDE<value> == 0
                      && aligned(back.gain, back.hat, back.dy, back.dx,
                                 back.d_branch);

    tr_cuda_takes(c,
                  has_bias ? !back.rms && back.in.heads == 1 && !back.adds
                           : !back.before.threshold && !back.d_branch,
                  "norm backward");
    if (partial == NULL)
        return;
    by_width<value>(c, norm->width, wide, [&](auto s, unsigned threads) {
        by_bias(has_bias, [&](auto biased) {
            using shape = decltype(s);

            launch(c, c->stream, "norm backward", dim3(blocks), threads, 0,
                   norm_backward_kernel<value, shape::N, shape::K, biased>,
                   back, partial);
        });
    });
    tr_columns_sum_partials(c, blocks, norm->width, partial, norm->adds,
                            norm->gain_gradient, norm->bias_gradient);
}

template void tr_norm_backward_rows(tr_cuda *, const tr_norm *,
                                    norm_back<real>);
template void tr_norm_backward_rows(tr_cuda *, const tr_norm *,
                                    norm_back<__nv_bfloat16>);

static void norm_backward(tr_device *d, const tr_norm *norm, size_t rows,
                          const tr_norm_kept *kept, const void *dy,
                          const tr_dropout *dropout, uint32_t site,
                          void *dx, void *d_branch)
{
    tr_cuda_reads(cuda_of(d), dropout->place);
    by_value(cuda_of(d), [&](auto v) {
        using value = decltype(v);
        norm_back<value> back = norm_back_of<value>(norm, rows, kept, dy, dx);

        if (dropout->threshold) {
            back.d_branch = (value *)d_branch;
            back.dropout = *dropout;
            back.site = site;
        }
        tr_norm_backward_rows(cuda_of(d), norm, back);
    });
}

static void add_norm_backward(tr_device *d, const tr_norm *norm, size_t rows,
                              const tr_norm_kept *kept, const void *dy,
                              void *dx)
{
    by_value(cuda_of(d), [&](auto v) {
        using value = decltype(v);
        norm_back<value> back = norm_back_of<value>(norm, rows, kept, dy, dx);

        back.adds = true;
        tr_norm_backward_rows(cuda_of(d), norm, back);
    });
}

/* The number of heads of all rows, which are blocks of a grid. */
static size_t heads_of(tr_cuda *c, size_t rows, size_t heads)
{
    tr_cuda_takes(c, rows * heads <= INT32_MAX, "norms of heads");
    return rows * heads;
}

static void head_norm_forward(tr_device *d, const tr_norm *norm, size_t rows,
                              size_t heads, size_t stride,
                              const tr_norm_kept *kept, void *x)
{
    tr_cuda *const c = cuda_of(d);

    by_value(c, [&](auto v) {
        using value = decltype(v);
        norm_out<value> out = norm_out_of<value>(norm, kept, x);
        norm_in<value> in = {};

        in.x = out.y;
        out.rows = {(unsigned)heads, stride};
        forward(c, heads_of(c, rows, heads), in, out);
    });
}

static void head_norm_backward(tr_device *d, const tr_norm *norm, size_t rows,
                               size_t heads, size_t stride,
                               const tr_norm_kept *kept, void *dx)
{
    tr_cuda *const c = cuda_of(d);

    by_value(c, [&](auto v) {
        using value = decltype(v);
        norm_back<value> back = norm_back_of<value>(
            norm, heads_of(c, rows, heads), kept, dx, dx);

        back.in = {(unsigned)heads, stride};
        tr_norm_backward_rows(c, norm, back);
    });
}

void tr_cuda_norm_ops(tr_ops *ops)
{
    ops->head_norm_forward = head_norm_forward;
    ops->head_norm_backward = head_norm_backward;
    ops->norm_forward = norm_forward;
    ops->sum_norm_forward = sum_norm_forward;
    ops->norm_backward = norm_backward;
    ops->add_norm_forward = add_norm_forward;
    ops->add_norm_backward = add_norm_backward;
}
