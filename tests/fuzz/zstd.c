/*
 * zstd.c - fuzzing target: zstd frames that contain token records.
 *
 * The input: how to read (tokens.h), then parts.  A part is a byte that selects
 * its treatment, two for its size, and that many bytes: they become one frame,
 * or several, or a skippable one, or stay uncompressed, or become a damaged
 * frame.  As long as all parts are intact frames the records must read the same
 * as without compression.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokens.h"

#include <zstd.h>

#include "io/zstd_frame.h"

enum { MAKE = 3, MAKE_FRAME = 0, MAKE_SKIPPED = 1, MAKE_CUT = 2 };
enum { CHECKED = 4, UNSIZED = 8, FLUSHED = 16 };

/* Compressed, plain, and whether the former is intact. */
typedef struct streams {
    bytes packed;
    bytes plain;
    bool whole;
    bool any; /* a frame comes first: otherwise it is not taken for zstd */
    bool cut; /* in the last part */
} streams;

/* Created once: to create one costs more than all the rest. */
static ZSTD_CCtx *compressor(unsigned make)
{
    static ZSTD_CCtx *c;

    if (c == NULL)
        c = ZSTD_createCCtx();
    must(c != NULL);
    (void)ZSTD_CCtx_reset(c, ZSTD_reset_session_and_parameters);
    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag,
                                 (make & CHECKED) != 0);
    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag,
                                 (make & UNSIZED) == 0);
    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, 10);
    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_hashLog, 6);
    return c;
}

static void put_frame(bytes *to, unsigned make, const unsigned char *p,
                      size_t n)
{
    unsigned char frame[1 << 16];
    size_t half = (make & FLUSHED) != 0 ? n / 2 : n;
    ZSTD_CCtx *c = compressor(make);
    ZSTD_outBuffer out = {frame, sizeof frame, 0};
    ZSTD_inBuffer in = {p, half, 0};

    if (half < n)
        must(!ZSTD_isError(
            ZSTD_compressStream2(c, &out, &in, ZSTD_e_flush)));
    in.size = n;
    must(ZSTD_compressStream2(c, &out, &in, ZSTD_e_end) == 0);
    put_bytes(to, frame, out.pos);
}

static void put_part(streams *s, unsigned make, const unsigned char *p,
                     size_t n)
{
    size_t before = s->packed.size;
    bool was_whole = s->whole;

    s->cut = false;
    if ((make & MAKE) == MAKE_FRAME || (make & MAKE) == MAKE_CUT) {
        put_frame(&s->packed, make, p, n);
        put_bytes(&s->plain, p, n);
        s->any = true;
    } else if ((make & MAKE) == MAKE_SKIPPED) {
        put_number(&s->packed, 0x184d2a50 | make >> 4, 4);
        put_number(&s->packed, n, 4);
        put_bytes(&s->packed, p, n);
        s->any = true;
    } else {
        put_bytes(&s->packed, p, n);
        s->whole = s->whole && n == 0;
    }
    if ((make & MAKE) == MAKE_CUT) {
        s->packed.size =
            before + (s->packed.size - before) * (make >> 2) / 64;
        s->cut = was_whole && s->packed.size - before >= 4;
        s->whole = false;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    token_way way = take_token_way(&in);
    streams s = {.whole = true};
    token_yield y;
    token_yield plain;

    while (in.left > 0) {
        unsigned make = take_u8(&in);
        size_t n = take_u16(&in) % 8192;
        const unsigned char *p = take_bytes(&in, n, &n);

        put_part(&s, make, p, n);
    }
    feed(s.packed.data, s.packed.size, way.manner);
    y = read_tokens(&way);
    must(!s.cut || y.result != PS_END);
    /* The reader does not look for frames within frames. */
    if (s.whole && s.any &&
        (s.plain.size < 4 || !ps_is_frame_magic(s.plain.data))) {
        feed(s.plain.data, s.plain.size, FEED_WHOLE);
        plain = read_tokens(&way);
        must(y.result == plain.result && y.hash == plain.hash);
        must(y.sequences == plain.sequences);
    }
    free_bytes(&s.packed);
    free_bytes(&s.plain);
    return 0;
}
