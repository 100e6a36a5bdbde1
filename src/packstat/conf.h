/*
 * conf.h - what the command line of packstat asked for, and what is shared by
 * the files it names.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_CONF_H
#define PACKSTAT_CONF_H

#include <stdbool.h>

#include "cli/range.h"
#include "histogram.h"
#include "packstream.h"

/* Names of files, in the order in which they were given. */
typedef struct name_list {
    const char **names;
    int n;
} name_list;

typedef struct packstat_conf {
    bool json;      /* an object a file */
    bool histogram; /* nothing but `length count`, of all files together */
    bool verify;    /* check all there is to check */
    bool quick;     /* header and totals alone, of files without reading */
    bool quiet;     /* no progress, no OK */
    bool range_given;
    range range; /* of each pack stream only these packs */
    bool type_given;
    ps_type raw_type;
    name_list against; /* what the packs were made of; none: not compared */
    name_list rejects; /* and what was dropped or truncated on the way */
    uint32_t vocab_size; /* beyond which it was; 0: not given */
    bool empty;          /* raw ones without tokens were, too */
} packstat_conf;

/* What has been read and printed for all files together. */
typedef struct packstat_output {
    histogram lengths; /* with --histogram */
    bool summarised;   /* a summary stands above: leave a line free */
} packstat_output;

/* True if a file of its own is to be described for a human. */
static inline bool conf_wants_summary(const packstat_conf *conf)
{
    return !conf->json && !conf->histogram && !conf->verify;
}

#endif
