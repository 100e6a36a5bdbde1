/*
 * plain.c - fuzzing target: pack streams without compression: header, blocks,
 * END, several streams in a row; read in order, unpacked, and from any
 * position.
 *
 * The input: bit 0 of the first byte requests new checksums, the second byte is
 * how to read (fuzz.h), then the stream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "io/zstd_frame.h"
#include "packs.h"

enum { SEALED = 1, AT_STREAM = 2 };

/*
 * Unpackers have the same result as the reader that they use.  The error for a
 * damaged zstd frame depends on the pieces in which it is read.
 */
static void unpack(const bytes *b, unsigned manner, const pack_yield *y)
{
    bool compressed = b->size >= 4 && ps_is_frame_magic(b->data);
    uint64_t sequences;
    ps_result r;

    feed(b->data, b->size, FEED_WHOLE);
    r = unpack_packs(PS_ORDER_PACK, &sequences);
    must(r == y->result || (compressed && r != PS_END &&
                            y->result != PS_END));
    if (compressed && y->result != PS_END)
        return;
    must(sequences == y->sequences);
    feed(b->data, b->size, manner);
    if (unpack_packs(PS_ORDER_INPUT, &sequences) == PS_END)
        must(y->result == PS_END);
    must(sequences <= y->sequences);
}

/* A share with all packs has the same as the whole stream. */
static void share(const bytes *b, unsigned manner, const pack_yield *whole)
{
    const ps_result r = hand_on(b->data, b->size);
    bytes written = {0};
    pack_yield y;

    /* A later version, or wrong piece counts in END, which only it checks. */
    if (r != PS_OK) {
        must(r == PS_ERR_UNSUPPORTED || r == PS_ERR_CORRUPT);
        return;
    }
    put_bytes(&written, feed_written()->data, feed_written()->size);
    feed(written.data, written.size, manner);
    y = read_packs();
    must(y.result == PS_END && y.packs == whole->packs);
    /* These are recomputed. */
    y.totals.rejected_sequences = whole->totals.rejected_sequences;
    y.totals.rejected_tokens = whole->totals.rejected_tokens;
    y.totals.split_sequences = whole->totals.split_sequences;
    y.totals.extra_pieces = whole->totals.extra_pieces;
    must(is_same_yield(&y, whole));
    free_bytes(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    unsigned bits = take_u8(&in);
    unsigned manner = take_u8(&in);
    bytes stream = {0};
    pack_yield y;
    pack_yield file;

    put_bytes(&stream, in.at, in.left);
    if ((bits & SEALED) != 0)
        (void)seal_streams(stream.data, stream.size);
    feed(stream.data, stream.size, manner);
    y = read_packs();
    unpack(&stream, manner, &y);
    file = read_pack_file(stream.data, stream.size);
    if (y.result == PS_END && !ps_is_frame_magic(stream.data)) {
        must(file.result == PS_END);
        must(is_same_yield(&y, &file));
        share(&stream, manner, &y);
    }
    free_bytes(&stream);
    return 0;
}

const size_t places[][2] = {
    {0, AT_STREAM},
    {AT_STREAM + 8, AT_STREAM + 256},
    {AT_STREAM + 256, AT_STREAM + 256 + 8 * 64},
    {AT_STREAM + 2048, AT_STREAM + 4088},
    {AT_STREAM + 4096, 0},
    {AT_STREAM + 4096, 0},
    {AT_STREAM + 4096, 0}};
const size_t n_places = sizeof places / sizeof places[0];
