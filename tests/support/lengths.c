/*
 * lengths.c - lengths of sequences for tests and benchmarks, drawn from a
 * distribution and put in an order that is easy or hard to pack.
 *
 * Lengths are drawn by the alias method (Walker 1977, tables as Vose 1991
 * makes them), random numbers by SplitMix64 (base/random.h).
 *
 * SPDX-License-Identifier: MIT
 */

#include "lengths.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "bytes.h"

/* Limit for which a weight times a length fits 64 bits. */
#define LONGEST_MAX (UINT32_C(1) << 20)
#define WEIGHT_MAX (UINT64_C(1) << 42)

/* Longest run of a bursty stream. */
#define LONGEST_RUN 1024

/* Draws of which a run takes the greatest or the least. */
#define BIAS 6

/* Half waves in a drifting stream. */
#define HALF_WAVES 4

#define PARTS_MAX 16

/* Lengths 1, 2, ...; number i is used if 32 random bits are below at[i]. */
struct lengths {
    uint32_t longest;
    uint32_t *at;
    uint32_t *alias; /* and this number otherwise */

    /* The parts of a mixture, and their shares in units of 2^-32. */
    size_t n_parts;
    lengths *parts[PARTS_MAX];
    uint64_t share[PARTS_MAX];
    uint32_t run;

    /* The lengths of a raw file. */
    uint32_t *stored;
    size_t n_stored;
};

/* ---------------------------------------------------------------------
 * Random numbers
 */

static uint32_t below(uint64_t *state, uint32_t n)
{
    return (uint32_t)ps_random_below(state, n);
}

static uint32_t draw_length(const lengths *l, uint64_t *state)
{
    uint64_t bits = ps_random(state);
    uint32_t i = (uint32_t)((bits >> 32) * l->longest >> 32);

    return 1 + ((uint32_t)bits < l->at[i] ? i : l->alias[i]);
}

/* The greatest or the least of a number of draws. */
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
 * A number with too small a weight for its share of draws borrows from one with
 * too large a weight.  `weights` are scaled so that a share is `sum`; `queue`
 * starts with the former and ends with the latter.
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

