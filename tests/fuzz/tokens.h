/*
 * tokens.h - reads token records in every possible way, for targets that have
 * some.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_FUZZ_TOKENS_H
#define TESTS_FUZZ_TOKENS_H

#include "fuzz.h"

/* How to read, as selected by the first bytes of an input. */
typedef struct token_way {
    ps_type raw_type;
    uint32_t max_tokens; /* longer sequences are held or skipped in turn */
    uint32_t vocab_size;
    bool flushes; /* requested */
    bool goes_on; /* after empty sequences and tokens out of range */
    bool sealed;  /* the input gets new checksums first */
    unsigned manner;
} token_way;

token_way take_token_way(input *in);
#define TOKEN_WAY_BYTES 4

/* For zstd frames: larger ones would spend most of the time on memory. */
#define WINDOW ((uint64_t)1 << 20)

/* Results. */
typedef struct token_yield {
    ps_result result;
    uint64_t sequences;
    uint64_t tokens;
    uint64_t flushes;
    uint64_t hash; /* of all that was read, messages included */
    uint64_t read; /* bytes */
} token_yield;

/*
 * Reads FEED_FD to its end or to a failure, and checks the guarantees of every
 * reader.
 */
token_yield read_tokens(const token_way *way);

/*
 * Reads `data` twice, as `way` says and then in one piece.  Both must have the
 * same result, which is returned.
 */
token_yield read_tokens_twice(const token_way *way,
                              const unsigned char *data, size_t n);

#endif
