/*
 * input.c - a buffered input that hands out contiguous bytes, decompressed
 * if need be.
 *
 * Plain bytes are handed out where they were read, and stay there for as long
 * as somebody holds the block.  What is left of one block is copied in front
 * of the next; only if there is too much of it, a buffer of our own joins the
 * blocks.  Decompressed bytes lie in it, too.
 *
 * SPDX-License-Identifier: MIT
 */

#include "io/input.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <zstd_errors.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "io/fd.h"
#include "io/zstd_frame.h"

/*
 * No frame may ask for a larger window than the zstd program's default; zstd
 * cannot be told less than the least.
 */
#define ZSTD_LARGEST_WINDOW_LOG 27
#define ZSTD_MIN_WINDOW_LOG 10

/* What zstd takes for input, besides the window. */
#define ZSTD_INPUT_BYTES ((uint64_t)640 << 10)

static int window_log(uint64_t window)
{
    int log = ZSTD_MIN_WINDOW_LOG;

    while (log < ZSTD_LARGEST_WINDOW_LOG && window >> (log + 1) != 0)
        log++;
    return log;
}

void ps_input_set_window(ps_input *s, uint64_t bytes)
{
    s->window = bytes;
}

/* Of a peek the last piece may reach beyond it. */
static uint64_t max_own(uint64_t max)
{
    return ps_mem_sum(max, PS_IO_BYTES);
}

void ps_input_set_max(ps_input *s, uint64_t bytes)
{
    uint64_t own = max_own(bytes);

    s->own_max = own < SIZE_MAX ? (size_t)own : SIZE_MAX;
}

/* Two buffers of our own while one grows. */
uint64_t ps_input_bytes(uint64_t max, uint64_t window, bool threaded)
{
    uint64_t own = ps_mem_array(1, PS_IO_BYTES);
    uint64_t bytes = ps_pool_bytes(ps_read_ahead_blocks(threaded));

    if (max_own(max) > PS_IO_BYTES)
        own = ps_mem_times(2, ps_mem_sum(max_own(max),
                                         PS_MEM_PAGE));
    bytes = ps_mem_sum(bytes, own);
    bytes = ps_mem_sum(bytes, (uint64_t)1 << window_log(window));
    bytes = ps_mem_sum(bytes, ZSTD_INPUT_BYTES);
    bytes = ps_mem_sum(bytes, ps_read_ahead_bytes(threaded));
    return ps_mem_sum(bytes, sizeof(ps_input));
}

/* The next piece; 0 bytes at the end of the input. */
static ps_result next_span(ps_input *s, ps_span *span, ps_error *err)
{
    if (s->hook != NULL && ps_read_ahead_would_wait(s->read_ahead)) {
        ps_result r = s->hook(s->hook_context, err);

        if (r != PS_OK)
            return r;
    }
    return ps_read_ahead_next(s->read_ahead, span, err);
}

/* A block came, and nothing that is left lies in the one before. */
static void adopt(ps_input *s, ps_block *block)
{
    if (block == s->block)
        return;
    ps_block_hold(block);
    if (s->block != NULL)
        ps_block_release(s->block);
    s->block = block;
}

/* ---- The buffer of our own ---- */

/* At least doubles it, so that all bytes are moved but a few times. */
static ps_result grow_own(ps_input *s, size_t min, ps_error *err)
{
    size_t size = s->own_size == 0 ? PS_IO_BYTES : s->own_size;
    unsigned char *own;

    while (size < min) {
        if (size > SIZE_MAX / 2)
            return ps_fail_memory(err);
        size *= 2;
    }
    if (size > s->own_max && min <= s->own_max)
        size = s->own_max;
    if (size <= s->own_size)
        return PS_OK;
    own = realloc(s->own, size);
    if (own == NULL)
        return ps_fail_memory(err);
    s->own = own;
    s->own_size = size;
    if (s->in_own)
        s->at = own;
    return PS_OK;
}

