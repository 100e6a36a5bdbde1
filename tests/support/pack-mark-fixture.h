/*
 * pack-mark-fixture.h - shared by the tests of marks and shared readers:
 * inputs of every kind, and marks for all positions of a stream.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_PACK_MARK_FIXTURE_H
#define TESTS_PACK_MARK_FIXTURE_H

#include "pack-file-fixture.h"

typedef enum input_kind {
    PLAIN_FILE, /* the only kind in which a reader can seek */
    PLAIN_PIPE,
    ZSTD_FILE,
    ZSTD_PIPE,
    INPUT_KINDS
} input_kind;

/* An input with these bytes; those for a pipe must fit its buffer. */
int open_input(const bytes *b, input_kind kind);

/* A reader of that input, and its descriptor in *fd. */
ps_pack_reader *open_packs(const bytes *b, input_kind kind, int *fd);

/* Frees the reader and closes the descriptor. */
void close_packs(ps_pack_reader *reader, int fd);

typedef struct mark {
    unsigned char bytes[PS_PACK_MARK_BYTES];
} mark;

mark save_mark(const ps_pack_reader *reader);
bool is_mark(const ps_pack_reader *reader, const mark *wanted);

/* Marks before each pack of a stream, and after the last. */
mark *read_marks(const bytes *b, const expected *e);

/*
 * The reader is at pack `i`: all that follows must be as expected, except that
 * offsets are less by `gap`, and indexes can differ if there is a gap.
 */
void check_rest(ps_pack_reader *reader, const expected *e, const mark *marks,
                uint64_t i, uint64_t gap);

/* A stream, or several, and its expected contents. */
typedef struct given {
    bytes b;
    expected e;
    mark *marks;
} given;

given make_given(bytes b);
void free_given(given *g);

/*
 * Consecutive streams of counts[i] - 1 sequences, up to a count of 0, with
 * windows of 7, 10, 4 and so on.
 */
given make_streams(const uint32_t *counts, uint64_t seed);

#endif
