/*
 * conf.h - the options of tokcat, as set by the command line.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_CONF_H
#define TOKCAT_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "packstream.h"

/* Maximum number of --ignore options. */
#define CONF_IGNORED 64

typedef enum conf_from {
    FROM_NOTHING, /* not chosen yet */
    FROM_IDS,
    FROM_BYTES,
    FROM_JSONL,
    FROM_LLMC,
    FROM_NANOGPT,
    FROM_NPY,
    FROM_MEGATRON,
    FROM_DATATROVE,
    FROM_TFRECORD
} conf_from;

/* Positions at which sequences end. */
typedef enum conf_split {
    SPLIT_LINE,
    SPLIT_PARAGRAPH,
    SPLIT_EOS,      /* after each EOS token */
    SPLIT_BOS,      /* before each BOS token */
    SPLIT_EVERY,    /* after a fixed number of tokens */
    SPLIT_SEQUENCE, /* at each sequence boundary in the input */
    SPLIT_DOCUMENT  /* at each document boundary in the input */
} conf_split;

/* Treatment of sequences without tokens. */
typedef enum conf_empty { EMPTY_SKIP, EMPTY_ERROR } conf_empty;

typedef struct conf {
    conf_from from;
    bool quiet;
    const char *output; /* name; NULL: stdout */
    const char *state;  /* name of the state file; NULL: none */
    bool resume;
    uint64_t state_every;  /* in sequences; 0: not given */
    const char *tokenizer; /* name of the file to digest; NULL: none */
    const char *ids_key;   /* key of the token ids */
    conf_split split;
    uint64_t split_every; /* tokens per sequence, for SPLIT_EVERY */
    bool trim;            /* remove padding at the end of rows */
    bool as_it_is;        /* do not decompress text */
    conf_empty empty;
    bool type_given;
    bool type_open; /* the input can determine the token type */
    bool split_given;
    bool empty_given;
    bool ids_key_given;
    const char *ignored[CONF_IGNORED]; /* keys named by --ignore */
    uint32_t n_ignored;
    /*
     * Schema of the stream, as far as the options determine it.  It has the
     * channels declared by --channel.  Their kind is not known until data is
     * read.
     */
    ps_schema schema;
} conf;

/* Defaults, and the option table. */
conf conf_defaults(void);
extern const option_program conf_program;

/* The setters of --channel and --ignore; also called by tests. */
option_setter conf_set_channel;
option_setter conf_set_ignore;

/*
 * Call this after option_parse.  Resolves options that depend on each other,
 * digests the tokenizer, and refuses contradictory options.  Returns an exit
 * status; prints a message on failure.
 */
int conf_settle(conf *c);

#endif
