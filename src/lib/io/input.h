/*
 * input.h - buffered input that returns contiguous bytes and decompresses zstd.
 *
 * SPDX-License-Identifier: MIT
 *
 * This module, io, moves bytes between descriptors and the rest of the library.
 * It does not depend on tokens and packs.  Readers use an input:
 *
 *   input.h         peek and take, with few copies; detects zstd
 *   read_ahead.h    reads for an input, optionally on a thread
 *   block.h         reference-counted blocks of memory for input
 *   random_input.h  random access to regular files, also if compressed
 *
 * Writers build records in an output:
 *
 *   output.h        a ring of blocks, written and compressed on threads
 *
 * These build on fd.h (system calls with restarts), zstd_frame.h (single
 * frames), seek_table.h (the table at the end of a compressed file) and
 * seek_table_check.h (checks of the table against the frames).
 *
 * This module depends only on module base.
 */

#ifndef LIB_IO_INPUT_H
#define LIB_IO_INPUT_H

#include "io/read_ahead.h"
#include "io/seek_table_check.h"
#include "packstream.h"
#include "zstd_stream.h"

/*
 * Defined here so that a peek at buffered bytes can be inline.  Before the
 * first peek, the user may set `window` and frames.is_head, which detects the
 * start of a stream that must have a seek table.
 */
typedef struct ps_input {
    unsigned char *at;     /* unread bytes, in `block` or in `buffer` */
    size_t left;           /* number of unread bytes */
    unsigned char nothing; /* `at` points here before anything is read */
    uint64_t taken;        /* bytes consumed since the start */
    ps_pool *pool;
    ps_read_ahead *read_ahead;
    ps_block *block; /* block of the last piece; held */
    bool looked;     /* the zstd magic has been checked for */
    bool at_eof;
    bool in_buffer;        /* the unread bytes are in `buffer` */
    bool threaded;         /* ps_input_read_ahead was called */
    unsigned char *buffer; /* joined blocks, or decompressed bytes */
    size_t buffer_size;    /* allocated, bytes */
    size_t buffer_max;     /* limit of buffer_size, bytes */
    uint64_t window;       /* maximum window of a frame, bytes */
    ps_wait_hook *hook;
    void *hook_context;
    ZSTD_DCtx *zstd;          /* NULL if the input is not compressed */
    ZSTD_inBuffer compressed; /* bytes to decompress, in `block` */
    bool in_frame;            /* the current frame has not ended */
    zstd_progress progress;
    ps_seek_check frames; /* frames so far, checked against seek tables */
} ps_input;

/*
 * Creates an input that reads from `fd`.  Nothing is read before the first
 * peek, which also detects zstd.  PS_OK, PS_ERR_MEMORY.
 */
ps_result ps_input_open(ps_input **input, int fd, ps_error *err);

/* Sets the maximum size of a peek in bytes.  Call it before the first peek. */
void ps_input_set_max(ps_input *input, uint64_t bytes);

/* Upper bound on the memory of an input with these limits, in bytes. */
uint64_t ps_input_bytes(uint64_t max, uint64_t window, bool threaded);

/* Slow path of ps_input_peek: not all bytes are buffered. */
ps_result ps_input_peek_more(ps_input *input, size_t want,
                             const unsigned char **data, size_t *got,
                             ps_error *err);

/*
 * Makes the next `want` bytes available contiguously at *data.  *got is `want`,
 * or less if the input ends before.  The buffer grows only as bytes arrive.
 * The bytes are valid until the next peek.
 * PS_OK, PS_ERR_MEMORY, _IO; for zstd _CORRUPT, _TRUNCATED, _LIMIT; and the
 * results of the wait hook.
 */
static inline ps_result ps_input_peek(ps_input *input, size_t want,
                                      const unsigned char **data,
                                      size_t *got, ps_error *err)
{
    if (!input->looked || want > input->left)
        return ps_input_peek_more(input, want, data, got, err);
    *data = input->at;
    *got = want;
    return PS_OK;
}

/* Consumes `n` bytes returned by the last peek. */
static inline void ps_input_take(ps_input *input, size_t n)
{
    input->at += n;
    input->left -= n;
    input->taken += n;
}

/*
 * Skips the next `n` bytes, by seeking in an uncompressed regular file.
 * Results as ps_input_peek; also PS_ERR_TRUNCATED if the input ends first.
 */
ps_result ps_input_skip(ps_input *input, uint64_t n, ps_error *err);

/* True if ps_input_skip seeks.  Valid after the first peek. */
bool ps_input_can_skip(const ps_input *input);

void ps_input_on_wait(ps_input *input, ps_wait_hook *hook, void *context);

/*
 * Block that contains the bytes of the last peek, or NULL.  A caller that holds
 * the block need not copy the bytes.
 */
static inline ps_block *ps_input_block(const ps_input *input)
{
    return input->in_buffer ? NULL : input->block;
}

/*
 * Switches to another descriptor.  Blocks and settings are kept; everything
 * else is as in a new input.  PS_OK, PS_ERR_MEMORY, PS_ERR_IO.
 */
ps_result ps_input_reopen(ps_input *input, int fd, ps_error *err);

/* Starts reading on a separate thread.  PS_OK, PS_ERR_IO. */
ps_result ps_input_read_ahead(ps_input *input, ps_error *err);

/*
 * A descriptor to poll for POLLIN in the wait hook.  It becomes readable when
 * the input does not have to wait any more.  Do not read from it.
 */
int ps_input_descriptor(const ps_input *input);

void ps_input_free(ps_input *input);

#endif
