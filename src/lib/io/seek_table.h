/*
 * seek_table.h - the seek table of zstd's seekable format; see packstream(5),
 * "COMPRESSION".
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_SEEK_TABLE_H
#define LIB_IO_SEEK_TABLE_H

#include "packstream.h"

/*
 * Maximum number of frames in a table, and maximum uncompressed size of a frame
 * that can be read, in bytes.
 */
#define PS_SEEK_FRAMES_MAX (UINT32_C(1) << 27)
#define PS_FRAME_BYTES_MAX (UINT32_C(1) << 28)

/* Two 32-bit numbers precede the entries; a footer follows them. */
#define PS_SEEK_SKIPPABLE_MAGIC UINT32_C(0x184D2A5E)
#define PS_SEEK_PREFIX_BYTES 8
#define PS_SEEK_FOOTER_BYTES 9

/*
 * Sizes of an entry and of its optional checksum, in bytes.  Checksums are
 * present if the descriptor has the bit PS_SEEK_WITH_CHECKSUMS.
 */
#define PS_SEEK_ENTRY_BYTES 8
#define PS_SEEK_CHECKSUM_BYTES 4
#define PS_SEEK_WITH_CHECKSUMS 0x80

/* Start of a frame, relative to the first frame, in bytes. */
typedef struct ps_seek_mark {
    uint64_t at;       /* in the file */
    uint64_t plain_at; /* in the uncompressed contents */
} ps_seek_mark;

/* Members may be read directly.  `max` may be lowered. */
typedef struct ps_seek_table {
    unsigned char *buf;  /* prefix, entries, space for a footer */
    uint32_t frames;     /* number of frames */
    uint32_t capacity;   /* frames allocated */
    uint32_t max;        /* maximum number of frames, at least 1 */
    ps_seek_mark *marks; /* positions of frames 0, 64, 128, ... */
    ps_seek_mark end;    /* end of the last frame, the size of all frames */
} ps_seek_table;

/* Position and size of a frame, compressed and uncompressed, in bytes. */
typedef struct ps_seek_frame {
    uint32_t number;   /* from 0 */
    uint64_t at;       /* offset from the first frame */
    uint32_t bytes;    /* compressed size */
    uint64_t plain_at; /* offset of the contents from the first frame's */
    uint32_t plain;    /* uncompressed size */
} ps_seek_frame;

/* Creates an empty table.  PS_OK, PS_ERR_MEMORY. */
ps_result ps_seek_table_open(ps_seek_table **table, ps_error *err);

/* Upper bound on the memory of a table with `max` frames, in bytes. */
uint64_t ps_seek_table_takes(uint32_t max);

/*
 * Appends a frame.
 * PS_OK, PS_ERR_MEMORY, _LIMIT (too many frames, or a size above 32 bits).
 */
ps_result ps_seek_table_add(ps_seek_table *table, uint64_t bytes,
                            uint64_t plain, ps_error *err);

/*
 * Returns the encoded table for the end of a file.  Valid until the next call.
 */
void ps_seek_table_encode(ps_seek_table *table, const unsigned char **bytes,
                          size_t *n);

/* True if PS_SEEK_FOOTER_BYTES bytes look like the footer of a table. */
bool ps_is_seek_footer(const unsigned char *footer);

/*
 * Decodes a footer at the end of the first `before` bytes of a file, and
 * returns the size of its table.
 * PS_OK, PS_ERR_UNSUPPORTED (no seek table, or a newer one), _CORRUPT.
 */
ps_result ps_seek_footer_decode(const unsigned char *footer, uint64_t before,
                                uint64_t *table_bytes, ps_error *err);

/*
 * Decodes a table of `n` bytes, as found by ps_seek_footer_decode, at the end
 * of the first `before` bytes of a file.  Its frames directly precede it.
 * PS_OK, PS_ERR_MEMORY, _UNSUPPORTED, _CORRUPT, _LIMIT.
 */
ps_result ps_seek_table_decode(ps_seek_table **table,
                               const unsigned char *bytes, uint64_t n,
                               uint64_t before, ps_error *err);

/* Finds the frame that contains uncompressed byte `offset` < end.plain_at. */
ps_seek_frame ps_seek_table_find(const ps_seek_table *table,
                                 uint64_t offset);

void ps_seek_table_free(ps_seek_table *table);

#endif
