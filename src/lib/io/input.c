/*
 * input.c - buffered input that returns contiguous bytes and decompresses zstd.
 *
 * SPDX-License-Identifier: MIT
 *
 * Uncompressed bytes are returned in place, in a reference-counted block.
 * Unread bytes at the end of a block are copied to the headroom of the next.
 * If there are too many for the headroom, they are joined with the following
 * bytes in a buffer.  Decompressed bytes are always in the buffer.
 */

#include "io/input.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "io/fd.h"
#include "io/zstd_frame.h"

/*
 * The largest window is the default limit of the zstd program; the smallest is
 * the lowest limit that zstd accepts.
 */
#define ZSTD_LARGEST_WINDOW_LOG 27
#define ZSTD_MIN_WINDOW_LOG 10

/*
 * Number of bytes to read after a large piece, so that the next peek, which
 * often needs only a few bytes, takes no system call.  The number is small
 * because these bytes have to be moved.
 */
#define FOLLOWING_BYTES ((size_t)4 << 10)

/* Bytes that zstd allocates for input, in addition to the window. */
#define ZSTD_INPUT_BYTES ((uint64_t)640 << 10)

static int window_log(uint64_t window)
{
    int log = ZSTD_MIN_WINDOW_LOG;

    while (log < ZSTD_LARGEST_WINDOW_LOG && window >> (log + 1) != 0)
        log++;
    return log;
}

/* The last piece of a peek can extend beyond the bytes requested. */
void ps_input_set_max(ps_input *in, uint64_t bytes)
{
    uint64_t max = ps_mem_sum(bytes, PS_IO_BYTES);

    in->buffer_max = max < SIZE_MAX ? (size_t)max : SIZE_MAX;
}

uint64_t ps_input_bytes(uint64_t max, uint64_t window, bool threaded)
{
    uint64_t buffer = ps_mem_array(1, PS_IO_BYTES);
    uint64_t bytes = ps_read_ahead_bytes(threaded);

    /* While the buffer grows, the old and the new buffer both exist. */
    if (max > 0)
        buffer = ps_mem_times(2, ps_mem_sum(ps_mem_sum(max, PS_IO_BYTES),
                                            PS_MEM_PAGE));
    bytes = ps_mem_sum(bytes, buffer);
    bytes = ps_mem_sum(bytes, (uint64_t)1 << window_log(window));
    bytes = ps_mem_sum(bytes, ZSTD_INPUT_BYTES);
    return ps_mem_sum(bytes, sizeof(ps_input));
}

static ps_result wait_for_input(ps_input *in, ps_error *err)
{
    if (in->hook == NULL || !ps_read_ahead_would_wait(in->read_ahead))
        return PS_OK;
    return in->hook(in->hook_context, err);
}

/* Returns the next piece, which has 0 bytes at the end of the input. */
static ps_result next_span(ps_input *in, ps_span *span, ps_error *err)
{
    const ps_result r = wait_for_input(in, err);

    return r == PS_OK ? ps_read_ahead_next(in->read_ahead, span, err) : r;
}

/*
 * Holds the block of the last piece and releases the previous one, which
 * contains no unread bytes.
 */
static void hold_block(ps_input *in, ps_block *block)
{
    if (block == in->block)
        return;
    ps_block_hold(block);
    if (in->block != NULL)
        ps_block_release(in->block);
    in->block = block;
}

/*
 * Grows the buffer to at least `min` bytes.  It doubles, so that the amortized
 * cost of copying is constant per byte.
 */
static ps_result grow_buffer(ps_input *in, size_t min, ps_error *err)
{
    size_t size = in->buffer_size == 0 ? PS_IO_BYTES : in->buffer_size;
    unsigned char *buffer;

    while (size < min) {
        if (size > SIZE_MAX / 2)
            return ps_fail_memory(err);
        size *= 2;
    }
    if (size > in->buffer_max && min <= in->buffer_max)
        size = in->buffer_max;
    if (size <= in->buffer_size)
        return PS_OK;
    buffer = realloc(in->buffer, size);
    if (buffer == NULL)
        return ps_fail_memory(err);
    in->buffer = buffer;
    in->buffer_size = size;
    if (in->in_buffer)
        in->at = buffer;
    return PS_OK;
}

