/*
 * sorter.h - records in the order of their keys, in bounded memory.
 *
 * Records are collected in memory.  When it is full they are sorted and
 * written to a temporary file as a run; in the end runs are merged.  Records of
 * equal keys stay in their order.  How much memory there is makes no
 * difference to what comes out.
 *
 * A sorter of a job that keeps a state has its runs in files that stay.  Then
 * the caller says when the records in memory go there, and merges step by step;
 * in between it saves what the members from max_key on, and the runs, are.
 *
 * Calls that return an int give an exit status, after a message if it is not
 * STATUS_OK.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKSHUF_SORTER_H
#define TOKSHUF_SORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packstream.h"
#include "tokshuf/runs.h"

#define SORTER_ALL UINT64_MAX

typedef struct sorter_entry {
    uint64_t key;
    size_t at; /* of the payload in `bytes` */
    uint32_t n_tok;
} sorter_entry;

typedef struct sorter {
    const ps_schema *schema;
    uint64_t memory;
    uint64_t limit;   /* how many of the first records are wanted */
    bool kept;
    unsigned char *bytes;
    size_t used;
    size_t size;
    sorter_entry *entries;
    size_t n;
    size_t reserved;
    uint64_t n_earlier; /* runs before sorter_clear */
    uint64_t max_key; /* a record above it is none of the first */
    runs files[2]; /* from one they are merged to the other */
    unsigned current; /* the one from which */
    size_t merged;    /* runs of it that are in the other one already */
    uint64_t n_runs; /* that were written */
    uint64_t count;  /* records that were put, at most `limit` */
    uint64_t given;  /* of these */
} sorter;

/*
 * Takes `memory` bytes, and what the longest record takes; its temporary files
 * are in `folder`.  The first `limit` records are given, or SORTER_ALL.
 */
int sorter_open(sorter *s, const ps_schema *schema, uint64_t memory,
                const char *folder, uint64_t limit);

/* The same without files, which the caller opens to be kept. */
void sorter_open_kept(sorter *s, const ps_schema *schema, uint64_t memory,
                      uint64_t limit);

int sorter_put(sorter *s, const record *one);

/* Has all that was put in a run. */
int sorter_spill(sorter *s);

/* After the last was put: now they can be taken, and are counted. */
int sorter_finish(sorter *s);

/*
 * The same in steps, after a sorter_spill: while there are too many runs, some
 * become one; it takes some time, but SIGTERM ends it, and then it was not
 * done.  When what came of it is saved, sorter_trim gives back what the runs
 * took.  Then sorter_begin.
 */
bool sorter_has_many(const sorter *s);
int sorter_merge_some(sorter *s);
int sorter_trim(const sorter *s);
int sorter_begin(sorter *s);

/* The next record, valid until the next call; *more is false after the last. */
int sorter_next(sorter *s, record *one, bool *more);

/* Begins anew. */
int sorter_clear(sorter *s);

void sorter_close(sorter *s);

#endif
