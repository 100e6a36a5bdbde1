/*
 * activation.c - activations, alone or as the gate of a product.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cpu/activation.h"

#include "cpu/device.h"

#define BLOCK 4096 /* numbers per thread at a time */

/* Calls f with a constant activation, so that its loop vectorises. */
#define WITH_ACTIVATION(act, f, ...) \
    do { \
        if ((act) == TR_GELU_TANH) \
            f(TR_GELU_TANH, __VA_ARGS__); \
        else if ((act) == TR_GELU) \
            f(TR_GELU, __VA_ARGS__); \
        else \
            f(TR_SILU, __VA_ARGS__); \
    } while (0)

/* ---- Alone ---- */

TR_INLINE void forward_as(tr_activation act, size_t n, const real *restrict u,
                          real *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = u[i] * tr_activation_share(act, u[i]);
}

TR_VECTORS
static void forward(tr_activation act, size_t n, const real *u, real *y)
{
    WITH_ACTIVATION(act, forward_as, n, u, y);
}

TR_INLINE void backward_as(tr_activation act, size_t n,
                           const real *restrict u, real *restrict dy)
{
    for (size_t i = 0; i < n; i++) {
        real share;

        dy[i] *= tr_activation_slope(act, u[i], &share);
    }
}

TR_VECTORS
static void backward(tr_activation act, size_t n, const real *u, real *dy)
{
    WITH_ACTIVATION(act, backward_as, n, u, dy);
}

static size_t count(size_t n, size_t at)
{
    return n - at < BLOCK ? n - at : BLOCK;
}

void tr_cpu_gelu_forward(tr_activation act, size_t n, const real *u, real *y)
{
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < n; at += BLOCK)
        forward(act, count(n, at), u + at, y + at);
}

void tr_cpu_gelu_backward(tr_device *d, tr_activation act, size_t n,
                          const void *u, void *dy)
{
    const real *const from = u;
    real *const slope = dy;

    (void)d;
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < n; at += BLOCK)
        backward(act, count(n, at), from + at, slope + at);
}

/* ---- As the gate of a product ---- */

TR_INLINE void gate_as(tr_activation act, size_t n, const real *restrict u,
                       const real *restrict by, real *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = u[i] * tr_activation_share(act, u[i]) * by[i];
}

TR_VECTORS
static void gate(tr_activation act, size_t n, const real *u, real *y)
{
    WITH_ACTIVATION(act, gate_as, n, u, u + n, y);
}

void tr_cpu_gate_forward(tr_device *d, tr_activation act, size_t rows,
                         size_t width, const void *u, void *y)
{
    const real *const from = u;
    real *const to = y;

    (void)d;
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++)
        gate(act, width, from + r * 2 * width, to + r * width);
}

TR_INLINE void gate_back_as(tr_activation act, size_t n,
                            const real *restrict u, const real *restrict by,
                            const real *restrict dy, real *restrict du,
                            real *restrict d_by)
{
    for (size_t i = 0; i < n; i++) {
        real share;
        const real slope = tr_activation_slope(act, u[i], &share);

        du[i] = dy[i] * by[i] * slope;
        d_by[i] = dy[i] * u[i] * share;
    }
}

TR_VECTORS
static void gate_back(tr_activation act, size_t n, const real *u,
                      const real *dy, real *du)
{
    WITH_ACTIVATION(act, gate_back_as, n, u, u + n, dy, du, du + n);
}

void tr_cpu_gate_backward(tr_device *d, tr_activation act, size_t rows,
                          size_t width, const void *u, const void *dy,
                          void *du)
{
    const real *const from = u;
    const real *const slope = dy;
    real *const to = du;

    (void)d;
#pragma omp parallel for schedule(static)
    for (size_t r = 0; r < rows; r++)
        gate_back(act, width, from + r * 2 * width, slope + r * width,
                  to + r * 2 * width);
}