/* Makes a distribution from weights of 1, 2, ..., which it overwrites. */
static lengths *make(uint64_t *weights, uint32_t longest)
{
    lengths *l = calloc(1, sizeof *l);
    uint32_t *queue = calloc(longest, sizeof *queue);
    uint64_t sum = 0;
    bool good = false;

    if (l != NULL) {
        l->longest = longest;
        l->run = LONGEST_RUN;
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

/* Adds a line to the weights and updates the longest; false if invalid. */
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

/* ---------------------------------------------------------------------
 * Distributions by name
 */

/* The share of all lengths up to one, or of a single length. */
typedef double share_of(double length, double a, double b);

typedef struct family {
    const char *name; /* with the text before its parameters */
    share_of *share;
    int n_parameters;
    bool alone;
} family;

/* A family with its parameters. */
typedef struct part {
    const family *family;
    double parameters[2];
    double weight; /* share; those of a mixture add up to 1 */
} part;

static double lognormal_share(double length, double mean, double deviation)
{
    return 0.5 * erfc((mean - log(length)) / deviation / sqrt(2));
}

static double normal_share(double length, double mean, double deviation)
{
    return 0.5 * erfc((mean - length) / deviation / sqrt(2));
}

static double heavy_share(double length, double min, double unused)
{
    (void)unused;
    return length / (length + min);
}

static double pareto_share(double length, double min, double alpha)
{
    return length > min ? 1 - pow(min / length, alpha) : 0;
}

static double uniform_share(double length, double first, double last)
{
    return (floor(length) - first + 1) / (last - first + 1);
}

static double geometric_share(double length, double mean, double unused)
{
    (void)unused;
    return 1 - pow(1 - 1 / mean, floor(length));
}

static double poisson_share(double length, double mean, double unused)
{
    double others = length - 1;

    (void)unused;
    if (mean <= 1)
        return length == 1;
    return exp(others * log(mean - 1) - (mean - 1) - lgamma(length));
}

static double constant_share(double length, double only, double unused)
{
    (void)unused;
    return length >= only;
}

enum {
    LOGNORMAL,
    NORMAL,
    HEAVY,
    PARETO,
    UNIFORM,
    GEOMETRIC,
    POISSON,
    CONSTANT
};

static const family families[] = {
    [LOGNORMAL] = {"lognormal:", lognormal_share, 2, false},
    [NORMAL] = {"normal:", normal_share, 2, false},
    [HEAVY] = {"heavy:", heavy_share, 1, false},
    [PARETO] = {"pareto:", pareto_share, 2, false},
    [UNIFORM] = {"uniform:", uniform_share, 2, false},
    [GEOMETRIC] = {"geometric:", geometric_share, 1, false},
    [POISSON] = {"poisson:", poisson_share, 1, true},
    [CONSTANT] = {"=", constant_share, 1, false},
};

#define N_FAMILIES (sizeof families / sizeof families[0])

/* Rounds lengths to nearest; the longest gets what a share is short of. */
static void add_weights(const part *p, uint64_t *weights, uint32_t longest)
{
    share_of *share = p->family->share;
    double a = p->parameters[0];
    double b = p->parameters[1];
    double before = 0;

    for (uint32_t i = 1; i <= longest; i++) {
        double now = 1;

        if (i < longest)
            now = p->family->alone ? before + share(i, a, b)
                                   : share(i + 0.5, a, b);
        now = fmin(fmax(now, before), 1);
        weights[i - 1] += (uint64_t)((now - before) * p->weight * 0x1p40);
        before = now;
    }
}

static lengths *mix(const part *parts, size_t n, uint32_t longest)
{
    uint64_t *weights = calloc(longest, sizeof *weights);
    lengths *l = NULL;

    if (longest >= 1 && longest <= LONGEST_MAX && weights != NULL) {
        for (size_t i = 0; i < n; i++)
            add_weights(&parts[i], weights, longest);
        l = make(weights, longest);
    }
    free(weights);
    while (l != NULL && n > 1 && l->n_parts < n) {
        part alone = parts[l->n_parts];

        alone.weight = 1;
        l->share[l->n_parts] = (uint64_t)(parts[l->n_parts].weight * 0x1p32);
        l->parts[l->n_parts] = mix(&alone, 1, longest);
        if (l->parts[l->n_parts++] == NULL) {
            lengths_free(l);
            l = NULL;
        }
    }
    return l;
}

lengths *lengths_lognormal(double mean, double deviation, uint32_t longest)
{
    part p = {&families[LOGNORMAL], {mean, deviation}, 1};

    return mix(&p, 1, longest);
}

lengths *lengths_heavy(uint32_t longest)
{
    part p = {&families[HEAVY], {longest / 256.0 + 1}, 1};

    return mix(&p, 1, longest);
}

lengths *lengths_constant(uint32_t length)
{
    part p = {&families[CONSTANT], {length}, 1};

    return mix(&p, 1, length);
}

/* "[WEIGHT*]NAME:A[,B]" or "[WEIGHT*]=N".  Returns the rest, or NULL. */
static const char *parse_part(const char *text, part *p)
{
    const char *at = text;
    char *end;

    p->weight = strtod(at, &end);
    if (end == at)
        p->weight = 1;
    else if (*end++ != '*')
        return NULL;
    at = end;
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (strncmp(at, families[i].name, strlen(families[i].name)) == 0)
            p->family = &families[i];
    if (p->family == NULL || !(p->weight > 0))
        return NULL;
    at += strlen(p->family->name);
    for (int i = 0; i < p->family->n_parameters; i++) {
        if (i > 0 && *at++ != ',')
            return NULL;
        p->parameters[i] = strtod(at, &end);
        if (end == at)
            return NULL;
        at = end;
    }
    return at;
}

lengths *lengths_parse(const char *text, uint32_t longest)
{
    part parts[PARTS_MAX];
    const char *at = text + (strncmp(text, "mix:", 4) == 0 ? 4 : 0);
    double sum = 0;
    size_t n = 0;

    memset(parts, 0, sizeof parts);
    do {
        if (n == PARTS_MAX || (at = parse_part(at, &parts[n])) == NULL)
            return NULL;
        sum += parts[n++].weight;
    } while (*at++ == '+');
    if (at[-1] != '\0')
        return NULL;
    for (size_t i = 0; i < n; i++)
        parts[i].weight /= sum;
    return mix(parts, n, longest);
}

/* ---------------------------------------------------------------------
 * Raw files
 */

lengths *lengths_from_raw(FILE *file, uint32_t longest)
{
    uint64_t *weights = calloc(longest, sizeof *weights);
    uint32_t *stored = NULL;
    size_t size = 0;
    size_t n = 0;
    uint8_t bytes[4];
    lengths *l = NULL;
    bool good = weights != NULL && longest <= LONGEST_MAX;

    while (good && fread(bytes, sizeof bytes, 1, file) == 1) {
        uint32_t length = load_u32(bytes);

        if (n == size) {
            uint32_t *more;

            size = 2 * size + 4096;
            more = realloc(stored, size * sizeof *stored);
            good = more != NULL;
            stored = good ? more : stored;
        }
        if (!good || length == 0)
            break;
        stored[n] = length < longest ? length : longest;
        weights[stored[n++] - 1]++;
    }
    if (good && feof(file) != 0 && n > 0)
        l = make(weights, longest);
    if (l != NULL) {
        l->stored = stored;
        l->n_stored = n;
        stored = NULL;
    }
    free(stored);
    free(weights);
    return l;
}

void lengths_free(lengths *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < l->n_parts; i++)
        lengths_free(l->parts[i]);
    free(l->stored);
    free(l->at);
    free(l->alias);
    free(l);
}

uint32_t lengths_longest(const lengths *l)
{
    return l->longest;
}

void lengths_set_run(lengths *l, uint32_t records)
{
    l->run = records;
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
        size_t j = (size_t)(ps_random(state) % i);
        uint32_t swapped = a[i - 1];

        a[i - 1] = a[j];
        a[j] = swapped;
    }
}

