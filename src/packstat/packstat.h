/*
 * packstat.h - statistics of one file.
 *
 * main.c parses the command line, opens each file and calls packs_stat or
 * tokens_stat, depending on its contents.  These functions read the file and
 * report faults.  If there are no faults, they print the requested statistics.
 *
 *   packs.c      a pack stream: reads it, prints JSON, "OK" or a summary
 *   tokens.c     token records: reads them, prints JSON, "OK" or a summary
 *   find.c       --find: where sequences are
 *   channels.c   targets of a loss, and sequences by value of a channel
 *   figures.c    histograms and correlations, collected while reading
 *   summary.c    text for humans: labelled lines, histograms as bars
 *   bars.c       histogram bars as text
 *   faults.c     prints the first faults of a file, counts the others
 *   audit.c      --verify: checks across packs, of ids and totals
 *   compare.c    --against: compares packs with their input
 *   inputs.c     reads the input for --against, and the rejects
 *   pending.c    queue of input sequences that are not in a pack yet
 *   columns.c    locates tokens and channels in payloads and packs
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_PACKSTAT_H
#define PACKSTAT_PACKSTAT_H

#include <stdbool.h>

#include "cli/ids.h"
#include "cli/range.h"
#include "files/packs.h"
#include "packstat/faults.h"
#include "packstat/figures.h"
#include "packstream.h"

/* Names of files, in the order given. */
typedef struct name_list {
    const char **names;
    int n;
} name_list;

/* Options set by the command line. */
typedef struct packstat_conf {
    bool json; /* print one object per file */
    /* print only "length count" lines, for all files together */
    bool histogram;
    bool verify;      /* check everything */
    id_set find;      /* print only where these sequences are; empty: no */
    bool quick;       /* header and totals only; files are not read */
    bool quiet;       /* no progress line, no "OK" */
    const char *by;   /* count by value of this channel; NULL: none */
    const char *group; /* channel whose equal values form groups; NULL: none */
    uint32_t align;    /* alignment of lengths in groups; 0: not given */
    bool range_given;
    range range; /* packs to read of each pack stream */
    bool type_given;
    ps_type raw_type;  /* token type of raw records */
    name_list against; /* input of the packs; empty: not compared */
    name_list rejects; /* rejects of the packs */
    /* sequences with a token id >= this were dropped; 0: not given */
    uint32_t vocab_size;
    bool empty; /* raw sequences without tokens were dropped */
} packstat_conf;

/* Output shared by all files. */
typedef struct packstat_output {
    histogram lengths; /* with --histogram */
    /* a summary was printed, so a blank line precedes the next summary */
    bool summarised;
    int fd;       /* descriptor of the current file */
} packstat_output;

/*
 * Read `input` to its end, or as far as required.  With --histogram, the
 * lengths are added to `out` and printed after all files have been read.  If
 * `lengths` is not NULL, it is the histogram of all token records of the file,
 * which are then not read.
 */
void packs_stat(const packstat_conf *conf, packs *input,
                packstat_output *out, faults *f);
void tokens_stat(const packstat_conf *conf, ps_token_reader *reader,
                 const ps_histogram *lengths, packstat_output *out, faults *f);

/*
 * Prints where the sequences of --find are, and marks them as found.  A regular
 * file is read only where its index requires it.
 */
void packs_find(const packstat_conf *conf, packs *input, faults *f);

#endif
