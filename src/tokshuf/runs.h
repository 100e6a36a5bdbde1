/*
 * runs.h - sorted runs of records in a temporary file.
 *
 * A record has a key, a number of tokens and a payload of any size.
 *
 * The file either has no name and is removed when the process ends, or is kept
 * next to a state, for a job that resumes with the runs.
 *
 * Functions returning int return an exit status and print a message on failure.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKSHUF_RUNS_H
#define TOKSHUF_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xxhash.h>

#include "files/checkpoint.h"
#include "files/temp_file.h"
#include "packstream.h"

typedef struct record {
    uint64_t key;
    uint32_t n_tok;
    uint32_t bytes; /* of the payload; at most PS_MAX_SEQUENCE_BYTES */
    const unsigned char *payload;
} record;

/* A run: a range of bytes in the file, and its read position. */
typedef struct run {
    uint64_t at;           /* file offset after the buffered bytes */
    uint64_t end;          /* offset of the run's end in the file */
    unsigned char *buffer; /* owned; NULL: the run is not being read */
    size_t first;          /* index of the first unread byte in `buffer` */
    size_t left;           /* number of unread bytes in `buffer` */
    uint64_t key;          /* key of the next record */
    uint32_t n_tok;        /* number of tokens of the next record */
    uint32_t bytes;        /* size of its payload */
} run;

/* Name of a kept file: directory, name in the directory, and full name. */
typedef struct runs_name {
    int folder;
    const char *base;
    const char *name;
} runs_name;

typedef struct runs {
    int fd;                  /* -1: not open */
    runs_name kept;          /* all zeros for a file without a name */
    XXH3_state_t *digest;    /* digest of a kept file's contents */
    /* offset of the first run: 0, or RUNS_START after the magic */
    uint64_t start;
    uint64_t size;         /* size of the file, in bytes */
    unsigned char *buffer; /* buffer of the run being written; owned */
    size_t used;           /* bytes in `buffer` */
    run *of;               /* all runs; owned */
    size_t n;              /* number of runs */
    size_t reserved;       /* number of runs allocated */

    /* The members below are for a merge. */

    /* indices of runs; the run with the smallest key first */
    size_t *heap;
    size_t n_heap; /* entries in `heap` */
    /* the record of heap[0] was returned, so advance its run first */
    bool given;
    size_t buffer_bytes;    /* size of the buffer of each run */
    unsigned char *payload; /* for a record larger than a buffer; owned */
    size_t payload_bytes;   /* allocated size of `payload` */
} runs;

/* Opens a temporary file in a directory. */
int runs_open(runs *r, const char *folder);

/* Offset of the first run in a kept file, in bytes. */
#define RUNS_START 8

/*
 * runs_open_kept opens a file that is kept.  If `size` is not 0, an earlier job
 * wrote `size` bytes with this digest.  The file is not changed until
 * runs_start truncates it to `size` bytes.
 */
int runs_open_kept(runs *r, const runs_name *kept, uint64_t size,
                   uint64_t digest);
int runs_start(runs *r);

/* runs_sync syncs a kept file to disk. */
int runs_sync(const runs *r);
uint64_t runs_digest(const runs *r);

/*
 * Convert the runs to and from 64-bit numbers, two per run: the offsets of its
 * end and of its next record.  *fits is set to false if the numbers contradict
 * each other or the file.
 */
#define RUNS_BYTES 16
void runs_store(const runs *r, checkpoint *to);
int runs_load(runs *r, const unsigned char *numbers, size_t n, bool *fits);

/*
 * Removes a kept file if it exists and is a file of runs.  Prints nothing.
 */
temp_file_result runs_remove(const runs_name *kept);

/* Reports why a kept file was not opened or removed; returns the status. */
int runs_failed(const runs_name *kept, temp_file_result r);

/* Write a run: begin, then records in ascending order of keys, then end. */
int runs_begin(runs *r);
int runs_put(runs *r, const record *one);
int runs_end(runs *r);

/* Starts a merge of `n` runs from number `first` on, in `memory` bytes. */
int runs_merge(runs *r, size_t first, size_t n, uint64_t memory);

/*
 * Returns the record with the smallest key; among equal keys, the record of the
 * earliest run.  *more is false at the end.  The payload is valid until the
 * next call.
 */
int runs_next(runs *r, record *one, bool *more);

/* Ends a merge, complete or not. */
void runs_stop(runs *r);

/* runs_forget drops all runs; runs_trim then truncates the file. */
void runs_forget(runs *r);
int runs_trim(const runs *r);

void runs_close(runs *r);

#endif
