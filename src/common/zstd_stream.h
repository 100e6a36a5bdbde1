/*
 * zstd_stream.h - zstd frames, good or bad however they are cut.
 *
 * zstd is stricter about a frame that it sees as a whole than about one that
 * comes in pieces.  It refuses some kinds of empty blocks then, and an empty
 * last block if the content has another size than the header says.  How an
 * input is cut must not matter, so here zstd never sees a whole frame, and the
 * size is compared.  Only how much comes before damage still depends on the
 * cut: a call that fails gives nothing.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef COMMON_ZSTD_STREAM_H
#define COMMON_ZSTD_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include <zstd.h>
#include <zstd_errors.h>

/* A frame that passes.  All zero before the first. */
typedef struct zstd_progress {
    unsigned char header[18]; /* its first bytes: no header is longer */
    uint64_t compressed;      /* its bytes so far, */
    uint64_t plain;           /* and those of its content */
} zstd_progress;

/*
 * As ZSTD_decompressStream: 0 where a frame ends, else a hint or an error.  Of
 * a header it takes a byte a call.
 */
static inline size_t zstd_decompress(ZSTD_DCtx *zstd, zstd_progress *f,
                                     ZSTD_outBuffer *out, ZSTD_inBuffer *in)
{
    const unsigned char *packed = in->src;
    ZSTD_inBuffer some = *in;
    size_t before = out->pos;
    size_t header = sizeof f->header;
    size_t hint;
    uint64_t size;

    /* Behind its header, zstd no longer looks for the end of a frame. */
    if (f->compressed < header && in->pos < in->size) {
        f->header[f->compressed] = packed[in->pos];
        some.size = in->pos + 1;
    }
    hint = ZSTD_decompressStream(zstd, out, &some);
    f->compressed += some.pos - in->pos;
    f->plain += out->pos - before;
    in->pos = some.pos;
    if (hint != 0)
        return hint;

    header = f->compressed < header ? (size_t)f->compressed : header;
    size = ZSTD_getFrameContentSize(f->header, header);
    if (size < ZSTD_CONTENTSIZE_ERROR && size != f->plain)
        return (size_t)0 - ZSTD_error_corruption_detected;
    f->compressed = f->plain = 0;
    return 0;
}

#endif
