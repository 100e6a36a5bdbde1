/*
 * zstd_frame.h - making and opening zstd frames, each by itself.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_ZSTD_FRAME_H
#define LIB_IO_ZSTD_FRAME_H

#include <zstd.h>

#include "packstream.h"

/* True if a frame, or one to be skipped, begins with these 4 bytes. */
bool ps_is_frame_magic(const unsigned char *bytes);

typedef struct ps_compressor ps_compressor;

/* PS_OK, PS_ERR_ARGUMENT (a level that zstd does not have), _MEMORY. */
ps_result ps_compressor_open(ps_compressor **compressor, int level,
                             ps_error *err);

/* A bound of its memory, for frames of up to `n` bytes. */
uint64_t ps_compressor_bytes(int level, size_t n);

/*
 * Makes a frame of `n` bytes, with their number and a checksum in it.  It is
 * at *frame until the next call, and depends only on the bytes and the level.
 * PS_OK, PS_ERR_MEMORY, _LIMIT (more than zstd can take).
 */
ps_result ps_compress_frame(ps_compressor *compressor, const void *data,
                            size_t n, const unsigned char **frame,
                            size_t *bytes, ps_error *err);

void ps_compressor_free(ps_compressor *compressor);

/*
 * Decompresses `n` bytes of one or more frames, which must give `plain` bytes,
 * to `to`.  The message names no place.
 * PS_OK, PS_ERR_CORRUPT, _MEMORY.
 */
ps_result ps_decompress_frame(ZSTD_DCtx *zstd, const unsigned char *frame,
                              size_t n, unsigned char *to, size_t plain,
                              ps_error *err);

#endif
