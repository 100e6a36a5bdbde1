/*
 * sorter.h - records in the order of their keys, in bounded memory.
 *
 * Records are collected in memory.  When it is full they are sorted and
 * written to a temporary file as a run; in the end runs are merged.  Records of
 * equal keys stay in their order.  How much memory there is makes no
 * difference to what comes out.
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
    uint64_t max_key; /* a record above it is none of them */
    unsigned char *bytes;
    size_t used;
    size_t size;
    sorter_entry *entries;
    size_t n;
    size_t reserved;
    runs files[2]; /* from one they are merged to the other */
    unsigned current;
    uint64_t n_runs;    /* that were written, */
    uint64_t n_earlier; /* and before sorter_clear */
    uint64_t count;  /* records that were put, at most `limit` */
    uint64_t given;  /* of these */
} sorter;

/*
 * Takes `memory` bytes, and what the longest record takes; its temporary files
 * are in `folder`.  The first `limit` records are given, or SORTER_ALL.
 */
int sorter_open(sorter *s, const ps_schema *schema, uint64_t memory,
                const char *folder, uint64_t limit);

int sorter_put(sorter *s, const record *one);

/* After the last was put: now they can be taken, and are counted. */
int sorter_finish(sorter *s);

/* The next record, valid until the next call; *more is false after the last. */
int sorter_next(sorter *s, record *one, bool *more);

/* Begins anew. */
int sorter_clear(sorter *s);

void sorter_close(sorter *s);

#endif
