/*
 * decompress.h - text that was compressed by gzip or zstd.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_DECOMPRESS_H
#define TOKCAT_DECOMPRESS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum compression {
    COMPRESSION_UNKNOWN, /* there are too few bytes to tell */
    COMPRESSION_NONE,
    COMPRESSION_GZIP,
    COMPRESSION_ZSTD
} compression;

/* Where bytes come from and go to; a step moves both. */
typedef struct decompress_buffers {
    const unsigned char *in;
    size_t n_in;
    unsigned char *out;
    size_t n_out;
} decompress_buffers;

typedef struct decompressor decompressor;

/*
 * How a file is compressed that begins with these bytes, at least one.  While
 * it is unknown there is no newline among them.
 */
compression compression_of(const unsigned char *first, size_t n);

/* NULL without memory. */
decompressor *decompress_open(compression c);
void decompress_free(decompressor *d);

/*
 * Takes input and gives output until one of them is used up, or a member or
 * frame ends, of which a file may have several.  Returns NULL, or what is
 * wrong with the input: again in each later call.
 */
const char *decompress_step(decompressor *d, decompress_buffers *b);

/* True where a file may end: nothing is begun that is not whole. */
bool decompress_is_whole(const decompressor *d);

#endif
