/*
 * input.h - the sequences of all files, one file after another.  Sequences
 * outside --min-length and --max-length are skipped.
 *
 * Functions returning int return an exit status and print a message on failure.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKSHUF_INPUT_H
#define TOKSHUF_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "packstream.h"
#include "tokshuf/conf.h"

/*
 * Position at which to resume.  If `at_record` is set, this is the position of
 * the last record read, whose hash is compared; otherwise it is after a skipped
 * record.
 */
typedef struct input_position {
    int file; /* index of the input, from 0 */
    bool at_record;
    ps_token_mark mark;
    uint64_t hash;   /* fingerprint of the record, if `at_record` */
    uint64_t n_read; /* number of sequences read, including this record */
    uint64_t n_short; /* number of sequences skipped as too short */
    uint64_t n_long;  /* number of sequences skipped as too long */
    uint64_t group;   /* value of the current group, if a sequence was read */
    uint64_t first_id;  /* id of its first sequence */
} input_position;

typedef struct input {
    const conf *conf;
    const char *name; /* name of the current file */
    int next;         /* index of the next file */
    int fd;           /* -1: not open */
    ps_token_reader *reader;
    ps_schema schema;
    uint32_t group; /* index of the channel of --group, if given */
    /* position of the last record read; without a state, only the counts */
    input_position position;
    bool told; /* the hook ended the read, and has reported any error */
} input;

/* Opens input number `file`, from 0. */
int input_open(input *in, const conf *c, int file);

/* Continues after `position` in the file just opened. */
int input_resume(input *in, const input_position *position);

/*
 * Reads the next sequence that is not skipped.  *more is false at the end, or
 * if a signal arrived during a wait for input.
 */
int input_next(input *in, ps_sequence *next, bool *more);

/*
 * Total size of the first `n` files in bytes, or PS_UNKNOWN unless all are
 * regular files.
 */
uint64_t input_bytes(const conf *c, int n);

void input_close(input *in);

#endif
