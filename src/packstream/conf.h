/*
 * conf.h - what the command line of packstream asks for.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTREAM_CONF_H
#define PACKSTREAM_CONF_H

#include "cli/options.h"
#include "packstream.h"

typedef enum conf_stats {
    STATS_NONE,
    STATS_TEXT,
    STATS_JSON
} conf_stats;

#define CONF_BLOCK_PACKS 65536 /* at most in a block */

typedef struct conf {
    uint32_t capacity; /* 0: not given */
    uint32_t depth;    /* 0: no cap */
    uint32_t window;   /* 0: not given */
    ps_policy policy;
    ps_pack_order order;
    uint64_t seed; /* 0: packs are not shuffled */
    uint64_t max_delay;   /* as in ps_packer_options */
    uint64_t memory;      /* bytes; 0: not given */
    bool even_cost;
    uint32_t align; /* 0: not given */
    uint32_t block_packs; /* 0: not given */
    const char *learn_from; /* NULL: nothing */
    uint64_t flush_every; /* records; 0: not given */
    uint64_t flush_idle;  /* milliseconds; 0: not given */
    bool flush_records;
    ps_type type; /* 0: not given */
    bool pad_given;
    uint32_t pad_id;
    uint32_t vocab_size; /* 0: not given */
    bool overlong_given;
    ps_overlong overlong;
    bool drop_outside; /* sequences with a token outside the vocabulary */
    bool drop_empty;   /* raw records without tokens */
    const char *rejects; /* NULL: none */
    uint32_t zstd_level;   /* 0: the output is plain */
    uint32_t threads;      /* 0: as many as there are processors */
    const char *state; /* NULL: none */
    bool resume;
    bool verify;
    uint64_t resume_from; /* pack; 0: not given */
    uint64_t state_every; /* packs; 0: not given */
    bool expect_end; /* raw records are refused */
    bool no_sandbox;
    bool verbose;
    conf_stats stats;
    uint64_t stats_every; /* packs; 0: only at the end */
    const char *output; /* NULL: stdout */
    bool quiet;
    const char *const *names; /* inputs */
    int n_names;
} conf;

extern const conf conf_defaults;

/* The options, for option_parse. */
extern const option_program conf_program;

/* What no option can know alone; an exit status. */
int conf_check(const conf *c);

#endif
