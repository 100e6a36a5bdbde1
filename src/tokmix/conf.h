/*
 * conf.h - what the command line of tokmix asks for.
 *
 * tokmix takes sequences from several streams of token records, by weight, and
 * writes them to one:
 *
 *     conf     the options, the sources and their weights
 *     mix      which source is next, by counts alone
 *     sources  the streams that are read
 *     state    what another job needs to go on, kept in a file
 *     job      reads what the mix asks for, and writes it
 *     main     calls them one after the other
 *
 * They use the library by its public header, and src/cli.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKMIX_CONF_H
#define TOKMIX_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "packstream.h"

/* When the mix ends. */
typedef enum conf_stop {
    STOP_FIRST,   /* when a source is due and has no more */
    STOP_LONGEST, /* when all sources have ended; each leaves when it has */
    STOP_REPEAT   /* when all have ended once; each begins again until then */
} conf_stop;

typedef struct conf {
    bool by_sequences; /* weights are shares of sequences, not of tokens */
    conf_stop stop;
    ps_channel channel; /* that tells the source; no name: there is none */
    ps_type type;       /* of raw tokens; 0: not given */
    const char *state;  /* NULL: none */
    bool resume;
    uint64_t state_every; /* sequences; 0: not given */
    const char *output; /* NULL: stdout */
    bool no_sandbox;
    bool verbose;
    bool quiet;
    const char **names; /* of the sources */
    uint64_t *weights;  /* whose sum is below 2^63 */
    uint32_t n;
} conf;

/* The defaults, and the options that change them. */
extern const conf conf_defaults;
extern const option_program conf_program;

/* What no option can know alone; an exit status. */
int conf_check(const conf *c);

/* Takes the operands, "WEIGHT=FILE" each.  An exit status, after a message. */
int conf_sources(conf *c, char *const *operands, int n);

void conf_free(conf *c);

#endif