/*
 * Moves unread bytes to the start of the buffer, with room for `more` bytes
 * after them.  Callers pass the size of bytes that have arrived, or a small
 * number, so a false length in the input cannot cause a large allocation.
 */
static ps_result move_to_buffer(ps_input *in, size_t more, ps_error *err)
{
    ps_result r;

    if (in->in_buffer && in->at != in->buffer) {
        memmove(in->buffer, in->at, in->left);
        in->at = in->buffer;
    }
    if (in->left > SIZE_MAX - more)
        return ps_fail_memory(err);
    r = grow_buffer(in, in->left + more, err);
    if (r != PS_OK)
        return r;
    if (!in->in_buffer && in->left > 0)
        memcpy(in->buffer, in->at, in->left);
    in->at = in->buffer;
    in->in_buffer = true;
    return PS_OK;
}

/*
 * Reads the rest of `want` bytes, which do not fit in a block, and some of the
 * following bytes directly into the buffer.  The buffer grows only as bytes
 * arrive.
 */
static ps_result fill_buffer(ps_input *in, size_t want, ps_error *err)
{
    const size_t room =
        in->buffer_size > in->left ? in->buffer_size - in->left : 0;
    const size_t most = room > PS_IO_BYTES ? room : PS_IO_BYTES;
    size_t n = want - in->left;
    ps_result r = wait_for_input(in, err);

    n = n < most - FOLLOWING_BYTES ? n + FOLLOWING_BYTES : most;
    if (r == PS_OK)
        r = move_to_buffer(in, n, err);
    if (r == PS_OK)
        r = ps_read_ahead_into(in->read_ahead, in->at + in->left, n, &n, err);
    if (r != PS_OK)
        return r;
    in->at_eof = n == 0;
    in->left += n;
    return PS_OK;
}

/* Adds a piece of uncompressed input to the unread bytes. */
static ps_result fill_plain(ps_input *in, ps_error *err)
{
    ps_span span;
    ps_result r = next_span(in, &span, err);

    if (r != PS_OK)
        return r;
    in->at_eof = span.n == 0;
    if (in->at_eof)
        return PS_OK;

    if (!in->in_buffer && span.block == in->block) {
        /* The piece directly follows the unread bytes. */
    } else if (in->left == 0 ||
               (span.block != in->block && in->left <= span.n &&
                in->left <= PS_BLOCK_HEADROOM)) {
        /*
         * Copy the unread bytes to just before the piece.  This is possible
         * only at the start of a block, since the bytes before any other piece
         * may be in use.  Never copy more bytes than have arrived, or many
         * small pieces would make the cost quadratic.
         */
        if (in->left > 0)
            memcpy(span.bytes - in->left, in->at, in->left);
        in->at = span.bytes - in->left;
        in->in_buffer = false;
    } else {
        r = move_to_buffer(in, span.n, err);
        if (r != PS_OK)
            return r;
        memcpy(in->buffer + in->left, span.bytes, span.n);
    }
    in->left += span.n;
    hold_block(in, span.block);
    return PS_OK;
}

/* The limit is the caller's, on memory, or zstd's default. */
static ps_result fail_window(const ps_input *in, ps_error *err)
{
    const int log = window_log(in->window);

    return ps_fail(err, PS_ERR_LIMIT,
                   "zstd, after byte %" PRIu64 " of the decompressed input: "
                   "the frame needs a window of more than %" PRIu64
                   " bytes: %s",
                   in->taken + in->left, (uint64_t)1 << log,
                   log < ZSTD_LARGEST_WINDOW_LOG
                       ? "raise the limit on memory (packstream -M), or "
                         "compress it again with a lower level"
                       : "compress it again without --long");
}

/*
 * Decompresses into `out`.  Within a frame, zstd is called even without new
 * input, because it can still have output that did not fit before.
 */
