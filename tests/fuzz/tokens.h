/*
 * tokens.h - reading token records in every way there is, for the targets
 * that have some.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_FUZZ_TOKENS_H
#define TESTS_FUZZ_TOKENS_H

#include "fuzz.h"

/* How to read; the first bytes of an input say so. */
typedef struct token_way {
    ps_type raw_type;
    uint32_t max_tokens; /* what is longer is held or skipped in turn */
    uint32_t vocab_size;
    bool flushes; /* are asked for */
    bool goes_on; /* behind what is empty or has a token that is no such */
    bool sealed;  /* the input gets new checksums first */
    unsigned manner;
} token_way;

token_way take_token_way(input *in);
#define TOKEN_WAY_BYTES 4

/* Of zstd frames: most of the time would go into the memory of larger ones. */
#define WINDOW ((uint64_t)1 << 20)

/* What came of it. */
typedef struct token_yield {
    ps_result result;
    uint64_t sequences;
    uint64_t tokens;
    uint64_t flushes;
    uint64_t hash; /* of all that was given, messages too */
    uint64_t read; /* bytes */
} token_yield;

/*
 * Reads FEED_FD to its end or to a failure, and checks what every reader
 * promises.
 */
token_yield read_tokens(const token_way *way);

/*
 * Reads `data` twice, as `way` says and then in one piece: must be the same,
 * and is what this gives.
 */
token_yield read_tokens_twice(const token_way *way,
                              const unsigned char *data, size_t n);

#endif