/* Alternates between the shuffled halves of sorted lengths. */
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

/* True more often, the higher a wave from 0 to 1 and back is. */
static bool is_high(uint64_t *state, size_t i, size_t n)
{
    size_t half = n / HALF_WAVES + 1;
    size_t at = i % half;

    return ps_random(state) % half < (i / half % 2 == 0 ? at : half - at);
}

/* Draws two, and takes the longer one more often where the wave is high. */
static void drift(const lengths *l, uint64_t *state, uint32_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool high = is_high(state, i, n);

        to[i] = draw_extreme(l, state, 2, high);
    }
}

/* Moves from the first part to the last as the wave rises. */
static void fade(const lengths *l, uint64_t *state, uint32_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t from = 0;

        for (size_t step = 1; step < l->n_parts; step++)
            from += is_high(state, i, n);
        to[i] = draw_length(l->parts[from], state);
    }
}

static void take_turns(const lengths *l, uint64_t *state, uint32_t *to,
                       size_t n)
{
    size_t i = 0;

    for (size_t turn = 0; i < n; turn++) {
        size_t from = turn % l->n_parts;
        uint64_t mean = l->run * l->n_parts * l->share[from] >> 32;
        uint32_t left = 1 + below(state, (uint32_t)(2 * mean));

        for (; left > 0 && i < n; left--)
            to[i++] = draw_length(l->parts[from], state);
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
    else if (shape == LENGTHS_FADING && l->n_parts > 0)
        fade(l, &state, to, n);
    else if (shape == LENGTHS_TURNS && l->n_parts > 0)
        take_turns(l, &state, to, n);
    else if (shape == LENGTHS_STORED && l->n_stored > 0)
        for (size_t i = 0; i < n; i++)
            to[i] = l->stored[i % l->n_stored];
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
    static const char *const names[] = {
        [LENGTHS_RANDOM] = "random",
        [LENGTHS_ASCENDING] = "ascending",
        [LENGTHS_DESCENDING] = "descending",
        [LENGTHS_ALTERNATING] = "alternating",
        [LENGTHS_DRIFTING] = "drifting",
        [LENGTHS_BURSTY] = "bursty",
        [LENGTHS_TURNS] = "turns",
        [LENGTHS_FADING] = "fading",
        [LENGTHS_STORED] = "stored",
    };

    return (unsigned)shape < sizeof names / sizeof names[0] ? names[shape]
                                                            : NULL;
}
