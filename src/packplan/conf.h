/*
 * conf.h - the options of packplan, as set by the command line.
 *
 * packplan reads a histogram of lengths, plans its packing with each requested
 * algorithm and depth, and prints the results:
 *
 *     conf     the options, and the algorithms by name
 *     rows     makes and checks the plans; one row of results each
 *     recommend  finds a window for each of several capacities
 *     scaling  for --scaling: unpadding on many devices, for comparison
 *     uses     for --budget: reads what each sequence uses
 *     report   prints rows, plans, scaling or bounds, as text, TSV or JSON
 *     main     runs these steps
 *
 * src/files/histogram.c reads the input.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKPLAN_CONF_H
#define PACKPLAN_CONF_H

#include "cli/budgets.h"
#include "cli/options.h"
#include "packstream.h"

typedef struct algorithm {
    const char *name;
    ps_algorithm id;
    bool is_flat; /* does not pack, so it has no depth */
} algorithm;

/* Number of algorithms, listed in the order of tables. */
#define ALGORITHMS 9
extern const algorithm algorithms[ALGORITHMS];

/* Maximum number of entries in the list of an option. */
#define CONF_LIST 64

/* The depth is not limited, as in ps_plan_options. */
#define CONF_NO_CAP UINT32_MAX

typedef enum conf_what {
    CONF_TABLE,     /* one row per algorithm and depth */
    CONF_PLAN,      /* the strategies of a plan */
    CONF_SCALING,   /* unpadding compared with packing, by number of devices */
    CONF_RECOMMEND, /* a packstream command for each capacity */
    CONF_BUDGETS,   /* bounds with budgets; implied by --budget */
    CONF_WHATS
} conf_what;

typedef enum conf_form {
    CONF_TEXT,
    CONF_TSV,
    CONF_JSON
} conf_form;

/* Options that cannot be combined with CONF_RECOMMEND or --budget. */
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
    /* capacity: first of the list; depth: unused, see `depths` */
    ps_plan_options options;
    uint32_t capacities[CONF_LIST]; /* in tokens */
    unsigned n_capacities;          /* 0: not given */
    ps_overlong overlong;
    /* sequences start at multiples of this, in tokens */
    uint32_t align;
    uint32_t depths[CONF_LIST]; /* limits on the depth; CONF_NO_CAP: none */
    unsigned n_depths;
    bool algorithms[ALGORITHMS]; /* selected; by index */
    unsigned n_algorithms;
    double overheads[CONF_LIST]; /* in per cent, by depth; 0 if not given */
    unsigned n_overheads;        /* as given: none, one, or one per depth */
    double betas[2];             /* decay rates of LAMB, below 1 */
    budget_list budgets;
    uint64_t global_batch;       /* packs per step; 0: not given */
    uint32_t devices[CONF_LIST]; /* numbers of devices, for --scaling */
    unsigned n_devices;
    conf_what what;
    bool chosen[CONF_WHATS]; /* requested by the user */
    conf_form form;
    bool forms[3]; /* requested by the user */
    bool given[CONF_OPTIONS];
    bool no_bound;
    bool quiet;
    const char *const *names; /* names of the inputs */
    int n_names;
} conf;

/* Defaults. */
conf conf_new(void);

/* Option table, for option_parse. */
extern const option_program conf_program;

/*
 * Checks combinations of options, and sets an overhead for each depth.  Returns
 * an exit status; prints a message on failure.
 */
int conf_check(conf *c);

#endif
