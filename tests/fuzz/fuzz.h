/*
 * fuzz.h - shared by the fuzzing targets: input read from memory in pieces,
 * output written to memory, seals, and checks.
 *
 * A target is a program that defines LLVMFuzzerTestOneInput; libFuzzer or
 * tests/fuzz/replay.c supplies main.  run.sh shows how to use them.  The first
 * bytes of an input select how the rest is read.
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

/* Names and types are libFuzzer's; the mutator is optional. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
                               unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

/* ----------------------------------------------------------------- checks */

/* A check that fails is a finding: prints it and aborts. */
#define must(condition)                                                 \
    ((condition) ? (void)0 : must_fail(#condition, __FILE__, __LINE__))
_Noreturn void must_fail(const char *what, const char *file, int line);

/* A call that fails has to set a message; returns the call's result. */
ps_result told(ps_result result, const ps_error *err);

/* An empty error. */
ps_error no_error(void);

/* ----------------------------------------------------------------- inputs */

/* The unread part of an input. */
typedef struct input {
    const unsigned char *at;
    size_t left;
} input;

/* The next byte, or 0 at the end; the next 2 bytes, little-endian. */
unsigned take_u8(input *in);
unsigned take_u16(input *in);

/* Up to `n` bytes; *got is their number. */
const unsigned char *take_bytes(input *in, size_t n, size_t *got);

/* A hash that reads each byte. */
uint64_t hash_bytes(uint64_t hash, const unsigned char *p, size_t n);

/* ------------------------------------------------------------ descriptors */

/* Not an open file: the calls below intercept it. */
#define FEED_FD 200

/*
 * Sets what reads from FEED_FD return, and how: in pieces of 1 to 31 bytes or
 * more, or whole, each after an interruption or a delay, as selected by the
 * bits of `manner`.
 */
void feed(const unsigned char *data, size_t n, unsigned manner);
#define FEED_WHOLE 0u
#define FEED_PIECE 31u      /* bytes in a piece; 0: as many as requested */
#define FEED_INTERRUPTS 32u /* fail with EINTR first */
#define FEED_LATE 64u       /* fail with EAGAIN first, and delay each piece */
#define FEED_LARGE 128u     /* pieces 64 times as large */

/* Everything written since the last feed_clear, to any descriptor. */
const bytes *feed_written(void);
void feed_clear(void);

/* An open regular file with these bytes, valid until the next call. */
int feed_file(const unsigned char *data, size_t n);

/* Several such files: `which` is below FEED_FILES. */
#define FEED_FILES 2
int feed_file_of(unsigned which, const unsigned char *data, size_t n);

/* ------------------------------------------------------------------ seals */

/*
 * For a stream of framed records, as seal_streams of seal.h: recomputes
 * checksums wherever the bytes are intact enough to have any, so that the code
 * after the checksum test sees the damage.
 */
void seal_tokens(unsigned char *p, size_t size);

/*
 * A target with seal.c lists ranges, each by its start and end (0: end of the
 * input).  The mutator changes bytes within one of them and keeps their number,
 * or changes anything.
 */
extern const size_t places[][2];
extern const size_t n_places;

#endif
