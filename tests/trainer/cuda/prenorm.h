/*
 * prenorm.h - activations, gates and rotary positions, compared with loops in
 * double.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PRENORM_H
#define PRENORM_H

#include "rig.h"

static const tr_activation activations[] = {TR_GELU_TANH, TR_GELU, TR_SILU};

static inline double active(tr_activation act, double x)
{
    return act == TR_GELU_TANH
               ? x / 2
                     * (1
                        + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)))
           : act == TR_GELU ? x / 2 * (1 + erf(x / sqrt(2)))
                            : x / (1 + exp(-x));
}

static inline double active_slope(tr_activation act, double x)
{
    return (active(act, x + 1e-5) - active(act, x - 1e-5)) / 2e-5;
}

/* Only layers apply an activation forward: see products.h. */
static inline void test_activations(const rig &r, size_t n)
{
    for (tr_activation act : activations) {
        const numbers u = draw(r, VALUES, n, 11, 4);
        const numbers dy = draw(r, VALUES, n, 13);
        const array in(r, VALUES, u), d(r, VALUES, dy);
        numbers du(n);

        for (size_t i = 0; i < n; i++)
            du[i] = dy[i] * active_slope(act, u[i]);
        r.ops->gelu_backward(r.d, act, n, in, d);
        ok(same(d.back(), du, r.near + 1e-9),
           "%s: backward of activation %d, %zu", r.name, (int)act, n);
    }
}

/* As large as numbers get; a share near 0 or 1 must not become NaN. */
static inline void test_gates(const rig &r, size_t rows, size_t width)
{
    for (tr_activation act : activations) {
        const numbers u = draw(r, VALUES, rows * 2 * width, 12, 12);
        const numbers dy = draw(r, VALUES, rows * width, 13);
        const array in(r, VALUES, u), d(r, VALUES, dy);
        const array y(r, VALUES, rows * width), to(r, VALUES, u.size());
        numbers right(rows * width), du(u.size());
        bool good;

        for (size_t i = 0; i < right.size(); i++) {
            const size_t one = i / width * 2 * width + i % width;
            const size_t two = one + width;

            right[i] = active(act, u[one]) * u[two];
            du[one] = dy[i] * active_slope(act, u[one]) * u[two];
            du[two] = dy[i] * active(act, u[one]);
        }
        r.ops->gate_forward(r.d, act, rows, width, in, y);
        good = rounded(r, y.back(), right);
        r.ops->gate_backward(r.d, act, rows, width, in, d, to);
        good = same(to.back(), du, r.near + 1e-9) && good;
        ok(good, "%s: gate with activation %d, %zu x %zu", r.name, (int)act,
           rows, width);
    }
}

/*
 * Turns `heads` of the heads of a row, then turns them back.  A half turn is
 * rounded to double.
 */
static inline void test_rotary(const rig &r, size_t rows, size_t heads,
                               size_t all, size_t width)
{
    const size_t stride = all * width, pairs = width / 2;
    const numbers before = draw(r, VALUES, rows * stride, 40);
    const array x(r, VALUES, before);
    const array frequency(r, REALS, draw(r, REALS, pairs, 41));
    const numbers per = frequency.back();
    const std::vector<int32_t> place = draw_index(rows, 42, 131072);
    const std::vector<int32_t> zero(rows + 1);
    tr_batch batch = {};
    const tr_rotary rotary = {heads, width, stride, frequency};
    numbers right = before;
    bool good;

    batch.n_rows = (uint32_t)rows;
    batch.token = batch.type = batch.cu = zero.data();
    batch.position = place.data();
    for (size_t t = 0; t < rows * heads * pairs; t++) {
        const size_t row = t / pairs / heads, i = t % pairs;
        const size_t at = row * stride + t / pairs % heads * width + i;
        const double angle = (double)((real)place[row] * (real)per[i]);

        right[at] = before[at] * cos(angle) - before[at + pairs] * sin(angle);
        right[at + pairs]
            = before[at + pairs] * cos(angle) + before[at] * sin(angle);
    }
    const int32_t *const position = r.ops->stage(r.d, &batch)->position;

    r.ops->rotate(r.d, &rotary, rows, position, false, x);
    good = r.bf16 ? rounded(r, x.back(), right)
                  : same(x.back(), right, r.near + 1e-10);
    r.ops->rotate(r.d, &rotary, rows, position, true, x);
    good = same(x.back(), before, 2 * r.near + 1e-10) && good;
    ok(good, "%s: rotary positions, %zu rows, %zu of %zu heads of %zu",
       r.name, rows, heads, all, width);
}

#endif /* PRENORM_H */
