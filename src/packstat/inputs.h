/*
 * inputs.h - what packs are compared with: the token records that packstream
 * read, several files as one stream, and the stream of rejects that it wrote
 * beside the packs; packstream(1), --rejects.
 *
 * What goes wrong is printed here, under the name of the file it is in.
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
    const name_list *names; /* at least one */
    uint32_t file;          /* the one that is open, of the names */
    int fd;                 /* of it, or -1 */
    ps_token_reader *reader; /* refuses files of another schema */
    uint32_t longest;       /* sequence that can be held, tokens */
    bool outside;           /* the last has a token outside the vocabulary */
    bool ended;
} inputs;

/*
 * Opens the first file.  Tokens are checked against a vocabulary of
 * `vocab_size`, too, if it is not 0.  `empty`: a count of 0 in raw records is
 * a sequence without tokens, and not a flush record, which uses up no id; the
 * packs do not say which.  An exit status.
 */
int inputs_open(inputs *in, const name_list *names, ps_type raw_type,
                uint32_t vocab_size, bool empty);

/* Whether packs of schema `packed` can be made of them: an exit status. */
int inputs_check(const inputs *in, const ps_schema *packed);

/*
 * The next sequence, whole, its id counted through all files.  One above the
 * limit of the formats, which no pack can have been made of, comes without a
 * payload.  An exit status; with STATUS_OK, *more is false at the end of the
 * last file.
 */
int inputs_next(inputs *in, ps_sequence *sequence, bool *more);

/* The printable name of a file, by its place among the names. */
const char *inputs_name(const inputs *in, uint32_t file);

void inputs_close(inputs *in);

/* ---- Rejects ---- */

/* All zeros: there is no such stream. */
typedef struct rejects {
    inputs in;
    bool open;
    bool more;         /* `next` is still to be compared */
    ps_sequence next;
    uint64_t id;       /* what it says besides: which sequence it was, */
    uint8_t reason;    /* and why it is a reject */
} rejects;

/* Opens it for sequences of `schema`; an exit status. */
int rejects_open(rejects *r, const name_list *names, const ps_schema *schema);

/*
 * Compares the reject of sequence `id` of the input, if there is one, with
 * the sequence itself; *reason is what the reject says.  An exit status; what
 * is wrong with the rejects goes to `f`, as found at a record of the packs.
 */
int rejects_match(rejects *r, uint64_t id, const ps_sequence *sequence,
                  faults *f, const fault_place *place, uint8_t *reason);

/* All rejects should have been met: reports one that was not. */
void rejects_end(rejects *r, faults *f, const fault_place *place);

/* Their name, for messages. */
const char *rejects_name(const rejects *r);

void rejects_close(rejects *r);

#endif
