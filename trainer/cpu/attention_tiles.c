/*
 * attention_tiles.c - attention that keeps no scores.
 *
 * A block of rows of a span is processed against one tile of its keys after
 * another, as in FlashAttention (Dao et al., 2022).  With S = Q K^T / sqrt(w)
 * and P = softmax(S), forward computes O = P V with a maximum and a sum that
 * are updated with each tile, and keeps L = log(sum of exp S) of each row.
 * Backward computes P = exp(S - L) again: dV = P^T dO, dP = dO V^T,
 * D = sum of dO O over the row, dS = P (dP - D), dQ = dS K / sqrt(w) and
 * dK = dS^T Q / sqrt(w).
 *
 * The heads of queries that share keys are side by side in a row of `qkv` and
 * of `out`.  They are copied to a matrix with one line per row and head, so
 * that a product has many lines although a block has few rows.  Few rows mean
 * few masked scores: those of a tile that some of the rows cannot see.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/attention_tiles.h"

#include <string.h>

#include "cpu/blas.h"
#include "cpu/softmax.h"
#include "cpu/vector.h"
#include "model/sizes.h"

#define TILE 512 /* keys of a tile */
#define LINES 128 /* of a block, if its rows are within these limits */
#define ROWS_MIN 16
#define ROWS_MAX 64

/* The rows of one span, with one head of keys. */
typedef struct piece {
    const tr_attend *a;
    size_t first;  /* the span's first row in the batch */
    size_t n;      /* rows */
    size_t head;   /* of keys */
    size_t share;  /* heads of queries that use it */
    size_t stride; /* of qkv */
    size_t rows;   /* of a block */
    /* Scratch.  A line is a row and one of its heads. */
    real *q;       /* lines x width */
    real *d_o;     /* lines x width */
    real *sums;    /* lines x width: O or dQ */
    real *p;       /* lines x TILE: S, then P */
    real *d_s;     /* lines x TILE: dP, then dS */
    real *max;     /* [lines] the largest score, or D in backward */
    real *all;     /* [lines] sum of exp(S - max), or L in backward */
} piece;

/* A tile of keys, for a block of rows.  All are numbered in the span. */
typedef struct tile {
    size_t row;  /* the block's first */
    size_t rows;
    size_t key;  /* the tile's first */
    size_t keys;
} tile;

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t max(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t block_rows(const tr_attend *a)
{
    return max(ROWS_MIN, min(ROWS_MAX, LINES / (a->heads / a->kv_heads)));
}

/* Lines of a block, rounded up so that arrays are aligned to cache lines. */
static size_t lines_of(const tr_attend *a)
{
    const size_t lines = block_rows(a) * (a->heads / a->kv_heads);

    return (lines + TR_LINE_BYTES - 1) / TR_LINE_BYTES * TR_LINE_BYTES;
}

size_t tr_tiles_kept(const tr_attend *a)
{
    return tr_times(sizeof(real), tr_times(a->batch->n_rows, a->heads));
}

size_t tr_tiles_scratch(const tr_attend *a)
{
    return lines_of(a) * (3 * a->width + 2 * TILE + 2) * sizeof(real);
}

static piece piece_of(const tr_attend *a, size_t span, size_t head,
                      void *scratch)
{
    const size_t lines = lines_of(a);
    const size_t first = (size_t)a->batch->cu[span];
    real *const q = scratch;
    real *const d_o = q + lines * a->width;
    real *const sums = d_o + lines * a->width;
    real *const p = sums + lines * a->width;
    real *const d_s = p + lines * TILE;
    real *const largest = d_s + lines * TILE;

    return (piece){.a = a,
                   .first = first,
                   .n = (size_t)a->batch->cu[span + 1] - first,
                   .head = head,
                   .share = a->heads / a->kv_heads,
                   .stride = (a->heads + 2 * a->kv_heads) * a->width,
                   .rows = block_rows(a),
                   .q = q,
                   .d_o = d_o,
                   .sums = sums,
                   .p = p,
                   .d_s = d_s,
                   .max = largest,
                   .all = largest + lines};
}

/* ---- What a row sees ---- */

static size_t first_key(const piece *p, size_t row)
{
    const size_t window = p->a->window;

    return window && row >= window ? row - window + 1 : 0;
}

/* One after the last key. */
static size_t end_key(const piece *p, size_t row)
{
    const size_t window = p->a->window;

    if (p->a->causal)
        return row + 1;
    return window && window < p->n - row ? row + window : p->n;
}

/* Returns the block that starts at a row, with an empty tile. */
static tile block_at(const piece *p, size_t row)
{
    return (tile){.row = row,
                  .rows = min(p->rows, p->n - row),
                  .key = first_key(p, row)};
}

/* Advances to the next keys that a row of the block sees; false: no more. */
static bool next_tile(const piece *p, tile *t)
{
    const size_t end = end_key(p, t->row + t->rows - 1);

    t->key += t->keys;
    t->keys = min(TILE, end - t->key);
    return t->keys > 0;
}

static bool is_first_tile(const piece *p, const tile *t)
{
    return t->key == first_key(p, t->row);
}

/* A row's keys in a tile, counted from the tile's first. */
typedef struct range {
    size_t first, end;
} range;

static range seen_by(const piece *p, const tile *t, size_t row)
{
    const size_t first = max(first_key(p, row), t->key);
    const size_t end = min(end_key(p, row), t->key + t->keys);

    return first < end ? (range){first - t->key, end - t->key}
                       : (range){0, 0};
}

/* ---- Products ---- */

static real scale_of(const piece *p)
{
    return 1 / sqrt((real)p->a->width);
}

/* The offset of a row's queries with this head of keys in out. */
static size_t out_at(const piece *p, size_t row)
{
    return ((p->first + row) * p->a->heads + p->head * p->share)
           * p->a->width;
}

static size_t query_at(const piece *p, size_t row)
{
    return (p->first + row) * p->stride + p->head * p->share * p->a->width;
}

static size_t key_at(const piece *p, size_t row)
{
    return (p->first + row) * p->stride
           + (p->a->heads + p->head) * p->a->width;
}

static size_t value_at(const piece *p, size_t row)
{
    return key_at(p, row) + p->a->kv_heads * p->a->width;
}

/* scores = by x keys^T, where x has a line of `width` numbers per line. */
static void multiply_keys(const piece *p, const tile *t, real by,
                          const real *x, const real *keys, real *scores)
{
    tr_gemm(CblasRowMajor, CblasNoTrans, CblasTrans,
            (blasint)(t->rows * p->share), (blasint)t->keys,
            (blasint)p->a->width, by, x, (blasint)p->a->width, keys,
            (blasint)p->stride, 0, scores, TILE);
}

/* sums = by weights values + beta sums */
static void multiply_values(const piece *p, const tile *t, real by,
                            const real *weights, const real *values,
                            real beta, real *sums)
{
    tr_gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans,
            (blasint)(t->rows * p->share), (blasint)p->a->width,
            (blasint)t->keys, by, weights, TILE, values, (blasint)p->stride,
            beta, sums, (blasint)p->a->width);
}

