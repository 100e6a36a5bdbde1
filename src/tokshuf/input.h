/*
 * input.h - the sequences of all files, one after the other, but for those
 * that are left out.
 *
 * Calls that return an int give an exit status, after a message if it is not
 * STATUS_OK.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKSHUF_INPUT_H
#define TOKSHUF_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "packstream.h"
#include "tokshuf/conf.h"

/* Where another job goes on: from a record, whose hash it compares, or not. */
typedef struct input_place {
    int file;
    bool at_record;
    ps_token_mark mark;
    uint64_t hash;
    uint64_t n_read; /* sequences up to there and with it: all, */
    uint64_t n_short;
    uint64_t n_long; /* and those that were left out */
} input_place;

typedef struct input {
    const conf *conf;
    const char *name; /* of the file that is read */
    int next;         /* the one behind it */
    int fd;           /* -1: not open */
    ps_token_reader *reader;
    ps_schema schema;
    input_place place; /* of what was read last; without a state its figures */
    bool told; /* a hook failed, which told why if that was no signal */
} input;

/* Opens the file of a place, whose mark is not looked at. */
int input_open(input *in, const conf *c, int file);

/* Goes on behind a place in the file that was opened. */
int input_resume(input *in, const input_place *place);

/*
 * The next sequence that is long enough, and not too long.  *more is false
 * after the last, or if a signal that ends the job came while it waited.
 */
int input_next(input *in, ps_sequence *next, bool *more);

/* Bytes of the first n files, or PS_UNKNOWN if not all are regular ones. */
uint64_t input_bytes(const conf *c, int n);

void input_close(input *in);

#endif
