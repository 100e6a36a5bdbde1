/*
 * rows-t.cc - row by row operations compared with loops in double: norms,
 * activations, the embedding, rotary positions, heads, products.
 *
 * SPDX-License-Identifier: MIT
 */
#include <algorithm>

#include "cuda/segments.h"
#include "prenorm.h"
#include "products.h"
#include "rig.h"

#define SITE 5

/* ---- Norms ---- */

/* One row: hat and its inverse deviation. */
static double norm_row(const tr_norm &norm, const double *x, double *hat)
{
    const size_t n = norm.width;
    double mean = 0, variance = 0, inverse;

    for (size_t i = 0; i < n && !norm.rms; i++)
        mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        variance += (x[i] - mean) * (x[i] - mean) / (double)n;
    inverse = 1 / sqrt(variance + norm.epsilon);
    for (size_t i = 0; i < n; i++)
        hat[i] = (x[i] - mean) * inverse;
    return inverse;
}

/* The arrays of a norm on the device, and its arguments. */
struct norm_rig {
    array gain, bias, d_gain, d_bias, hat, inverse;
    numbers gains, biases;
    tr_norm norm;
    tr_norm_kept kept;

    norm_rig(const rig &r, size_t rows, size_t width)
        : gain(r, REALS, draw(r, REALS, width, 1)),
          bias(r, REALS, draw(r, REALS, width, 2)),
          d_gain(r, REALS, draw(r, REALS, width, 3)),
          d_bias(r, REALS, draw(r, REALS, width, 4)),
          hat(r, VALUES, rows * width), inverse(r, REALS, rows),
          gains(gain.back()), biases(bias.back()),
          norm{width, 1e-12, false, gain, bias, d_gain, d_bias, false},
          kept{hat.p, inverse}
    {
    }

    /* Makes it a norm without bias, with an epsilon that matters. */
    void become(bool rms)
    {
        norm.rms = rms;
        norm.epsilon = 0.1;
        norm.bias = norm.bias_gradient = NULL;
        biases.assign(biases.size(), 0);
    }
};

/* The expected norm of the rows of x, with dropout of its output. */
static void norm_rows(const norm_rig &n, size_t rows, const numbers &x,
                      const tr_dropout &dropout, numbers *hat, numbers *y)
{
    const size_t width = n.norm.width;

    *hat = *y = numbers(rows * width);
    for (size_t r = 0; r < rows; r++) {
        norm_row(n.norm, &x[r * width], &(*hat)[r * width]);
        for (size_t i = 0; i < width; i++)
            (*y)[r * width + i] = dropped(
                dropout, SITE, r, (uint32_t)i,
                (*hat)[r * width + i] * n.gains[i] + n.biases[i]);
    }
}

static void test_norm_forward(const rig &r, size_t rows, size_t width,
                              double rate)
{
    const std::vector<int32_t> place = draw_places(rows, 35);
    const array places(r, INDEX, as_numbers(place));
    const tr_dropout dropout = dropout_by(rate, place.data());
    const tr_dropout there = dropout_by(rate, places);
    const numbers x = draw(r, VALUES, rows * width, 5);
    const numbers branch = draw(r, VALUES, rows * width, 6);
    const numbers bias = draw(r, REALS, width, 7);
    const array dx(r, VALUES, x), db(r, VALUES, branch), dc(r, REALS, bias);
    const array y(r, VALUES, rows * width);
    const norm_rig n(r, rows, width);
    numbers sum = x, hat, right;
    bool good;

    norm_rows(n, rows, x, tr_dropout_at(0, 77), &hat, &right);
    r.ops->norm_forward(r.d, &n.norm, rows, dx, &n.kept, y);
    good = rounded(r, y.back(), right) && rounded(r, n.hat.back(), hat);
    for (size_t i = 0; i < sum.size(); i++)
        sum[i] += dropped(dropout, SITE, i / width, (uint32_t)(i % width),
                          branch[i] + bias[i % width]);
    norm_rows(n, rows, sum, tr_dropout_at(0, 77), &hat, &right);
    r.ops->sum_norm_forward(r.d, &n.norm, rows, dx, db, dc, &there, SITE,
                            &n.kept, y);
    good = rounded(r, y.back(), right) && good;
    good = rounded(r, n.hat.back(), hat) && good;
    ok(good, "%s: norm, %zu x %zu, dropout %g", r.name, rows, width, rate);
}

