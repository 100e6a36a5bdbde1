/*
 * checkpoint.h - the numbers of a job, saved in its state file.
 *
 * A checkpoint contains a magic number, 64-bit numbers of the job (the first is
 * the version), the numbers of each part of the job (such as a source), further
 * bytes, and the XXH3-64 of everything before.  It is untrusted input: the
 * checksum and the minimum size are checked here, and the caller checks the
 * values.
 *
 * Functions returning int return an exit status and print a message on failure.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef FILES_CHECKPOINT_H
#define FILES_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "files/atomic_file.h"
#include "files/state_file.h"

typedef struct checkpoint_form {
    const char *program; /* for messages */
    const char *magic;   /* 8 bytes */
    uint64_t version;
    uint64_t other_version; /* also accepted; 0: none */
    size_t n;      /* numbers of the job, version included */
    size_t n_part; /* numbers of a part; 0: the job has no parts */
} checkpoint_form;

typedef struct checkpoint {
    const checkpoint_form *form;
    atomic_file file;
    unsigned char *bytes; /* as read; owned; NULL: none */
    size_t n_bytes;       /* size of `bytes` */
    unsigned char *next;  /* the next checkpoint; owned */
    size_t n_next;        /* size of `next` */
    bool no_memory;       /* out of memory for the next checkpoint */
    uint64_t every;       /* value of `since` at which a checkpoint is due */
    bool by_sequences;    /* `since` counts sequences, not bytes */
    uint64_t since;       /* written since the last checkpoint */
} checkpoint;

/*
 * Opens the state file if it has a name, and reads the checkpoint if the file
 * exists.  `every` is the number of sequences between checkpoints; 0: the
 * default, which is in bytes.
 */
int checkpoint_open(checkpoint *c, const checkpoint_form *form,
                    const state_file_options *options, uint64_t every);

/* Returns a number of the job; 0 without a checkpoint. */
uint64_t checkpoint_u64(const checkpoint *c, size_t number);

/* True if the checkpoint has at least `n` parts. */
bool checkpoint_has_parts(const checkpoint *c, uint64_t n);

/*
 * Start of part `i`, or of the further bytes if there are `i` parts, and the
 * number of bytes from there to the checksum.
 */
const unsigned char *checkpoint_part(const checkpoint *c, uint64_t i);
size_t checkpoint_bytes_after(const checkpoint *c, uint64_t i);

/* Append to the next checkpoint, in the order of the format. */
void checkpoint_put(checkpoint *c, const uint64_t *numbers, size_t n);
void checkpoint_put_bytes(checkpoint *c, const void *bytes, size_t n);

/* Replaces the state file by the next checkpoint. */
int checkpoint_write(checkpoint *c);

/*
 * Counts a sequence of `bytes` bytes that was read or written.  Returns true if
 * a checkpoint is due.
 */
bool checkpoint_is_due(checkpoint *c, uint64_t bytes);

void checkpoint_close(checkpoint *c);

#endif
