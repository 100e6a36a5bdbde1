/*
 * seekable.c - fuzzing target: compressed pack streams and their seek
 * tables.
 *
 * The input: what to do, then a plain stream.  It is cut into frames, a table
 * is added, and then some bytes, counted from the end, may be changed.  If none
 * is, all readers must see the same as without compression.
 *
 * SPDX-License-Identifier: MIT
 */

#include <zstd.h>

#include "bytes.h"
#include "packs.h"

enum { SEALED = 1, CHECKSUMS = 2, BY_BLOCKS = 4, JOINED = 8 };
enum { AT_STREAM = 5 + 3 * 4 };

/* The first bytes of an input. */
typedef struct way {
    unsigned bits;
    unsigned manner;
    size_t cut; /* bytes in a frame */
    unsigned n_changes;
    struct {
        size_t at; /* from the end */
        unsigned char change;
    } changes[4];
} way;

static way take_way(input *in)
{
    way w = {.bits = take_u8(in), .manner = take_u8(in)};

    w.cut = 64 + take_u16(in);
    w.n_changes = take_u8(in) % 5;
    for (unsigned i = 0; i < 4; i++) {
        w.changes[i].at = take_u16(in) + 1u;
        w.changes[i].change = (unsigned char)take_u8(in);
    }
    return w;
}

/* Created once: to create one costs more than all the rest. */
static ZSTD_CCtx *compressor(void)
{
    static ZSTD_CCtx *c;

    if (c == NULL) {
        c = ZSTD_createCCtx();
        must(c != NULL);
        (void)ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
        (void)ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, 10);
        (void)ZSTD_CCtx_setParameter(c, ZSTD_c_hashLog, 6);
    }
    return c;
}

static void put_frame(bytes *packed, bytes *table, const unsigned char *p,
                      size_t n, unsigned bits)
{
    unsigned char frame[1 << 17];
    size_t size =
        ZSTD_compress2(compressor(), frame, sizeof frame, p, n);

    must(!ZSTD_isError(size));
    put_bytes(packed, frame, size);
    put_number(table, size, 4);
    put_number(table, n, 4);
    /* The call that ends the frame. */
    if ((bits & CHECKSUMS) != 0)
        put_bytes(table, frame + size - 4, 4);
}

/* Bytes in the frame that begins at byte `at` of the stream. */
static size_t frame_bytes(const way *w, const bytes *plain, size_t at)
{
    const size_t left = plain->size - at;
    size_t n = 0;

    if ((w->bits & BY_BLOCKS) == 0)
        return left < w->cut ? left : w->cut;
    if (at == 0)
        return left < PS_PACK_HEADER_BYTES ? left : PS_PACK_HEADER_BYTES;
    for (size_t i = 0; i <= w->cut % 3 && left - n >= 64; i++) {
        const uint64_t block = load_u64(plain->data + at + n + 24);

        n += block < 64 ? 64 : block < left - n ? (size_t)block : left - n;
    }
    return n == 0 ? left : n;
}

/*
 * The stream in frames, aligned to blocks or not, followed by their seek table;
 * packstream(5).
 */
static void compress(const way *w, const bytes *plain, bytes *packed)
{
    bytes table = {0};
    size_t frames = 0;
    size_t n;

    for (size_t at = 0; at < plain->size; at += n) {
        n = frame_bytes(w, plain, at);
        put_frame(packed, &table, plain->data + at, n, w->bits);
        frames++;
    }
    put_number(packed, 0x184d2a5e, 4);
    put_number(packed, table.size + 9, 4);
    put_bytes(packed, table.data, table.size);
    put_number(packed, frames, 4);
    put_number(packed, (w->bits & CHECKSUMS) != 0 ? 0x80 : 0, 1);
    put_number(packed, 0x8f92eab1, 4);
    free_bytes(&table);
}

/* Doubles the bytes. */
static void join(bytes *b)
{
    bytes copy = *b;

    *b = (bytes){0};
    put_bytes(b, copy.data, copy.size);
    put_bytes(b, copy.data, copy.size);
    free_bytes(&copy);
}

static bool tamper(const way *w, bytes *b)
{
    bool any = false;

    for (unsigned i = 0; i < w->n_changes; i++)
        if (w->changes[i].at <= b->size && w->changes[i].change != 0) {
            b->data[b->size - w->changes[i].at] ^= w->changes[i].change;
            any = true;
        }
    return any;
}

/* Reads the plain stream and the compressed one. */
static void compare(const bytes *plain, const bytes *packed, unsigned manner,
                    bool tampered)
{
    pack_yield of_plain;
    pack_yield of_packed;
    pack_yield of_file = read_pack_file(packed->data, packed->size);

    feed(plain->data, plain->size, FEED_WHOLE);
    of_plain = read_packs();
    feed(packed->data, packed->size, manner);
    of_packed = read_packs();
    if (tampered || of_plain.result != PS_END)
        return;
    must(of_packed.result == PS_END);
    must(is_same_yield(&of_plain, &of_packed));
    must(of_file.result == PS_END);
    must(is_same_yield(&of_plain, &of_file));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    way w = take_way(&in);
    bytes plain = {0};
    bytes packed = {0};

    if (in.left > 32768)
        return 0;
    put_bytes(&plain, in.at, in.left);
    if ((w.bits & SEALED) != 0)
        (void)seal_streams(plain.data, plain.size);
    compress(&w, &plain, &packed);
    if ((w.bits & JOINED) != 0) {
        join(&plain);
        join(&packed);
    }
    compare(&plain, &packed, w.manner, tamper(&w, &packed));
    free_bytes(&plain);
    free_bytes(&packed);
    return 0;
}

const size_t places[][2] = {
    {0, AT_STREAM},
    {0, AT_STREAM},
    {0, AT_STREAM},
    {AT_STREAM + 8, AT_STREAM + 256},
    {AT_STREAM + 256, AT_STREAM + 256 + 8 * 64},
    {AT_STREAM + 4096, 0},
    {AT_STREAM + 4096, 0}};
const size_t n_places = sizeof places / sizeof places[0];
