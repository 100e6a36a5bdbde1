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
#include "cli/records.h"
#include "packstream.h"
#include "tokshuf/conf.h"
#include "tokshuf/sorter.h"

typedef struct outputs {
    const conf *conf;
    file_set set;
    records *of;
    uint32_t n;
    uint32_t current; /* the output that is written to, */
    uint64_t until;   /* until so many sequences were put */
    uint64_t total;   /* sequences that will be, if there are more outputs */
    uint64_t put;
    sorter window; /* of --by-length */
} outputs;

/* Opens all, for records of a schema that stays where it is. */
int outputs_open(outputs *o, const conf *c, const ps_schema *schema,
                 uint64_t window_memory);

/* Begins the streams; `total` sequences will be shared out among several. */
int outputs_begin(outputs *o, uint64_t total);

int outputs_put(outputs *o, const record *one);

/* Ends the streams; then files get their names. */
int outputs_end(outputs *o);

/* Closes all; files that have not got their names are removed. */
void outputs_close(outputs *o);

#endif
