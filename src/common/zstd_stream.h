/*
 * zstd_stream.h - zstd decompression that accepts or rejects a frame regardless
 * of how the input is split.
 *
 * zstd checks a frame more strictly if one call gets the whole frame: only then
 * does it reject some kinds of empty blocks, and an empty last block if the
 * content size differs from the header.  The result must not depend on buffer
 * boundaries, so this function never passes a whole frame to zstd, and checks
 * the content size itself.  Only the amount of output before an error still
 * depends on the boundaries, since a failing call returns no output.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef COMMON_ZSTD_STREAM_H
#define COMMON_ZSTD_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include <zstd.h>
#include <zstd_errors.h>

/* Progress within a frame.  Zero-initialise before the first frame. */
typedef struct zstd_progress {
    /* first bytes of the frame; a header has at most 18 bytes */
    unsigned char header[18];
    uint64_t compressed; /* bytes of the frame consumed so far */
    uint64_t plain;      /* bytes of content produced so far */
} zstd_progress;

/*
 * Like ZSTD_decompressStream: returns 0 at the end of a frame, otherwise a hint
 * or an error code.  Consumes one byte per call while within a header.
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

    /* zstd looks for a whole frame only while it reads the header. */
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
