/*
 * conf.h - the options of tokshuf, as set by the command line.
 *
 * tokshuf reorders token records: pseudorandomly, by length within windows, or
 * both.  It can also drop sequences.
 *
 *     conf     the options
 *     order    the sort key of each sequence
 *     runs     sorted runs in a temporary file, and merging
 *     sorter   external sort in bounded memory
 *     input    the sequences of all files
 *     outputs  one output stream, or several that get a share each
 *     state    saves and restores a job (--state)
 *     job      reads, shuffles and writes
 *     main     runs these steps
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
    bool in_order;        /* do not shuffle */
    uint64_t count;       /* number of sequences to write; UINT64_MAX: all */
    uint32_t min_length;  /* in tokens */
    uint32_t max_length;  /* in tokens */
    uint64_t by_length;   /* sequences per window of --by-length; 0: none */
    const char *group;    /* channel of --group; NULL: none */
    uint64_t memory;      /* limit of --memory, in bytes */
    const char *folder;   /* directory of temporary files */
    ps_type type;         /* type of raw tokens; 0: not given */
    const char *output;   /* name; NULL: stdout */
    const char *split;    /* "SHARE:FILE,..."; NULL: none */
    const char *state;    /* name of the state file; NULL: none */
    uint64_t state_every; /* in sequences; 0: not given */
    bool resume;
    bool no_sandbox;
    bool verbose;
    bool quiet;

    const char *const *inputs;
    int n_inputs;

    /* The outputs: a single output, or the files of --split. */
    uint32_t n_outputs;
    const char **names;
    uint64_t *weights; /* their sum is below 2^63 */
    char *text;        /* buffer of the names; owned */
} conf;

/* Defaults, and the option table. */
conf conf_defaults(void);
extern const option_program conf_program;

/*
 * Checks combinations of options and sets the outputs.  Returns an exit status;
 * prints a message on failure.
 */
int conf_settle(conf *c);

void conf_free(conf *c);

#endif
