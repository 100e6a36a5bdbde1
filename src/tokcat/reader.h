/*
 * reader.h - what the readers of the forms work with, and what they share.
 *
 * A reader turns the files of one form, one after another, into sequences of
 * tokens, and these into records; job.h tells how the files go together.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_READER_H
#define TOKCAT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/records.h"
#include "tokcat/conf.h"
#include "tokcat/input.h"
#include "tokcat/json_columns.h"
#include "tokcat/state.h"

/* The sequence being read, for messages. */
typedef struct reader_place {
    const char *unit; /* "sequence"; NULL: the line of the input */
    uint64_t number;  /* in the file, from 0 */
    uint64_t offset;  /* of its first byte */
} reader_place;

/* How many files, or places in files, can be read besides the input itself. */
#define READER_BESIDE 4

typedef struct reader {
    const conf *conf;
    input_file in;
    input_file beside[READER_BESIDE]; /* files that belong to it */
    reader_place place;
    records out;
    state state; /* state_put writes all records to `out` */
    uint64_t n_empty; /* sequences without tokens that were skipped */
    uint64_t n_padding; /* tokens that attention_mask leaves out */
    uint64_t ignored; /* a bit for each --ignore that left something out */
    char *left_out[CONF_IGNORED]; /* other keys: see reader_leave_out */
    uint32_t n_left_out;
    size_t n_tok;     /* tokens in the payload of an unfinished sequence */
    bool has_text;    /* of a paragraph: a line is not blank */
    bool ends_blank;  /* its last line is blank */
    unsigned char *tokens; /* converted from numbers: see split.c */
    json_columns columns;  /* of the lines of JSON: see jsonl.c */
} reader;

/*
 * How to read a form.  Calls that return an int give an exit status, after a
 * message if it is not STATUS_OK.
 */
typedef struct form_reader {
    const char *unit; /* what an empty sequence is called */
    bool learns;      /* the first input completes the schema */
    size_t max_line;  /* of a form that is text */
    const char *expected; /* these as those of an input */
    bool skip_bom;

    /* Opens a file and those that belong to it; NULL: input_open. */
    int (*open)(reader *r, const char *name);
    /* Reads the file to its end; NULL: `line` takes each line. */
    int (*read)(reader *r);
    int (*line)(reader *r, const input_line *line);
    /*
     * The endings of the files that belong to an input, and how many bytes at
     * the end of its name they replace; NULL: none.
     */
    const char *endings[2];
    size_t (*cut)(const char *name);
} form_reader;

extern const form_reader reader_ids;
extern const form_reader reader_bytes;
extern const form_reader reader_jsonl;
extern const form_reader reader_llmc;
extern const form_reader reader_nanogpt;
extern const form_reader reader_npy;
extern const form_reader reader_megatron;
extern const form_reader reader_datatrove;
extern const form_reader reader_tfrecord;

/* ---------------------------------------------------------------------
 * For the readers
 */

/* Hands each line of r->in to `take`. */
int reader_each_line(reader *r,
                     int (*take)(reader *r, const input_line *line));

/*
 * Starts the stream unless an earlier file did; its schema is final then.
 * Numbers of more than 16 bits make the tokens u32, if the user did not give
 * their type.
 */
int reader_start(reader *r, size_t number_width);

/* The number of the stream's channel of that name, or PS_TOKENS. */
uint32_t reader_find_channel(const reader *r, const char *name);

/*
 * Before the start: appends a channel with the type and fill of its well-known
 * name.
 */
int reader_add_channel(reader *r, const char *name, ps_kind kind);

/* Skips `n` sequences without tokens, or refuses them, as --empty says. */
int reader_empty(reader *r, uint64_t n);

/*
 * Whether this key of the input is left out: --ignore names it, or
 * reader_leave_out had it.  Call it for every key: a warning tells at the end
 * which names of --ignore were not among them.
 */
bool reader_ignores(reader *r, const char *key);

/*
 * From now on leaves out a key that holds no numbers but `what` ("a string"),
 * with a warning.  Returns an exit status.
 */
int reader_leave_out(reader *r, const char *key, const char *what);

/* Reports that memory ran out; returns STATUS_FAILURE. */
int reader_no_memory(const reader *r);

/* "prog: FILE: sequence 3 at byte 40: why"; returns STATUS_DATA. */
int reader_bad(const reader *r, const char *format, ...)
    MESSAGE_PRINTF(2, 3);

/* The greatest id that the type and the vocabulary allow. */
uint32_t reader_max_id(const reader *r);

/* Why a greater one is no id: "does not fit u16 (see --type)". */
#define READER_WHY_BYTES 64
const char *reader_above_max(const reader *r, char why[READER_WHY_BYTES]);

/* The most tokens that a record of this stream can have. */
uint32_t reader_max_tokens(const reader *r);
int reader_too_large(const reader *r);

/* Makes room for `n` more tokens in the payload. */
int reader_reserve(reader *r, size_t n);

/* Writes the n_tok tokens in the payload as a record. */
int reader_put(reader *r);

#endif
