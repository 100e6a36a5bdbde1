/*
 * figures.h - statistics collected while reading a stream.
 *
 * These are histograms of lengths and depths, and two correlations that show
 * whether lengths depend on the position in the stream.  Both are near 0 if
 * lengths are well mixed: within about 1 / sqrt(n) for n packs in random order.
 * The statistics take one pass and constant memory.  A file of several streams
 * is treated as one stream.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_FIGURES_H
#define PACKSTAT_FIGURES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "packstat/channels.h"
#include "packstream.h"

/*
 * Counts of values >= 1.  Small values, which are the most frequent, are
 * counted in a table until the end.  Zero-initialise for an empty histogram.
 */
#define HISTOGRAM_SMALL 4096
typedef struct histogram {
    /* counts of the values below HISTOGRAM_SMALL */
    uint64_t small[HISTOGRAM_SMALL];
    ps_histogram *all; /* complete after histogram_finish; owned */
} histogram;

/* Counts a value, once or `count` times.  Returns false if out of memory. */
bool histogram_add(histogram *h, uint32_t value);
bool histogram_add_count(histogram *h, uint32_t value, uint64_t count);

/* Moves all values to `all`.  Returns false if out of memory. */
bool histogram_finish(histogram *h);

/* Prints a key of a JSON object: [value, count] pairs, or null. */
void histogram_json(FILE *out, const char *key, const histogram *h,
                    bool counted);

void histogram_free(histogram *h);

#define MAX_PARTS 256

/*
 * Tokens in consecutive parts of a stream, which show where packs are less
 * full.  A part has 2^shift packs; the last part can be shorter.
 * Zero-initialise before the first pack.
 */
typedef struct stream_parts {
    unsigned n;                 /* number of parts */
    unsigned shift;             /* log2 of the number of packs in a part */
    uint64_t packs[MAX_PARTS];  /* packs in each part */
    uint64_t tokens[MAX_PARTS]; /* tokens in each part */
} stream_parts;

/* Adds the next pack. */
void stream_parts_add(stream_parts *p, uint32_t tokens);

/* Prints the key "parts" of a JSON object: [packs, tokens] pairs, or null. */
void stream_parts_json(FILE *out, const stream_parts *p, bool counted);

/* Zero-initialise before the first pack. */
typedef struct order_stats {
    double packs;
    double sequences;
    /*
     * Means of the positions (pack indices) and lengths of all sequences, and
     * sums of squares and products about these means.
     */
    double mean_place;
    double mean_length;
    double places_squared;
    double lengths_squared;
    double products;
    /*
     * Mean lengths of packs, minus the mean of the first pack, so that the sums
     * stay small.
     */
    double first;   /* mean of the first pack */
    double last;    /* value of the last pack */
    double sum;     /* sum over all packs */
    double squared; /* sum of squares */
    double lagged;  /* sum of products of neighbours */
} order_stats;

/* Adds the next pack. */
void order_stats_add(order_stats *o, const ps_pack_info *info,
                     const ps_pack *pack);

/*
 * Pearson's correlation between the length of a sequence and the index of its
 * pack.  Returns false if it is undefined, that is, with fewer than two packs
 * or if all lengths are equal.
 */
bool order_stats_place(const order_stats *o, double *correlation);

/*
 * Autocorrelation, at lag one, of the mean length of packs, which reveals runs
 * of similar lengths.  Returns false if it is undefined, that is, with fewer
 * than two packs or if all means are equal.
 */
bool order_stats_neighbour(const order_stats *o, double *correlation);

/* Statistics of a pack stream, besides its totals. */
typedef struct pack_figures {
    ps_totals so_far;  /* totals of the packs read */
    uint32_t streams;  /* number of streams in the file; 0 without packs */
    bool ranged;       /* only some packs of the file were read */
    uint64_t first;    /* index of the first pack read */
    uint64_t packs;    /* number of packs in the file, or PS_UNKNOWN */
    histogram lengths; /* lengths of sequences and pieces */
    histogram depths;  /* sequences per pack */
    histogram fills;   /* tokens per pack */
    double budget_sums[PS_MAX_BUDGETS];    /* uses of all packs */
    uint64_t budget_most[PS_MAX_BUDGETS]; /* of a pack */
    stream_parts parts;
    order_stats order;
    channel_figures channels;
} pack_figures;

/* Statistics of a stream of token records. */
typedef struct token_figures {
    uint64_t sequences;
    uint64_t tokens;
    uint32_t min_seqlen; /* 0 without sequences */
    uint32_t max_seqlen; /* in tokens */
    histogram lengths;
    channel_figures channels;
} token_figures;

#endif
