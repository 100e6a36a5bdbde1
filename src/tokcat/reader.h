/*
 * reader.h - interface and shared functions of the readers.
 *
 * A reader converts the files of one form to sequences of tokens and writes
 * them as records.  job.h has an overview of the modules.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_READER_H
#define TOKCAT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/records.h"
#include "tokcat/conf.h"
#include "tokcat/input.h"
#include "tokcat/json_columns.h"
#include "tokcat/state.h"

/* The current sequence, for messages. */
typedef struct reader_place {
    const char *unit; /* "sequence"; NULL: use the line number of the input */
    uint64_t number;  /* in the file, from 0 */
    uint64_t offset;  /* offset of its first byte in the file */
} reader_place;

/* Maximum number of inputs besides the main input, such as index files. */
#define READER_BESIDE 4

typedef struct reader {
    const conf *conf;
    input_file in;
    input_file beside[READER_BESIDE]; /* companion files, such as an index */
    reader_place place;
    records out;
    state state;        /* state_put writes all records to `out` */
    uint64_t n_empty;   /* number of sequences without tokens skipped */
    uint64_t n_padding; /* tokens removed because attention_mask is 0 */
    uint64_t ignored;   /* bit i: a key named by the i-th --ignore occurred */
    /* further ignored keys; see reader_leave_out */
    char *left_out[CONF_IGNORED];
    uint32_t n_left_out; /* number of entries in `left_out` */
    size_t n_tok;        /* tokens in the payload of an unfinished sequence */
    bool has_text;       /* the paragraph has a line that is not blank */
    bool ends_blank;     /* the last line of the paragraph is blank */
    /* buffer for converted numbers; see split.c; owned */
    unsigned char *tokens;
    json_columns columns; /* columns of a JSON line; see jsonl.c */
} reader;

/*
 * A reader of one form.  Functions returning int return an exit status and
 * print a message on failure.
 */
typedef struct form_reader {
    const char *unit;     /* name of a sequence in messages */
    bool learns;          /* the first input completes the schema */
    size_t max_line;      /* for text: maximum length of a line, in bytes */
    const char *expected; /* this and `skip_bom`: see input_file */
    bool skip_bom;

    /* Opens a file and its companions.  NULL: input_open opens the file. */
    int (*open)(reader *r, const char *name);
    /* Reads the file to its end.  NULL: `line` is called for each line. */
    int (*read)(reader *r);
    int (*line)(reader *r, const input_line *line);
    /*
     * Extensions of the companion files, and the number of bytes at the end of
     * the input's name that they replace; NULL: none.
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
 * Shared by the readers
 */

/* Calls `take` for each line of r->in. */
int reader_each_line(reader *r,
                     int (*take)(reader *r, const input_line *line));

/*
 * Starts the stream unless an earlier file did.  The schema is then final.  If
 * the user did not choose a token type, it is u32 for numbers wider than 16
 * bits.  `number_width` is in bytes.
 */
int reader_start(reader *r, size_t number_width);

/* Index of the stream's channel of this name, or PS_TOKENS. */
uint32_t reader_find_channel(const reader *r, const char *name);

/*
 * Appends a channel with the type and fill of its well-known name.  Call it
 * before reader_start.
 */
int reader_add_channel(reader *r, const char *name, ps_kind kind);

/* Skips or refuses `n` sequences without tokens, as --empty selects. */
int reader_empty(reader *r, uint64_t n);

/*
 * True if --ignore or reader_leave_out named this key.  Call it for every key,
 * since a name of --ignore that never occurs causes a warning at the end.
 */
bool reader_ignores(reader *r, const char *key);

/*
 * Ignores a key from now on, with a warning that says `why` ("a string").
 * Returns an exit status.
 */
int reader_leave_out(reader *r, const char *key, const char *why);

/* Reports that memory is exhausted; returns STATUS_FAILURE. */
int reader_no_memory(const reader *r);

/* Reports "prog: FILE: sequence 3 at byte 40: why"; returns STATUS_DATA. */
int reader_bad(const reader *r, const char *format, ...)
    MESSAGE_PRINTF(2, 3);

/* Largest id that the token type and the vocabulary allow. */
uint32_t reader_max_id(const reader *r);

/* Reason a larger id is refused: "does not fit u16: use --type=u32". */
#define READER_WHY_BYTES 64
const char *reader_above_max(const reader *r, char why[READER_WHY_BYTES]);

/* Maximum number of tokens of a record in this stream. */
uint32_t reader_max_tokens(const reader *r);
int reader_too_large(const reader *r);

/* Grows the payload buffer by `n` tokens. */
int reader_reserve(reader *r, size_t n);

/* Writes the n_tok tokens in the payload as a record. */
int reader_put(reader *r);

#endif
