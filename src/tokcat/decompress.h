/*
 * decompress.h - decompression of gzip and zstd text.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_DECOMPRESS_H
#define TOKCAT_DECOMPRESS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum compression {
    COMPRESSION_UNKNOWN, /* more bytes are needed */
    COMPRESSION_NONE,
    COMPRESSION_GZIP,
    COMPRESSION_ZSTD
} compression;

/* Input and output; decompress_step advances both. */
typedef struct decompress_buffers {
    const unsigned char *in;
    size_t n_in;
    unsigned char *out;
    size_t n_out;
} decompress_buffers;

typedef struct decompressor decompressor;

/*
 * Detects the compression of a file from its first `n` >= 1 bytes.  If the
 * result is COMPRESSION_UNKNOWN, none of these bytes is a newline.
 */
compression compression_of(const unsigned char *first, size_t n);

/* Returns NULL if out of memory. */
decompressor *decompress_open(compression c);
void decompress_free(decompressor *d);

/*
 * Decompresses until the input or the output buffer is used up, or a gzip
 * member or zstd frame ends; a file may have several.  Returns NULL on success.
 * Otherwise returns the error in the input, as does every later call.
 */
const char *decompress_step(decompressor *d, decompress_buffers *b);

/* True if the file can end here, since the last member or frame is complete. */
bool decompress_is_whole(const decompressor *d);

#endif
