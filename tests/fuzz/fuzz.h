/*
 * fuzz.h - what the fuzzing targets share: an input that comes from memory
 * in pieces, an output that goes there, seals, and checks.
 *
 * A target is a program of its own that defines LLVMFuzzerTestOneInput.
 * libFuzzer has the main program for it, or tests/fuzz/replay.c; run.sh
 * tells how they are used.  The first bytes of an input say how the rest is
 * to be read.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "grown.h"
#include "packstream.h"
#include "seal.h"

/* The names and types are libFuzzer's; a target need not have a mutator. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
                               unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

/* ----------------------------------------------------------------- checks */

/* Whatever does not hold is a finding: says so and aborts. */
#define must(condition)                                                 \
    ((condition) ? (void)0 : must_fail(#condition, __FILE__, __LINE__))
_Noreturn void must_fail(const char *what, const char *file, int line);

/* The call fails with a sentence, or not at all; gives its result. */
ps_result told(ps_result result, const ps_error *err);

/* An error that nothing was written to. */
ps_error no_error(void);

/* ----------------------------------------------------------------- inputs */

/* What of an input is still to be read. */
typedef struct input {
    const unsigned char *at;
    size_t left;
} input;

/* The next byte, 0 if there is none; the next 2, the first one the low one. */
unsigned take_u8(input *in);
unsigned take_u16(input *in);

/* The next bytes, as many of `n` as there are; *got says how many. */
const unsigned char *take_bytes(input *in, size_t n, size_t *got);

/* A sum by which to tell bytes apart; reads each of them. */
uint64_t hash_bytes(uint64_t hash, const unsigned char *p, size_t n);

/* ------------------------------------------------------------ descriptors */

/* The number of no open file: the calls below stand behind it. */
#define FEED_FD 200

/*
 * What reads from FEED_FD give from now on, and how: in pieces of 1 to 31
 * bytes and more, or whole, interrupted or late before each of them, as the
 * bits of `manner` say.
 */
void feed(const unsigned char *data, size_t n, unsigned manner);
#define FEED_WHOLE 0u
#define FEED_PIECE 31u      /* a piece's bytes; 0: all that is asked for */
#define FEED_INTERRUPTS 32u /* EINTR first */
#define FEED_LATE 64u       /* EAGAIN first, and a wait for each piece */
#define FEED_LARGE 128u     /* pieces 64 times as large */

/* What was written since the last feed_clear, to whatever descriptor. */
const bytes *feed_written(void);
void feed_clear(void);

/* An open regular file with these bytes; the next call changes it. */
int feed_file(const unsigned char *data, size_t n);

/* The same for several at a time: `which` is below FEED_FILES. */
#define FEED_FILES 2
int feed_file_of(unsigned which, const unsigned char *data, size_t n);

/* ------------------------------------------------------------------ seals */

/*
 * As seal_streams of seal.h, for a stream of framed records: new checksums
 * wherever the bytes hold together enough to have any, so that what is behind
 * them gets to see the damage.
 */
void seal_tokens(unsigned char *p, size_t size);

/*
 * A target with seal.c has places, each given by beginning and end (0: that
 * of the input).  The mutator there changes a part of an input that lies in
 * one of them, and leaves its size; or anything.
 */
extern const size_t places[][2];
extern const size_t n_places;

#endif
