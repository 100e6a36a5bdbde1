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
#define ZSTD_LEAST_WINDOW_LOG 10

/* What zstd takes for input, besides the window. */
#define ZSTD_INPUT_BYTES ((uint64_t)640 << 10)

static int window_log(uint64_t window)
{
    int log = ZSTD_LEAST_WINDOW_LOG;

    while (log < ZSTD_LARGEST_WINDOW_LOG && window >> (log + 1) != 0)
        log++;
    return log;
}

void ps_source_set_window(ps_source *s, uint64_t bytes)
{
    s->window = bytes;
}

/* Of a peek the last piece may reach beyond it. */
static uint64_t most_own(uint64_t most)
{
    return ps_amount_sum(most, PS_IO_BYTES);
}

void ps_source_set_most(ps_source *s, uint64_t bytes)
{
    uint64_t own = most_own(bytes);

    s->own_most = own < SIZE_MAX ? (size_t)own : SIZE_MAX;
}

/* Two buffers of our own while one grows. */
uint64_t ps_source_bytes(uint64_t most, uint64_t window, bool threaded)
{
    uint64_t own = ps_amount_array(1, PS_IO_BYTES);
    uint64_t bytes = ps_pool_bytes(ps_ahead_blocks(threaded));

    if (most_own(most) > PS_IO_BYTES)
        own = ps_amount_times(2, ps_amount_sum(most_own(most),
                                               PS_AMOUNT_PAGE));
    bytes = ps_amount_sum(bytes, own);
    bytes = ps_amount_sum(bytes, (uint64_t)1 << window_log(window));
    bytes = ps_amount_sum(bytes, ZSTD_INPUT_BYTES);
    bytes = ps_amount_sum(bytes, ps_ahead_bytes(threaded));
    return ps_amount_sum(bytes, sizeof(ps_source));
}

/* The next piece; 0 bytes at the end of the input. */
static ps_result next_span(ps_source *s, ps_span *span, ps_error *err)
{
    if (s->hook != NULL && ps_ahead_would_wait(s->ahead)) {
        ps_result r = s->hook(s->hook_context, err);

        if (r != PS_OK)
            return r;
    }
    return ps_ahead_next(s->ahead, span, err);
}

/* A block came, and nothing that is left lies in the one before. */
static void adopt(ps_source *s, ps_block *block)
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
static ps_result grow_own(ps_source *s, size_t least, ps_error *err)
{
    size_t size = s->own_size == 0 ? PS_IO_BYTES : s->own_size;
    unsigned char *own;

    while (size < least) {
        if (size > SIZE_MAX / 2)
            return ps_fail_memory(err);
        size *= 2;
    }
    if (size > s->own_most && least <= s->own_most)
        size = s->own_most;
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
static ps_result move_to_own(ps_source *s, size_t more, ps_error *err)
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
static bool can_join_there(const ps_source *s, const ps_span *span)
{
    return s->left == 0 ||
           (span->block != s->block && s->left <= span->n &&
            s->left <= PS_BLOCK_HEADROOM);
}

/* Joins what is left to a piece that does not follow it in memory. */
static ps_result join(ps_source *s, const ps_span *span, ps_error *err)
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

static ps_result fill_plain(ps_source *s, ps_error *err)
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
static ps_result refill_packed(ps_source *s, ps_error *err)
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
static ps_result zstd_failed(const ps_source *s, size_t error, ps_error *err)
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
static ps_result unpack(ps_source *s, ZSTD_outBuffer *out, ps_error *err)
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
static ps_result unpack_some(ps_source *s, ZSTD_outBuffer *out,
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
static ps_result fill_unpacked(ps_source *s, size_t want, ps_error *err)
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

static ps_result peek(ps_source *s, size_t want, const unsigned char **data,
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

void ps_source_on_wait(ps_source *s, ps_wait_hook *hook, void *context)
{
    s->hook = hook;
    s->hook_context = context;
}

/* What was read so far becomes the start of the compressed input. */
static ps_result start_zstd(ps_source *s, ps_error *err)
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

static ps_result detect_zstd(ps_source *s, ps_error *err)
{
    const unsigned char *head;
    size_t got;
    ps_result r = peek(s, 4, &head, &got, err);

    if (r != PS_OK || got < 4)
        return r;
    return ps_is_frame_magic(head) ? start_zstd(s, err) : PS_OK;
}

ps_result ps_source_peek_more(ps_source *s, size_t want,
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
static uint64_t skip_unread(ps_source *s, uint64_t n)
{
    uint64_t skipped = s->left < n ? s->left : n;

    ps_source_take(s, (size_t)skipped);
    if (skipped < n && s->zstd == NULL && !s->at_eof) {
        uint64_t more = ps_ahead_skip(s->ahead, n - skipped);

        s->taken += more;
        skipped += more;
    }
    return skipped;
}

ps_result ps_source_skip(ps_source *s, uint64_t n, ps_error *err)
{
    while (n > 0) {
        const unsigned char *data;
        size_t got;
        ps_result r = ps_source_peek(s, 1, &data, &got, err);

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

bool ps_source_can_skip(const ps_source *s)
{
    struct stat st;

    /* With a thread the descriptor is a pipe. */
    return s->zstd == NULL && fstat(ps_source_descriptor(s), &st) == 0 &&
           S_ISREG(st.st_mode);
}

ps_result ps_source_read_ahead(ps_source *s, ps_error *err)
{
    s->threaded = true;
    /* Behind the end nothing is read: the descriptor may be closed by now. */
    return s->at_eof ? PS_OK : ps_ahead_start(s->ahead, err);
}

void ps_source_set_head(ps_source *s, ps_is_head *is_head)
{
    s->frames.is_head = is_head;
}

int ps_source_descriptor(const ps_source *s)
{
    return ps_ahead_descriptor(s->ahead);
}

ps_result ps_source_open(ps_source **source, int fd, ps_error *err)
{
    ps_source *s = calloc(1, sizeof *s);
    ps_result r;

    *source = NULL;
    if (s == NULL)
        return ps_fail_memory(err);
    s->at = &s->nothing;
    s->own_most = SIZE_MAX;
    s->window = (uint64_t)1 << ZSTD_LARGEST_WINDOW_LOG;
    r = ps_pool_open(&s->pool, err);
    if (r == PS_OK)
        r = ps_ahead_open(&s->ahead, fd, s->pool, err);
    if (r != PS_OK) {
        ps_source_free(s);
        return r;
    }
    *source = s;
    return PS_OK;
}

static void end_input(ps_source *s)
{
    ps_ahead_free(s->ahead);
    s->ahead = NULL;
    ZSTD_freeDCtx(s->zstd);
    s->zstd = NULL;
    if (s->block != NULL)
        ps_block_release(s->block);
    s->block = NULL;
}

ps_result ps_source_reopen(ps_source *s, int fd, ps_error *err)
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
    r = ps_ahead_open(&s->ahead, fd, s->pool, err);
    if (r == PS_OK && s->threaded)
        r = ps_ahead_start(s->ahead, err);
    s->looked = s->at_eof = r != PS_OK;
    return r;
}

void ps_source_free(ps_source *s)
{
    if (s == NULL)
        return;
    end_input(s);
    ps_pool_close(s->pool);
    free(s->own);
    free(s);
}
