/*
 * naive.h - reference attention on unpadded rows, as plain loops in double.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef NAIVE_H
#define NAIVE_H

#include <algorithm>

#include "rig.h"

using std::vector;

/* Masks as in ops.h, without dropout.  If kv_heads is 0: none, but dropout. */
struct masks {
    size_t kv_heads;
    bool causal;
    size_t window;
};

struct problem {
    size_t heads, width;
    vector<int32_t> cu; /* from 0 on */
    vector<int32_t> place; /* of each row in the padded batch */
    tr_dropout dropout;
    uint32_t site;
    numbers qkv, d_out;
    /* True if dropout keeps the score of two rows, in a head. */
    bool (*stays)(const problem &p, size_t row, size_t head,
                  uint32_t column);
    size_t kv_heads;
    bool causal;
    size_t window;

    size_t hidden() const { return heads * width; }
    size_t keys() const { return kv_heads * width; }
    size_t stride() const { return hidden() + 2 * keys(); }
    size_t rows() const { return (size_t)cu.back(); }
};

/* The resulting arrays. */
struct answer {
    numbers out, kept, d_qkv;
};

static inline vector<int32_t> cu_of(const vector<int32_t> &lengths)
{
    vector<int32_t> cu = {0};

    for (int32_t n : lengths)
        cu.push_back(cu.back() + n);
    return cu;
}

static inline tr_batch batch_of(const vector<int32_t> &cu)
{
    tr_batch batch = {};

    batch.n_rows = (uint32_t)cu.back();
    batch.n_spans = (uint32_t)(cu.size() - 1);
    batch.cu = cu.data();
    return batch;
}

static inline tr_attend attend_of(const tr_batch *batch, size_t heads,
                                  size_t width)
{
    tr_attend a = {};

    a.batch = batch;
    a.heads = a.kv_heads = heads;
    a.width = width;
    return a;
}

/* Places of rows if there are gaps between spans. */
static inline vector<int32_t> places_of(const vector<int32_t> &cu)
{
    vector<int32_t> place;

    for (size_t i = 0; i + 1 < cu.size(); i++)
        for (int32_t row = cu[i]; row < cu[i + 1]; row++)
            place.push_back(row + 1000 * (int32_t)(i + 1) + (int32_t)i);
    return place;
}

/* The first row of a row's span. */
static inline size_t first_of(const problem &p, size_t row)
{
    return (size_t)*(std::upper_bound(p.cu.begin(), p.cu.end(), (int32_t)row)
                     - 1);
}

/* As in dropout.h, written out. */
static inline bool stays(const problem &p, size_t row, size_t head,
                         uint32_t column)
{
    const size_t first = first_of(p, row), from = row - first;
    const size_t to = column - first;
    const uint64_t place = (uint64_t)p.place[first] + from / 16 * 16 + from % 8;
    const uint64_t key = tr_counter_rng(tr_counter_rng(p.dropout.seed, p.site),
                                        place * p.heads + head);
    uint32_t h = (uint32_t)((to / 16 * 16 + to % 8) ^ (uint32_t)key)
                 * UINT32_C(0x9e3779b1);

    h = (h ^ h >> 15) * UINT32_C(0x85ebca6b) + (uint32_t)(key >> 32);
    h = (h ^ h >> 13) * UINT32_C(0xc2b2ae35);
    if (from / 8 % 2)
        h = (h ^ h >> 16) * UINT32_C(0x27d4eb2f);
    return (to / 8 % 2 ? h : h << 16) >= p.dropout.threshold;
}

/* Spans of these lengths. */
static inline problem problem_of(const rig &r, size_t heads, size_t width,
                                 const vector<int32_t> &lengths,
                                 double rate = 0, masks m = {})
{
    const vector<int32_t> cu = cu_of(lengths);
    problem p = {heads, width, cu, places_of(cu), tr_dropout_at(rate, 12345),
                 7, {}, {}, stays, heads, m.causal, m.window};

    if (m.kv_heads) {
        p.kv_heads = m.kv_heads;
        p.dropout = {};
    }
    p.qkv = draw(r, VALUES, p.rows() * p.stride(), 1, 2);
    p.d_out = draw(r, VALUES, p.rows() * p.hidden(), 2);
    return p;
}

