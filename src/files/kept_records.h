/*
 * kept_records.h - token records written to a regular file by a job with
 * --state.  Finds the output of an earlier run, resumes it, and tracks how much
 * of it is on disk.
 *
 * Functions returning int return an exit status and print a message on failure.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef FILES_KEPT_RECORDS_H
#define FILES_KEPT_RECORDS_H

#include <stdbool.h>

#include "files/output_check.h"
#include "files/records.h"
#include "packstream.h"

typedef struct kept_records {
    output_check output;
    ps_token_mark place; /* position in the stream up to which it is on disk */
    /* fingerprint of the output; saved in the state with `place` */
    output_check_mark mark;
    /*
     * lengths so far; owned by the loaded state or, after a save, by the writer
     * until its next record
     */
    const unsigned char *lengths;
    /* size of `lengths` in bytes; 0: the stream has no LENGTHS */
    size_t n_lengths;
} kept_records;

/*
 * Position and fingerprint, in 64-bit numbers of a checkpoint: offset,
 * sequences, tokens and digest; base and hash.
 */
#define KEPT_RECORDS_NUMBERS 6
void kept_records_load(kept_records *k, const unsigned char *from);
void kept_records_store(const kept_records *k,
                        uint64_t numbers[KEPT_RECORDS_NUMBERS]);

/*
 * Opens a new output.  With `resume` and no state, a nonempty output is
 * refused: another job may have written it.
 */
int kept_records_begin(kept_records *k, records *r, const char *state,
                       bool resume);

/*
 * Opens the output described by `place` and `mark` without changing it.  If the
 * job was stopped before the first byte, the output may be missing.
 */
int kept_records_reopen(kept_records *k, records *r, bool framed);

/*
 * Reads the schema of the existing output.  Unframed tokens have type `type`.
 */
int kept_records_schema(const kept_records *k, bool framed, ps_type type,
                        ps_schema *schema);

/*
 * Checks that the existing output has the schema of the records to come.
 * `state` is the state's name, for messages.
 */
int kept_records_compare(const kept_records *k, const char *state,
                         const ps_schema *schema);

/* Computes `mark`.  Call it for a new output before anything is written. */
int kept_records_mark(kept_records *k);

/* Truncates the output to `place` and continues there. */
int kept_records_resume(kept_records *k, records *r);

/* Syncs the records written so far and sets `place` and `mark` accordingly. */
int kept_records_save(kept_records *k, records *r);

/* Closes an output that is already complete, if it has the expected length. */
int kept_records_leave(const kept_records *k, records *r);

void kept_records_close(kept_records *k);

#endif
