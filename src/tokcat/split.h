/*
 * split.h - convert arrays to tokens: sequences of known length, and streams
 * split by --split.
 *
 * Functions returning int return an exit status and print a message on failure.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_SPLIT_H
#define TOKCAT_SPLIT_H

#include "tokcat/reader.h"

/* Little-endian integers, 1, 2, 4 or 8 bytes wide. */
typedef struct number_type {
    size_t width; /* in bytes */
    bool is_signed;
} number_type;

/* Number type of the stream's tokens. */
number_type split_token_type(const reader *r);

/* Value of `n` in split_stream for all numbers up to the end of the file. */
#define SPLIT_ALL UINT64_MAX

/*
 * Reads `n` numbers of r->in, splits them by --split and writes the sequences.
 * The last sequence ends with the numbers.
 */
int split_stream(reader *r, number_type type, uint64_t n);

/*
 * Reads the next `n` numbers of r->in as one sequence and writes it.  With
 * --trim-pad, padding at the end is removed.  An empty sequence is skipped or
 * refused, as --empty selects.
 */
int split_sequence(reader *r, number_type type, uint64_t n);

/*
 * Reads the next number of `in`; a negative number becomes its two's
 * complement.  At the end of the file, reports "the file ends within WITHIN".
 */
int split_number(input_file *in, number_type type, const char *within,
                 uint64_t *number);

/* Appends the next `n` numbers of r->in to the tokens in the payload. */
int split_append(reader *r, number_type type, uint64_t n);

#endif
