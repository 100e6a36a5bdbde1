/*
 * attention_block.c - attention of one head within one block of rows.
 *
 * With S = Q K^T / sqrt(d), P = softmax(S), P' = dropout(P) and O = P' V:
 * dV = P'^T dO, dP = dropout(dO V^T), dS = P (dP - sum of P dP over the row),
 * dQ = dS K / sqrt(d), dK = dS^T Q / sqrt(d).
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/attention_block.h"

#include "cpu/blas.h"
#include "cpu/dropout_rows.h"
#include "cpu/softmax.h"
#include "cpu/vector.h"

/* A submatrix. */
typedef struct part {
    const real *at;
    size_t width; /* row stride */
} part;

/* c = scale a b, where c is m x n and a is m x k. */
static void multiply(size_t m, size_t n, size_t k, real scale, part a,
                     bool a_turned, part b, bool b_turned, real *c,
                     size_t c_width)
{
    tr_gemm(CblasRowMajor, a_turned ? CblasTrans : CblasNoTrans,
            b_turned ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n,
            (blasint)k, scale, a.at, (blasint)a.width, b.at,
            (blasint)b.width, 0, c, (blasint)c_width);
}

/* Numbers in a row of the output. */
static size_t hidden_of(const tr_attend *a)
{
    return a->heads * a->width;
}

static real scale_of(const tr_attend *a)
{
    return 1 / sqrt((real)a->width);
}

/* Returns the offset of a block's queries (0), keys (1) or values (2). */
static size_t qkv_at(const tr_block *b, size_t which)
{
    const tr_attend *const a = b->attend;

    return (b->row * 3 + which) * hidden_of(a) + b->head * a->width;
}

static part qkv_part(const tr_block *b, const real *qkv, size_t which)
{
    return (part){qkv + qkv_at(b, which), 3 * hidden_of(b->attend)};
}

static size_t out_at(const tr_block *b)
{
    return b->row * hidden_of(b->attend) + b->head * b->attend->width;
}

/*
 * Negates the dropped numbers of a row.  Rows and columns are numbered from the
 * start of their sequence, so the mask does not depend on the blocks.
 */
static void mark_row(const tr_block *b, size_t row, real *kept)
{
    const tr_attend *const a = b->attend;
    size_t first = 0, end = b->n;

    if (b->segment) {
        for (first = row; first > 0; first--)
            if (b->segment[first - 1] != b->segment[row])
                break;
        for (end = row + 1; end < b->n; end++)
            if (b->segment[end] != b->segment[row])
                break;
    }
    tr_dropout_mark(
        &a->dropout,
        tr_dropout_scores(&a->dropout, a->site,
                          tr_dropout_place(&a->dropout, b->row + first),
                          (uint32_t)(row - first), (uint32_t)b->head,
                          (uint32_t)a->heads),
        row - first, end - first, kept + first);
}

static void forward_row(const tr_block *b, size_t row, real *kept)
{
    if (b->segment)
        tr_mask_row(b->n, b->segment, b->segment[row], kept);
    tr_softmax_row(b->n, kept);
    if (b->attend->dropout.threshold)
        mark_row(b, row, kept);
}

/* Returns the weights of the values, which are the softmax after dropout. */
static part dropped(const tr_block *b)
{
    const tr_dropout *const dropout = &b->attend->dropout;

    if (!dropout->threshold)
        return (part){b->kept, b->n};
    for (size_t r = 0; r < b->n; r++)
        tr_dropout_marked(dropout, b->n, b->kept + r * b->n,
                          b->scratch + r * b->n);
    return (part){b->scratch, b->n};
}

void tr_block_forward(const tr_block *b, const real *qkv, real *out)
{
    const size_t n = b->n;
    const size_t d = b->attend->width;

    multiply(n, n, d, scale_of(b->attend), qkv_part(b, qkv, 0), false,
             qkv_part(b, qkv, 1), true, b->kept, n);
    for (size_t r = 0; r < n; r++)
        forward_row(b, r, b->kept + r * n);
    multiply(n, d, n, 1, dropped(b), false, qkv_part(b, qkv, 2), false,
             out + out_at(b), hidden_of(b->attend));
}

void tr_block_backward(const tr_block *b, const real *qkv,
                       const real *d_out, real *d_qkv)
{
    const tr_attend *const a = b->attend;
    const size_t n = b->n;
    const size_t d = a->width;
    const size_t hidden = hidden_of(a);
    const part d_o = {d_out + out_at(b), hidden};
    const part d_s = {b->scratch, n};
    const real scale = scale_of(a);

    multiply(n, d, n, 1, dropped(b), true, d_o, false,
             d_qkv + qkv_at(b, 2), 3 * hidden);
    multiply(n, n, d, 1, d_o, false, qkv_part(b, qkv, 2), true, b->scratch,
             n);
    for (size_t r = 0; r < n; r++)
        tr_softmax_backward_row(n, b->kept + r * n, a->dropout.scale,
                                b->scratch + r * n);
    multiply(n, d, n, scale, d_s, false, qkv_part(b, qkv, 1), false,
             d_qkv + qkv_at(b, 0), 3 * hidden);
    multiply(n, d, n, scale, d_s, true, qkv_part(b, qkv, 0), false,
             d_qkv + qkv_at(b, 1), 3 * hidden);
}
