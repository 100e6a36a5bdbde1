/*
 * pack-file-fixture.h - shared by the tests of pack files: files, plain and
 * compressed, and their expected packs.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_PACK_FILE_FIXTURE_H
#define TESTS_PACK_FILE_FIXTURE_H

#include "io/seek_table.h"
#include "lib-fixture.h"

/* A minimal stream of packs of `count` sequences, in blocks of four packs or
   of a given number. */
bytes make_pack_stream(uint32_t count, uint32_t window, uint64_t seed);
bytes make_blocks(uint32_t count, uint32_t window, uint64_t seed,
                  uint32_t block_packs);

/* Adds a frame of zstd's own making, without a table; one of all of `b`. */
void put_frame(bytes *b, const void *data, size_t n, int level);
bytes compress(const bytes *b);

/* Adds a frame of `n` bytes to `b` and to the table; adds the table. */
void put_table_frame(bytes *b, ps_seek_table *table, const void *data,
                     size_t n);
void put_table(bytes *b, ps_seek_table *table);

/*
 * The header alone in a frame, then `n` bytes in each, or a block of a single
 * stream if that is 0; then the table.
 */
bytes compress_packs(const bytes *plain, size_t n);

/* The packs that a reader of the whole stream returns, to compare with. */
typedef struct expected {
    uint64_t n;
    ps_pack *packs; /* with copies of their rows and sequence rows */
    ps_pack_info info;
    ps_totals totals;
} expected;

expected read_whole(const bytes *b);
void free_expected(expected *e);

/* True if a pack is the expected one. */
bool is_pack(const expected *e, uint64_t i, const ps_pack *pack);

/* Pack `i`, and all packs of a file in several orders, are as expected. */
void check_pack(ps_pack_file *file, const expected *e, uint64_t i);
void check_packs(const bytes *b, const expected *e);

/*
 * Opens a file and reads all packs; returns the first failure, or PS_OK.  The
 * packs must equal the expected ones, unless `e` is NULL.
 */
ps_result try_file(int fd, const expected *e, ps_error *err);
ps_result try_file_bytes(const bytes *b, const expected *e, ps_error *err);

/* Opening `b` must fail with this result, and a message with `words`. */
void refuse_file(const bytes *b, ps_result wanted, const char *words);

#endif
