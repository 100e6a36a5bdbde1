/*
 * seek_table_check.h - whether the frames of a compressed input are those of
 * the seek table behind them, seen while they pass.
 *
 * Without its seek table a truncated file looks complete, so readers check
 * the table.  They keep a digest of the sizes of the frames, and compare it
 * with that of the entries.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_SEEK_TABLE_CHECK_H
#define LIB_IO_SEEK_TABLE_CHECK_H

#include <stdbool.h>

#include "packstream.h"

/* Sizes alone, or with the checksums that a table may have. */
enum { PS_CHAIN_SIZES, PS_CHAIN_CHECKSUMS, PS_CHAINS };

/*
 * Whether a frame with so many bytes of content, of which the first eight are
 * given, begins a stream that a seek table must follow.
 */
typedef bool ps_is_head(const unsigned char *content, uint64_t bytes);

/* All zero before the first frame, but for is_head. */
typedef struct ps_frame_check {
    /*
     * The frames behind the last table or, if one is wanted, from the head
     * on; and their chains.
     */
    ps_is_head *is_head; /* NULL: no table is ever wanted */
    bool wanted;
    uint64_t frames;
    uint64_t chains[PS_CHAINS];
    bool unchecked; /* one of them has no checksum */

    /* The frame that passes. */
    uint64_t at; /* its place in the input */
    uint64_t packed;
    uint64_t plain;
    unsigned char head[8];    /* its first bytes, */
    uint32_t tail;            /* the last four so far, */
    unsigned char content[8]; /* and the first ones of its content */

    /* If it is a table: what of it has not been looked at, and entries. */
    unsigned char part[12];
    size_t have;
    size_t entry_bytes; /* 0: it cannot be that of the frames */
    uint64_t entries;
    uint64_t chain;
    bool agrees;

    bool bad;        /* a table was wrong, */
    uint64_t bad_at; /* the one here */
} ps_frame_check;

/*
 * Sees the next `packed` bytes of a frame, and the `plain` bytes of content
 * that they gave; `end` if they are its last.
 */
void ps_frame_check_see(ps_frame_check *check, const unsigned char *bytes,
                        size_t packed, const unsigned char *content,
                        size_t plain, bool end);

/*
 * Whether all tables so far were right, and, `at_end`, whether none is
 * missing: one must follow where a frame was the head of a stream.
 * PS_OK, PS_ERR_CORRUPT, _TRUNCATED.
 */
ps_result ps_frame_check_result(const ps_frame_check *check, bool at_end,
                                ps_error *err);

#endif
