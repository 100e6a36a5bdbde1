/*
 * conf.h - what the command line of tokcat asks for.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_CONF_H
#define TOKCAT_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "packstream.h"

/* The most keys that --ignore can name. */
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

/* Where a sequence ends. */
typedef enum conf_split {
    SPLIT_LINE,
    SPLIT_PARAGRAPH,
    SPLIT_EOS,     /* behind each end token */
    SPLIT_BOS,     /* before each begin token */
    SPLIT_EVERY,   /* behind so many tokens */
    SPLIT_SEQUENCE, /* where the input says that one ends, */
    SPLIT_DOCUMENT  /* or that a document does */
} conf_split;

/* What a line without tokens means. */
typedef enum conf_empty { EMPTY_SKIP, EMPTY_ERROR } conf_empty;

typedef struct conf {
    conf_from from;
    bool quiet;
    const char *output;    /* NULL: stdout */
    const char *state;     /* NULL: none */
    bool resume;
    uint64_t state_every;  /* sequences; 0: not given */
    const char *tokenizer; /* file to digest, or NULL */
    const char *ids_key;
    conf_split split;
    uint64_t split_every; /* tokens, for SPLIT_EVERY */
    bool trim;            /* padding at the end of rows is left out */
    bool as_it_is;        /* compressed text is not decompressed */
    conf_empty empty;
    bool type_given;
    bool type_open; /* the input may tell the type of the tokens */
    bool split_given;
    bool empty_given;
    bool ids_key_given;
    const char *ignored[CONF_IGNORED];
    uint32_t n_ignored;
    /*
     * What the options say of the stream.  The channels are those of
     * --channel; their kind has no meaning yet, only the data tells it.
     */
    ps_schema schema;
} conf;

/* The defaults, and the options that change them. */
conf conf_defaults(void);
extern const option_program conf_program;

/* The setters of --channel and --ignore, for tests as well. */
option_setter conf_set_channel;
option_setter conf_set_ignore;

/*
 * To be called after the options: makes the choices that depend on each
 * other, digests the tokenizer, and refuses options that contradict each
 * other.  Returns an exit status, after a message if not STATUS_OK.
 */
int conf_settle(conf *c);

#endif
