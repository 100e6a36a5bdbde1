/*
 * scaling.c - expected time that the slowest of many devices takes for a batch.
 *
 * The distribution of a batch's tokens is computed by Fourier transform: the
 * transform for the sum is a power of the transform for a single length.  The
 * transform is radix-2 and in place.  A size of 2^21 takes a fraction of a
 * second, which is fast enough for a table.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packplan/scaling.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Maximum number of distinct sums. */
#define MAX_SUMS ((size_t)1 << 21)

static const double pi = 3.14159265358979323846;

typedef struct number {
    double re;
    double im;
} number;

static number product(number a, number b)
{
    return (number){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/*
 * The discrete Fourier transform of `n` numbers, a power of two, in place.
 * roots[i] is exp(-2 pi sqrt(-1) i / n).
 */
static void transform(number *x, const number *roots, size_t n)
{
    size_t j = 0;

    /* Permute by bit-reversed index. */
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

/*
 * Computes the distribution of the sum of `times` >= 1 independent numbers with
 * the distribution `values`, in place. values[i] is the probability of i < n,
 * where n is a power of two above any sum.  Returns false if out of memory.
 */
static bool sum_distribution(double *values, size_t n, uint32_t times)
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

    /*
     * Powers by squaring are more accurate than powers by angles.  The inverse
     * transform conjugates the roots; for a real result that equals the
     * transform of the conjugates.
     */
    for (size_t i = 0; i < n; i++) {
        number base = x[i];
        number power = {1, 0};

        for (uint32_t exponent = times; exponent > 0; exponent /= 2) {
            if (exponent % 2 == 1)
                power = product(power, base);
            base = product(base, base);
        }
        x[i] = (number){power.re, -power.im};
    }
    transform(x, roots, n);
    for (size_t i = 0; i < n; i++)
        values[i] = x[i].re / (double)n;
    free(x);
    return true;
}

bool scaling_begin(scaling *s, const ps_histogram *h, uint32_t capacity,
                   uint32_t batch)
{
    const double sequences = (double)ps_histogram_sequences(h);
    size_t units = (MAX_SUMS - 1) / batch - 1;
    double above = 0;

    if (units > capacity)
        units = capacity;
    *s = (scaling){.capacity = capacity,
                   .batch = batch,
                   .mean = (double)batch * (double)ps_histogram_tokens(h) /
                           sequences,
                   .unit = (double)capacity / (double)units};
    for (s->n = 1; s->n <= (units + 1) * batch;)
        s->n *= 2;
    s->above = calloc(s->n, sizeof *s->above);
    if (s->above == NULL)
        return false;

    /*
     * The probability of each length, in units.  A length between two multiples
     * is divided between both, so that the mean is preserved.
     */
    for (size_t i = 0; i < ps_histogram_size(h); i++) {
        double at = ps_histogram_length(h, i) / s->unit;
        double share = (double)ps_histogram_count(h, i) / sequences;
        size_t below = (size_t)at;
        double rest = at - (double)below;

        s->above[below] += share * (1 - rest);
        s->above[below + 1] += share * rest;
    }
    if (!sum_distribution(s->above, s->n, batch)) {
        scaling_end(s);
        return false;
    }

    /*
     * Convert the probability of each sum to the probability of greater sums.
     * Negative values are rounding errors.
     */
    for (size_t i = s->n; i-- > 0;) {
        double here = s->above[i] > 0 ? s->above[i] : 0;

        s->above[i] = above < 1 ? above : 1;
        above += here;
    }
    return true;
}

void scaling_end(scaling *s)
{
    free(s->above);
    s->above = NULL;
}

/* Sums, over all values, the probability that the maximum exceeds the value. */
double scaling_fullest(const scaling *s, uint32_t devices)
{
    double sum = 0;

    for (size_t i = 0; i < s->n; i++)
        sum += s->above[i] < 1 ? -expm1(devices * log1p(-s->above[i])) : 1;
    return sum * s->unit;
}
