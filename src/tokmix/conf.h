/*
 * conf.h - the options of tokmix, as set by the command line.
 *
 * tokmix mixes sequences from several streams of token records by weight and
 * writes one stream:
 *
 *     conf     the options, the sources and their weights
 *     mix      chooses the next source, from counts alone
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
    const char **names; /* names of the sources */
    uint64_t *weights;  /* weights of the sources; their sum is below 2^63 */
    uint32_t n;         /* number of sources */
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
 * Parses the operands, "WEIGHT=FILE" each.  Returns an exit status; prints a
 * message on failure.
 */
int conf_sources(conf *c, char *const *operands, int n);

void conf_free(conf *c);

#endif
