/*
 * figures.h - what packstat counts while it reads a stream.
 *
 * Histograms of lengths and depths, and whether the lengths of sequences
 * depend on where they are: two correlations, both near 0 where lengths are
 * well mixed.  n packs in random order give about 1 / sqrt(n) either way.
 * They are taken in one pass and in constant memory; a file of several
 * streams counts as one.
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
 * How often each value >= 1 occurred.  Small ones, which nearly all are, are
 * counted in a table until all values have come.  All zeros: empty.
 */
#define HISTOGRAM_SMALL 4096
typedef struct histogram {
    uint64_t small[HISTOGRAM_SMALL];
    ps_histogram *all; /* complete after histogram_finish */
} histogram;

/* Counts a value; or that many of it.  False if memory ran out. */
bool histogram_add(histogram *h, uint32_t value);
bool histogram_add_count(histogram *h, uint32_t value, uint64_t count);

/* Makes `all` hold all values; false if memory ran out. */
bool histogram_finish(histogram *h);

/* A key of a JSON object: [value, count] pairs; null where not `counted`. */
void histogram_json(FILE *out, const char *key, const histogram *h,
                    bool counted);

void histogram_free(histogram *h);

/*
 * How full packs are along a stream: consecutive parts of 2^shift packs each,
 * the last one of fewer.  All zeros is the start.
 */
#define MAX_PARTS 256
typedef struct stream_parts {
    unsigned n;
    unsigned shift;
    uint64_t packs[MAX_PARTS];
    uint64_t tokens[MAX_PARTS];
} stream_parts;

/* Takes the next pack. */
void stream_parts_add(stream_parts *p, uint32_t tokens);

/* The key "parts" of a JSON object: [packs, tokens] pairs, or null. */
void stream_parts_json(FILE *out, const stream_parts *p, bool counted);

/* All zeros is the start. */
typedef struct order_stats {
    double packs;
    double sequences;
    /* Means, and sums of squares and products about them, of the places
       (which pack) and the lengths of all sequences. */
    double mean_place;
    double mean_length;
    double places_squared;
    double lengths_squared;
    double products;
    /* The means of packs: less the first, so that sums stay small. */
    double first;
    double last;
    double sum;
    double squared;
    double lagged; /* of products of neighbours */
} order_stats;

/* Takes the next pack. */
void order_stats_add(order_stats *o, const ps_pack_info *info,
                     const ps_pack *pack);

/*
 * Pearson's correlation of the length of a sequence with the number of the
 * pack it is in.  False if there is none: of fewer than two packs, or if all
 * lengths are equal.
 */
bool order_stats_place(const order_stats *o, double *correlation);

/*
 * Autocorrelation, at a lag of one, of the mean length in a pack: runs of
 * like lengths show in it.  False if there is none: of fewer than two packs,
 * or if all means are equal.
 */
bool order_stats_neighbour(const order_stats *o, double *correlation);

/* Of a pack stream, besides its totals. */
typedef struct pack_figures {
    ps_totals so_far;  /* of the packs that were read */
    uint32_t streams;  /* one after another in the file; 0 if no packs */
    bool ranged;       /* only some packs of the file were read: */
    uint64_t first;    /* from this one on, */
    uint64_t packs;    /* of so many, or PS_UNKNOWN */
    histogram lengths; /* of sequences and of pieces */
    histogram depths;
    histogram fills; /* packs by tokens */
    stream_parts parts;
    order_stats order;
    channel_figures channels;
} pack_figures;

/* Of a stream of token records. */
typedef struct token_figures {
    uint64_t sequences;
    uint64_t tokens;
    uint32_t min_seqlen; /* 0 without sequences */
    uint32_t max_seqlen;
    histogram lengths;
    channel_figures channels;
} token_figures;

#endif
