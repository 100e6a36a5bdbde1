/*
 * zstd_frame.h - compress and decompress single zstd frames.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_ZSTD_FRAME_H
#define LIB_IO_ZSTD_FRAME_H

#include <zstd.h>

#include "packstream.h"

/* True if these 4 bytes start a zstd frame or a skippable frame. */
bool ps_is_frame_magic(const unsigned char *bytes);

typedef struct ps_compressor ps_compressor;

/* PS_OK, PS_ERR_ARGUMENT (not a zstd level), PS_ERR_MEMORY. */
ps_result ps_compressor_open(ps_compressor **compressor, int level,
                             ps_error *err);

/* Upper bound on the memory for frames of up to `n` bytes, in bytes. */
uint64_t ps_compressor_bytes(int level, size_t n);

/*
 * Compresses `n` bytes to a frame with content size and checksum.  *frame is
 * valid until the next call.  The result depends only on the data, the level
 * and the version of zstd.
 * PS_OK, PS_ERR_MEMORY, _LIMIT (too large for zstd).
 */
ps_result ps_compress_frame(ps_compressor *compressor, const void *data,
                            size_t n, const unsigned char **frame,
                            size_t *bytes, ps_error *err);

void ps_compressor_free(ps_compressor *compressor);

/*
 * Decompresses `n` bytes, one or more frames, into `to`.  Their contents must
 * be exactly `plain` bytes.  The error message contains no position.
 * PS_OK, PS_ERR_CORRUPT, _MEMORY.
 */
ps_result ps_decompress_frame(ZSTD_DCtx *zstd, const unsigned char *frame,
                              size_t n, unsigned char *to, size_t plain,
                              ps_error *err);

#endif
