/*
 * random_input.h - the bytes of a file at any offset, without compression: of
 * a plain file, or of one in zstd's seekable format.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_RANDOM_INPUT_H
#define LIB_IO_RANDOM_INPUT_H

#include "packstream.h"

/* The most seek tables, and pack streams, in a file. */
#define PS_STREAMS_MAX (UINT32_C(1) << 20)

typedef struct ps_random_input ps_random_input;

/*
 * The offset of the descriptor never changes.
 * PS_OK, PS_ERR_ARGUMENT (no regular file), _IO, _MEMORY, _TRUNCATED; for
 * zstd _UNSUPPORTED (no seek table), _CORRUPT, _LIMIT.
 */
ps_result ps_random_input_open(ps_random_input **file, int fd, ps_error *err);

/* A file that is not read through a descriptor, such as one on a server. */
typedef struct ps_random_source {
    uint64_t size;
    /* Reads n bytes at `offset`; all of them lie in the file.  err may be
     * NULL.  PS_OK, or PS_ERR_IO. */
    ps_result (*read)(void *context, void *to, size_t n, uint64_t offset,
                      ps_error *err);
    void *context;
} ps_random_source;

/*
 * The same for such a file.  No byte is read that is not needed: no read goes
 * further in the hope of more to come.
 */
ps_result ps_random_input_open_source(ps_random_input **file,
                                      const ps_random_source *source,
                                      ps_error *err);

/* How many bytes there are. */
uint64_t ps_random_input_size(const ps_random_input *file);

/*
 * The `n` >= 1 bytes at `offset`, all of which lie in the file, in one piece
 * that stays valid until the next call.  After a failure other bytes can be
 * read.
 * PS_OK, PS_ERR_IO, _MEMORY, _TRUNCATED (the file has shrunk); for zstd
 * _CORRUPT.
 */
ps_result ps_random_input_read(ps_random_input *file, uint64_t offset, size_t n,
                               const unsigned char **bytes, ps_error *err);

/*
 * The same for bytes that are asked for from front to back, with gaps that are
 * cheaper to read than to pass over: those that follow are read with them, and
 * kept beside what other reads have.
 */
ps_result ps_random_input_read_run(ps_random_input *file, uint64_t offset,
                                   size_t n, const unsigned char **bytes,
                                   ps_error *err);

/*
 * Of `*n` >= 1 bytes at `*offset`: which bytes of the file a read of them reads
 * at most.
 */
void ps_random_input_extent(const ps_random_input *file, uint64_t *offset,
                            uint64_t *n);

/* Whether it is in zstd's format. */
bool ps_random_input_is_compressed(const ps_random_input *file);

void ps_random_input_free(ps_random_input *file);

#endif
