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
 * Where a pack lies in the file, in bytes: its block, and within the block the
 * row, and the tables from the pack heads to the end.  For a compressed file,
 * the frames with all of it; row and tables are 0.
 */
typedef struct ps_pack_extent {
    uint64_t at; /* offset of the block, or of the first frame */
    uint64_t n;
    uint64_t row;
    uint64_t tables;
} ps_pack_extent;

/* Finds pack `i` by the index alone.  Errors are those of ps_pack_file_read. */
ps_result ps_pack_file_extent(ps_pack_file *file, uint64_t i,
                              ps_pack_extent *extent, ps_error *err);

/*
 * A position between two packs of a file.  Offsets are from its start, bytes.
 */
typedef struct ps_pack_file_at {
    uint64_t header; /* offset of the stream header */
    uint64_t before; /* number of packs in earlier streams */
    uint64_t block;  /* offset of the block with the previous pack, if any */
    uint64_t first;  /* index of the first pack in that block */
} ps_pack_file_at;

/*
 * Finds the position after the first `packs` packs of stream `stream`.
 * Results as ps_pack_file_read; PS_ERR_ARGUMENT if it does not exist.
 */
ps_result ps_pack_file_find(ps_pack_file *file, uint32_t stream,
                            uint64_t packs, ps_pack_file_at *at,
                            ps_error *err);

#endif
