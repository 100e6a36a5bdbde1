/*
 * inputs.h - the input with which packs are compared: token records of several
 * files, read as one stream, and the rejects that packstream wrote; see
 * packstream(1), --rejects.
 *
 * These functions print errors with the name of the file.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKSTAT_INPUTS_H
#define PACKSTAT_INPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/reject_reasons.h"
#include "packstat/packstat.h"

typedef struct inputs {
    const name_list *names;  /* at least one */
    uint32_t file;           /* index of the current file */
    int fd;                  /* descriptor of the current file, or -1 */
    ps_token_reader *reader; /* refuses files with a different schema */
    uint32_t longest;        /* maximum length of a sequence held, in tokens */
    /* the last sequence has an out-of-vocabulary token */
    bool outside;
    bool ended; /* the last file has been read */
} inputs;

/*
 * Opens the first file.  If `vocab_size` is not 0, tokens are also checked
 * against it.  A count of 0 in raw records is a sequence without tokens if
 * `empty` is set, otherwise a flush record, which has no id; the packs do not
 * show which of the two it was.  Returns an exit status.
 */
int inputs_open(inputs *in, const name_list *names, ps_type raw_type,
                uint32_t vocab_size, bool empty);

/*
 * Checks that packs of schema `packed` can come from this input.  Returns an
 * exit status.
 */
int inputs_check(const inputs *in, const ps_schema *packed);

/*
 * Reads the next complete sequence, with an id counted through all files.  A
 * sequence that exceeds the limit of the format, and thus cannot be in a pack,
 * has no payload.  Returns an exit status; *more is false at the end of the
 * last file.
 */
int inputs_next(inputs *in, ps_sequence *sequence, bool *more);

/* Printable name of a file, by index. */
const char *inputs_name(const inputs *in, uint32_t file);

void inputs_close(inputs *in);

/* ---- Rejects ---- */

/* Zero-initialise if rejects are not compared. */
typedef struct rejects {
    inputs in;
    bool open; /* rejects are compared */
    bool more; /* `next` has not been compared yet */
    ps_sequence next;
    uint64_t id;    /* number of the rejected sequence in the input */
    uint8_t reason; /* reason for the rejection */
} rejects;

/* Opens the rejects of sequences of `schema`.  Returns an exit status. */
int rejects_open(rejects *r, const name_list *names, const ps_schema *schema);

/*
 * Compares the reject of sequence `id` of the input, if it exists, with the
 * sequence, and sets *reason.  Adds faults of the rejects to `f`, as found at
 * `place` in the packs.  Returns an exit status.
 */
int rejects_match(rejects *r, uint64_t id, const ps_sequence *sequence,
                  faults *f, const fault_place *place, uint8_t *reason);

/* Reports the next reject if it matched no sequence. */
void rejects_end(rejects *r, faults *f, const fault_place *place);

/* Name of the rejects' file, for messages. */
const char *rejects_name(const rejects *r);

void rejects_close(rejects *r);

#endif
