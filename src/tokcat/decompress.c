/*
 * decompress.c - decompression of gzip and zstd text.
 *
 * SPDX-License-Identifier: MIT
 */

/* Declares z_stream.next_in as a pointer to const. */
#define ZLIB_CONST

#include "tokcat/decompress.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/zstd_stream.h"

struct decompressor {
    compression kind;
    bool whole;      /* the current member or frame is complete */
    const char *why; /* error, after which decompression ends; NULL: none */
    z_stream gzip;
    ZSTD_DCtx *zstd;
    zstd_progress progress;
};

compression compression_of(const unsigned char *first, size_t n)
{
    if (memcmp(first, "\x1f\x8b", n < 2 ? n : 2) == 0)
        return n < 2 ? COMPRESSION_UNKNOWN : COMPRESSION_GZIP;
    n = n < 4 ? n : 4;
    /* A frame, or a skippable frame, with which files of pzstd start. */
    if (memcmp(first, "\x28\xb5\x2f\xfd", n) == 0 ||
        (first[0] >> 4 == 5 && memcmp(first + 1, "\x2a\x4d\x18", n - 1) == 0))
        return n < 4 ? COMPRESSION_UNKNOWN : COMPRESSION_ZSTD;
    return COMPRESSION_NONE;
}

decompressor *decompress_open(compression c)
{
    decompressor *d = calloc(1, sizeof *d);
    bool good;

    if (d == NULL)
        return NULL;
    d->kind = c;
    d->whole = true;
    if (c == COMPRESSION_GZIP) {
        /* Largest window (15), with a gzip header (16). */
        good = inflateInit2(&d->gzip, 15 + 16) == Z_OK;
    } else {
        d->zstd = ZSTD_createDCtx();
        good = d->zstd != NULL;
    }
    if (good)
        return d;
    free(d);
    return NULL;
}

void decompress_free(decompressor *d)
{
    if (d == NULL)
        return;
    if (d->kind == COMPRESSION_GZIP)
        (void)inflateEnd(&d->gzip);
    ZSTD_freeDCtx(d->zstd);
    free(d);
}

static const char *step_gzip(decompressor *d, decompress_buffers *b)
{
    z_stream *z = &d->gzip;
    int result;

    /* Files copied from tapes can be padded with zeros. */
    while (d->whole && b->n_in > 0 && *b->in == 0) {
        b->in++;
        b->n_in--;
    }
    if (d->whole && b->n_in == 0)
        return NULL;
    z->next_in = b->in;
    z->avail_in = b->n_in < UINT_MAX ? (unsigned)b->n_in : UINT_MAX;
    z->next_out = b->out;
    z->avail_out = b->n_out < UINT_MAX ? (unsigned)b->n_out : UINT_MAX;
    result = inflate(z, Z_NO_FLUSH);
    b->n_in -= (size_t)(z->next_in - b->in);
    b->in = z->next_in;
    b->n_out -= (size_t)(z->next_out - b->out);
    b->out = z->next_out;

    d->whole = result == Z_STREAM_END;
    if (d->whole)
        result = inflateReset(z);
    if (result == Z_OK || result == Z_BUF_ERROR)
        return NULL;
    if (result == Z_MEM_ERROR)
        return "out of memory";
    return z->msg != NULL ? z->msg : "not gzip";
}

static const char *step_zstd(decompressor *d, decompress_buffers *b)
{
    ZSTD_inBuffer in = {b->in, b->n_in, 0};
    ZSTD_outBuffer out = {b->out, b->n_out, 0};
    size_t result;

    if (d->whole && b->n_in == 0)
        return NULL;
    result = zstd_decompress(d->zstd, &d->progress, &out, &in);
    b->in += in.pos;
    b->n_in -= in.pos;
    b->out += out.pos;
    b->n_out -= out.pos;
    if (ZSTD_isError(result))
        return ZSTD_getErrorName(result);
    d->whole = result == 0;
    return NULL;
}

const char *decompress_step(decompressor *d, decompress_buffers *b)
{
    if (d->why == NULL)
        d->why = d->kind == COMPRESSION_GZIP ? step_gzip(d, b)
                                             : step_zstd(d, b);
    return d->why;
}

bool decompress_is_whole(const decompressor *d)
{
    return d->whole;
}