/* sums += by weights^T x, where sums has a row per key. */
static void add_turned(const piece *p, const tile *t, real by,
                       const real *weights, const real *x, real *sums)
{
    tr_gemm(CblasRowMajor, CblasTrans, CblasNoTrans, (blasint)t->keys,
            (blasint)p->a->width, (blasint)(t->rows * p->share), by, weights,
            TILE, x, (blasint)p->a->width, 1, sums, (blasint)p->stride);
}

/* ---- Lines of a block ---- */

/* Copies rows of a block from or to an array whose rows are `stride` apart. */
static void copy_in(const piece *p, const tile *t, const real *from,
                    size_t stride, real *lines)
{
    const size_t n = p->share * p->a->width;

    for (size_t r = 0; r < t->rows; r++)
        memcpy(lines + r * n, from + r * stride, n * sizeof *lines);
}

static void copy_out(const piece *p, const tile *t, const real *lines,
                     real *to, size_t stride)
{
    const size_t n = p->share * p->a->width;

    for (size_t r = 0; r < t->rows; r++)
        memcpy(to + r * stride, lines + r * n, n * sizeof *lines);
}

/* Zeroes the numbers of a line of scores outside the range. */
static void mask_line(const tile *t, range seen, real *scores)
{
    memset(scores, 0, seen.first * sizeof *scores);
    memset(scores + seen.end, 0, (t->keys - seen.end) * sizeof *scores);
}

TR_VECTORS
static void scale_line(size_t n, real by, const real *x, real *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * by;
}

TR_VECTORS
static real dot(size_t n, const real *x, const real *y)
{
    real s = 0;

#pragma omp simd reduction(+ : s)
    for (size_t i = 0; i < n; i++)
        s += x[i] * y[i];
    return s;
}

/* ---- Forward ---- */

/*
 * Replaces a line of scores by exp(S - max), with the new maximum, and scales
 * the sums so far to it.
 */
static void forward_line(const piece *p, const tile *t, range seen,
                         size_t line)
{
    const size_t w = p->a->width;
    real *const scores = p->p + line * TILE;
    const real old = p->max[line];
    real most, by;

    mask_line(t, seen, scores);
    if (seen.first == seen.end)
        return;
    most = tr_largest(seen.end - seen.first, scores + seen.first);
    most = most > old ? most : old;
    by = tr_exp(old - most);
    p->max[line] = most;
    p->all[line] = p->all[line] * by
                   + tr_exp_row(seen.end - seen.first, most,
                                scores + seen.first);
    if (by < 1 && !is_first_tile(p, t))
        scale_line(w, by, p->sums + line * w, p->sums + line * w);
}

