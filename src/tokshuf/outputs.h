/*
 * outputs.h - one output stream, or several that get a share each: the first
 * output gets the first part of the sequences, and so on.  Also implements
 * --by-length.
 *
 * Functions returning int return an exit status and print a message on failure.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKSHUF_OUTPUTS_H
#define TOKSHUF_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "files/file_set.h"
#include "files/resumable_records.h"
#include "files/records.h"
#include "packstream.h"
#include "tokshuf/conf.h"
#include "tokshuf/sorter.h"

typedef struct outputs {
    const conf *conf;
    file_set set;
    records *of; /* one per output; owned */
    /* with a state, one per output, and `set` is empty; otherwise NULL */
    resumable_records *kept;
    bool is_framed;   /* existing outputs are framed */
    uint32_t n;       /* number of outputs */
    uint32_t current; /* index of the output being written */
    uint64_t until;   /* value of `put` at which this output is complete */
    /* with several outputs: number of sequences in all of them */
    uint64_t total;
    uint64_t put;  /* number of sequences put so far */
    sorter window; /* sorts a window of --by-length */
} outputs;

/* Allocates the outputs. */
int outputs_init(outputs *o, const conf *c);

/*
 * Opens the outputs.  If an earlier job with a state has `begun` them, they
 * must match `kept`.
 */
int outputs_open(outputs *o, bool begun);

/*
 * Sets the schema, which must stay valid, and the memory for windows, in bytes.
 */
int outputs_prepare(outputs *o, const ps_schema *schema,
                    uint64_t window_memory);

/*
 * Starts the streams, except those of resumable outputs.  `total` is the number
 * of sequences to distribute over several outputs.
 */
int outputs_begin(outputs *o, uint64_t total);

int outputs_put(outputs *o, const record *one);

/* True if no window of --by-length contains sequences. */
bool outputs_are_even(const outputs *o);

/*
 * outputs_end ends the streams; outputs_publish closes them and gives files
 * their names.
 */
int outputs_end(outputs *o);
int outputs_publish(outputs *o);

/* Closes complete outputs without changing them. */
int outputs_leave(outputs *o);

/* Closes everything.  Removes files that have not been published. */
void outputs_close(outputs *o);

#endif
