/*
 * records.h - write a stream of token records and show progress.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef FILES_RECORDS_H
#define FILES_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/progress.h"
#include "packstream.h"

typedef struct records {
    /* opened by the caller, as by file_set_open; -1 after it is closed */
    int fd;
    const char *name;        /* name of the output, as given by the user */
    ps_token_writer *writer; /* owned; NULL until records_start */
    ps_schema schema;
    unsigned char *payload; /* buffer for the sequence being built; owned */
    size_t size;            /* size of `payload`, in bytes */
    progress progress;
    progress_figures figures;
} records;

/*
 * Functions returning int return an exit status and print a message on failure.
 */

/* Starts the stream. r->schema must not change afterwards. */
int records_start(records *r);

/*
 * Resumes a stream at `mark`; the output must be positioned there.  `lengths`
 * is the `n` bytes that ps_token_writer_lengths returned for that mark.
 */
int records_resume(records *r, const ps_token_mark *mark,
                   const unsigned char *lengths, size_t n);

/*
 * Grows r->payload to at least `bytes`, which is at most PS_MAX_SEQUENCE_BYTES.
 */
int records_reserve(records *r, size_t bytes);

/* Writes a record.  `payload` may be r->payload. */
int records_put(records *r, uint32_t n_tok, const unsigned char *payload);

/* Writes buffered records to the output. */
int records_flush(records *r);

/*
 * records_end ends the stream, records_close closes the output, and
 * records_finish does both.
 */
int records_end(records *r);
int records_close(records *r);
int records_finish(records *r);

/*
 * After an error: flushes complete records, without an end of stream, and
 * closes the output if it is open.
 */
void records_abandon(records *r);

void records_free(records *r);

#endif