/* dx of a norm, and the sums for gain and bias. */
static numbers norm_back_rows(const norm_rig &n, size_t rows,
                              const numbers &hat, const numbers &inverse,
                              const numbers &dy, numbers *d_gain,
                              numbers *d_bias)
{
    const size_t width = n.norm.width;
    numbers dx(rows * width);

    for (size_t r = 0; r < rows; r++) {
        const double *const h = &hat[r * width], *const d = &dy[r * width];
        double mean = 0, slope = 0;

        for (size_t i = 0; i < width; i++) {
            mean += n.gains[i] * d[i] / (double)width;
            slope += n.gains[i] * d[i] * h[i] / (double)width;
            (*d_gain)[i] += d[i] * h[i];
            (*d_bias)[i] += d[i];
        }
        mean = n.norm.rms ? 0 : mean;
        for (size_t i = 0; i < width; i++)
            dx[r * width + i] = inverse[r] * (n.gains[i] * d[i] - mean
                                              - h[i] * slope);
    }
    return dx;
}

static void test_norm_backward(const rig &r, size_t rows, size_t width,
                               double rate)
{
    const std::vector<int32_t> place = draw_places(rows, 35);
    const array places(r, INDEX, as_numbers(place));
    const tr_dropout dropout = dropout_by(rate, place.data());
    const tr_dropout there = dropout_by(rate, places);
    const numbers dy = draw(r, VALUES, rows * width, 8);
    const numbers hat = draw(r, VALUES, rows * width, 9);
    const numbers inverse = draw(r, REALS, rows, 10);
    const array d(r, VALUES, dy), branch(r, VALUES, rows * width);
    norm_rig n(r, rows, width);
    numbers d_gain(width), d_bias(width), dx, d_branch;
    bool good;

    n.hat.set(hat);
    n.inverse.set(inverse);
    r.ops->norm_backward(r.d, &n.norm, rows, &n.kept, d, &there, SITE, d,
                         rate > 0 ? branch.p : NULL);
    dx = norm_back_rows(n, rows, hat, inverse, dy, &d_gain, &d_bias);
    good = same(d.back(), dx, 2 * r.near)
           && same(n.d_gain.back(), d_gain, 1e-5)
           && same(n.d_bias.back(), d_bias, 1e-5);
    d_branch = dx;
    for (size_t i = 0; i < dx.size(); i++)
        d_branch[i] = dropped(dropout, SITE, i / width, (uint32_t)(i % width),
                              dx[i]);
    if (rate > 0)
        good = same(branch.back(), d_branch, 2 * r.near) && good;
    ok(good, "%s: norm backward, %zu x %zu, dropout %g", r.name, rows, width,
       rate);
}

/* Norms of a residual stream, to which a branch is added. */
static bool is_add_norm(const rig &r, const norm_rig &n, size_t rows)
{
    const size_t width = n.norm.width;
    const tr_dropout none = tr_dropout_at(0, 77);
    const numbers branch = draw(r, VALUES, rows * width, 6);
    const array x(r, VALUES, draw(r, VALUES, rows * width, 5));
    const array add(r, VALUES, branch), y(r, VALUES, rows * width);
    const array other(r, VALUES, rows * width);
    numbers sum = x.back(), hat, right;
    bool good;

    norm_rows(n, rows, sum, none, &hat, &right);
    r.ops->add_norm_forward(r.d, &n.norm, rows, NULL, x, x, &n.kept, y);
    good = same(x.back(), sum, 0) && rounded(r, y.back(), right);
    for (size_t i = 0; i < sum.size(); i++)
        sum[i] += branch[i];
    norm_rows(n, rows, sum, none, &hat, &right);
    r.ops->add_norm_forward(r.d, &n.norm, rows, add, x, other, &n.kept, y);
    r.ops->add_norm_forward(r.d, &n.norm, rows, add, x, x, &n.kept, y);
    good = same(other.back(), x.back(), 0) && good;
    return rounded(r, x.back(), sum) && rounded(r, y.back(), right)
           && rounded(r, n.hat.back(), hat) && good;
}

