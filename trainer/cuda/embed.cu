/*
 * embed.cu - the embedding (word vectors or, in BERT, the normalised sum of
 * word, position and type vectors) and its gradients.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cuda/columns.h"
#include "cuda/norm_row.h"
#include "cuda/segments.h"
#include "cuda/stage.h"

/* The tables, and each row's indices. */
template <typename value> struct embed_in {
    const value *table[TR_TABLES];
    const int32_t *index[TR_TABLES];
    tr_dropout dropout;
    uint32_t site;
};

/* Grid: one row per block; block: see by_width(). */
template <typename value, int N, int K>
static __global__ void __launch_bounds__(ROW_THREADS, 2)
embed_kernel(embed_in<value> in, norm_out<value> out)
{
    const size_t row = blockIdx.x;
    real x[K][N] = {};

#pragma unroll
    for (int t = 0; t < TR_TABLES; t++) {
        const value *const from = in.table[t]
                                  + (size_t)in.index[t][row] * out.width;

#pragma unroll
        for (int k = 0; k < K; k++) {
            real one[N];

            if (column_of<N>(k) >= out.width)
                break;
            load<N>(from + column_of<N>(k), one);
            for (int j = 0; j < N; j++)
                x[k][j] += one[j];
        }
    }
    norm_row<value, N, K, true>(out, row,
                                dropout_of(in.dropout, in.site, row), x);
}

template <typename value>
static void forward(tr_cuda *c, const tr_tables *tables,
                    const tr_norm *norm, const tr_batch *batch,
                    const tr_dropout *dropout, uint32_t site,
                    const tr_norm_kept *kept, value *y)
{
    const embed_in<value> in = {
        {(const value *)tr_cuda_weight(c, tables->word),
         (const value *)tr_cuda_weight(c, tables->position),
         (const value *)tr_cuda_weight(c, tables->type)},
        {batch->token, batch->position, batch->type},
        *dropout,
        site};
    const norm_out<value> out = norm_out_of<value>(norm, kept, y);
    tr_cuda_takes(c, norm->bias && !norm->rms, "norm of the embedding");

    const bool wide = aligned(in.table[0], in.table[1], in.table[2], out.gain,
                              out.bias, out.hat, out.y);

    by_width<value>(c, norm->width, wide, [&](auto s, unsigned threads) {
        using shape = decltype(s);

        launch(c, c->stream, "embedding", dim3(batch->n_rows), threads, 0,
               embed_kernel<value, shape::N, shape::K>, in, out);
    });
}

static void embed_forward(tr_device *d, const tr_tables *tables,
                          const tr_norm *norm, const tr_batch *batch,
                          const tr_dropout *dropout, uint32_t site,
                          const tr_norm_kept *kept, void *y)
{
    tr_cuda *const c = cuda_of(d);

    tr_cuda_staged(batch);
    by_value(c, [&](auto v) {
        using value = decltype(v);

        forward(c, tables, norm, batch, dropout, site, kept, (value *)y);
    });
}

/* ---- Gradients of the tables ---- */

/* A NULL table has no gradient. */
struct table_gradients {
    real *word;
    real *position;
    real *type;
    real *partial; /* partial sums, `width` numbers each */
};

/* An indexed array of pointers would be in local memory. */
static inline __device__ real *table_of(const table_gradients &to,
                                        uint32_t table)
{
    return table == TR_TABLE_WORD       ? to.word
           : table == TR_TABLE_POSITION ? to.position
                                          : to.type;
}

/* Grid: one piece per block; block: up to THREADS, N columns per thread. */
template <typename value, int N>
static __global__ void __launch_bounds__(THREADS, 4)
pieces_kernel(const tr_piece *pieces, const int32_t *order, unsigned width,
              const value *dx, table_gradients to)
{
    const tr_piece piece = pieces[blockIdx.x];
    real *const table = table_of(to, piece.table);
    const bool whole = piece.partial < 0;

    if (!table || piece.count == 0)
        return;

    real *const sums = whole ? table + (size_t)piece.to * width
                             : to.partial + (size_t)piece.partial * width;

    for (unsigned i = threadIdx.x * N; i < width; i += blockDim.x * N) {
        real sum[N] = {};

        if (whole)
            load<N>(sums + i, sum);
#pragma unroll 4
        for (unsigned r = 0; r < piece.count; r++) {
            real one[N];

            load<N>(dx + (size_t)order[piece.first + r] * width + i, one);
            for (int j = 0; j < N; j++)
                sum[j] += one[j];
        }
        store<N>(sum, sums + i);
    }
}

