/*
 * split.h - tokens out of arrays: sequences of a known length, and streams
 * that are cut into sequences as --split says.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_SPLIT_H
#define TOKCAT_SPLIT_H

#include "tokcat/job.h"
#include "tokcat/numbers.h"

/* Each returns an exit status, after a message if it is not STATUS_OK. */

/* All numbers up to the end of the file. */
#define CUT_ALL UINT64_MAX

/*
 * Reads `n` numbers of j->data, a stream, and puts the sequences in it.  The
 * file's end is that of a sequence.
 */
int cut_stream(job *j, number_type type, uint64_t n);

/*
 * The next `n` numbers of `b` as tokens, at least one, which live until the
 * next call; they may stand in the payload.
 */
int cut_piece(job *j, binary *b, number_type type, uint64_t n,
              const unsigned char **tokens);

/* Adds the next `n` numbers of `b` to the *n_tok tokens in the payload. */
int cut_append(job *j, binary *b, number_type type, uint64_t n,
               uint64_t *n_tok);

#endif