/* Gradients: set, or added to. */
static bool is_add_norm_backward(const rig &r, norm_rig *n, size_t rows)
{
    const size_t width = n->norm.width;
    const tr_dropout none = tr_dropout_at(0, 77);
    const numbers dy = draw(r, VALUES, rows * width, 8);
    const numbers hat = draw(r, VALUES, rows * width, 9);
    const numbers inverse = draw(r, REALS, rows, 10);
    const numbers before = draw(r, VALUES, rows * width, 11);
    const array d(r, VALUES, dy), dx(r, VALUES, before);
    numbers d_gain(width), d_bias(width), right;
    bool good;

    n->hat.set(hat);
    n->inverse.set(inverse);
    right = norm_back_rows(*n, rows, hat, inverse, dy, &d_gain, &d_bias);
    d_bias = n->d_bias.back(); /* not written */
    for (size_t i = 0; i < right.size(); i++)
        right[i] += before[i];
    r.ops->add_norm_backward(r.d, &n->norm, rows, &n->kept, d, dx);
    good = same(dx.back(), right, 2 * r.near)
           && same(n->d_gain.back(), d_gain, 1e-5)
           && same(n->d_bias.back(), d_bias, 0);
    for (size_t i = 0; i < right.size(); i++)
        right[i] -= before[i];
    n->d_gain.set(draw(r, REALS, width, 3));
    r.ops->norm_backward(r.d, &n->norm, rows, &n->kept, d, &none, SITE, d,
                         NULL);
    return same(d.back(), right, 2 * r.near)
           && same(n->d_gain.back(), d_gain, 1e-5) && good;
}

/* Heads of part of a row, normalised in place, and their gradients. */
static void test_head_norm(const rig &r, size_t rows, size_t heads, size_t all,
                           size_t width)
{
    const size_t stride = all * width, part = heads * width;
    const numbers x = draw(r, VALUES, rows * part, 5);
    const numbers dy = draw(r, VALUES, rows * part, 8);
    const array to(r, VALUES, spread(x, part, stride));
    const array d(r, VALUES, spread(dy, part, stride));
    norm_rig n(r, rows * heads, width);
    numbers hat, right, d_gain(width), d_bias(width);
    bool good;

    n.become(true);
    norm_rows(n, rows * heads, x, tr_dropout_at(0, 77), &hat, &right);
    r.ops->head_norm_forward(r.d, &n.norm, rows, heads, stride, &n.kept, to);
    good = rounded(r, narrow(to.back(), part, stride), right)
           && rounded(r, n.hat.back(), hat);
    right = norm_back_rows(n, rows * heads, n.hat.back(), n.inverse.back(), dy,
                           &d_gain, &d_bias);
    r.ops->head_norm_backward(r.d, &n.norm, rows, heads, stride, &n.kept, d);
    good = same(narrow(d.back(), part, stride), right, 2 * r.near)
           && same(n.d_gain.back(), d_gain, 1e-5) && good;
    ok(good, "%s: norms of %zu x %zu of %zu heads of %zu", r.name, rows, heads,
       all, width);
}

static void test_add_norm(const rig &r, size_t rows, size_t width)
{
    for (bool rms : {false, true}) {
        norm_rig n(r, rows, width);

        n.become(rms);
        ok(is_add_norm(r, n, rows), "%s: %s of a stream, %zu x %zu", r.name,
           rms ? "RMS norm" : "norm", rows, width);
        ok(is_add_norm_backward(r, &n, rows),
           "%s: its gradients", r.name);
    }
}

/* ---- The embedding ---- */

#define WORDS 300
#define POSITIONS 40
#define TYPES 2
#define ALL_ROWS (WORDS + POSITIONS + TYPES) /* of the three tables in turn */

/* Indices that each row looks up.  Many rows, far apart, have the same word. */
struct embed_rows {
    std::vector<int32_t> word, position, type, place, zero;
    tr_batch batch;

    explicit embed_rows(size_t n)
        : word(draw_index(n, 14, WORDS)),
          position(draw_index(n, 19, POSITIONS)),
          type(draw_index(n, 20, TYPES)), place(draw_places(n, 35)),
          zero(n + 1), batch()
    {
        for (size_t i = 0; i < n; i++)
            if (tr_counter_rng(15, i) % 2)
                word[i] = 103;
        batch.n_rows = (uint32_t)n;
        batch.token = word.data();
        batch.position = position.data();
        batch.type = type.data();
        batch.place = place.data();
        batch.segment = batch.cu = zero.data();
    }
    /* Rows of all tables that row i looks up. */
    std::vector<size_t> of(size_t i) const
    {
        return {(size_t)word[i], WORDS + (size_t)position[i],
                WORDS + POSITIONS + (size_t)type[i]};
    }
};