/* Grid: 32 columns of a long segment per block; block: COLUMN_THREADS. */
static __global__ void __launch_bounds__(COLUMN_THREADS)
longs_kernel(const tr_long *longs, unsigned width, table_gradients to)
{
    const tr_long it = longs[blockIdx.y];
    real *const table = table_of(to, it.table);
    const unsigned i = blockIdx.x * 32 + threadIdx.x % 32;
    double sum;

    if (!table || it.count == 0)
        return;
    sum = partial_sum<COLUMN_WARPS>(to.partial + (size_t)it.first * width,
                      it.count, width, i, i < width);
    if (threadIdx.x < 32 && i < width)
        table[(size_t)it.to * width + i] += (real)sum;
}

template <typename value>
static void add_to_tables(tr_cuda *c, const tr_tables *tables,
                          const tr_segments *s, size_t width,
                          const value *dx)
{
    constexpr int N = WIDE<value>;
    const table_gradients to = {
        tables->word_gradient, tables->position_gradient,
        tables->type_gradient,
        (real *)tr_cuda_scratch(c, s->n_partials * width * sizeof(real))};
    const bool wide = width % N == 0
                      && aligned(dx, to.word, to.position, to.type);

    if (to.partial == NULL)
        return;
    launch(c, c->stream, "embedding backward", dim3(s->n_pieces),
           threads_of(wide ? width / N : width, THREADS), 0,
           wide ? pieces_kernel<value, N> : pieces_kernel<value, 1>,
           s->pieces, s->order, width, dx, to);
    launch(c, c->stream, "embedding backward",
           dim3(blocks_of(width, 32), s->n_longs), COLUMN_THREADS, 0,
           longs_kernel, s->longs, width, to);
}

static void embed_backward(tr_device *d, const tr_tables *tables,
                           const tr_norm *norm, const tr_batch *batch,
                           const tr_dropout *dropout, uint32_t site,
                           const tr_norm_kept *kept, void *dy)
{
    tr_cuda *const c = cuda_of(d);
    const tr_staged *const staged = tr_cuda_staged(batch);

    by_value(c, [&](auto v) {
        using value = decltype(v);
        norm_back<value> back = norm_back_of<value>(norm, batch->n_rows, kept,
                                                    dy, dy);

        back.before = *dropout;
        back.site = site;
        tr_norm_backward_rows(c, norm, back);
        add_to_tables(c, tables, staged->segments, norm->width,
                      (const value *)dy);
    });
}

static void lookup_forward(tr_device *d, size_t rows, size_t width,
                           const int32_t *token, const real *table, void *y)
{
    d->ops->gather_rows(d, rows, width, token,
                        tr_cuda_weight(cuda_of(d), table), y);
}

/* Sums the segments of the staged batch that contains `token`. */
static void lookup_backward(tr_device *d, size_t rows, size_t width,
                            const int32_t *token, const void *dy,
                            real *table_gradient)
{
    tr_cuda *const c = cuda_of(d);
    const tr_staged *const staged = tr_cuda_holder(c, token);
    tr_tables tables = {};

    tr_cuda_takes(c,
                  staged && staged->batch.token == token
                      && staged->batch.n_rows == rows,
                  "gradients of word vectors");
    if (c->failed)
        return;
    tr_cuda_reads(c, token);
    tables.word_gradient = table_gradient;
    by_value(c, [&](auto v) {
        using value = decltype(v);

        add_to_tables(c, &tables, staged->segments, width,
                      (const value *)dy);
    });
}

void tr_cuda_embed_ops(tr_ops *ops)
{
    ops->lookup_forward = lookup_forward;
    ops->lookup_backward = lookup_backward;
    ops->embed_forward = embed_forward;
    ops->embed_backward = embed_backward;
}