static ps_result decompress(ps_input *in, ZSTD_outBuffer *out, ps_error *err)
{
    const unsigned char *compressed = in->compressed.src;
    const unsigned char *plain = out->dst;
    const size_t from = in->compressed.pos;
    const size_t to = out->pos;
    size_t hint;

    if (in->compressed.pos == in->compressed.size && !in->in_frame)
        return PS_OK;
    hint = zstd_decompress(in->zstd, &in->progress, out, &in->compressed);
    if (ZSTD_isError(hint))
        switch (ZSTD_getErrorCode(hint)) {
        case ZSTD_error_memory_allocation:
            return ps_fail_memory(err);
        case ZSTD_error_frameParameter_windowTooLarge:
            return fail_window(in, err);
        default:
            return ps_fail(err, PS_ERR_CORRUPT,
                           "zstd, after byte %" PRIu64 " of the decompressed "
                           "input: %s",
                           in->taken + in->left, ZSTD_getErrorName(hint));
        }
    in->in_frame = hint != 0;
    ps_seek_check_see(&in->frames, compressed + from,
                      in->compressed.pos - from, plain + to, out->pos - to,
                      !in->in_frame);
    return PS_OK;
}

/* Appends decompressed bytes, at least one unless the input has ended. */
static ps_result fill_decompressed(ps_input *in, size_t want, ps_error *err)
{
    size_t size = in->buffer_size - (size_t)(in->at - in->buffer);
    ZSTD_outBuffer out;
    ps_result r = PS_OK;

    if (in->left == 0)
        in->at = in->buffer;
    else if (in->left == size || want > size)
        r = move_to_buffer(in, 1, err);
    if (r != PS_OK)
        return r;
    size = in->buffer_size - (size_t)(in->at - in->buffer) - in->left;
    out = (ZSTD_outBuffer){.dst = in->at + in->left, .size = size};

    for (;;) {
        ps_span span;

        r = decompress(in, &out, err);
        if (r != PS_OK)
            return r;
        if (out.pos > 0)
            break;
        if (in->compressed.pos < in->compressed.size)
            continue;
        r = next_span(in, &span, err);
        in->compressed = (ZSTD_inBuffer){.src = &in->nothing};
        if (r != PS_OK)
            return r;
        if (span.n == 0)
            break;
        in->compressed =
            (ZSTD_inBuffer){.src = span.bytes, .size = span.n};
        hold_block(in, span.block);
    }
    if (out.pos == 0 && in->in_frame)
        return ps_fail(err, PS_ERR_TRUNCATED,
                       "the zstd frame is truncated after byte %" PRIu64 " of "
                       "the decompressed input",
                       in->taken + in->left);
    in->left += out.pos;
    in->at_eof = out.pos == 0;
    return PS_OK;
}

static ps_result peek(ps_input *in, size_t want, const unsigned char **data,
                      size_t *got, ps_error *err)
{
    while (in->left < want && !in->at_eof) {
        const bool direct = want > PS_BLOCK_BYTES && !in->threaded;
        ps_result r = in->zstd != NULL ? fill_decompressed(in, want, err)
                      : direct         ? fill_buffer(in, want, err)
                                       : fill_plain(in, err);

        if (r != PS_OK)
            return r;
    }
    *data = in->at;
    *got = in->left < want ? in->left : want;
    return PS_OK;
}

void ps_input_on_wait(ps_input *in, ps_wait_hook *hook, void *context)
{
    in->hook = hook;
    in->hook_context = context;
}

ps_result ps_input_peek_more(ps_input *in, size_t want,
                             const unsigned char **data, size_t *got,
                             ps_error *err)
{
    ps_result r;

    if (in->looked)
        return peek(in, want, data, got, err);
    in->looked = true;
    r = peek(in, 4, data, got, err);
    if (r != PS_OK || *got < 4 || !ps_is_frame_magic(*data))
        return r == PS_OK ? peek(in, want, data, got, err) : r;

    /* The input is compressed, including the bytes already read. */
    r = grow_buffer(in, PS_IO_BYTES, err);
    if (r != PS_OK)
        return r;
    in->zstd = ZSTD_createDCtx();
    if (in->zstd == NULL)
        return ps_fail_memory(err);
    (void)ZSTD_DCtx_setParameter(in->zstd, ZSTD_d_windowLogMax,
                                 window_log(in->window));
    in->compressed = (ZSTD_inBuffer){.src = in->at, .size = in->left};
    in->at = in->buffer;
    in->left = 0;
    in->in_buffer = true;
    in->at_eof = false;
    return peek(in, want, data, got, err);
}

