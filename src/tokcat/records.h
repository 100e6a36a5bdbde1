/*
 * records.h - the token records that tokcat writes, and the books it keeps
 * of them.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_RECORDS_H
#define TOKCAT_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/progress.h"
#include "packstream.h"

typedef struct records {
    int fd;           /* -1 when not open */
    const char *name; /* of the output, as the user gave it */
    ps_token_writer *writer; /* NULL until records_start */
    ps_schema schema;
    unsigned char *payload;
    size_t size; /* of the room for it */
    progress progress;
    progress_figures figures;
} records;

records records_make(const ps_schema *schema);
void records_free(records *r);

/*
 * The calls below return an exit status, after a message if it is not
 * STATUS_OK.
 */

/* Opens the output, which must be no file of the inputs. */
int records_open(records *r, const char *name, int input_fd);

/* Starts the stream: r->schema does not change any more. */
int records_start(records *r);

/*
 * Makes r->payload hold `bytes`, at most PS_MAX_SEQUENCE_BYTES; what is in
 * it stays.
 */
int records_room(records *r, size_t bytes);

/* Writes the record whose payload stands in r->payload, or elsewhere. */
int records_put(records *r, uint32_t n_tok);
int records_put_tokens(records *r, uint32_t n_tok,
                       const unsigned char *payload);

/* Passes on what is buffered. */
int records_flush(records *r);

/* Ends the stream and closes the output. */
int records_finish(records *r);

/* Gives up: passes on the whole records that there are, without an end. */
void records_abandon(records *r);

#endif
