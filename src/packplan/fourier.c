/*
 * fourier.c - the discrete Fourier transform, for sums of random lengths.
 *
 * The transform of a sum's distribution is a power of the transform of one
 * number's.  Radix two, in place; a length of 2^21 takes a fraction of a
 * second, which is enough for a table.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packplan/fourier.h"

#include <math.h>
#include <stdlib.h>

static const double pi = 3.14159265358979323846;

typedef struct number {
    double re;
    double im;
} number;

static number product(number a, number b)
{
    return (number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* Puts each number where its index, read backwards in binary, says. */
static void reorder(number *x, size_t n)
{
    size_t j = 0;

    for (size_t i = 1; i < n; i++) {
        size_t bit = n / 2;

        for (; (j & bit) != 0; bit /= 2)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            number swapped = x[i];

            x[i] = x[j];
            x[j] = swapped;
        }
    }
}

/* The transform of `n` numbers; roots[i] is exp(-2 pi i sqrt(-1) / n). */
static void transform(number *x, const number *roots, size_t n)
{
    reorder(x, n);
    for (size_t half = 1; half < n; half *= 2)
        for (size_t i = 0; i < n; i += 2 * half)
            for (size_t k = 0; k < half; k++) {
                number a = x[i + k];
                number b =
                    product(x[i + k + half], roots[k * (n / (2 * half))]);

                x[i + k] = (number){a.re + b.re, a.im + b.im};
                x[i + k + half] = (number){a.re - b.re, a.im - b.im};
            }
}

/* By squaring: more exact than by angles. */
static number power(number base, uint32_t exponent)
{
    number result = {1, 0};

    for (; exponent > 0; exponent /= 2) {
        if (exponent % 2 == 1)
            result = product(result, base);
        base = product(base, base);
    }
    return result;
}

bool fourier_sum(double *values, size_t n, uint32_t times)
{
    number *x = calloc(2 * n, sizeof *x);
    number *roots;

    if (x == NULL)
        return false;
    roots = x + n;
    for (size_t i = 0; i < n; i++) {
        double angle = 2 * pi * (double)i / (double)n;

        x[i] = (number){values[i], 0};
        roots[i] = (number){cos(angle), -sin(angle)};
    }
    transform(x, roots, n);
    /* The way back is the same with all angles turned round, which for real
       values is the transform of the conjugates. */
    for (size_t i = 0; i < n; i++) {
        x[i] = power(x[i], times);
        x[i].im = -x[i].im;
    }
    transform(x, roots, n);
    for (size_t i = 0; i < n; i++)
        values[i] = x[i].re / (double)n;
    free(x);
    return true;
}
