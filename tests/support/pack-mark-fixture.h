/*
 * pack-mark-fixture.h - what the tests of marks and shared readers share:
 * inputs of every kind, and the marks of all places in a stream.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_PACK_MARK_FIXTURE_H
#define TESTS_PACK_MARK_FIXTURE_H

#include "pack-file-fixture.h"

typedef enum input_kind {
    PLAIN_FILE, /* the only one in which a reader can move on */
    PLAIN_PIPE,
    ZSTD_FILE,
    ZSTD_PIPE,
    INPUT_KINDS
} input_kind;

/* An input with these bytes, which for a pipe are few enough to fit it. */
int open_input(const bytes *b, input_kind kind);

/* A reader of that input; the descriptor is given, too. */
ps_pack_reader *open_packs(const bytes *b, input_kind kind, int *fd);

/* Frees the reader and closes the descriptor. */
void close_packs(ps_pack_reader *reader, int fd);

typedef struct mark {
    unsigned char bytes[PS_PACK_MARK_BYTES];
} mark;

mark save_mark(const ps_pack_reader *reader);
bool is_mark(const ps_pack_reader *reader, const mark *wanted);

/* Before each pack of a stream, and behind the last. */
mark *read_marks(const bytes *b, const expected *e);

/*
 * The reader is at pack `i`: all that follows is as expected, except for
 * offsets, which are less by `gap`, and the index if there is a gap.
 */
void check_rest(ps_pack_reader *reader, const expected *e, const mark *marks,
                uint64_t i, uint64_t gap);

/* A stream, or several, and all that is to be known of it. */
typedef struct given {
    bytes b;
    expected e;
    mark *marks;
} given;

given make_given(bytes b);
void free_given(given *g);

/*
 * Streams behind one another, of one sequence less each; 0 ends them.  Their
 * windows are 7, 10, 4 and so on.
 */
given make_streams(const uint32_t *counts, uint64_t seed);

#endif
