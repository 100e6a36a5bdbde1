/*
 * random_input.h - random access to the contents of a regular file, either
 * uncompressed or in zstd's seekable format.  Offsets are in bytes of the
 * uncompressed contents.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_RANDOM_INPUT_H
#define LIB_IO_RANDOM_INPUT_H

#include "packstream.h"

/* Maximum number of seek tables, and of pack streams, in a file. */
#define PS_STREAMS_MAX (UINT32_C(1) << 20)

typedef struct ps_random_input ps_random_input;

/*
 * Opens a file.  The file offset of `fd` is not used or changed.
 * PS_OK, PS_ERR_ARGUMENT (not a regular file), _IO, _MEMORY, _TRUNCATED; for
 * zstd _UNSUPPORTED (no seek table), _CORRUPT, _LIMIT.
 */
ps_result ps_random_input_open(ps_random_input **file, int fd, ps_error *err);

/* A file that is not read through a descriptor, such as a remote file. */
typedef struct ps_random_source {
    uint64_t size; /* bytes */
    /*
     * Reads n bytes at `offset`, all within the file.  err may be NULL.
     * Returns PS_OK or PS_ERR_IO.
     */
    ps_result (*read)(void *context, void *to, size_t n, uint64_t offset,
                      ps_error *err);
    void *context;
} ps_random_source;

/* Opens such a file.  Reads only the requested bytes, without read-ahead. */
ps_result ps_random_input_open_source(ps_random_input **file,
                                      const ps_random_source *source,
                                      ps_error *err);

/* Size of the uncompressed contents in bytes. */
uint64_t ps_random_input_size(const ps_random_input *file);

/*
 * Returns the `n` >= 1 bytes at `offset`, which must be inside the file,
 * contiguously at *bytes.  They are valid until the next call.  After a failure
 * other bytes can still be read.
 * PS_OK, PS_ERR_IO, _MEMORY, _TRUNCATED (the file has shrunk); for zstd
 * _CORRUPT.
 */
ps_result ps_random_input_read(ps_random_input *file, uint64_t offset, size_t n,
                               const unsigned char **bytes, ps_error *err);

/*
 * Converts a range of the contents, `*n` >= 1 bytes at `*offset`, to the
 * largest range of the file that has to be read for it.
 */
void ps_random_input_extent(const ps_random_input *file, uint64_t *offset,
                            uint64_t *n);

/* True if the file is compressed. */
bool ps_random_input_is_compressed(const ps_random_input *file);

void ps_random_input_free(ps_random_input *file);

#endif
