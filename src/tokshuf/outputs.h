/*
 * outputs.h - what is written: one stream, or the first share of the sequences
 * to one, the next to another, and so on; and --by-length.
 *
 * Calls that return an int give an exit status, after a message if it is not
 * STATUS_OK.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKSHUF_OUTPUTS_H
#define TOKSHUF_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/file_set.h"
#include "cli/kept_records.h"
#include "cli/records.h"
#include "packstream.h"
#include "tokshuf/conf.h"
#include "tokshuf/sorter.h"

typedef struct outputs {
    const conf *conf;
    file_set set;
    records *of;
    kept_records *kept; /* with a state, else NULL; the set is empty then */
    bool is_framed;     /* what is there already */
    uint32_t n;
    uint32_t current; /* the output that is written to, */
    uint64_t until;   /* until so many sequences were put */
    uint64_t total;   /* sequences that will be, if there are more outputs */
    uint64_t put;
    sorter window; /* of --by-length */
} outputs;

/* Makes room for all. */
int outputs_init(outputs *o, const conf *c);

/* Opens all; those that are kept as the members say, if they were begun. */
int outputs_open(outputs *o, bool begun);

/* What is written are records of a schema that stays where it is. */
int outputs_prepare(outputs *o, const ps_schema *schema,
                    uint64_t window_memory);

/*
 * Begins the streams, but for those that are kept; `total` sequences will be
 * shared out among several.
 */
int outputs_begin(outputs *o, uint64_t total);

int outputs_put(outputs *o, const record *one);

/* Whether all that was put is in the streams. */
bool outputs_are_even(const outputs *o);

/* Ends the streams; closes them, and then files get their names. */
int outputs_end(outputs *o);
int outputs_publish(outputs *o);

/* Outputs that were ended before stay as they are. */
int outputs_leave(outputs *o);

/* Closes all; files that have not got their names are removed. */
void outputs_close(outputs *o);

#endif