/*
 * Moves what is left to the front of our own buffer, with room behind it for
 * `more` bytes.  These have arrived, or are few, so that a false length costs
 * no memory.
 */
static ps_result move_to_own(ps_input *s, size_t more, ps_error *err)
{
    ps_result r;

    if (s->in_own && s->at != s->own) {
        memmove(s->own, s->at, s->left);
        s->at = s->own;
    }
    if (s->left > SIZE_MAX - more)
        return ps_fail_memory(err);
    r = grow_own(s, s->left + more, err);
    if (r != PS_OK)
        return r;
    if (!s->in_own && s->left > 0)
        memcpy(s->own, s->at, s->left);
    s->at = s->own;
    s->in_own = true;
    return PS_OK;
}

/* ---- Plain input ---- */

/*
 * Whether what is left can be put in front of a piece: in front of a block,
 * that is, for in front of other pieces lies what others may hold.  Never
 * more is copied than has come, or many small pieces would cost much.
 */
static bool can_join_there(const ps_input *s, const ps_span *span)
{
    return s->left == 0 ||
           (span->block != s->block && s->left <= span->n &&
            s->left <= PS_BLOCK_HEADROOM);
}

/* Joins what is left to a piece that does not follow it in memory. */
static ps_result join(ps_input *s, const ps_span *span, ps_error *err)
{
    if (can_join_there(s, span)) {
        if (s->left > 0)
            memcpy(span->bytes - s->left, s->at, s->left);
        s->at = span->bytes - s->left;
        s->in_own = false;
    } else {
        ps_result r = move_to_own(s, span->n, err);

        if (r != PS_OK)
            return r;
        memcpy(s->own + s->left, span->bytes, span->n);
    }
    s->left += span->n;
    adopt(s, span->block);
    return PS_OK;
}

static ps_result fill_plain(ps_input *s, ps_error *err)
{
    ps_span span;
    ps_result r = next_span(s, &span, err);

    if (r != PS_OK)
        return r;
    s->at_eof = span.n == 0;
    if (s->at_eof)
        return PS_OK;
    if (s->in_own || span.block != s->block)
        return join(s, &span, err);
    s->left += span.n;
    return PS_OK;
}

/* ---- Compressed input ---- */

/* Gets more compressed bytes when all were used. */
static ps_result refill_packed(ps_input *s, ps_error *err)
{
    ps_span span;
    ps_result r = next_span(s, &span, err);

    s->in = (ZSTD_inBuffer){.src = &s->nothing};
    if (r != PS_OK)
        return r;
    s->in = (ZSTD_inBuffer){.src = span.bytes, .size = span.n};
    if (span.n > 0)
        adopt(s, span.block);
    return PS_OK;
}

/* What zstd's error is to a caller. */
static ps_result zstd_failed(const ps_input *s, size_t error, ps_error *err)
{
    ZSTD_ErrorCode code = ZSTD_getErrorCode(error);

    if (code == ZSTD_error_memory_allocation)
        return ps_fail_memory(err);
    if (code == ZSTD_error_frameParameter_windowTooLarge)
        return ps_fail(err, PS_ERR_LIMIT,
                       "zstd, after byte %" PRIu64 " of the decompressed "
                       "input: the frame asks for a window of more than "
                       "%" PRIu64 " bytes",
                       s->taken + s->left,
                       (uint64_t)1 << window_log(s->window));
    return ps_fail(err, PS_ERR_CORRUPT,
                   "zstd, after byte %" PRIu64 " of the decompressed input: "
                   "%s",
                   s->taken + s->left, ZSTD_getErrorName(error));
}

/*
 * Lets zstd add to `out`.  It is called inside a frame even without new
 * input, because it may hold output that did not fit the last time.
 */