ps_result ps_input_skip(ps_input *in, uint64_t n, ps_error *err)
{
    while (n > 0) {
        const unsigned char *data;
        size_t got;
        ps_result r = ps_input_peek(in, 1, &data, &got, err);

        if (r != PS_OK)
            return r;
        if (got == 0)
            return ps_fail(err, PS_ERR_TRUNCATED,
                           "the input ends at byte %" PRIu64 ", %" PRIu64 " "
                           "bytes before the resume point",
                           in->taken, n);
        got = in->left < n ? in->left : (size_t)n;
        ps_input_take(in, got);
        n -= got;

        /* Seek past bytes that have not been read yet, if possible. */
        if (n > 0 && in->zstd == NULL && !in->at_eof) {
            uint64_t skipped = ps_read_ahead_skip(in->read_ahead, n);

            in->taken += skipped;
            n -= skipped;
        }
    }
    return PS_OK;
}

bool ps_input_can_skip(const ps_input *in)
{
    struct stat st;

    /* If a thread reads the input, the descriptor is a pipe. */
    return in->zstd == NULL && fstat(ps_input_descriptor(in), &st) == 0 &&
           S_ISREG(st.st_mode);
}

ps_result ps_input_read_ahead(ps_input *in, ps_error *err)
{
    in->threaded = true;
    /* At the end of the input, the caller may have closed the descriptor. */
    return in->at_eof ? PS_OK : ps_read_ahead_start(in->read_ahead, err);
}

int ps_input_descriptor(const ps_input *in)
{
    return ps_read_ahead_descriptor(in->read_ahead);
}

ps_result ps_input_open(ps_input **input, int fd, ps_error *err)
{
    ps_input *in = calloc(1, sizeof *in);
    ps_result r;

    *input = NULL;
    if (in == NULL)
        return ps_fail_memory(err);
    in->at = &in->nothing;
    in->buffer_max = SIZE_MAX;
    in->window = (uint64_t)1 << ZSTD_LARGEST_WINDOW_LOG;
    r = ps_pool_open(&in->pool, err);
    if (r == PS_OK)
        r = ps_read_ahead_open(&in->read_ahead, fd, in->pool, err);
    if (r != PS_OK) {
        ps_input_free(in);
        return r;
    }
    *input = in;
    return PS_OK;
}

static void end_input(ps_input *in)
{
    ps_read_ahead_free(in->read_ahead);
    in->read_ahead = NULL;
    ZSTD_freeDCtx(in->zstd);
    in->zstd = NULL;
    if (in->block != NULL)
        ps_block_release(in->block);
    in->block = NULL;
}

ps_result ps_input_reopen(ps_input *in, int fd, ps_error *err)
{
    ps_result r;

    end_input(in);
    ps_pool_reclaim(in->pool);
    in->at = &in->nothing;
    in->left = 0;
    in->taken = 0;
    in->in_buffer = in->in_frame = false;
    in->progress = (zstd_progress){.compressed = 0};
    in->frames = (ps_seek_check){.is_head = in->frames.is_head};
    in->looked = in->at_eof = true; /* in case the open fails */
    r = ps_read_ahead_open(&in->read_ahead, fd, in->pool, err);
    if (r == PS_OK && in->threaded)
        r = ps_read_ahead_start(in->read_ahead, err);
    in->looked = in->at_eof = r != PS_OK;
    return r;
}

void ps_input_free(ps_input *in)
{
    if (in == NULL)
        return;
    end_input(in);
    ps_pool_close(in->pool);
    free(in->buffer);
    free(in);
}
