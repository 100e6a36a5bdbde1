/*
 * gen.c - prints raw token records for benchmarks; a seed determines them.
 *
 *     gen --bytes=N [--hist=FILE] [--longest=N] [--mean=N] [--spread=PERCENT]
 *         [--tokens=flat|text] [--width=2|4] [--seed=N]
 *
 * writes whole records until there are N bytes or just more.  Lengths are drawn
 * from FILE, which has lines of "length count" with comments after '#', as
 * `packstat --histogram` prints them; without it from a lognormal distribution
 * like that of text, cut at --longest (512).  --mean is the mean after the cut,
 * --spread the standard deviation of a length's logarithm in hundredths (100).
 *
 * Flat tokens are drawn evenly from 0 to 65535, and cannot be compressed.  With
 * --tokens=text they follow Zipf's law over 50,000 ids, the most frequent
 * first, and now and then repeat an earlier phrase: `zstd -1` compresses such
 * u16 tokens about as well as those of real text.
 *
 * SPDX-License-Identifier: MIT
 */

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#define LONGEST_MAX (UINT32_C(1) << 20)
#define BUFFER_BYTES ((size_t)1 << 18)

/* The median length and the spread of its logarithm. */
#define MEDIAN 180.0
#define SPREAD_PERCENT 100

/*
 * Parameters of text: number of ids, how far back a phrase can be, its mean
 * length, and how often, of 256 times, a new one begins.
 */
#define VOCABULARY 50000
#define HISTORY ((uint32_t)1 << 15)
#define PHRASE 6
#define PHRASE_ODDS 72

typedef struct options {
    uint64_t bytes;
    uint64_t longest;
    uint64_t mean; /* 0: that of MEDIAN */
    uint64_t spread;
    uint64_t width;
    uint64_t seed;
    const char *hist;
    bool text;
} options;

/* How often each length is drawn: cumulative counts, for a binary search. */
typedef struct lengths {
    uint64_t *up_to; /* sequences of this length or shorter */
    uint32_t longest;
} lengths;

/* The source of tokens. */
typedef struct source {
    uint64_t *state;
    bool text;
    uint64_t bits; /* random, for flat tokens */
    uint32_t past[HISTORY];
    uint32_t at;   /* tokens so far; past is a ring */
    uint32_t back; /* distance to the phrase being repeated */
    uint32_t left; /* tokens of it still to come */
} source;

typedef struct output {
    unsigned char buffer[BUFFER_BYTES];
    size_t used;
    uint64_t written;
} output;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "gen: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

/* ---------------------------------------------------------------------
 * Lengths
 */

static lengths new_lengths(uint32_t longest)
{
    lengths l = {calloc((size_t)longest + 1, sizeof *l.up_to), longest};

    if (l.up_to == NULL)
        die("lengths", strerror(errno));
    return l;
}

static void add_up(lengths *l)
{
    for (uint32_t i = 1; i <= l->longest; i++)
        l->up_to[i] += l->up_to[i - 1];
    if (l->up_to[l->longest] == 0)
        die("lengths", "there are none");
}

/* The share of the distribution up to a length. */
static double share_up_to(uint32_t length, uint32_t longest, double median,
                          double spread)
{
    double at = (log(length + 0.5) - log(median)) / spread;

    return length < longest ? 0.5 * erfc(-at / sqrt(2)) : 1;
}

static double mean_length(uint32_t longest, double median, double spread)
{
    double sum = 0;

    for (uint32_t i = 0; i < longest; i++)
        sum += i == 0 ? 1 : 1 - share_up_to(i, longest, median, spread);
    return sum;
}

