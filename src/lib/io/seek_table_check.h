/*
 * seek_table_check.h - whether the frames of a compressed input are those of
 * the seek table behind them, checked while they pass.
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
 * Whether a frame begins a stream that a seek table must follow: the first
 * eight bytes of its content are given, and how many it has.
 */
typedef bool ps_is_head(const unsigned char *content, uint64_t bytes);

/* All zero before the first frame, but for is_head. */
typedef struct ps_seek_check {
    ps_is_head *is_head; /* NULL: no table is ever wanted */

    /* The frames behind the last table or, if one is wanted, from the head. */
    bool wanted;
    uint64_t frames;
    uint64_t chains[PS_CHAINS];
    bool unchecked; /* one of them has no checksum */

    /* The frame that passes. */
    uint64_t at; /* its place in the input */
    uint64_t compressed; /* its bytes so far, */
    uint64_t plain;      /* and those of its content */
    unsigned char head[8];    /* its first bytes, */
    uint32_t tail;            /* the last four so far, */
    unsigned char content[8]; /* and the first ones of its content */

    /* If it is a table: a part of an entry or the footer, and the entries. */
    unsigned char part[12];
    size_t have;
    size_t entry_bytes; /* 0: it cannot be the table of the frames */
    uint64_t entries;
    uint64_t chain;
    bool agrees;

    bool bad;        /* a table was wrong, */
    uint64_t bad_at; /* the one here */
} ps_seek_check;

/*
 * Sees the next `n` bytes of a frame, and the `plain` bytes of content that
 * they gave; `end` if they are its last.
 */
void ps_seek_check_see(ps_seek_check *check, const unsigned char *bytes,
                       size_t n, const unsigned char *content, size_t plain,
                       bool end);

/*
 * Whether all tables so far were right and, `at_end`, none is missing: one
 * must follow where a frame was the head of a stream.
 * PS_OK, PS_ERR_CORRUPT, _TRUNCATED.
 */
ps_result ps_seek_check_result(const ps_seek_check *check, bool at_end,
                               ps_error *err);

#endif
