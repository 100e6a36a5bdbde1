/*
 * packstat.h - what packstat does with one file.
 *
 * main.c parses the command line, opens each file and, by what it holds,
 * calls packs_stat or tokens_stat.  These read it and fill `faults` with what
 * is wrong; if nothing is, they print what was asked for.
 *
 *   packs.c      a pack stream: reads it, prints JSON, "OK" or a summary
 *   tokens.c     the same for token records
 *   channels.c   labels that count, and sequences by value of a channel
 *   figures.c    histograms and correlations, counted on the way
 *   summary.c    the text for a human: labelled lines, histograms as bars
 *   bars.c       a bar as text, as wide as a terminal
 *   faults.c     the first faults of a file are printed, the others counted
 *   audit.c      --verify: what no single pack shows, from ids and totals
 *   compare.c    --against: packs and their input, side by side
 *   inputs.c     for it, the token records of the input, and the rejects
 *   pending.c    for it, the sequences that no pack held yet
 *   columns.c    for it, where tokens and channels are in both
 *
 * The program sees packstream.h, src/common and src/cli.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_PACKSTAT_H
#define PACKSTAT_PACKSTAT_H

#include <stdbool.h>

#include "cli/packs.h"
#include "cli/range.h"
#include "packstat/faults.h"
#include "packstat/figures.h"
#include "packstream.h"

/* Names of files, in the order in which they were given. */
typedef struct name_list {
    const char **names;
    int n;
} name_list;

/* What the command line asked for. */
typedef struct packstat_conf {
    bool json;      /* an object a file */
    bool histogram; /* nothing but `length count`, of all files together */
    bool verify;    /* check all there is to check */
    bool quick;     /* header and totals alone, of files without reading */
    bool quiet;     /* no progress, no OK */
    const char *by; /* count by the values of this channel, or NULL */
    bool range_given;
    range range; /* of each pack stream only these packs */
    bool type_given;
    ps_type raw_type;
    name_list against; /* what the packs were made of; none: not compared */
    name_list rejects; /* and what was dropped or truncated on the way */
    uint32_t vocab_size; /* tokens from here on were a reason to drop a
                            sequence; 0: not given */
    bool empty;          /* raw sequences without tokens were dropped */
} packstat_conf;

/* What has been read and printed for all files together. */
typedef struct packstat_output {
    histogram lengths; /* with --histogram */
    bool summarised;   /* a summary stands above: leave a line free */
    int fd;            /* the file that is being read */
} packstat_output;

/*
 * Reads `input` to its end, or as much of it as is asked for.  For a
 * histogram the lengths go to `out`, to be printed when all files have been
 * read.  If `lengths` is not NULL, it is the histogram of all token records of
 * the file, and they are not read.
 */
void packs_stat(const packstat_conf *conf, packs *input,
                packstat_output *out, faults *f);
void tokens_stat(const packstat_conf *conf, ps_token_reader *reader,
                 const ps_histogram *lengths, packstat_output *out, faults *f);

#endif
