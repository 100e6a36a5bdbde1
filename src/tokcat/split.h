/*
 * split.h - tokens out of arrays: sequences of a known length, and streams
 * that are cut into sequences as --split says.
 *
 * Each call returns an exit status, after a message if it is not STATUS_OK.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_SPLIT_H
#define TOKCAT_SPLIT_H

#include "tokcat/reader.h"

/* Little-endian integers of 1, 2, 4 or 8 bytes. */
typedef struct number_type {
    size_t width;
    bool is_signed;
} number_type;

/* The type of the stream's tokens. */
number_type split_token_type(const reader *r);

/* All numbers up to the end of the file. */
#define SPLIT_ALL UINT64_MAX

/*
 * Reads `n` numbers of r->in, and writes the sequences that --split makes of
 * them.  The last one ends with the numbers.
 */
int split_stream(reader *r, number_type type, uint64_t n);

/*
 * Reads the next `n` numbers of r->in as a sequence, and writes it; --trim-pad
 * leaves out the padding at its end, and --empty says what becomes of one
 * without tokens.
 */
int split_sequence(reader *r, number_type type, uint64_t n);

/*
 * Reads the next number of `in`, a negative one as its two's complement; if
 * there is none, "the file ends within WITHIN".
 */
int split_number(input_file *in, number_type type, const char *within,
                 uint64_t *number);

/* Appends the next `n` numbers of r->in to the n_tok tokens in the payload. */
int split_append(reader *r, number_type type, uint64_t n);

#endif
