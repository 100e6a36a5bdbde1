/*
 * records.h - an output that is a stream of token records, and figures of it.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_RECORDS_H
#define CLI_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/progress.h"
#include "packstream.h"

typedef struct records {
    int fd; /* which the caller opened, as by file_set_open; else -1 */
    const char *name; /* of the output, as the user gave it */
    ps_token_writer *writer; /* NULL until records_start */
    ps_schema schema;
    unsigned char *payload; /* of the sequence being made */
    size_t size;            /* of its buffer */
    progress progress;
    progress_figures figures;
} records;

/*
 * Each call that returns an int gives an exit status, after a message if it
 * is not STATUS_OK.
 */

/* Starts the stream: r->schema is final. */
int records_start(records *r);

/*
 * Resumes a stream at a mark, which is the output's position; `lengths` are the
 * `n` bytes that ps_token_writer_lengths returned there.
 */
int records_resume(records *r, const ps_token_mark *mark,
                   const unsigned char *lengths, size_t n);

/*
 * Grows r->payload to at least `bytes`, which are at most
 * PS_MAX_SEQUENCE_BYTES.
 */
int records_reserve(records *r, size_t bytes);

/* Writes a record; its payload may be r->payload, or elsewhere. */
int records_put(records *r, uint32_t n_tok, const unsigned char *payload);

/* Passes on what is buffered. */
int records_flush(records *r);

/* Ends the stream; closes the output; or both. */
int records_end(records *r);
int records_close(records *r);
int records_finish(records *r);

/*
 * After an error: flushes the whole records, without an end of stream, and
 * closes the output if it is open.
 */
void records_abandon(records *r);

void records_free(records *r);

#endif
