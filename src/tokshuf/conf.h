/*
 * conf.h - what the command line of tokshuf asks for.
 *
 * tokshuf puts token records in another order: by a number for each that is
 * as good as random, by length within windows, or both; and leaves some out.
 *
 *     conf     the options
 *     order    the number of each sequence
 *     runs     sorted records in a temporary file, and how they are merged
 *     sorter   records by a key, in bounded memory
 *     input    the sequences of all files
 *     outputs  what is written: one stream, or shares of it to several
 *     state    what another job needs to go on, kept in a file
 *     job      reads, shuffles and writes
 *     main     calls them one after the other
 *
 * They use the library by its public header, and src/cli.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKSHUF_CONF_H
#define TOKSHUF_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "packstream.h"

typedef struct conf {
    uint64_t seed;
    bool seed_given;
    bool in_order; /* no shuffle */
    uint64_t count; /* of sequences that are wanted */
    uint32_t min_length;
    uint32_t max_length;
    uint64_t by_length; /* sequences in a window; 0: none */
    uint64_t memory;
    const char *folder; /* of temporary files */
    ps_type type;       /* of raw tokens; 0: not given */
    const char *output; /* NULL: stdout */
    const char *split;  /* "SHARE:FILE,..." or NULL */
    const char *state;  /* NULL: none */
    uint64_t state_every; /* sequences; 0: not given */
    bool resume;
    bool no_sandbox;
    bool verbose;
    bool quiet;

    const char *const *inputs;
    int n_inputs;

    /* The outputs: one, or those of --split. */
    uint32_t n_outputs;
    const char **names;
    uint64_t *weights; /* whose sum is below 2^63 */
    char *text;        /* where the names are */
} conf;

/* The defaults, and the options that change them. */
conf conf_defaults(void);
extern const option_program conf_program;

/* After the options: what they mean together.  A status, after a message. */
int conf_settle(conf *c);

void conf_free(conf *c);

#endif
