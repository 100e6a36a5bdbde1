/*
 * seek_table.h - the seek table of zstd's seekable format; packstream(5)
 * "COMPRESSION".
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_SEEK_TABLE_H
#define LIB_IO_SEEK_TABLE_H

#include "packstream.h"

/* The most frames in a table, and bytes of a frame that we will unpack. */
#define PS_SEEK_FRAMES_MAX (UINT32_C(1) << 27)
#define PS_FRAME_BYTES_MAX (UINT32_C(1) << 28)

/* In front of the entries there are two numbers, behind them a footer. */
#define PS_SEEK_SKIPPABLE_MAGIC UINT32_C(0x184D2A5E)
#define PS_SEEK_PREFIX_BYTES 8
#define PS_SEEK_FOOTER_BYTES 9

/* An entry, and its checksum if that bit of the descriptor is set. */
#define PS_SEEK_ENTRY_BYTES 8
#define PS_SEEK_CHECKSUM_BYTES 4
#define PS_SEEK_WITH_CHECKSUMS 0x80

/* Where a frame begins, counted from the first one. */
typedef struct ps_seek_mark {
    uint64_t at;
    uint64_t plain_at; /* without compression */
} ps_seek_mark;

/* Open to inspection; `max` can be set to less. */
typedef struct ps_seek_table {
    unsigned char *buf; /* prefix, entries, space for a footer */
    uint32_t frames;
    uint32_t capacity;   /* frames that fit */
    uint32_t max;        /* frames that there may be, at least 1 */
    ps_seek_mark *marks; /* of frames 0, 64, 128 and so on */
    ps_seek_mark end;    /* behind the last: what all frames have */
} ps_seek_table;

/* A frame of a table: its place and size, compressed and plain. */
typedef struct ps_seek_frame {
    uint32_t number;
    uint64_t at; /* from the first frame */
    uint32_t bytes;
    uint64_t plain_at;
    uint32_t plain;
} ps_seek_frame;

/* An empty table.  PS_OK, PS_ERR_MEMORY. */
ps_result ps_seek_table_open(ps_seek_table **table, ps_error *err);

/* A bound of the memory of a table of at most `max` frames. */
uint64_t ps_seek_table_takes(uint32_t max);

/*
 * Adds a frame behind the last one.
 * PS_OK, PS_ERR_MEMORY, _LIMIT (too many frames, or a size above 32 bits).
 */
ps_result ps_seek_table_add(ps_seek_table *table, uint64_t bytes,
                            uint64_t plain, ps_error *err);

/* The table as it ends a file; valid until the next call. */
void ps_seek_table_encode(ps_seek_table *table, const unsigned char **bytes,
                          size_t *n);

/* True if the PS_SEEK_FOOTER_BYTES at `footer` may be those of a table. */
bool ps_is_seek_footer(const unsigned char *footer);

/*
 * Reads a footer, which ends `before` bytes of a file: how many of these
 * are the table's.
 * PS_OK, PS_ERR_UNSUPPORTED (no seek table, or a newer one), _CORRUPT.
 */
ps_result ps_seek_footer_decode(const unsigned char *footer, uint64_t before,
                                uint64_t *table_bytes, ps_error *err);

/*
 * Reads the `n` bytes of a table that ps_seek_footer_decode found at the end
 * of `before` bytes.  The frames lie directly before it.
 * PS_OK, PS_ERR_MEMORY, _UNSUPPORTED, _CORRUPT, _LIMIT.
 */
ps_result ps_seek_table_decode(ps_seek_table **table,
                               const unsigned char *bytes, uint64_t n,
                               uint64_t before, ps_error *err);

/* The frame with plain byte `offset`, below end.plain_at. */
ps_seek_frame ps_seek_table_find(const ps_seek_table *table,
                                 uint64_t offset);

void ps_seek_table_free(ps_seek_table *table);

#endif
