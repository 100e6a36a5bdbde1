/*
 * conf.h - the options of tokmix, as set by the command line.
 *
 * tokmix mixes sequences from several streams of token records by weight and
 * writes one stream:
 *
 *     conf     the options, the sources and their weights in each stage
 *     mix      chooses the next source, from counts alone
 *     stages   counts what each stage has taken, and ends it
 *     sources  the input streams
 *     state    saves and restores a job (--state)
 *     job      reads from the source that mix chooses, and writes
 *     main     runs these steps
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKMIX_CONF_H
#define TOKMIX_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "packstream.h"

/* Conditions that end the mix. */
typedef enum conf_stop {
    STOP_FIRST, /* a source that is due has ended */
    /* all sources have ended; until then the other sources continue */
    STOP_LONGEST,
    /* all sources have ended at least once; a source that ends starts over */
    STOP_REPEAT
} conf_stop;

/* Maximum number of --stage options. */
#define CONF_MAX_STAGES 1000

/* Lengths of stages that are not numbers. */
#define CONF_NOW ((uint64_t)0) /* up to the resume point */
#define CONF_ENDLESS UINT64_MAX /* until the sources end */

typedef struct conf_stage {
    uint64_t length; /* in tokens, or sequences if by_sequences */
    /* weights of all sources, 0 if not in this stage; sum below 2^63; owned */
    uint64_t *weights;
} conf_stage;

typedef struct conf {
    bool by_sequences; /* weights are shares of sequences, not tokens */
    conf_stop stop;
    ps_channel channel; /* channel for the source's index; empty name: none */
    ps_type type;       /* type of raw tokens; 0: not given */
    const char *state;  /* name of the state file; NULL: none */
    bool resume;
    uint64_t state_every; /* in sequences; 0: not given */
    const char *output;   /* name; NULL: stdout */
    bool no_sandbox;
    bool verbose;
    bool quiet;
    const char *given[CONF_MAX_STAGES]; /* values of --stage, in order */
    uint32_t n_given; /* number of --stage options */
    conf_stage *stages; /* at least one; without --stage, one that is endless */
    uint32_t n_stages;
    const char **names; /* names of the sources */
    uint32_t n;         /* number of sources */
    char **texts; /* copies of `given` that contain the names; owned */
} conf;

/* Defaults, and the option table. */
extern const conf conf_defaults;
extern const option_program conf_program;

/*
 * Checks combinations of options.  Returns an exit status; prints a message on
 * failure.
 */
int conf_check(const conf *c);

/*
 * Parses --stage and the operands, "WEIGHT=FILE" each.  Operands after --stage
 * are the last stage, which is endless.  Sources are numbered in the order in
 * which they first appear.  Returns an exit status; prints a message on
 * failure.
 */
int conf_sources(conf *c, char *const *operands, int n);

void conf_free(conf *c);

#endif
