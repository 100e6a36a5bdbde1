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

template <typename value> struct norm_in {
    const value *x;
    const value *branch; /* NULL if x alone is the input */
    const real *bias;    /* of the branch, or NULL */
    value *sum;          /* receives the sum, unless NULL; may be x */
    tr_dropout dropout;
    uint32_t site;
};

/* Grid: one row per block; block: see by_width(). */
template <typename value, int N, int K>
static __global__ void __launch_bounds__(ROW_THREADS)
norm_kernel(norm_in<value> in, norm_out<value> out)
{
    const size_t row = blockIdx.x, at = row_at(out.rows, row, out.width);
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
        if (in.bias)
            load<N>(in.bias + i, bias);
        for (int j = 0; j < N; j++) {
            const real sum = branch[j] + bias[j];

            x[k][j] += dropout.threshold ? drop(dropout, i + j, sum) : sum;
        }
        if (in.sum)
            store<N>(x[k], in.sum + at + i);
    }
    norm_row<value, N, K>(out, row, dropout_row(), x);
}

template <typename value>
static void forward(tr_cuda *c, size_t rows, const norm_in<value> &in,
                    const norm_out<value> &out)
{
    const bool wide = out.rows.stride % WIDE<value> == 0
                      && aligned(in.x, in.branch, in.bias, in.sum, out.gain,
                                 out.bias, out.hat, out.y);

    by_width<value>(c, out.width, wide, [&](auto s, unsigned threads) {
        using shape = decltype(s);

        launch(c, c->stream, "norm", dim3((unsigned)rows), threads, 0,
               norm_kernel<value, shape::N, shape::K>, in, out);
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
template <typename value, int N, int K>
static __global__ void __launch_bounds__(ROW_THREADS)
norm_backward_kernel(norm_back<value> p, real *partial)
{
    const size_t sums_at = blockIdx.x * (size_t)p.width * (p.biased ? 2 : 1);
    real sum_gain[K][N] = {}, sum_bias[K][N] = {};

    for (size_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
        const size_t at = row_at(p.in, row, p.width), hat_at = row * p.width;
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
                if (before.threshold)
                    dy[k][j] = drop(before, i + j, dy[k][j]);
                sum_gain[k][j] += dy[k][j] * hat[k][j];
                sum_bias[k][j] += dy[k][j];
                dy[k][j] *= gain[j];
                sums[0] += dy[k][j];
                sums[1] += dy[k][j] * hat[k][j];
            }
        }
        block_sums(sums);
        sums[0] = p.rms ? 0 : sums[0] / (real)p.width;
        sums[1] /= (real)p.width;
#pragma unroll
        for (int k = 0; k < K; k++) {
            const unsigned i = column_of<N>(k);
            real dx[N] = {};

            if (i >= p.width)
                break;
            if (p.adds)
                load<N>(p.dx + at + i, dx);
            for (int j = 0; j < N; j++)
                dy[k][j] = dx[j]
                           + inverse * (dy[k][j] - sums[0]
                                        - hat[k][j] * sums[1]);
            store<N>(dy[k], p.dx + at + i);
            if (!p.d_branch)
                continue;
            for (int j = 0; j < N; j++)
                dy[k][j] = drop(after, i + j, dy[k][j]);
            store<N>(dy[k], p.d_branch + at + i);
        }
    }
#pragma unroll
    for (int k = 0; k < K; k++) {
        const unsigned i = column_of<N>(k);

        if (i >= p.width)
            break;
        store<N>(sum_gain[k], partial + sums_at + i);
        if (p.biased)
            store<N>(sum_bias[k], partial + sums_at + p.width + i);
    }
}

template <typename value>
void tr_norm_backward_rows(tr_cuda *c, const tr_norm *norm,
                           norm_back<value> back)
{
    const unsigned most = blocks_of(back.rows, BACK_ROWS);
    const unsigned blocks = most < BACK_BLOCKS ? most : BACK_BLOCKS;
    real *const partial = (real *)tr_cuda_scratch(
        c, (back.biased ? 2 : 1) * blocks * norm->width * sizeof(real));
    const bool wide = back.in.stride % WIDE<value> == 0
                      && aligned(back.gain, back.hat, back.dy, back.dx,
                                 back.d_branch);

    if (partial == NULL)
        return;
    by_width<value>(c, norm->width, wide, [&](auto s, unsigned threads) {
        using shape = decltype(s);

        launch(c, c->stream, "norm backward", dim3(blocks), threads, 0,
               norm_backward_kernel<value, shape::N, shape::K>, back,
               partial);
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
