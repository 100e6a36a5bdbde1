/*
 * job.h - what the sources of tokcat (ids, bytes, jsonl) work with, and
 * what they offer.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_JOB_H
#define TOKCAT_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokcat/conf.h"
#include "tokcat/records.h"
#include "tokcat/text.h"

/* What is known of a paragraph that is not yet whole. */
typedef struct paragraph {
    size_t n_tok;    /* in the payload so far */
    bool has_text;   /* a line of it is not blank */
    bool ends_blank; /* its last line is */
} paragraph;

typedef struct job {
    const conf *conf;
    text in;
    records out;
    uint64_t n_empty; /* lines without tokens that were skipped */
    paragraph paragraph;
} job;

/*
 * A source of tokens.  Its calls return an exit status, after a message if
 * it is not STATUS_OK.
 */
typedef struct job_source {
    const char *unit; /* what has no tokens if a line gives none */
    size_t longest;   /* most bytes of a line */
    bool learns;      /* the schema is known from the first line on */
    int (*line)(job *j, const text_line *line);
    int (*file_end)(job *j); /* or NULL */
} job_source;

extern const job_source source_ids;
extern const job_source source_bytes;
extern const job_source source_jsonl;

/* Reads the files, of which there is one at least; writes the stream. */
int job_run(const conf *c, const char *const *names, int n_names);

/* For the sources: a line without tokens, as --empty says. */
int job_empty(job *j);

/* The greatest id that the type and the vocabulary allow. */
uint32_t job_most_id(const job *j);

/* The most tokens that a record of this stream can have. */
uint32_t job_most_tokens(const job *j);
int job_too_large(const job *j);

#endif