/* The median for which the lengths have this mean, by bisection. */
static double median_for(double mean, uint32_t longest, double spread)
{
    double low = 1e-3;
    double high = 1e3 * longest;

    for (int i = 0; i < 60; i++) {
        double middle = sqrt(low * high);

        if (mean_length(longest, middle, spread) < mean)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* A million sequences, distributed accordingly. */
static lengths lognormal(uint32_t longest, double median, double spread)
{
    lengths l = new_lengths(longest);
    double below = 0;

    for (uint32_t i = 1; i <= longest; i++) {
        double share = share_up_to(i, longest, median, spread);

        l.up_to[i] = (uint64_t)(1e6 * share) - (uint64_t)(1e6 * below);
        below = share;
    }
    add_up(&l);
    return l;
}

static lengths as_asked(const options *o)
{
    uint32_t longest = (uint32_t)o->longest;
    double spread = (double)o->spread / 100;
    double median = MEDIAN;

    if (o->mean > 0)
        median = median_for((double)o->mean, longest, spread);
    return lognormal(longest, median, spread);
}

static lengths from_file(const char *name)
{
    lengths l = new_lengths(LONGEST_MAX);
    FILE *file = fopen(name, "r");
    char line[256];

    if (file == NULL)
        die(name, strerror(errno));
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long long length;
        unsigned long long count;

        if (line[0] == '#' || line[0] == '\n')
            continue;
        if (sscanf(line, "%llu %llu", &length, &count) != 2 || length < 1 ||
            length > LONGEST_MAX || count > UINT32_MAX)
            die(name, "a line is not 'length count'");
        l.up_to[length] += count;
    }
    if (ferror(file) || fclose(file) != 0)
        die(name, "cannot read");
    add_up(&l);
    return l;
}

/* The first length whose cumulative count reaches the number drawn. */
static uint32_t draw_length(const lengths *l, uint64_t *state)
{
    uint64_t wanted = ps_random(state) % l->up_to[l->longest] + 1;
    uint32_t low = 1;
    uint32_t high = l->longest;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (l->up_to[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---------------------------------------------------------------------
 * Tokens
 */

/* Evenly from 0 inclusive to 1 exclusive. */
static double draw_share(uint64_t *state)
{
    return (double)(ps_random(state) >> 11) * 0x1p-53;
}

/* The i-th token of a record; four tokens come from one random number. */
static uint32_t flat_token(source *s, uint32_t i)
{
    if (i % 4 == 0)
        s->bits = ps_random(s->state);
    return (uint32_t)(s->bits >> 16 * (i % 4) & 0xffff);
}

/*
 * Continues a phrase, begins one, or draws a token.  The sum of 1 / rank is
 * nearly a logarithm, so its inverse turns an even draw into a rank.
 */
static uint32_t text_token(source *s)
{
    uint32_t token;

    if (s->left == 0 && ps_random(s->state) % 256 < PHRASE_ODDS) {
        double far = pow(HISTORY, draw_share(s->state));

        s->back = (uint32_t)far;
        s->left = 1 + (uint32_t)(ps_random(s->state) % (2 * PHRASE - 1));
    }
    if (s->left > 0) {
        token = s->past[(s->at - s->back) % HISTORY];
        s->left--;
    } else {
        token = (uint32_t)exp(draw_share(s->state) * log(VOCABULARY)) - 1;
    }
    s->past[s->at++ % HISTORY] = token;
    return token;
}

/* ---------------------------------------------------------------------
 * Records
 */

static void flush(output *out)
{
    if (fwrite(out->buffer, 1, out->used, stdout) != out->used)
        die("stdout", strerror(errno));
    out->written += out->used;
    out->used = 0;
}

static void put(output *out, uint32_t value, size_t bytes)
{
    if (BUFFER_BYTES - out->used < bytes)
        flush(out);
    for (size_t i = 0; i < bytes; i++)
        out->buffer[out->used++] = (unsigned char)(value >> 8 * i & 0xff);
}

static void put_record(output *out, uint32_t length, size_t width, source *s)
{
    put(out, length, 4);
    for (uint32_t i = 0; i < length; i++)
        put(out, s->text ? text_token(s) : flat_token(s, i), width);
}

/* ---------------------------------------------------------------------
 * The command line
 */

/* Takes "--name=NUMBER" into *to. */
static bool take_number(const char *arg, const char *name, uint64_t *to)
{
    size_t length = strlen(name);
    char *end;

    if (strncmp(arg, name, length) != 0)
        return false;
    errno = 0;
    *to = strtoull(arg + length, &end, 10);
    if (arg[length] < '0' || arg[length] > '9' || *end != '\0' || errno != 0)
        die(arg, "not a number");
    return true;
}

static bool is_text(const char *arg)
{
    if (strcmp(arg, "--tokens=text") != 0 && strcmp(arg, "--tokens=flat") != 0)
        die(arg, "must be flat or text");
    return strcmp(arg, "--tokens=text") == 0;
}

static void check(const options *o)
{
    if (o->longest < 1 || o->longest > LONGEST_MAX)
        die("--longest", "out of range");
    if (o->mean > o->longest)
        die("--mean", "more than the longest");
    if (o->spread < 1 || o->spread > 1000)
        die("--spread", "must be from 1 to 1000");
    if (o->width != 2 && o->width != 4)
        die("--width", "must be 2 or 4");
}

static options parse(int argc, char **argv)
{
    options o = {.longest = 512, .spread = SPREAD_PERCENT, .width = 2,
                 .seed = 1};

    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--hist=", 7) == 0)
            o.hist = argv[i] + 7;
        else if (strncmp(argv[i], "--tokens=", 9) == 0)
            o.text = is_text(argv[i]);
        else if (!take_number(argv[i], "--bytes=", &o.bytes) &&
                 !take_number(argv[i], "--longest=", &o.longest) &&
                 !take_number(argv[i], "--mean=", &o.mean) &&
                 !take_number(argv[i], "--spread=", &o.spread) &&
                 !take_number(argv[i], "--width=", &o.width) &&
                 !take_number(argv[i], "--seed=", &o.seed))
            die(argv[i], "unknown option");
    check(&o);
    return o;
}

int main(int argc, char **argv)
{
    static output out;
    static source tokens;
    options o = parse(argc, argv);
    lengths l = o.hist != NULL ? from_file(o.hist) : as_asked(&o);
    uint64_t state = o.seed;

    tokens.state = &state;
    tokens.text = o.text;
    while (out.written + out.used < o.bytes)
        put_record(&out, draw_length(&l, &state), (size_t)o.width, &tokens);
    flush(&out);
    free(l.up_to);
    if (fclose(stdout) != 0)
        die("stdout", strerror(errno));
    return EXIT_SUCCESS;
}
