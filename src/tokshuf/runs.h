/*
 * runs.h - sorted runs of records in a temporary file.
 *
 * A record is a key, the number of tokens, and a payload.
 *
 * The file has no name, and is gone with the process; or it is kept beside a
 * state, for a job that goes on with the runs.
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

#include <xxhash.h>

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

/* Where a file is kept: its base name in a folder, and all of its name. */
typedef struct runs_name {
    int folder;
    const char *base;
    const char *name;
} runs_name;

typedef struct runs {
    int fd; /* -1: not open */
    const ps_schema *schema; /* of payloads */
    runs_name kept; /* or all zeros */
    XXH3_state_t *digest; /* of a kept file */
    uint64_t start;       /* where runs begin, behind what tells the file */
    uint64_t size;        /* of the file */
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

/* Where the runs of a kept file begin. */
#define RUNS_START 8

/*
 * The same with one that is kept, of which so many bytes are there from an
 * earlier job, and have this digest; 0: none.  Nothing of it changes until
 * runs_start cuts it to them.
 */
int runs_open_kept(runs *r, const runs_name *kept, const ps_schema *schema,
                   uint64_t size, uint64_t digest);
int runs_start(runs *r);

/* Brings a kept file to the disk. */
int runs_sync(const runs *r);
uint64_t runs_digest(const runs *r);

/*
 * The runs as numbers, two of 64 bits for each: its end, and the record that
 * is next.  *fits is false if numbers contradict each other or the file.
 */
#define RUNS_BYTES 16
void runs_store(const runs *r, unsigned char *numbers);
int runs_load(runs *r, const unsigned char *numbers, size_t n, bool *fits);

/* Removes a kept file, if it is there and ours; false with errno. */
bool runs_remove(const runs_name *kept);

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

/* All runs are gone; then the file gives back what it takes. */
void runs_forget(runs *r);
int runs_trim(const runs *r);

void runs_close(runs *r);

#endif
