/*
 * resumable_records.h - token records written to a regular file by a job with
 * --state.  Finds the output of an earlier run, resumes it, and tracks how much
 * of it is on disk.
 *
 * Functions returning int return an exit status and print a message on failure.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef FILES_RESUMABLE_RECORDS_H
#define FILES_RESUMABLE_RECORDS_H

#include <stdbool.h>

#include "files/resumable_output.h"
#include "files/records.h"
#include "packstream.h"

typedef struct resumable_records {
    resumable_output output;
    ps_token_mark position; /* end of the part of the stream on disk */
    /* fingerprint of the output; saved in the state with `position` */
    output_fingerprint fingerprint;
    /*
     * LENGTHS record at `position`.  Points into the loaded state or, after a
     * save, into the writer, where it is valid until the next record.
     */
    const unsigned char *lengths;
    /* size of `lengths` in bytes; 0: the stream has no LENGTHS */
    size_t n_lengths;
} resumable_records;

/*
 * Position and fingerprint, stored as 64-bit numbers in a checkpoint: offset,
 * sequences, tokens, digest, base and hash.
 */
#define RESUMABLE_RECORDS_NUMBERS 6
void resumable_records_load(resumable_records *k, const unsigned char *from);
void resumable_records_store(const resumable_records *k,
                             uint64_t numbers[RESUMABLE_RECORDS_NUMBERS]);

/*
 * Opens a new output.  With `resume` and no state, a nonempty output is
 * refused: another job may have written it.
 */
int resumable_records_begin(resumable_records *k, records *r, const char *state,
                            bool resume);

/*
 * Opens the output described by `position` and `fingerprint` without changing
 * it.  If the job was stopped before the first byte, the output may be missing.
 */
int resumable_records_reopen(resumable_records *k, records *r, bool framed);

/*
 * Reads the schema of the existing output.  If it is not framed, its tokens
 * have type `type`.
 */
int resumable_records_schema(const resumable_records *k, bool framed,
                             ps_type type, ps_schema *schema);

/*
 * Checks that the existing output has the schema of the new records.
 * `state` is the state's name, for messages.
 */
int resumable_records_compare(const resumable_records *k, const char *state,
                              const ps_schema *schema);

/* Computes `fingerprint`.  Call it for a new output before anything is written.
 */
int resumable_records_fingerprint(resumable_records *k);

/* Truncates the output to `position` and continues there. */
int resumable_records_resume(resumable_records *k, records *r);

/* Syncs the records written so far and sets `position` and `fingerprint`
 * accordingly. */
int resumable_records_save(resumable_records *k, records *r);

/* Closes an output that is already complete, if it has the expected length. */
int resumable_records_leave(const resumable_records *k, records *r);

void resumable_records_close(resumable_records *k);

#endif