static tr_tables tables_at(size_t width, real *weights, real *gradients)
{
    const size_t p = WORDS * width, t = (WORDS + POSITIONS) * width;

    return {weights,   weights + p,   weights + t,
            gradients, gradients + p, gradients + t};
}

/* Words of any size; some occur in hundreds of rows. */
static void test_segments(uint32_t n)
{
    std::vector<int32_t> word = draw_index(n, 34, INT32_MAX), few = word,
                         spare(n), order(TR_TABLES * n);
    std::vector<tr_piece> pieces(tr_pieces_max(n));
    std::vector<tr_long> longs(tr_longs_max(n));
    const int32_t *const index[TR_TABLES]
        = {word.data(), few.data(), word.data()};
    tr_segments s = {order.data(), pieces.data(), 0, longs.data(), 0, 0};
    uint32_t at = 0, partials = 0, cut = 0;
    bool good = true;

    for (uint32_t i = 0; i < n; i++)
        few[i] = word[i] % 3 << 20;
    tr_segments_make(&s, n, index, spare.data());
    for (uint32_t i = 0; good && i < s.n_pieces; i++) {
        const tr_piece &p = pieces[i];
        const bool goes_on = i > 0 && pieces[i - 1].table == p.table
                             && pieces[i - 1].to == p.to;

        good = p.first == at && p.count <= TR_PIECE_ROWS
               && p.table == at / n;
        for (uint32_t j = 0; good && j < p.count; j++, at++) {
            const int32_t row = order[at];

            good = index[p.table][row] == p.to
                   && (at % n == 0 || index[p.table][order[at - 1]] < p.to
                       || (order[at - 1] < row && (j > 0 || goes_on)));
        }
        if (p.partial < 0)
            continue;
        good = good && p.partial == (int32_t)partials++;
        cut += !goes_on;
    }
    good = good && at == TR_TABLES * n && partials == s.n_partials
           && cut == s.n_longs;
    ok(good, "%u rows make %u segments in several pieces", n, cut);
}

static void test_embed_forward(const rig &r, size_t rows, size_t width,
                               double rate)
{
    const array weights(r, REALS, draw(r, VALUES, ALL_ROWS * width, 16));
    const numbers table = weights.back();
    const tr_tables tables = tables_at(width, weights, NULL);
    const array y(r, VALUES, rows * width);
    const norm_rig norm(r, rows, width);
    const embed_rows b(rows);
    const tr_batch *const staged = r.ops->stage(r.d, &b.batch);
    const tr_dropout dropout = dropout_by(rate, b.place.data());
    const tr_dropout there = dropout_by(rate, staged->place);
    numbers sum(rows * width), hat, right;
    bool good;

    for (size_t i = 0; i < sum.size(); i++)
        for (size_t at : b.of(i / width))
            sum[i] += table[at * width + i % width];
    norm_rows(norm, rows, sum, dropout, &hat, &right);
    r.ops->weights_written(r.d, weights, weights.n);
    r.ops->embed_forward(r.d, &tables, &norm.norm, staged, &there, SITE,
                         &norm.kept, y);
    good = rounded(r, y.back(), right) && rounded(r, norm.hat.back(), hat);
    ok(good, "%s: embedding, %zu x %zu, dropout %g", r.name, rows, width,
       rate);
}