static inline double dot(size_t n, const double *x, const double *y)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static inline void add(size_t n, double by, const double *x, double *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += by * x[i];
}

/* True if a row attends to another one of its span. */
static inline bool sees(const problem &p, size_t row, size_t other)
{
    const size_t distance = row < other ? other - row : row - other;

    return (!p.causal || other <= row)
           && (p.window == 0 || distance < p.window);
}

/* One row of one head, which attends to rows from `first` up to `end`, except
 * those that are masked. */
static inline void naive_row(const problem &p, size_t head, size_t row,
                             size_t first, size_t end, answer *a)
{
    const size_t w = p.width, hidden = p.hidden();
    const size_t key = hidden + head / (p.heads / p.kv_heads) * w;
    const double scale = 1 / sqrt((double)w);
    const double drop_scale
        = p.dropout.threshold ? (double)p.dropout.scale : 1;
    const auto at = [&](size_t r, size_t which) {
        return r * p.stride()
               + (which == 0 ? head * w : key + (which - 1) * p.keys());
    };
    const double *const d_o = &p.d_out[row * hidden + head * w];
    double *const o = &a->out[row * hidden + head * w];
    numbers s(end - first), d_p(end - first);
    double max = -INFINITY, sum = 0;

    for (size_t j = first; j < end; j++) {
        s[j - first] = sees(p, row, j) ? scale * dot(w, &p.qkv[at(row, 0)],
                                                     &p.qkv[at(j, 1)])
                                       : -INFINITY;
        max = fmax(max, s[j - first]);
    }
    for (double &x : s)
        sum += exp(x - max);
    a->kept[head * p.rows() + row] = max + log(sum);
    for (size_t j = first; j < end; j++) {
        const double by
            = p.stays(p, row, head, (uint32_t)j) ? drop_scale : 0;

        s[j - first] = exp(s[j - first] - max) / sum;
        add(w, by * s[j - first], &p.qkv[at(j, 2)], o);
        add(w, by * s[j - first], d_o, &a->d_qkv[at(j, 2)]);
        d_p[j - first] = by * dot(w, d_o, &p.qkv[at(j, 2)]);
    }
    const double delta = dot(w, d_o, o);
    for (size_t j = first; j < end; j++) {
        const double d_s = scale * s[j - first] * (d_p[j - first] - delta);

        add(w, d_s, &p.qkv[at(j, 1)], &a->d_qkv[at(row, 0)]);
        add(w, d_s, &p.qkv[at(row, 0)], &a->d_qkv[at(j, 1)]);
    }
}

static inline answer naive(const problem &p)
{
    answer a;

    a.out.resize(p.rows() * p.hidden());
    a.kept.resize(p.rows() * p.heads);
    a.d_qkv.resize(p.rows() * p.stride());
    for (size_t i = 0; i + 1 < p.cu.size(); i++)
        for (size_t h = 0; h < p.heads; h++)
            for (int32_t r = p.cu[i]; r < p.cu[i + 1]; r++)
                naive_row(p, h, (size_t)r, (size_t)p.cu[i],
                          (size_t)p.cu[i + 1], &a);
    return a;
}

/* The greatest difference, relative to the greatest number; NaN counts. */
static inline double apart(const numbers &x, const numbers &right)
{
    double most = 0, worst = 0;

    for (size_t i = 0; i < x.size(); i++) {
        const double d = fabs(x[i] - right[i]);

        most = fmax(most, fabs(right[i]));
        worst = !(d <= worst) ? d : worst;
    }
    return most > 0 ? worst / most : worst;
}

#endif /* NAIVE_H */
