/*
 * conf.h - what the command line of packdeal asks for.
 *
 * packdeal takes the packs of a global batch, has the library deal them to
 * ranks, and writes each to the share of its rank:
 *
 *     conf     the options
 *     pattern  the names of the ranks' files
 *     input    the packs of all files, in their order: heads of regular files,
 *              whole packs of pipes; or token records
 *     window   which global batch gets a pack, where they may change places
 *     batch    the packs of a global batch, and their deal
 *     shares   what is written: a stream for each rank
 *     job      shares, a list, or the number of steps
 *     main     calls them one after the other
 *
 * They use the library by its public header, and src/cli.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKDEAL_CONF_H
#define PACKDEAL_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "packstream.h"

typedef enum conf_what {
    CONF_SHARES,
    CONF_LIST, /* which packs each rank gets */
    CONF_STEPS /* how many global batches there are */
} conf_what;

/* What becomes of packs that fill no global batch. */
typedef enum conf_last {
    CONF_SHORT,
    CONF_DROP,
    CONF_PAD /* padding fills their batch */
} conf_last;

typedef struct conf {
    uint32_t ranks;    /* 0: not given */
    uint32_t per_rank; /* packs in a batch of one rank; 0: not given */
    bool rank_given;
    uint32_t rank;   /* the only one that is asked for */
    ps_cost cost;    /* zeros: that of attention */
    uint32_t hidden; /* for it; 0: not given */
    conf_last last;
    bool seed_given; /* packs come in the order of an epoch */
    uint64_t seed;
    bool epoch_given;
    uint64_t epoch;
    uint32_t window; /* global batches whose packs may change places; 0: 1 */
    uint64_t start;  /* the first step; those before it were made */
    bool json;           /* a list of objects */
    const char *output;  /* a pattern, see cli/pattern.h; NULL: stdout */
    uint32_t zstd_level; /* 0: shares are plain */
    conf_what what;
    bool no_sandbox;
    bool verbose;
    bool quiet;
    const char *const *names; /* inputs */
    int n_names;
} conf;

/* The options, for option_parse. */
extern const option_program conf_program;

/* Whether packs come in another order than that of the inputs. */
bool conf_reorders(const conf *c);

/* What no option can know alone; an exit status.  Sets what was not given. */
int conf_check(conf *c);

#endif
