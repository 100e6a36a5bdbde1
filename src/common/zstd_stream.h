/*
 * zstd_stream.h - zstd decompression that accepts or rejects a frame regardless
 * of how the input is split.
 *
 * zstd checks a frame more strictly if it gets the whole frame in one call:
 * only then does it reject some kinds of empty blocks, and an empty last block
 * if the content size differs from the header.  The result must not depend on
 * buffer boundaries, so zstd never gets a whole frame here and the content size
 * is checked separately.  One dependence remains: how much is decompressed
 * before an error, since a failing call returns no output.
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
    /* first bytes of the frame; a header is at most 18 bytes */
    unsigned char header[18];
    uint64_t compressed; /* bytes of the frame consumed so far */
    uint64_t plain;      /* bytes of its content produced so far */
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

    /* After the header, zstd no longer looks for the end of the frame. */
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
