/*
 * pack_file.h - a pack file from inside the library.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_STREAM_PACK_FILE_H
#define LIB_STREAM_PACK_FILE_H

#include "io/random_input.h"
#include "packstream.h"

/* ps_pack_file_open for a file that is not read through a descriptor. */
ps_result ps_pack_file_open_source(ps_pack_file **file,
                                   const ps_random_source *source,
                                   ps_error *err);

/*
 * Where a pack lies in the file, in bytes: the block with it, and in it the
 * row, and the tables from the pack heads to the end of the block.  Of a
 * compressed file the frames with all that, without row and tables.
 */
typedef struct ps_pack_extent {
    uint64_t at;
    uint64_t n;
    uint64_t row;    /* 0 of a compressed file */
    uint64_t tables; /* 0 of a compressed file */
} ps_pack_extent;

/* Finds pack `i`, by the index alone.  As ps_pack_file_read. */
ps_result ps_pack_file_extent(ps_pack_file *file, uint64_t i,
                              ps_pack_extent *extent, ps_error *err);

/* A place in a stream of a file; offsets are from the start of the file. */
typedef struct ps_pack_file_at {
    uint64_t header; /* of the stream */
    uint64_t before; /* packs in the streams before it */
    uint64_t block;  /* with the pack before the place, if there is one, */
    uint64_t first;  /* and its first pack */
} ps_pack_file_at;

/*
 * Finds the place in stream `stream` behind `packs` of its packs.  As
 * ps_pack_file_read; PS_ERR_ARGUMENT if there is no such place.
 */
ps_result ps_pack_file_find(ps_pack_file *file, uint32_t stream,
                            uint64_t packs, ps_pack_file_at *at,
                            ps_error *err);

#endif