static void forward_tile(const piece *p, const tile *t, const real *qkv)
{
    multiply_keys(p, t, scale_of(p), p->q, qkv + key_at(p, t->key), p->p);
    for (size_t r = 0; r < t->rows; r++) {
        const range seen = seen_by(p, t, t->row + r);

        for (size_t h = 0; h < p->share; h++)
            forward_line(p, t, seen, r * p->share + h);
    }
    multiply_values(p, t, 1, p->p, qkv + value_at(p, t->key),
                    !is_first_tile(p, t), p->sums);
}

static void forward_block(const piece *p, size_t row, const real *qkv,
                          real *out)
{
    const size_t w = p->a->width;
    const size_t lines = min(p->rows, p->n - row) * p->share;
    tile t = block_at(p, row);
    real *const kept = p->a->kept;

    copy_in(p, &t, qkv + query_at(p, row), p->stride, p->q);
    for (size_t i = 0; i < lines; i++) {
        p->max[i] = (real)-INFINITY;
        p->all[i] = 0;
    }
    while (next_tile(p, &t))
        forward_tile(p, &t, qkv);
    for (size_t i = 0; i < lines; i++)
        scale_line(w, 1 / p->all[i], p->sums + i * w, p->sums + i * w);
    copy_out(p, &t, p->sums, out + out_at(p, row), p->a->heads * w);
    for (size_t i = 0; i < lines; i++)
        kept[(p->first + row + i / p->share) * p->a->heads
             + p->head * p->share + i % p->share] =
            p->max[i] + log(p->all[i]);
}

void tr_tiles_forward(const tr_attend *a, size_t span, size_t kv_head,
                      const real *qkv, real *out, void *scratch)
{
    const piece p = piece_of(a, span, kv_head, scratch);

    for (size_t row = 0; row < p.n; row += p.rows)
        forward_block(&p, row, qkv, out);
}

/* ---- Backward ---- */

/* dS = P (dP - D) */
TR_VECTORS
static void weigh_line(size_t n, const real *restrict p, real mean,
                       real *restrict d_s)
{
    for (size_t i = 0; i < n; i++)
        d_s[i] = p[i] * (d_s[i] - mean);
}

static void backward_tile(const piece *p, const tile *t, const real *qkv,
                          real *d_qkv)
{
    const real scale = scale_of(p);

    multiply_keys(p, t, scale, p->q, qkv + key_at(p, t->key), p->p);
    multiply_keys(p, t, 1, p->d_o, qkv + value_at(p, t->key), p->d_s);
    for (size_t r = 0; r < t->rows; r++) {
        const range seen = seen_by(p, t, t->row + r);
        const size_t n = seen.end - seen.first;

        for (size_t h = 0; h < p->share; h++) {
            const size_t i = r * p->share + h;
            const size_t at = i * TILE + seen.first;

            mask_line(t, seen, p->p + i * TILE);
            mask_line(t, seen, p->d_s + i * TILE);
            tr_exp_row(n, p->all[i], p->p + at);
            weigh_line(n, p->p + at, p->max[i], p->d_s + at);
        }
    }
    add_turned(p, t, 1, p->p, p->d_o, d_qkv + value_at(p, t->key));
    multiply_values(p, t, scale, p->d_s, qkv + key_at(p, t->key),
                    !is_first_tile(p, t), p->sums);
    add_turned(p, t, scale, p->d_s, p->q, d_qkv + key_at(p, t->key));
}

static void backward_block(const piece *p, size_t row, const real *qkv,
                           const real *out, const real *d_out, real *d_qkv)
{
    const tr_attend *const a = p->a;
    const size_t hidden = a->heads * a->width;
    const real *const kept = a->kept;
    tile t = block_at(p, row);

    copy_in(p, &t, qkv + query_at(p, row), p->stride, p->q);
    copy_in(p, &t, d_out + out_at(p, row), hidden, p->d_o);
    for (size_t r = 0; r < t.rows; r++)
        for (size_t h = 0; h < p->share; h++) {
            const size_t i = r * p->share + h;

            p->all[i] = kept[(p->first + row + r) * a->heads
                             + p->head * p->share + h];
            p->max[i] = dot(a->width, p->d_o + i * a->width,
                            out + out_at(p, row + r) + h * a->width);
        }
    while (next_tile(p, &t))
        backward_tile(p, &t, qkv, d_qkv);
    copy_out(p, &t, p->sums, d_qkv + query_at(p, row), p->stride);
}

void tr_tiles_backward(const tr_attend *a, size_t span, size_t kv_head,
                       const real *qkv, const real *out, const real *d_out,
                       real *d_qkv, void *scratch)
{
    const piece p = piece_of(a, span, kv_head, scratch);

    for (size_t row = 0; row < p.n; row++) {
        memset(d_qkv + key_at(&p, row), 0, a->width * sizeof *d_qkv);
        memset(d_qkv + value_at(&p, row), 0, a->width * sizeof *d_qkv);
    }
    for (size_t row = 0; row < p.n; row += p.rows)
        backward_block(&p, row, qkv, out, d_out, d_qkv);
}