static ps_result unpack(ps_input *s, ZSTD_outBuffer *out, ps_error *err)
{
    const unsigned char *packed = s->in.src;
    const unsigned char *plain = out->dst;
    const size_t taken = s->in.pos;
    const size_t given = out->pos;
    size_t hint;

    if (s->in.pos == s->in.size && !s->in_frame)
        return PS_OK;
    hint = ZSTD_decompressStream(s->zstd, out, &s->in);
    if (ZSTD_isError(hint))
        return zstd_failed(s, hint, err);
    s->in_frame = hint != 0;
    ps_frame_check_see(&s->frames, packed + taken, s->in.pos - taken,
                       plain + given, out->pos - given, !s->in_frame);
    return PS_OK;
}

/* Unpacks into `out` until there is something, or the input ends. */
static ps_result unpack_some(ps_input *s, ZSTD_outBuffer *out,
                             ps_error *err)
{
    for (;;) {
        ps_result r = unpack(s, out, err);

        if (r == PS_OK && out->pos == 0 && s->in.pos == s->in.size)
            r = refill_packed(s, err);
        if (r != PS_OK || out->pos > 0)
            return r;
        if (s->in.size == 0)
            break;
    }
    if (s->in_frame)
        return ps_fail(err, PS_ERR_TRUNCATED,
                       "the zstd frame is cut after byte %" PRIu64
                       " of the decompressed input",
                       s->taken + s->left);
    return PS_OK;
}

/* Adds decompressed bytes behind what is left; none only at the end. */
static ps_result fill_unpacked(ps_input *s, size_t want, ps_error *err)
{
    ZSTD_outBuffer out;
    size_t room = s->own_size - (size_t)(s->at - s->own);
    ps_result r = PS_OK;

    if (s->left == 0)
        s->at = s->own;
    else if (s->left == room || want > room)
        r = move_to_own(s, 1, err);
    if (r != PS_OK)
        return r;
    room = s->own_size - (size_t)(s->at - s->own) - s->left;
    out = (ZSTD_outBuffer){.dst = s->at + s->left, .size = room};
    r = unpack_some(s, &out, err);
    if (r != PS_OK)
        return r;
    s->left += out.pos;
    s->at_eof = out.pos == 0;
    return PS_OK;
}

/* ---- Both ---- */

static ps_result peek(ps_input *s, size_t want, const unsigned char **data,
                      size_t *got, ps_error *err)
{
    while (s->left < want && !s->at_eof) {
        ps_result r = s->zstd != NULL ? fill_unpacked(s, want, err)
                                      : fill_plain(s, err);

        if (r != PS_OK)
            return r;
    }
    *data = s->at;
    *got = s->left < want ? s->left : want;
    return PS_OK;
}

void ps_input_on_wait(ps_input *s, ps_wait_hook *hook, void *context)
{
    s->hook = hook;
    s->hook_context = context;
}

/* What was read so far becomes the start of the compressed input. */
static ps_result start_zstd(ps_input *s, ps_error *err)
{
    ps_result r = grow_own(s, PS_IO_BYTES, err);

    if (r != PS_OK)
        return r;
    s->zstd = ZSTD_createDCtx();
    if (s->zstd == NULL)
        return ps_fail_memory(err);
    (void)ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax,
                                 window_log(s->window));
    s->in = (ZSTD_inBuffer){.src = s->at, .size = s->left};
    s->at = s->own;
    s->left = 0;
    s->in_own = true;
    s->at_eof = false;
    return PS_OK;
}

static ps_result detect_zstd(ps_input *s, ps_error *err)
{
    const unsigned char *head;
    size_t got;
    ps_result r = peek(s, 4, &head, &got, err);

    if (r != PS_OK || got < 4)
        return r;
    return ps_is_frame_magic(head) ? start_zstd(s, err) : PS_OK;
}

ps_result ps_input_peek_more(ps_input *s, size_t want,
                             const unsigned char **data, size_t *got,
                             ps_error *err)
{
    ps_result r = PS_OK;

    if (!s->looked) {
        s->looked = true;
        r = detect_zstd(s, err);
    }
    return r == PS_OK ? peek(s, want, data, got, err) : r;
}

