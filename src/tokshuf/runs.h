/*
 * runs.h - sorted runs of records in a temporary file, which has no name.
 *
 * A record is a key, the number of tokens, and a payload.
 *
 * Calls that return an int give an exit status, after a message if it is not
 * STATUS_OK.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKSHUF_RUNS_H
#define TOKSHUF_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packstream.h"

typedef struct record {
    uint64_t key;
    uint32_t n_tok;
    const unsigned char *payload;
} record;

/* A run, from one byte of the file to another, and where it is read. */
typedef struct run {
    uint64_t at; /* of the file: behind what is in the buffer */
    uint64_t end;
    unsigned char *buffer; /* or NULL: not being read */
    size_t first;          /* bytes that are not used yet: from `first`, */
    size_t left;           /* so many */
    uint64_t key;          /* of the record that is next, */
    uint32_t n_tok;        /* and its tokens */
} run;

typedef struct runs {
    int fd; /* -1: not open */
    const ps_schema *schema; /* of payloads */
    uint64_t size;           /* of the file */
    unsigned char *buffer;   /* of the run being written */
    size_t used;
    run *of;
    size_t n;
    size_t reserved;

    /* While they are merged. */
    size_t *heap;   /* runs, that with the least record first */
    size_t n_heap;
    bool given; /* the record of heap[0] was, so its run goes on first */
    size_t buffer_bytes; /* of each run */
    unsigned char *payload; /* of a record longer than a buffer */
    size_t payload_bytes;
} runs;

/* Opens a temporary file in a folder. */
int runs_open(runs *r, const char *folder, const ps_schema *schema);

/* Writes a run: begin, records by ascending keys, end. */
int runs_begin(runs *r);
int runs_put(runs *r, const record *one);
int runs_end(runs *r);

/* Merges the `n` runs from `first` on, in so many bytes of memory. */
int runs_merge(runs *r, size_t first, size_t n, uint64_t memory);

/*
 * The record with the least key; of equal ones that of the earlier run.
 * *more is false when there is none left.  The payload is valid until the next
 * call.
 */
int runs_next(runs *r, record *one, bool *more);

/* Ends a merge, also before all of it was read. */
void runs_stop(runs *r);

/* Gives back what the file takes; all runs are gone. */
int runs_clear(runs *r);

void runs_close(runs *r);

#endif
