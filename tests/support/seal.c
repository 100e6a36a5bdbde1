/*
 * seal.c - new checksums and digests for streams that were tampered with.
 *
 * It knows the formats from packstream(5), and on purpose not from the
 * library, which it helps to test.
 *
 * SPDX-License-Identifier: MIT
 */

#include "seal.h"

#include <string.h>

#include <xxhash.h>

#include "grown.h"

enum {
    HEADER = 4096,
    AT_RECORD_BYTES = 20, /* in a header */
    AT_FLAGS = 12,        /* in a record */
    AT_DIGEST = 64 + 3 * 8
};

void seal_header(unsigned char *header, size_t size)
{
    set_u64(header + size - 8, XXH3_64bits(header, size - 8));
}

size_t seal_stream(unsigned char *p, size_t size)
{
    size_t stride;
    uint64_t digest;

    if (size < HEADER)
        return 0;
    stride = get_u32(p + AT_RECORD_BYTES);
    seal_header(p, HEADER);
    digest = get_u64(p + HEADER - 8);
    if (stride < AT_DIGEST + 8) /* it was tampered with, too */
        return 0;
    for (size_t at = HEADER; size - at >= stride; at += stride) {
        unsigned char *record = p + at;
        int is_end = (record[AT_FLAGS] & 1) != 0;

        if (is_end)
            set_u64(record + AT_DIGEST, digest);
        set_u64(record, XXH3_64bits(record + 8, stride - 8));
        if (is_end)
            return at + stride;
        digest = XXH3_64bits_withSeed(record, 8, digest);
    }
    return 0;
}

size_t seal_streams(unsigned char *p, size_t size)
{
    size_t at = 0;
    size_t n = 1;

    while (n > 0 && at < size) {
        n = seal_stream(p + at, size - at);
        at += n;
    }
    return at;
}

uint64_t chain_record(uint64_t digest, const unsigned char *record, size_t n)
{
    unsigned char link[12];

    memcpy(link, record, 4);
    set_u64(link + 4, XXH3_64bits(record + 4, n - 4));
    return XXH3_64bits_withSeed(link, sizeof link, digest);
}

void seal_lengths(unsigned char *record, size_t size, uint64_t before)
{
    set_u32(record, 0);
    set_u32(record + 4, 3);
    set_u32(record + 8, (uint32_t)((size - 36) / 12));
    set_u64(record + size - 24, before);
    set_u64(record + size - 16, XXH3_64bits(record, size - 16));
    set_u64(record + size - 8, size);
}