/* Takes of what has come, and so far as it can be done without reading. */
static uint64_t skip_unread(ps_input *s, uint64_t n)
{
    uint64_t skipped = s->left < n ? s->left : n;

    ps_input_take(s, (size_t)skipped);
    if (skipped < n && s->zstd == NULL && !s->at_eof) {
        uint64_t more = ps_read_ahead_skip(s->read_ahead, n - skipped);

        s->taken += more;
        skipped += more;
    }
    return skipped;
}

ps_result ps_input_skip(ps_input *s, uint64_t n, ps_error *err)
{
    while (n > 0) {
        const unsigned char *data;
        size_t got;
        ps_result r = ps_input_peek(s, 1, &data, &got, err);

        if (r != PS_OK)
            return r;
        if (got == 0)
            return ps_fail(err, PS_ERR_TRUNCATED,
                           "the input ends after byte %" PRIu64
                           ", %" PRIu64 " before where it is to go on",
                           s->taken, n);
        n -= skip_unread(s, n);
    }
    return PS_OK;
}

bool ps_input_can_skip(const ps_input *s)
{
    struct stat st;

    /* With a thread the descriptor is a pipe. */
    return s->zstd == NULL && fstat(ps_input_descriptor(s), &st) == 0 &&
           S_ISREG(st.st_mode);
}

ps_result ps_input_read_ahead(ps_input *s, ps_error *err)
{
    s->threaded = true;
    /* Behind the end nothing is read: the descriptor may be closed by now. */
    return s->at_eof ? PS_OK : ps_read_ahead_start(s->read_ahead, err);
}

void ps_input_set_head(ps_input *s, ps_is_head *is_head)
{
    s->frames.is_head = is_head;
}

int ps_input_descriptor(const ps_input *s)
{
    return ps_read_ahead_descriptor(s->read_ahead);
}

ps_result ps_input_open(ps_input **input, int fd, ps_error *err)
{
    ps_input *s = calloc(1, sizeof *s);
    ps_result r;

    *input = NULL;
    if (s == NULL)
        return ps_fail_memory(err);
    s->at = &s->nothing;
    s->own_max = SIZE_MAX;
    s->window = (uint64_t)1 << ZSTD_LARGEST_WINDOW_LOG;
    r = ps_pool_open(&s->pool, err);
    if (r == PS_OK)
        r = ps_read_ahead_open(&s->read_ahead, fd, s->pool, err);
    if (r != PS_OK) {
        ps_input_free(s);
        return r;
    }
    *input = s;
    return PS_OK;
}

static void end_input(ps_input *s)
{
    ps_read_ahead_free(s->read_ahead);
    s->read_ahead = NULL;
    ZSTD_freeDCtx(s->zstd);
    s->zstd = NULL;
    if (s->block != NULL)
        ps_block_release(s->block);
    s->block = NULL;
}

ps_result ps_input_reopen(ps_input *s, int fd, ps_error *err)
{
    ps_result r;

    end_input(s);
    ps_pool_reclaim(s->pool);
    s->at = &s->nothing;
    s->left = 0;
    s->taken = 0;
    s->in_own = s->in_frame = false;
    s->frames = (ps_frame_check){.is_head = s->frames.is_head};
    s->looked = s->at_eof = true; /* if it fails */
    r = ps_read_ahead_open(&s->read_ahead, fd, s->pool, err);
    if (r == PS_OK && s->threaded)
        r = ps_read_ahead_start(s->read_ahead, err);
    s->looked = s->at_eof = r != PS_OK;
    return r;
}

void ps_input_free(ps_input *s)
{
    if (s == NULL)
        return;
    end_input(s);
    ps_pool_close(s->pool);
    free(s->own);
    free(s);
}
