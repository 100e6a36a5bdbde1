/*
 * seek_table_check.h - check seek tables against the frames before them while
 * reading.
 *
 * SPDX-License-Identifier: MIT
 *
 * A compressed file that was cut after a frame looks complete, except that its
 * seek table is missing, so readers check for the table.  They compare a digest
 * of the frame sizes with a digest of the table's entries.
 */

#ifndef LIB_IO_SEEK_TABLE_CHECK_H
#define LIB_IO_SEEK_TABLE_CHECK_H

#include <stdbool.h>

#include "packstream.h"

/* Digests of sizes only, and of sizes and content checksums. */
enum { PS_CHAIN_SIZES, PS_CHAIN_CHECKSUMS, PS_CHAINS };

/*
 * Returns true if a frame starts a stream that must have a seek table.
 * `content` is the first eight bytes of the frame's content; `bytes` is the
 * size of the content.
 */
typedef bool ps_is_head(const unsigned char *content, uint64_t bytes);

/* All members except is_head are zero before the first frame. */
typedef struct ps_seek_check {
    ps_is_head *is_head; /* NULL: no table is required */

    /*
     * Frames since the last table or, if a table is required, since the head.
     */
    bool wanted;                /* a table is required */
    uint64_t frames;            /* number of frames */
    uint64_t chains[PS_CHAINS]; /* running digests */
    bool unchecked;             /* a frame lacks a content checksum */

    /* The current frame.  Sizes are in bytes. */
    uint64_t at;              /* offset of the frame in the input */
    uint64_t compressed;      /* bytes of the frame so far */
    uint64_t plain;           /* bytes of contents so far */
    unsigned char head[8];    /* first bytes of the frame */
    uint32_t tail;            /* last four bytes of the frame so far */
    unsigned char content[8]; /* first bytes of the contents */

    /*
     * If the current frame is a table: the entry or footer being read, and a
     * digest of the entries.
     */
    unsigned char part[12];
    size_t have;        /* bytes in `part` */
    size_t entry_bytes; /* size of an entry; 0: not a table of these frames */
    uint64_t entries;   /* number of entries so far */
    uint64_t chain;     /* running digest */
    bool agrees;        /* the table matches the frames */

    bool bad;        /* a table did not match its frames */
    uint64_t bad_at; /* offset of the bad table in the input */
} ps_seek_check;

/*
 * Processes the next `n` bytes of a frame and the `plain` bytes of content
 * decompressed from them.  `end` is set for the last bytes of the frame.
 */
void ps_seek_check_see(ps_seek_check *check, const unsigned char *bytes,
                       size_t n, const unsigned char *content, size_t plain,
                       bool end);

/*
 * Checks that all tables so far matched and, if `at_end` is set, that no
 * required table is missing.
 * PS_OK, PS_ERR_CORRUPT, _TRUNCATED.
 */
ps_result ps_seek_check_result(const ps_seek_check *check, bool at_end,
                               ps_error *err);

#endif