static void test_embed_backward(const rig &r, size_t rows, size_t width,
                                double rate)
{
    const array gradients(r, REALS, draw(r, REALS, ALL_ROWS * width, 17));
    const tr_tables tables = tables_at(width, NULL, gradients);
    const numbers hat = draw(r, VALUES, rows * width, 9);
    const numbers inverse = draw(r, REALS, rows, 10);
    numbers dy = draw(r, VALUES, rows * width, 18), after = gradients.back();
    const array d(r, VALUES, dy);
    norm_rig norm(r, rows, width);
    numbers d_gain(width), d_bias(width);
    const embed_rows b(rows);
    const tr_batch *const staged = r.ops->stage(r.d, &b.batch);
    const tr_dropout dropout = dropout_by(rate, b.place.data());
    const tr_dropout there = dropout_by(rate, staged->place);
    bool good;

    norm.hat.set(hat);
    norm.inverse.set(inverse);
    for (size_t i = 0; i < dy.size(); i++)
        dy[i] = dropped(dropout, SITE, i / width, (uint32_t)(i % width),
                        dy[i]);
    dy = norm_back_rows(norm, rows, hat, inverse, dy, &d_gain, &d_bias);
    r.ops->embed_backward(r.d, &tables, &norm.norm, staged, &there, SITE,
                          &norm.kept, d);
    good = same(d.back(), dy, 2 * r.near);
    dy = d.back(); /* as rounded by the device */
    for (size_t i = 0; i < dy.size(); i++)
        for (size_t at : b.of(i / width))
            after[at * width + i % width] += dy[i];
    good = same(gradients.back(), after, 1e-5) && good;
    good = same(norm.d_gain.back(), d_gain, 1e-5) && good;
    good = same(norm.d_bias.back(), d_bias, 1e-5) && good;
    ok(good, "%s: embedding backward, %zu x %zu, dropout %g", r.name, rows,
       width, rate);
}

/* Word vectors alone. */
static void test_lookup(const rig &r, size_t rows, size_t width)
{
    const array weights(r, REALS, draw(r, VALUES, WORDS * width, 16));
    const array gradients(r, REALS, draw(r, REALS, WORDS * width, 17));
    const numbers table = weights.back(), dy = draw(r, VALUES, rows * width,
                                                    18);
    const array y(r, VALUES, rows * width), d(r, VALUES, dy);
    const embed_rows b(rows);
    embed_rows other(rows);
    const tr_batch *staged = r.ops->stage(r.d, &b.batch);
    numbers right(rows * width), after = gradients.back();
    bool good;

    std::reverse(other.word.begin(), other.word.end());
    for (size_t i = 0; i < right.size(); i++) {
        const size_t at = (size_t)b.word[i / width] * width + i % width;

        right[i] = table[at];
        after[at] += dy[i];
    }
    r.ops->weights_written(r.d, weights, weights.n);
    r.ops->lookup_forward(r.d, rows, width, staged->token, weights, y);
    good = same(y.back(), right, 0);
    /* The batch is staged at another address than in forward. */
    r.ops->stage(r.d, &other.batch);
    r.ops->stage(r.d, &other.batch);
    staged = r.ops->stage(r.d, &b.batch);
    r.ops->lookup_backward(r.d, rows, width, staged->token, d, gradients);
    good = same(gradients.back(), after, 1e-5) && good;
    ok(good, "%s: word vectors, %zu x %zu", r.name, rows, width);
}

static void test_embed(const rig &r, size_t rows, size_t width, double rate)
{
    test_embed_forward(r, rows, width, rate);
    test_embed_backward(r, rows, width, rate);
}

static void add_rows(size_t rows, size_t width, const numbers &d,
                     const std::vector<int32_t> &index, numbers *to)
{
    for (size_t i = 0; i < rows * width; i++)
        (*to)[(size_t)index[i / width] * width + i % width] += d[i];
}

/* ---- Heads ---- */

static void test_rows(const rig &r, size_t n, size_t width)
{
    const std::vector<int32_t> index = draw_index(n, 21, 9);
    const numbers x = draw(r, VALUES, 9 * width, 22);
    const numbers rows = draw(r, VALUES, n * width, 23);
    const array from(r, VALUES, x), to(r, VALUES, n * width);
    const array add(r, VALUES, rows), where(r, INDEX, as_numbers(index));
    numbers picked(n * width), after = x;
    bool good;

    for (size_t i = 0; i < picked.size(); i++)
        picked[i] = x[(size_t)index[i / width] * width + i % width];
    add_rows(n, width, rows, index, &after);
    r.ops->gather_rows(r.d, n, width, where, from, to);
    good = same(to.back(), picked, 0);
    r.ops->scatter_rows(r.d, n, width, where, add, from);
    good = same(from.back(), after, r.near) && good;
    ok(good, "%s: gather and scatter, %zu x %zu", r.name, n, width);
}

