/*
 * source.c - a buffered input that hands out contiguous bytes, decompressed
 * if need be.
 *
 * One buffer holds what was read and not yet taken.  A peek that wants more
 * than is there moves the rest to the front and reads on.  With zstd input
 * a second buffer holds compressed bytes and libzstd fills the first.
 *
 * SPDX-License-Identifier: MIT
 */

#include "source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>
#include <zstd_errors.h>

#include "bytes.h"
#include "error.h"
#include "io.h"

/* No frame may ask for a larger window than the zstd program's default. */
#define ZSTD_LARGEST_WINDOW_LOG 27

/* Frames start with one of these; skippable frames with any of sixteen. */
#define ZSTD_FRAME UINT32_C(0xFD2FB528)
#define ZSTD_SKIPPABLE UINT32_C(0x184D2A50)

struct ps_source {
    int fd;
    bool looked; /* for the magic of zstd */
    bool at_eof;
    unsigned char *buf;
    size_t size;
    size_t begin; /* of what was read and not taken */
    size_t end;
    uint64_t taken;
    ps_wait_hook *hook;
    void *hook_context;
    ZSTD_DCtx *zstd; /* NULL: the input is plain */
    unsigned char *packed; /* compressed bytes */
    ZSTD_inBuffer in;      /* what of `packed` is still to be used */
    bool in_frame;
};

/* read(2) into `to`; 0 bytes at the end of the input. */
static ps_result read_some(ps_source *s, unsigned char *to, size_t room,
                           size_t *got, ps_error *err)
{
    ssize_t n;

    if (s->hook != NULL && ps_would_wait(s->fd)) {
        ps_result r = s->hook(s->hook_context, err);

        if (r != PS_OK)
            return r;
    }
    n = ps_read(s->fd, to, room);
    if (n < 0)
        return ps_fail_errno(err, "cannot read");
    *got = (size_t)n;
    return PS_OK;
}

/* Gets more compressed bytes when all were used. */
static ps_result refill_packed(ps_source *s, size_t *got, ps_error *err)
{
    ps_result r = read_some(s, s->packed, PS_IO_BYTES, got, err);

    s->in = (ZSTD_inBuffer){.src = s->packed, .size = r == PS_OK ? *got : 0};
    return r;
}

/* What zstd's error is to a caller. */
static ps_result zstd_failed(const ps_source *s, size_t error, ps_error *err)
{
    ZSTD_ErrorCode code = ZSTD_getErrorCode(error);

    if (code == ZSTD_error_memory_allocation)
        return ps_fail_memory(err);
    return ps_fail(err,
                   code == ZSTD_error_frameParameter_windowTooLarge
                       ? PS_ERR_LIMIT
                       : PS_ERR_CORRUPT,
                   "zstd, after byte %" PRIu64 " of the decompressed input: "
                   "%s",
                   s->taken + (s->end - s->begin),
                   ZSTD_getErrorName(error));
}

/*
 * Lets zstd add to `out`.  It is called inside a frame even without new
 * input, because it may hold output that did not fit the last time.
 */
static ps_result unpack(ps_source *s, ZSTD_outBuffer *out, ps_error *err)
{
    size_t hint;

    if (s->in.pos == s->in.size && !s->in_frame)
        return PS_OK;
    hint = ZSTD_decompressStream(s->zstd, out, &s->in);
    if (ZSTD_isError(hint))
        return zstd_failed(s, hint, err);
    s->in_frame = hint != 0;
    return PS_OK;
}

/* Adds decompressed bytes at the end of the buffer; 0 only at the end. */
static ps_result fill_unpacked(ps_source *s, size_t *got, ps_error *err)
{
    ZSTD_outBuffer out = {.dst = s->buf + s->end, .size = s->size - s->end};

    for (;;) {
        size_t more = 0;
        ps_result r = unpack(s, &out, err);

        *got = out.pos;
        if (r != PS_OK || out.pos > 0)
            return r;
        if (s->in.pos == s->in.size)
            r = refill_packed(s, &more, err);
        if (r != PS_OK)
            return r;
        if (s->in.size == 0)
            break;
    }
    if (s->in_frame)
        return ps_fail(err, PS_ERR_TRUNCATED,
                       "the zstd frame is cut after byte %" PRIu64
                       " of the decompressed input",
                       s->taken + (s->end - s->begin));
    return PS_OK;
}

