/*
 * lengths.c - lengths of sequences for tests and benchmarks, drawn from a
 * distribution and put in an order that is easy or hard to pack.
 *
 * Lengths are drawn by the alias method (Walker 1977, tables as Vose 1991
 * makes them), random numbers by SplitMix64 (Steele, Lea and Flood 2014).
 *
 * SPDX-License-Identifier: MIT
 */

#include "lengths.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* So that a weight times a length stays within 64 bits. */
#define LONGEST_MAX (UINT32_C(1) << 20)
#define WEIGHT_MAX (UINT64_C(1) << 42)

/* Runs of a bursty stream, at most. */
#define LONGEST_RUN 1024

/* Of so many draws the greatest or the least is taken within a run. */
#define BIAS 6

/* Halves of waves of a drifting stream. */
#define HALF_WAVES 4

/* Lengths 1, 2, ...; number i is taken if 32 random bits are below at[i]. */
struct lengths {
    uint32_t longest;
    uint32_t *at;
    uint32_t *alias; /* and this number otherwise */
};

/* ---------------------------------------------------------------------
 * Random numbers
 */

static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint32_t below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((draw(state) >> 32) * n >> 32);
}

static uint32_t draw_length(const lengths *l, uint64_t *state)
{
    uint64_t bits = draw(state);
    uint32_t i = (uint32_t)((bits >> 32) * l->longest >> 32);

    return 1 + ((uint32_t)bits < l->at[i] ? i : l->alias[i]);
}

/* The greatest or the least of so many draws. */
static uint32_t draw_extreme(const lengths *l, uint64_t *state, int draws,
                             bool greatest)
{
    uint32_t best = draw_length(l, state);

    while (--draws > 0) {
        uint32_t length = draw_length(l, state);

        if (greatest ? length > best : length < best)
            best = length;
    }
    return best;
}

/* ---------------------------------------------------------------------
 * Distributions
 */

/*
 * What a number lacks to fill its share of the draws it gets from one that
 * has more.  `weights` are scaled so that a share is `sum`; `queue` has the
 * numbers that lack something at its start, the others at its end.
 */
static void fill_table(lengths *l, uint64_t *weights, uint64_t sum,
                       uint32_t *queue)
{
    uint32_t poor = 0;
    uint32_t rich = l->longest;

    for (uint32_t i = 0; i < l->longest; i++) {
        l->at[i] = UINT32_MAX;
        l->alias[i] = i;
        if (weights[i] < sum)
            queue[poor++] = i;
        else
            queue[--rich] = i;
    }
    while (poor > 0 && rich < l->longest) {
        uint32_t to = queue[--poor];
        uint32_t from = queue[rich];

        l->at[to] = (uint32_t)((double)weights[to] / (double)sum *
                               4294967296.0);
        l->alias[to] = from;
        weights[from] -= sum - weights[to];
        if (weights[from] < sum) {
            rich++;
            queue[poor++] = from;
        }
    }
}

static bool add_up(const uint64_t *weights, uint32_t n, uint64_t *sum)
{
    *sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (weights[i] > WEIGHT_MAX - *sum)
            return false;
        *sum += weights[i];
    }
    return *sum > 0;
}

/* By the weights of the lengths from 1; they are used up. */
static lengths *make(uint64_t *weights, uint32_t longest)
{
    lengths *l = calloc(1, sizeof *l);
    uint32_t *queue = calloc(longest, sizeof *queue);
    uint64_t sum = 0;
    bool good = false;

    if (l != NULL) {
        l->longest = longest;
        l->at = calloc(longest, sizeof *l->at);
        l->alias = calloc(longest, sizeof *l->alias);
        good = queue != NULL && l->at != NULL && l->alias != NULL &&
               add_up(weights, longest, &sum);
    }
    if (good) {
        for (uint32_t i = 0; i < longest; i++)
            weights[i] *= longest;
        fill_table(l, weights, sum, queue);
    } else {
        lengths_free(l);
        l = NULL;
    }
    free(queue);
    return l;
}

/* Adds a line to the weights and follows the longest; false if it is bad. */
static bool take_line(const char *line, uint64_t *weights, uint32_t *longest)
{
    uint64_t length;
    uint64_t count;

    if (line[strspn(line, " \t\n")] == '\0' || line[0] == '#')
        return true;
    if (sscanf(line, "%" SCNu64 " %" SCNu64, &length, &count) != 2 ||
        length < 1 || length > LONGEST_MAX || count > WEIGHT_MAX)
        return false;
    weights[length - 1] += count;
    *longest = length > *longest ? (uint32_t)length : *longest;
    return true;
}

lengths *lengths_from_file(FILE *file)
{
    uint64_t *weights = calloc(LONGEST_MAX, sizeof *weights);
    lengths *l = NULL;
    uint32_t longest = 0;
    char line[256];
    bool good = weights != NULL;

    while (good && fgets(line, sizeof line, file) != NULL)
        good = take_line(line, weights, &longest);
    if (good && longest > 0 && ferror(file) == 0)
        l = make(weights, longest);
    free(weights);
    return l;
}

/* The share of what is up to a length, of all: rounded up to a half. */
typedef double share_up_to(double length, double a, double b);

