/*
 * pack_file.h - a pack file from inside the library.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_STREAM_PACK_FILE_H
#define LIB_STREAM_PACK_FILE_H

#include "packstream.h"

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