static ps_result fill(ps_source *s, ps_error *err)
{
    size_t got = 0;
    ps_result r = s->zstd != NULL
                      ? fill_unpacked(s, &got, err)
                      : read_some(s, s->buf + s->end, s->size - s->end,
                                  &got, err);

    if (r != PS_OK)
        return r;
    s->end += got;
    s->at_eof = got == 0;
    return PS_OK;
}

/*
 * Makes room behind what is held.  The buffer doubles, but only when it is
 * full of bytes that arrived, so a false length costs no memory.
 */
static ps_result make_room(ps_source *s, ps_error *err)
{
    unsigned char *larger;

    if (s->begin > 0) {
        memmove(s->buf, s->buf + s->begin, s->end - s->begin);
        s->end -= s->begin;
        s->begin = 0;
    }
    if (s->end < s->size)
        return PS_OK;
    if (s->size > SIZE_MAX / 2)
        return ps_fail_memory(err);
    larger = realloc(s->buf, s->size * 2);
    if (larger == NULL)
        return ps_fail_memory(err);
    s->buf = larger;
    s->size *= 2;
    return PS_OK;
}

static ps_result peek(ps_source *s, size_t want, const unsigned char **data,
                      size_t *got, ps_error *err)
{
    while (s->end - s->begin < want && !s->at_eof) {
        ps_result r = PS_OK;

        if (s->begin == s->end)
            s->begin = s->end = 0;
        else if (s->end == s->size || want > s->size - s->begin)
            r = make_room(s, err);
        if (r == PS_OK)
            r = fill(s, err);
        if (r != PS_OK)
            return r;
    }
    *data = s->buf + s->begin;
    *got = s->end - s->begin < want ? s->end - s->begin : want;
    return PS_OK;
}

void ps_source_take(ps_source *s, size_t n)
{
    s->begin += n;
    s->taken += n;
}

uint64_t ps_source_offset(const ps_source *s)
{
    return s->taken;
}

void ps_source_on_wait(ps_source *s, ps_wait_hook *hook, void *context)
{
    s->hook = hook;
    s->hook_context = context;
}

/* What was read so far becomes the start of the compressed input. */
static ps_result start_zstd(ps_source *s, ps_error *err)
{
    s->packed = malloc(PS_IO_BYTES);
    s->zstd = ZSTD_createDCtx();
    if (s->packed == NULL || s->zstd == NULL)
        return ps_fail_memory(err);
    (void)ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax,
                                 ZSTD_LARGEST_WINDOW_LOG);
    memcpy(s->packed, s->buf, s->end);
    s->in = (ZSTD_inBuffer){.src = s->packed, .size = s->end};
    s->begin = s->end = 0;
    s->at_eof = false;
    return PS_OK;
}

static ps_result detect_zstd(ps_source *s, ps_error *err)
{
    const unsigned char *head;
    size_t got;
    uint32_t magic;
    ps_result r = peek(s, 4, &head, &got, err);

    if (r != PS_OK || got < 4)
        return r;
    magic = load_u32(head);
    if (magic == ZSTD_FRAME || (magic & ~UINT32_C(15)) == ZSTD_SKIPPABLE)
        return start_zstd(s, err);
    return PS_OK;
}

ps_result ps_source_peek(ps_source *s, size_t want,
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

ps_result ps_source_open(ps_source **source, int fd, ps_error *err)
{
    ps_source *s = calloc(1, sizeof *s);
    ps_result r = PS_OK;

    *source = NULL;
    if (s == NULL)
        return ps_fail_memory(err);
    s->fd = fd;
    s->size = PS_IO_BYTES;
    s->buf = malloc(s->size);
    if (s->buf == NULL)
        r = ps_fail_memory(err);
    ps_widen_pipe(fd);
    if (r != PS_OK) {
        ps_source_free(s);
        return r;
    }
    *source = s;
    return PS_OK;
}

void ps_source_free(ps_source *s)
{
    if (s == NULL)
        return;
    ZSTD_freeDCtx(s->zstd);
    free(s->packed);
    free(s->buf);
    free(s);
}
