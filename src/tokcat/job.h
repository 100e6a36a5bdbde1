/*
 * job.h - what the sources of tokcat, one for each --from, work with, and
 * what they offer.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_JOB_H
#define TOKCAT_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokcat/binary.h"
#include "tokcat/conf.h"
#include "tokcat/records.h"
#include "tokcat/text.h"

/* What is known of a paragraph that is not yet whole. */
typedef struct paragraph {
    size_t n_tok;    /* in the payload so far */
    bool has_text;   /* a line of it is not blank */
    bool ends_blank; /* its last line is */
} paragraph;

/* The sequence being read of a file that is no text. */
typedef struct job_place {
    const char *unit; /* "sequence" */
    uint64_t number;  /* in the file, from 0 */
    uint64_t offset;  /* of its first byte */
} job_place;

/* The most files that belong to another, or places of them to read from. */
#define JOB_BESIDE 4

typedef struct job {
    const conf *conf;
    text in;                    /* of a source of lines */
    binary data;                /* of any other */
    binary beside[JOB_BESIDE];  /* and what belongs to that */
    job_place place;
    records out;
    uint64_t n_empty; /* lines without tokens that were skipped */
    uint64_t ignored; /* a bit for each --ignore that left something out */
    paragraph paragraph;
    size_t n_cut;            /* tokens in the payload, of a stream */
    unsigned char *numbers;  /* made tokens: see split.c */
} job;

/*
 * A source of tokens.  Its calls return an exit status, after a message if
 * it is not STATUS_OK.
 */
typedef struct job_source {
    const char *unit; /* what has no tokens if a line gives none */
    bool learns;      /* the schema is known from the first input on */

    /* Of lines: */
    size_t longest; /* most bytes of one */
    int (*line)(job *j, const text_line *line);
    int (*file_end)(job *j); /* or NULL */

    /* Of anything else: a file is opened, what is in it read. */
    int (*open)(job *j, const char *name);
    int (*read)(job *j);
    /* What belongs to an input is no output; NULL: nothing belongs to it. */
    bool (*spare)(const char *output, const char *input);
} job_source;

extern const job_source source_ids;
extern const job_source source_bytes;
extern const job_source source_jsonl;
extern const job_source source_llmc;
extern const job_source source_nanogpt;
extern const job_source source_npy;
extern const job_source source_megatron;
extern const job_source source_datatrove;
extern const job_source source_tfrecord;

/* Reads the files, of which there is one at least; writes the stream. */
int job_run(const conf *c, const char *const *names, int n_names);

/*
 * For the sources that learn: starts the stream, if it is not yet.  Of an
 * array with numbers of more than 16 bits the tokens are u32, unless the
 * user said what they are.
 */
int job_start(job *j, size_t number_width);

/*
 * For the sources that learn, before the stream starts: a channel with the
 * type and the fill of its well-known name, to come behind the others.
 */
int job_add_channel(job *j, const char *name, ps_kind kind);

/* For the sources: a line without tokens, or `n` of them, as --empty says. */
int job_empty(job *j);
int job_empties(job *j, uint64_t n);

/*
 * For the sources: whether --ignore names this key, which is there; who
 * names one that never is most likely meant another.
 */
bool job_ignores(job *j, const char *key);

/* "prog: FILE: sequence 3 at byte 40: why"; returns STATUS_DATA. */
int job_bad(const job *j, const char *format, ...) MESSAGE_PRINTF(2, 3);

/* The greatest id that the type and the vocabulary allow. */
uint32_t job_max_id(const job *j);

/* The most tokens that a record of this stream can have. */
uint32_t job_max_tokens(const job *j);
int job_too_large(const job *j);

#endif
