/*
 * input.h - a buffered input that hands out contiguous bytes, decompressed
 * if need be.
 *
 * This room, io, moves bytes between descriptors and the rest of the library;
 * it knows nothing of tokens and packs.  A reader takes bytes from an input:
 *
 *   input.h         peek and take, plain or zstd; copies as little as it can
 *   read_ahead.h    what an input reads from, on a thread if asked for
 *   block.h         the memory it reads into, counted by those who hold it
 *   random_input.h  any bytes of a regular file, also of a compressed one
 *
 * A writer builds records in an output:
 *
 *   output.h        a ring of blocks, written or compressed on threads
 *
 * Below them are fd.h (system calls, restarted and completed), zstd_frame.h
 * (single frames), seek_table.h (the table that ends a compressed file) and
 * seek_table_check.h (whether that table fits the frames before it).
 *
 * The room uses base, and nothing else of the library.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_INPUT_H
#define LIB_IO_INPUT_H

#include "io/read_ahead.h"
#include "io/seek_table_check.h"
#include "packstream.h"
#include "zstd_stream.h"

/*
 * Open so that a look at what has come costs no call.  Before the first peek
 * `window` may be set, and frames.is_head: which frames begin a stream with a
 * seek table.
 */
typedef struct ps_input {
    unsigned char *at; /* bytes that were read but not taken, */
    size_t left;       /* so many, in `block` or in `buffer` */
    unsigned char nothing; /* what `at` is before anything was read */
    uint64_t taken;        /* bytes, since the start */
    ps_pool *pool;
    ps_read_ahead *read_ahead;
    ps_block *block; /* the last that came; held */
    bool looked;     /* for the magic of zstd */
    bool at_eof;
    bool in_buffer;
    bool threaded;
    unsigned char *buffer; /* joins blocks, or holds decompressed bytes */
    size_t buffer_size;
    size_t buffer_max;
    uint64_t window; /* the largest that a frame may have, in bytes */
    ps_wait_hook *hook;
    void *hook_context;
    ZSTD_DCtx *zstd;          /* NULL: the input is plain */
    ZSTD_inBuffer compressed; /* bytes that are not decompressed yet */
    bool in_frame;
    zstd_progress progress;
    ps_seek_check frames; /* seen so far, and their seek tables */
} ps_input;

/*
 * Nothing is read yet; the first peek sees whether zstd frames have come.
 * PS_ERR_MEMORY.
 */
ps_result ps_input_open(ps_input **input, int fd, ps_error *err);

/* Sets the most bytes that a peek will ask for; before the first peek. */
void ps_input_set_max(ps_input *input, uint64_t bytes);

/* A bound of its memory with these limits, whatever the input. */
uint64_t ps_input_bytes(uint64_t max, uint64_t window, bool threaded);

/* ps_input_peek, where not all bytes are there yet. */
ps_result ps_input_peek_more(ps_input *input, size_t want,
                             const unsigned char **data, size_t *got,
                             ps_error *err);

/*
 * Makes the next `want` bytes available in one piece at *data, or fewer if
 * the input ends before; *got says how many.  The buffer grows only with
 * bytes that have arrived.  The bytes stay valid until the next peek.
 * PS_OK, PS_ERR_MEMORY, _IO; for zstd _CORRUPT, _TRUNCATED, _LIMIT; or what
 * the wait hook gave.
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

/* Passes over `n` bytes of what the last peek gave. */
static inline void ps_input_take(ps_input *input, size_t n)
{
    input->at += n;
    input->left -= n;
    input->taken += n;
}

/*
 * Passes over the next `n` bytes; a plain regular file is not read for that.
 * As ps_input_peek; PS_ERR_TRUNCATED if the input ends before.
 */
ps_result ps_input_skip(ps_input *input, uint64_t n, ps_error *err);

/* Whether it is such a file; known after the first peek. */
bool ps_input_can_skip(const ps_input *input);

void ps_input_on_wait(ps_input *input, ps_wait_hook *hook, void *context);

/*
 * The block with the bytes of the last peek, or NULL: a caller that holds it
 * need not copy them.
 */
static inline ps_block *ps_input_block(const ps_input *input)
{
    return input->in_buffer ? NULL : input->block;
}

/*
 * Goes on with another input, as new but for its blocks and settings.
 * PS_ERR_MEMORY, PS_ERR_IO.
 */
ps_result ps_input_reopen(ps_input *input, int fd, ps_error *err);

/* Reads on a thread of its own from now on.  PS_ERR_IO. */
ps_result ps_input_read_ahead(ps_input *input, ps_error *err);

/*
 * Poll it for POLLIN: it is readable when a wait that the hook was called for
 * would end.  Do not read from it.
 */
int ps_input_descriptor(const ps_input *input);

void ps_input_free(ps_input *input);

#endif