static void test_tanh(const rig &r, size_t n)
{
    const numbers x = draw(r, VALUES, n, 24, 3), dy = draw(r, VALUES, n, 25);
    const array y(r, VALUES, x), d(r, VALUES, dy);
    numbers right(n);
    bool good;

    for (size_t i = 0; i < n; i++)
        right[i] = tanh(x[i]);
    r.ops->tanh_forward(r.d, n, y);
    good = same(y.back(), right, r.near);
    right = y.back();
    for (size_t i = 0; i < n; i++)
        right[i] = dy[i] * (1 - right[i] * right[i]);
    r.ops->tanh_backward(r.d, n, y, d);
    good = same(d.back(), right, r.near) && good;
    ok(good, "%s: tanh, %zu", r.name, n);
}

/* Numbers so large that e^x overflows unless it is shifted. */
static void test_loss(const rig &r, size_t rows, size_t columns)
{
    const size_t stride = row_stride(r, columns);
    numbers x = draw(r, VALUES, rows * columns, 26, 200);
    const numbers weight = draw(r, REALS, rows, 27);
    std::vector<int32_t> label = draw_index(rows, 28, (uint32_t)columns);
    const array in(r, VALUES, spread(x, columns, stride));
    const array twin(r, VALUES, spread(x, columns, stride));
    const array weights(r, REALS, weight);
    const array loss(r, DOUBLES, rows);
    const array hits(r, INDEX, rows);
    tr_results results;
    const char *why;
    numbers losses(rows), highest(rows);
    double total = 0;
    bool good;

    if (rows > 2)
        label[1] = -1;
    if (rows > 3)
        label[3] = (int32_t)(std::max_element(&x[3 * columns],
                                              &x[3 * columns] + columns)
                             - &x[3 * columns]);
    for (size_t i = 0; i < rows; i++) {
        double *const row = &x[i * columns];
        double max = row[0], all = 0, own;

        for (size_t j = 0; j < columns; j++)
            max = row[j] > max ? row[j] : max;
        for (size_t j = 0; j < columns; j++)
            all += exp(row[j] - max);
        own = label[i] < 0 ? 0 : row[label[i]];
        losses[i] = label[i] < 0 ? 0 : log(all) + max - own;
        highest[i] = label[i] >= 0 && own >= max;
        total += 2 * weight[i] * losses[i];
        for (size_t j = 0; j < columns; j++)
            row[j] = label[i] < 0 ? 0
                                  : weight[i] * (exp(row[j] - max) / all
                                                 - ((int32_t)j == label[i]));
    }
    {
        const array labels(r, INDEX, as_numbers(label));

        /* Two chunks with the same losses. */
        r.ops->compare_logits(r.d, rows, columns, stride, in, labels,
                              (int32_t *)(void *)hits.p);
        r.ops->cross_entropy(r.d, TR_LOSS_NSP, rows, columns, stride, twin,
                             labels, weights, (double *)(void *)loss.p, false);
        r.ops->cross_entropy(r.d, TR_LOSS_NSP, rows, columns, stride, in,
                             labels, weights, (double *)(void *)loss.p, true);
        good = r.ops->finish(r.d, &results, &why)
               && same(hits.back(), highest, 0);
    }
    x = spread(x, columns, stride);
    for (double &each : x)
        each = each == each ? each : 0; /* NaN after the last column */
    good = same(in.back(), x, r.near) && same(loss.back(), losses, 1e-5)
           && good;
    good = same({results.loss[TR_LOSS_NSP]}, {total}, 1e-5) && good;
    ok(good, "%s: cross-entropy, %zu x %zu", r.name, rows, columns);
}

/* ---- All of them ---- */

static void test_width(const rig &r, size_t rows, size_t width)
{
    test_norm_forward(r, rows, width, rows % 2 ? 0.1 : 0);
    test_norm_backward(r, rows, width, rows % 2 ? 0 : 0.1);
    test_add_norm(r, rows, width);
    test_rows(r, rows, width);
    test_gates(r, rows, width);
}

typedef std::vector<size_t> sizes;

/*
 * Widths for each way to load a row, one of them with no rows and with few.
 * quick: one of each kind of width, and no large numbers of rows.
 */
