/*
 * zstd_frame.c - compress and decompress single zstd frames.
 *
 * SPDX-License-Identifier: MIT
 */

#include "io/zstd_frame.h"

#include <stdlib.h>

#include <zstd_errors.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "bytes.h"

struct ps_compressor {
    ZSTD_CCtx *zstd;
    unsigned char *frame; /* last frame; owned */
    size_t size;          /* allocated for frame, bytes */
};

bool ps_is_frame_magic(const unsigned char *bytes)
{
    uint32_t magic = load_u32(bytes);

    return magic == ZSTD_MAGICNUMBER ||
           (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

static ps_result zstd_failed(size_t error, ps_result code, ps_error *err)
{
    if (ZSTD_getErrorCode(error) == ZSTD_error_memory_allocation)
        return ps_fail_memory(err);
    return ps_fail(err, code, "zstd: %s", ZSTD_getErrorName(error));
}

/*
 * Memory of a zstd context per level, in KiB, for frames of any size: the
 * maximum measured with versions up to 1.5.4, plus one eighth as a margin for
 * other versions.
 */
static const uint32_t level_kib[] = {
    1431,   639,    855,    1431,   2871,   4023,   4023,   7479,
    7479,   14391,  28215,  28215,  55863,  55863,  55863,  74295,
    74295,  74295,  74295,  93599,  185759, 370079, 748109,
};

/* Memory for a small frame: bytes per byte of content, and a constant. */
#define FRAME_FACTOR 18
#define FRAME_MIN (UINT64_C(2) << 20)

uint64_t ps_compressor_bytes(int level, size_t n)
{
    const size_t levels = sizeof level_kib / sizeof level_kib[0];
    size_t known = level < 0 ? 0 : (size_t)level;
    uint64_t power = 1;
    uint64_t zstd;

    known = known < levels ? known : levels - 1;
    while (power < n)
        power *= 2;
    zstd = ps_mem_min((uint64_t)level_kib[known] << 10,
                      FRAME_MIN + FRAME_FACTOR * power);
    return ps_mem_sum(ps_mem_sum(sizeof(ps_compressor), zstd),
                      ps_mem_array(1, ZSTD_compressBound(n)));
}

ps_result ps_compressor_open(ps_compressor **compressor, int level,
                             ps_error *err)
{
    const ZSTD_bounds levels = ZSTD_cParam_getBounds(ZSTD_c_compressionLevel);
    ps_compressor *c;

    *compressor = NULL;
    if (level < levels.lowerBound || level > levels.upperBound)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the zstd level must be from %d to %d, not %d",
                       levels.lowerBound, levels.upperBound, level);
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return ps_fail_memory(err);
    c->zstd = ZSTD_createCCtx();
    if (c->zstd == NULL) {
        ps_compressor_free(c);
        return ps_fail_memory(err);
    }
    (void)ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, level);
    (void)ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, 1);
    *compressor = c;
    return PS_OK;
}

ps_result ps_compress_frame(ps_compressor *c, const void *data, size_t n,
                            const unsigned char **frame, size_t *bytes,
                            ps_error *err)
{
    size_t bound = ZSTD_compressBound(n);
    size_t made;

    if (ZSTD_isError(bound) || bound < n)
        return ps_fail(err, PS_ERR_LIMIT,
                       "%zu bytes are too large for a frame", n);
    if (bound > c->size) {
        free(c->frame);
        c->size = 0;
        c->frame = malloc(bound);
        if (c->frame == NULL)
            return ps_fail_memory(err);
        c->size = bound;
    }
    made = ZSTD_compress2(c->zstd, c->frame, c->size, data, n);
    if (ZSTD_isError(made))
        return zstd_failed(made, PS_ERR_LIMIT, err);
    *frame = c->frame;
    *bytes = made;
    return PS_OK;
}

void ps_compressor_free(ps_compressor *c)
{
    if (c == NULL)
        return;
    ZSTD_freeCCtx(c->zstd);
    free(c->frame);
    free(c);
}

/*
 * One-shot decompression uses the output as the window, so memory does not
 * depend on the window or size that the frame declares.
 */
ps_result ps_decompress_frame(ZSTD_DCtx *zstd, const unsigned char *frame,
                              size_t n, unsigned char *to, size_t plain,
                              ps_error *err)
{
    size_t got = ZSTD_decompressDCtx(zstd, to, plain, frame, n);

    if (ZSTD_isError(got))
        return zstd_failed(got, PS_ERR_CORRUPT, err);
    if (got != plain)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the contents have %zu bytes, but the seek table lists "
                       "%zu",
                       got, plain);
    return PS_OK;
}
