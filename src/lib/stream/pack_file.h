/*
 * pack_file.h - internal additions to ps_pack_file.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_STREAM_PACK_FILE_H
#define LIB_STREAM_PACK_FILE_H

#include "io/random_input.h"
#include "packstream.h"

/* Like ps_pack_file_open, for a file that is not read through a descriptor. */
ps_result ps_pack_file_open_source(ps_pack_file **file,
                                   const ps_random_source *source,
                                   ps_error *err);

/*
 * Position of a pack in the file, in bytes: the block, and within the block the
 * row of the pack and the tables, which extend from the pack heads to the end.
 * For a compressed file, the frames that contain the block; row and tables are
 * 0.
 */
typedef struct ps_pack_extent {
    uint64_t at; /* offset of the block, or of the first frame */
    uint64_t n;  /* size of the block or frames */
    uint64_t row;
    uint64_t tables;
} ps_pack_extent;

/* Finds pack `i`, reading only the index.  Results as ps_pack_file_read. */
ps_result ps_pack_file_extent(ps_pack_file *file, uint64_t i,
                              ps_pack_extent *extent, ps_error *err);

/*
 * Finds the first block of stream `stream` whose watermark is at least `least`,
 * and sets *first and *end to its packs, numbered as in ps_pack_file_read.  If
 * there is none, both are the number after the last pack of the stream.
 * Results as ps_pack_file_read.
 */
ps_result ps_pack_file_marked(ps_pack_file *file, uint32_t stream,
                              uint64_t least, uint64_t *first, uint64_t *end,
                              ps_error *err);

/*
 * Reads the head and the sequence rows of pack `i`, without its row.  Like a
 * head, sequence rows are not verified.  Results as ps_pack_file_read.
 */
ps_result ps_pack_file_sequences(ps_pack_file *file, uint64_t i, ps_pack *pack,
                                 ps_error *err);

/* A position between two packs.  Offsets are in bytes from the file's start. */
typedef struct ps_pack_file_at {
    uint64_t header; /* offset of the stream header */
    uint64_t before; /* number of packs in earlier streams */
    uint64_t block;  /* offset of the block that contains the previous pack */
    uint64_t first;  /* index of the first pack in that block */
} ps_pack_file_at;

/*
 * Finds the position after the first `packs` packs of stream `stream`.
 * Results as ps_pack_file_read; PS_ERR_ARGUMENT if there is no such position.
 */
ps_result ps_pack_file_find(ps_pack_file *file, uint32_t stream,
                            uint64_t packs, ps_pack_file_at *at,
                            ps_error *err);

#endif
