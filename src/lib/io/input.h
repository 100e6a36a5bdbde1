/*
 * input.h - a buffered input that hands out contiguous bytes, decompressed
 * if need be.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_IO_INPUT_H
#define LIB_IO_INPUT_H

#include <zstd.h>

#include "io/read_ahead.h"
#include "io/seek_table_check.h"
#include "packstream.h"

/* Open to inspection so that a look at what has come costs no call. */
typedef struct ps_input {
    unsigned char *at; /* what was read and not taken... */
    size_t left;       /* ...so much, in a block or in `own` */
    unsigned char nothing; /* what `at` is before anything was read */
    uint64_t taken;
    ps_pool *pool;
    ps_read_ahead *read_ahead;
    ps_block *block; /* the last that came; held */
    bool looked; /* for the magic of zstd */
    bool at_eof;
    bool in_own;
    bool threaded;
    unsigned char *own;
    size_t own_size;
    size_t own_max;
    uint64_t window; /* the largest of frames, bytes */
    ps_wait_hook *hook;
    void *hook_context;
    ZSTD_DCtx *zstd;  /* NULL: the input is plain */
    ZSTD_inBuffer in; /* compressed bytes that are still to be used */
    bool in_frame;
    ps_frame_check frames; /* seen so far, and their seek tables */
} ps_input;

/*
 * Nothing is read yet; the first peek sees whether zstd frames have come.
 * PS_ERR_MEMORY.
 */
ps_result ps_input_open(ps_input **input, int fd, ps_error *err);

/*
 * The largest window of zstd frames, to be said before the first peek; and
 * the most bytes that a peek will ask for.
 */
void ps_input_set_window(ps_input *input, uint64_t bytes);
void ps_input_set_max(ps_input *input, uint64_t bytes);

/* Which frames begin streams with a seek table; before the first peek. */
void ps_input_set_head(ps_input *input, ps_is_head *is_head);

/* The most memory that it takes with these, whatever the input. */
uint64_t ps_input_bytes(uint64_t max, uint64_t window, bool threaded);

/* As ps_input_peek, where not all of it is there. */
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

/* Whether it is such a file; not known before the first peek. */
bool ps_input_can_skip(const ps_input *input);

/* Bytes taken so far. */
static inline uint64_t ps_input_offset(const ps_input *input)
{
    return input->taken;
}

/*
 * Whether the seek tables that have come are right; and none is missing, if
 * the last peek gave nothing.  As ps_frame_check_result.
 */
static inline ps_result ps_input_check_tables(const ps_input *input,
                                              ps_error *err)
{
    return ps_frame_check_result(&input->frames,
                                 input->at_eof && input->left == 0, err);
}

void ps_input_on_wait(ps_input *input, ps_wait_hook *hook, void *context);

/*
 * The block in which what the last peek gave lies, or NULL: who holds it need
 * not copy.
 */
static inline ps_block *ps_input_block(const ps_input *input)
{
    return input->in_own ? NULL : input->block;
}

/*
 * Goes on with another input, as new but for its blocks.  PS_ERR_MEMORY,
 * PS_ERR_IO.
 */
ps_result ps_input_reopen(ps_input *input, int fd, ps_error *err);

/* Reads on a thread of its own from now on.  PS_ERR_IO. */
ps_result ps_input_read_ahead(ps_input *input, ps_error *err);

/* Can be read when a wait for which the hook is called would end. */
int ps_input_descriptor(const ps_input *input);

void ps_input_free(ps_input *input);

#endif
