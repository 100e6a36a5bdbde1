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

typedef struct packstat_conf {
    bool json;      /* an object a file */
    bool histogram; /* nothing but `length count`, of all files together */
    bool verify;    /* check all there is to check */
    bool quick;     /* header and totals alone, of files without reading */
    bool quiet;     /* no progress, no OK */
    bool range_given;
    range range; /* of each pack stream only these packs */
    ps_type raw_type;
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