static void test_all(tr_precision precision, bool quick)
{
    const rig r = open_rig(precision);

    /* First, because no earlier operation has then allocated scratch. */
    test_lookup(r, 700, 300);
    for (size_t width : quick ? sizes{5, 24, 300, 1101}
                              : sizes{1, 5, 24, 96, 300, 768, 1024, 1101, 2064})
        test_width(r, width % 3 ? 13 : 40, width);
    for (size_t rows : {0, 1, 3})
        test_width(r, rows, 24);
    test_norm_forward(r, 200, 24, 0.5);
    test_norm_backward(r, 1100, 5, 0.5);
    for (size_t width : quick ? sizes{5, 24, 300}
                              : sizes{1, 5, 24, 96, 300, 768})
        test_embed(r, width < 96 ? 700 : 150, width, width % 2 ? 0.1 : 0);
    test_embed(r, 0, 24, 0.1);
    test_embed(r, 1, 24, 0.1);
    for (size_t width : quick ? sizes{5, 24} : sizes{1, 5, 24, 300})
        test_lookup(r, 700, width);
    test_lookup(r, 0, 24);
    for (size_t n : {0, 1, 7, 5000}) {
        test_activations(r, n);
        test_tanh(r, n);
    }
    test_head_norm(r, 0, 2, 3, 8);
    test_head_norm(r, 7, 3, 5, 6);
    test_head_norm(r, 50, 12, 20, 64);
    test_head_norm(r, 3, 3, 3, 300);
    test_rotary(r, 0, 2, 2, 8);
    test_rotary(r, 1, 1, 1, 2);
    test_rotary(r, 7, 3, 5, 6);
    test_rotary(r, 7, 12, 20, 64);
    test_rotary(r, 3, 3, 4, 512);
    for (size_t width : quick ? sizes{5, 300, 1001}
                              : sizes{1, 2, 5, 24, 300, 1001, 8192})
        test_loss(r, 7, width);
    test_loss(r, 0, 24);
    test_loss(r, 1, 24);
    test_loss(r, 600, 2);
    test_products(r);
    tr_device_close(r.d);
}

/* Nothing else uses tf32. */
static void test_tf32(void)
{
    const rig r = open_rig(TR_TF32);

    test_products(r);
    tr_device_close(r.d);
}

/* Calls an operation on a new device; true if that is reported as a failure. */
template <typename F> static bool is_refused(F f)
{
    const rig r = open_rig(TR_FLOAT);
    tr_results results;
    const char *why;
    bool good;

    f(r);
    good = !r.ops->finish(r.d, &results, &why)
           && strstr(why, "not supported");
    tr_device_close(r.d);
    return good;
}

static void test_refused(void)
{
    ok(is_refused([](const rig &r) {
           norm_rig n(r, 1, 8);
           const array x(r, VALUES, numbers(8));

           n.norm.rms = true;
           r.ops->norm_forward(r.d, &n.norm, 1, x, &n.kept, x);
       }),
       "an RMS norm with bias is refused");
    ok(is_refused([](const rig &r) {
           norm_rig n(r, 1, 8);
           const array x(r, VALUES, numbers(8));

           r.ops->add_norm_forward(r.d, &n.norm, 1, x, x, x, &n.kept, x);
       }),
       "a stream's norm with bias is refused");
    ok(is_refused([](const rig &r) {
           norm_rig n(r, 1, 8);
           const array x(r, VALUES, numbers(8)), y(r, VALUES, numbers(8));

           r.ops->add_norm_backward(r.d, &n.norm, 1, &n.kept, x, y);
       }),
       "and so are its gradients");
    ok(is_refused([](const rig &r) {
           norm_rig n(r, 1, 8);
           const array x(r, VALUES, numbers(8)), at(r, INDEX, numbers(1));
           const tr_dropout dropout = dropout_by(0.1, at);

           n.become(false);
           r.ops->norm_backward(r.d, &n.norm, 1, &n.kept, x, &dropout, SITE, x,
                                x);
       }),
       "dropout after a norm without bias is refused");
    ok(is_refused([](const rig &r) {
           const array x(r, VALUES, numbers(514)), at(r, INDEX, numbers(1));
           const array frequency(r, REALS, numbers(257));
           const tr_rotary rotary = {1, 514, 514, frequency};

           r.ops->rotate(r.d, &rotary, 1, at, false, x);
       }),
       "rotary positions of heads wider than 512 are refused");
    ok(is_refused([](const rig &r) {
           const array x(r, VALUES, numbers(8)), token(r, INDEX, numbers(1));

           r.ops->lookup_backward(r.d, 1, 8, token, x, x);
       }),
       "gradients of words that are not staged are refused");
}

int main(void)
{
    test_refused();
    test_segments(1);
    test_segments(500);
    test_all(TR_FLOAT, is_short());
    test_tf32();
    test_all(TR_BF16, is_short());
    return done();
}
