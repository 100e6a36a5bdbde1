/*
 * conf.h - what the command line of packplan asks for.
 *
 * packplan reads a histogram of lengths, has the library plan its packing with
 * each algorithm and depth that is asked for, and prints what they make of it:
 *
 *     conf     the options, and the algorithms by name
 *     rows     makes and checks the plans, a row of figures for each
 *     recommend  finds a window for each of several capacities
 *     scaling  for --scaling: un-padding on many devices, to compare with
 *     report   prints rows, plans or scaling, as text, TSV or JSON
 *     main     calls them one after the other
 *
 * They use the library by its public header, and src/cli, where histogram.c
 * reads the input.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_CONF_H
#define PACKPLAN_CONF_H

#include "cli/options.h"
#include "packstream.h"

typedef struct algorithm {
    const char *name;
    ps_algorithm id;
    bool is_flat; /* packs nothing, so that no depth applies to it */
} algorithm;

/* All of them, in the order of tables. */
#define ALGORITHMS 9
extern const algorithm algorithms[ALGORITHMS];

/* Entries in an option's list. */
#define CONF_LIST 64

/* A depth without a cap, as ps_plan_options has it. */
#define CONF_NO_CAP UINT32_MAX

typedef enum conf_what {
    CONF_TABLE,   /* a row for each algorithm and depth */
    CONF_PLAN,    /* the strategies */
    CONF_SCALING, /* un-padding against packing, by devices */
    CONF_RECOMMEND, /* a command of packstream for each capacity */
    CONF_WHATS
} conf_what;

typedef enum conf_form {
    CONF_TEXT,
    CONF_TSV,
    CONF_JSON
} conf_form;

/* The options that do not go with CONF_RECOMMEND. */
typedef enum conf_option {
    CONF_DEPTH,
    CONF_ALGORITHM,
    CONF_OVERHEAD,
    CONF_LAMB,
    CONF_GLOBAL_BATCH,
    CONF_BATCH,
    CONF_DEVICES,
    CONF_SHORT_LENGTH,
    CONF_SHORT_WEIGHT,
    CONF_NO_DISTRIBUTE,
    CONF_NO_BOUND,
    CONF_OPTIONS
} conf_option;

typedef struct conf {
    ps_plan_options options; /* capacity: the first; depth: see below */
    uint32_t capacities[CONF_LIST];
    unsigned n_capacities; /* 0: not given */
    ps_overlong overlong;
    uint32_t align; /* sequences begin at multiples of it */
    uint32_t depths[CONF_LIST];
    unsigned n_depths;
    bool algorithms[ALGORITHMS]; /* by their index */
    unsigned n_algorithms;
    double overheads[CONF_LIST]; /* per cent; 0 if not given */
    unsigned n_overheads;        /* as given: none, one or one a depth */
    double betas[2];
    uint64_t global_batch; /* packs of a step; 0: not given */
    uint32_t devices[CONF_LIST];
    unsigned n_devices;
    conf_what what;
    bool chosen[CONF_WHATS]; /* which of them the user asked for */
    conf_form form;
    bool forms[3]; /* likewise */
    bool given[CONF_OPTIONS];
    bool no_bound;
    bool quiet;
    const char *const *names; /* inputs */
    int n_names;
} conf;

/* The defaults. */
conf conf_new(void);

/* The options, for option_parse. */
extern const option_program conf_program;

/*
 * What no option can know alone; an exit status.  Each depth has its overhead
 * then.
 */
int conf_check(conf *c);

#endif