static double lognormal_share(double length, double mean, double deviation)
{
    return 0.5 * erfc((mean - log(length)) / deviation / sqrt(2));
}

static double heavy_share(double length, double least, double unused)
{
    (void)unused;
    return length / (length + least);
}

static lengths *by_share(share_up_to *share, double a, double b,
                         uint32_t longest)
{
    uint64_t *weights = calloc(longest, sizeof *weights);
    double before = 0;
    lengths *l = NULL;

    if (longest < 1 || longest > LONGEST_MAX || weights == NULL) {
        free(weights);
        return NULL;
    }
    for (uint32_t i = 1; i <= longest; i++) {
        double now = i < longest ? share(i + 0.5, a, b) : 1;

        weights[i - 1] = (uint64_t)((now - before) * 0x1p40);
        before = now;
    }
    l = make(weights, longest);
    free(weights);
    return l;
}

lengths *lengths_lognormal(double mean, double deviation, uint32_t longest)
{
    return by_share(lognormal_share, mean, deviation, longest);
}

lengths *lengths_heavy(uint32_t longest)
{
    return by_share(heavy_share, longest / 256.0 + 1, 0, longest);
}

lengths *lengths_constant(uint32_t length)
{
    uint64_t *weights = calloc(length, sizeof *weights);
    lengths *l = NULL;

    if (length >= 1 && length <= LONGEST_MAX && weights != NULL) {
        weights[length - 1] = 1;
        l = make(weights, length);
    }
    free(weights);
    return l;
}

void lengths_free(lengths *l)
{
    if (l == NULL)
        return;
    free(l->at);
    free(l->alias);
    free(l);
}

uint32_t lengths_longest(const lengths *l)
{
    return l->longest;
}

/* ---------------------------------------------------------------------
 * Shapes
 */

static void draw_random(const lengths *l, uint64_t *state, uint32_t *to,
                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = draw_length(l, state);
}

static bool sort(const lengths *l, bool descending, uint32_t *to, size_t n)
{
    size_t *counts = calloc((size_t)l->longest + 1, sizeof *counts);
    size_t at = 0;

    if (counts == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        counts[to[i]]++;
    for (uint32_t i = 1; i <= l->longest; i++) {
        uint32_t length = descending ? l->longest + 1 - i : i;

        while (counts[length]-- > 0)
            to[at++] = length;
    }
    free(counts);
    return true;
}

static void shuffle(uint64_t *state, uint32_t *a, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)(draw(state) % i);
        uint32_t swapped = a[i - 1];

        a[i - 1] = a[j];
        a[j] = swapped;
    }
}

/* Both halves of what is sorted, each in random order, in turns. */
static bool alternate(uint64_t *state, uint32_t *to, size_t n)
{
    uint32_t *halves = malloc((n > 0 ? n : 1) * sizeof *halves);
    size_t middle = n - n / 2;

    if (halves == NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        halves[i] = to[i];
    shuffle(state, halves, middle);
    shuffle(state, halves + middle, n - middle);
    for (size_t i = 0; i < n; i++)
        to[i] = halves[i % 2 == 0 ? i / 2 : middle + i / 2];
    free(halves);
    return true;
}

/* Where the wave is high, more often the longer of two draws. */
static void drift(const lengths *l, uint64_t *state, uint32_t *to, size_t n)
{
    size_t half = n / HALF_WAVES + 1;

    for (size_t i = 0; i < n; i++) {
        size_t at = i % half;
        size_t height = i / half % 2 == 0 ? at : half - at;
        bool high = draw(state) % half < height;

        to[i] = draw_extreme(l, state, 2, high);
    }
}

static void burst(const lengths *l, uint64_t *state, uint32_t *to, size_t n)
{
    size_t i = 0;

    while (i < n) {
        uint32_t left = 1 + below(state, LONGEST_RUN);
        uint32_t kind = below(state, 3);
        uint32_t equal = draw_length(l, state);

        for (; left > 0 && i < n; left--)
            to[i++] = kind == 0
                          ? equal
                          : draw_extreme(l, state, BIAS, kind == 1);
    }
}

bool lengths_draw(const lengths *l, lengths_shape shape, uint64_t seed,
                  uint32_t *to, size_t n)
{
    uint64_t state = seed;

    if (shape == LENGTHS_DRIFTING)
        drift(l, &state, to, n);
    else if (shape == LENGTHS_BURSTY)
        burst(l, &state, to, n);
    else
        draw_random(l, &state, to, n);
    if (shape == LENGTHS_ASCENDING || shape == LENGTHS_DESCENDING)
        return sort(l, shape == LENGTHS_DESCENDING, to, n);
    if (shape == LENGTHS_ALTERNATING)
        return sort(l, false, to, n) && alternate(&state, to, n);
    return true;
}

const char *lengths_shape_name(lengths_shape shape)
{
    static const char *const names[LENGTHS_SHAPES] = {
        [LENGTHS_RANDOM] = "random",
        [LENGTHS_ASCENDING] = "ascending",
        [LENGTHS_DESCENDING] = "descending",
        [LENGTHS_ALTERNATING] = "alternating",
        [LENGTHS_DRIFTING] = "drifting",
        [LENGTHS_BURSTY] = "bursty",
    };

    return (unsigned)shape < LENGTHS_SHAPES ? names[shape] : NULL;
}
