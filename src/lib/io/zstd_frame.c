/*
 * zstd_frame.c - making and opening zstd frames, each by itself.
 *
 * SPDX-License-Identifier: MIT
 */

#include "io/zstd_frame.h"

#include <stdlib.h>

#include <zstd.h>
#include <zstd_errors.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "bytes.h"

struct ps_compressor {
    ZSTD_CCtx *zstd;
    unsigned char *out;
    size_t room;
};

struct ps_decompressor {
    ZSTD_DCtx *zstd;
};

bool ps_is_frame_magic(const unsigned char *bytes)
{
    uint32_t magic = load_u32(bytes);

    return magic == ZSTD_MAGICNUMBER ||
           (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

int ps_frame_level_min(void)
{
    return ZSTD_cParam_getBounds(ZSTD_c_compressionLevel).lowerBound;
}

int ps_frame_level_max(void)
{
    return ZSTD_cParam_getBounds(ZSTD_c_compressionLevel).upperBound;
}

static ps_result zstd_failed(size_t error, ps_result code, ps_error *err)
{
    if (ZSTD_getErrorCode(error) == ZSTD_error_memory_allocation)
        return ps_fail_memory(err);
    return ps_fail(err, code, "zstd: %s", ZSTD_getErrorName(error));
}

/*
 * What zstd takes by level, in KiB, however large the frame is: measured with
 * versions 1.5.4 and before, and an eighth more, as versions differ.
 */
static const uint32_t level_kib[] = {
    1431,   639,    855,    1431,   2871,   4023,   4023,   7479,
    7479,   14391,  28215,  28215,  55863,  55863,  55863,  74295,
    74295,  74295,  74295,  93599,  185759, 370079, 748109,
};

/* Of small frames: so many bytes for each of theirs, and these besides. */
#define FRAME_FACTOR 18
#define FRAME_MIN (UINT64_C(2) << 20)

static uint64_t zstd_bytes(int level, size_t n)
{
    const size_t levels = sizeof level_kib / sizeof level_kib[0];
    size_t known = level < 0 ? 0 : (size_t)level;
    uint64_t power = 1;

    known = known < levels ? known : levels - 1;
    while (power < n)
        power *= 2;
    return ps_mem_min((uint64_t)level_kib[known] << 10,
                      FRAME_MIN + FRAME_FACTOR * power);
}

uint64_t ps_compressor_bytes(int level, size_t n)
{
    uint64_t bytes = ps_mem_sum(sizeof(ps_compressor),
                                zstd_bytes(level, n));

    return ps_mem_sum(bytes, ps_mem_array(1, ZSTD_compressBound(n)));
}

ps_result ps_compressor_open(ps_compressor **maker, int level,
                             ps_error *err)
{
    ps_compressor *m;

    *maker = NULL;
    if (level < ps_frame_level_min() || level > ps_frame_level_max())
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "zstd has the levels %d to %d, not %d",
                       ps_frame_level_min(), ps_frame_level_max(), level);
    m = calloc(1, sizeof *m);
    if (m == NULL)
        return ps_fail_memory(err);
    m->zstd = ZSTD_createCCtx();
    if (m->zstd == NULL) {
        ps_compressor_free(m);
        return ps_fail_memory(err);
    }
    (void)ZSTD_CCtx_setParameter(m->zstd, ZSTD_c_compressionLevel, level);
    (void)ZSTD_CCtx_setParameter(m->zstd, ZSTD_c_checksumFlag, 1);
    *maker = m;
    return PS_OK;
}

/* Room for whatever becomes of `n` bytes. */
static ps_result make_room(ps_compressor *m, size_t n, ps_error *err)
{
    size_t room = ZSTD_compressBound(n);

    if (ZSTD_isError(room) || room < n)
        return ps_fail(err, PS_ERR_LIMIT,
                       "%zu bytes are too many for a frame", n);
    if (room <= m->room)
        return PS_OK;
    free(m->out);
    m->room = 0;
    m->out = malloc(room);
    if (m->out == NULL)
        return ps_fail_memory(err);
    m->room = room;
    return PS_OK;
}

ps_result ps_compress_frame(ps_compressor *m, const void *data, size_t n,
                            const unsigned char **frame, size_t *bytes,
                            ps_error *err)
{
    ps_result r = make_room(m, n, err);
    size_t made;

    if (r != PS_OK)
        return r;
    made = ZSTD_compress2(m->zstd, m->out, m->room, data, n);
    if (ZSTD_isError(made))
        return zstd_failed(made, PS_ERR_LIMIT, err);
    *frame = m->out;
    *bytes = made;
    return PS_OK;
}

void ps_compressor_free(ps_compressor *m)
{
    if (m == NULL)
        return;
    ZSTD_freeCCtx(m->zstd);
    free(m->out);
    free(m);
}

ps_result ps_decompressor_open(ps_decompressor **decompressor, ps_error *err)
{
    ps_decompressor *o = calloc(1, sizeof *o);

    *decompressor = NULL;
    if (o == NULL)
        return ps_fail_memory(err);
    o->zstd = ZSTD_createDCtx();
    if (o->zstd == NULL) {
        free(o);
        return ps_fail_memory(err);
    }
    *decompressor = o;
    return PS_OK;
}

/*
 * All at once: the output itself serves as the window, whatever window the
 * frames ask for, and what they say of their size is no matter.
 */
ps_result ps_decompress_frame(ps_decompressor *o, const unsigned char *frame,
                              size_t n, unsigned char *to, size_t plain,
                              ps_error *err)
{
    size_t got = ZSTD_decompressDCtx(o->zstd, to, plain, frame, n);

    if (ZSTD_isError(got))
        return zstd_failed(got, PS_ERR_CORRUPT, err);
    if (got != plain)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "it unpacks to %zu bytes, the seek table says %zu",
                       got, plain);
    return PS_OK;
}

void ps_decompressor_free(ps_decompressor *o)
{
    if (o == NULL)
        return;
    ZSTD_freeDCtx(o->zstd);
    free(o);
}
