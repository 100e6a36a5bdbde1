/*
 * conf.h - the options of packstream, as set by the command line.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_CONF_H
#define PACKSTREAM_CONF_H

#include "cli/budgets.h"
#include "cli/options.h"
#include "packstream.h"

typedef enum conf_stats {
    STATS_NONE,
    STATS_TEXT,
    STATS_JSON
} conf_stats;

#define CONF_BLOCK_PACKS 65536 /* maximum number of packs per block */

typedef struct conf {
    uint32_t capacity; /* tokens per pack; 0: not given */
    uint32_t depth;    /* limit on sequences per pack; 0: none */
    uint32_t window;   /* limit on sequences held; 0: not given */
    ps_policy policy;
    ps_pack_order order;
    uint64_t seed;      /* shuffles packs; 0: no shuffling */
    uint64_t max_delay; /* in records; see ps_packer_options */
    uint64_t memory;    /* limit, in bytes; 0: not given */
    bool even_cost;
    uint32_t align;         /* of sequence starts, in tokens; 0: not given */
    uint32_t block_packs;   /* packs per block, a power of two; 0: not given */
    const char *group;      /* channel to group by; NULL: none */
    const char *by;         /* channel of --by; NULL: none */
    budget_list budgets;
    const char *learn_from; /* name of a histogram; NULL: none */
    uint64_t flush_every;   /* in records; 0: not given */
    uint64_t flush_idle;    /* in milliseconds; 0: not given */
    bool flush_records;     /* a raw record of length 0 is a flush */
    ps_type type;           /* of tokens; 0: not given */
    bool pad_given;
    uint32_t pad_id;     /* valid if pad_given */
    uint32_t vocab_size; /* token ids are below it; 0: not given */
    bool overlong_given;
    ps_overlong overlong;
    bool drop_outside;   /* drop sequences with an out-of-vocabulary token */
    bool drop_empty;     /* drop raw records without tokens */
    const char *rejects; /* name of the output for rejects; NULL: none */
    uint32_t zstd_level; /* 1 to 22; 0: uncompressed output */
    uint32_t threads;    /* 0: one per available processor */
    const char *state;   /* name of the state file; NULL: none */
    bool resume;
    bool verify;
    uint64_t resume_from; /* index of the first pack to write; 0: not given */
    uint64_t state_every; /* in packs; 0: not given */
    bool expect_end;      /* refuse raw records, which have no end mark */
    bool no_sandbox;
    bool verbose;
    conf_stats stats;
    uint64_t stats_every; /* in packs; 0: at the end only */
    const char *output;   /* name; NULL: stdout */
    bool quiet;
    const char *const *names; /* names of the inputs; owned by argv */
    int n_names;
} conf;

extern const conf conf_defaults;

/* Option table, for option_parse. */
extern const option_program conf_program;

/*
 * Checks combinations of options.  Returns an exit status; prints a message on
 * failure.
 */
int conf_check(const conf *c);

#endif
