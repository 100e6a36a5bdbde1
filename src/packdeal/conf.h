/*
 * conf.h - the options of packdeal, as set by the command line.
 *
 * packdeal reads the packs of a global batch, assigns them to ranks by cost,
 * and writes each pack to the share of its rank:
 *
 *     conf     the options
 *     pattern  the names of the ranks' files
 *     input    the packs of all files, in order: heads of regular files,
 *              whole packs of pipes; or token records
 *     window   exchanges packs between the batches of a window
 *     batch    the packs of a global batch, and their assignment
 *     shares   writes a stream for each rank
 *     skip     the sequences that shares omit
 *     job      writes shares, a list, or the number of steps
 *     find     finds the sequences of a step, or the step of a sequence
 *     main     runs these steps
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKDEAL_CONF_H
#define PACKDEAL_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/ids.h"
#include "cli/options.h"
#include "packstream.h"

typedef enum conf_what {
    CONF_SHARES,
    CONF_LIST, /* the packs of each rank, as a list */
    CONF_STEPS, /* the number of global batches */
    CONF_FIND   /* the sequences of a step, or the steps of sequences */
} conf_what;

/* Treatment of packs that do not fill a global batch. */
typedef enum conf_last {
    CONF_SHORT,
    CONF_DROP,
    CONF_PAD /* fill the batch with padding */
} conf_last;

typedef struct conf {
    uint32_t ranks;    /* 0: not given */
    uint32_t per_rank; /* packs per rank and batch; 0: not given */
    bool rank_given;
    uint32_t rank;   /* the only rank whose share is written */
    ps_cost cost;    /* zeros: cost of attention */
    uint32_t hidden; /* hidden size, for the cost of attention; 0: not given */
    conf_last last;
    bool seed_given; /* read packs in the shuffled order of an epoch */
    uint64_t seed;
    bool epoch_given;
    uint64_t epoch;
    uint32_t window;     /* batches between which packs can move; 0: 1 */
    uint64_t start;      /* first step to assign; earlier steps are skipped */
    bool find_given;
    uint64_t find;       /* the step whose sequences are printed */
    id_set wanted;       /* ids whose steps are printed; empty: not given */
    const char *skip;    /* file of the ids to omit; NULL: none */
    bool json;           /* with --list or lookups: print JSON objects */
    const char *output;  /* pattern, see cli/pattern.h; NULL: stdout */
    uint32_t zstd_level; /* 1 to 22; 0: uncompressed */
    conf_what what;
    bool no_sandbox;
    bool verbose;
    bool quiet;
    const char *const *names; /* names of the inputs */
    int n_names;
} conf;

/* Option table, for option_parse. */
extern const option_program conf_program;

/* True if packs are not read in the order of the inputs. */
bool conf_reorders(const conf *c);

/*
 * Checks combinations of options and sets defaults.  Returns an exit status;
 * prints a message on failure.
 */
int conf_check(conf *c);

#endif
