/*
 * sorter.h - external sort of records by key, in bounded memory.
 *
 * Records are collected in memory.  When the memory is full, the records are
 * sorted and written to a temporary file as a run.  Finally, the runs are
 * merged.  The sort is stable, and its result does not depend on the amount of
 * memory.
 *
 * With a state, the runs are in files that are kept.  The caller then decides
 * when records in memory are written, and merges step by step.  Between steps
 * it saves the members from max_key on, and the runs.
 *
 * Functions returning int return an exit status and print a message on failure.
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
    size_t at; /* offset of the payload in `bytes` */
    uint32_t n_tok;
    uint32_t bytes; /* of the payload */
} sorter_entry;

typedef struct sorter {
    uint64_t memory; /* limit, in bytes */
    /* number of records to return, from the start of the order */
    uint64_t limit;
    bool kept;             /* runs are kept with a state */
    unsigned char *bytes;  /* payloads in memory; owned */
    size_t used;           /* bytes of `bytes` in use */
    size_t size;           /* allocated size of `bytes` */
    sorter_entry *entries; /* records in memory; owned */
    size_t n;              /* number of entries */
    size_t reserved;       /* allocated size of `entries`, in bytes */
    uint64_t n_earlier;    /* number of runs before sorter_clear */
    uint64_t max_key;      /* records with a greater key exceed the limit */
    runs files[2];         /* runs are merged from one file to the other */
    unsigned current;      /* index of the file that is merged from */
    size_t merged;         /* runs of this file that have been merged */
    uint64_t n_runs;       /* number of runs written */
    uint64_t count;        /* number of records put, at most `limit` */
    uint64_t given;        /* number of records returned */
} sorter;

/*
 * Opens a sorter that uses `memory` bytes plus the longest record, with
 * temporary files in `folder`.  It returns the first `limit` records, or all if
 * `limit` is SORTER_ALL.
 */
int sorter_open(sorter *s, uint64_t memory, const char *folder,
                uint64_t limit);

/* Opens a sorter without files.  The caller opens its files, which are kept. */
void sorter_open_kept(sorter *s, uint64_t memory, uint64_t limit);

int sorter_put(sorter *s, const record *one);

/* Writes everything in memory as a run. */
int sorter_spill(sorter *s);

/* Call this after the last record is put, before the first is read. */
int sorter_finish(sorter *s);

/*
 * sorter_finish in steps, after sorter_spill.  While sorter_has_many returns
 * true, call sorter_merge_some, which merges some runs into one.  Since this
 * can take long, a signal interrupts it; the step is then incomplete and must
 * not be saved.  After each save, call sorter_trim to free the disk space of
 * merged runs.  Finally, call sorter_begin.
 */
bool sorter_has_many(const sorter *s);
int sorter_merge_some(sorter *s);
int sorter_trim(const sorter *s);
int sorter_begin(sorter *s);

/*
 * Returns the next record, which is valid until the next call.  *more is false
 * after the last record.
 */
int sorter_next(sorter *s, record *one, bool *more);

/* Empties the sorter, for another set of records. */
int sorter_clear(sorter *s);

void sorter_close(sorter *s);

#endif
