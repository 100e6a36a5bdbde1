/*
 * seal.c - new checksums and digests for modified streams.
 *
 * It is written from packstream(5), and deliberately uses nothing of the
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
    AT_ROW_BYTES = 20,
    AT_SEQ_BYTES = 184,

    BLOCK_HEAD = 64,
    AT_KIND = 4,
    AT_N_PACKS = 8,
    AT_FIRST = 16,
    AT_BYTES = 24,
    AT_BODY = 48,
    AT_CHECKSUM = 56,
    AT_DIGEST = BLOCK_HEAD + 3 * 8, /* in END */

    PACK_HEAD = 40,
    AT_FIRST_SEQ = 8,
    AT_N_SEQ = 12 /* the checksum covers the head from here on */
};

void seal_header(unsigned char *header, size_t size)
{
    set_u64(header + size - 8, XXH3_64bits(header, size - 8));
}

/*
 * Seals the packs of a block of `size` bytes, as far as its numbers, which may
 * have been modified, lead to them; returns the new digest.
 */
static uint64_t seal_block(const unsigned char *header, unsigned char *block,
                           uint64_t size, uint64_t digest)
{
    const uint64_t row_bytes = get_u32(header + AT_ROW_BYTES);
    const uint64_t seq_bytes = get_u32(header + AT_SEQ_BYTES);
    const uint64_t n = get_u32(block + AT_N_PACKS);
    const unsigned char *row = block + BLOCK_HEAD;
    unsigned char *head, *seqs;

    if (n > (size - BLOCK_HEAD) / (row_bytes + PACK_HEAD))
        return digest;
    head = block + BLOCK_HEAD + n * row_bytes;
    seqs = head + n * PACK_HEAD;
    for (uint64_t i = 0; i < n; i++, row += row_bytes, head += PACK_HEAD) {
        const uint64_t at = get_u32(head + AT_FIRST_SEQ) * seq_bytes;
        const uint64_t of_pack = get_u32(head + AT_N_SEQ) * seq_bytes;
        const uint64_t of_all = size - (uint64_t)(seqs - block);
        unsigned char summed[24 + PACK_HEAD - AT_N_SEQ];

        if (of_pack > of_all || at > of_all - of_pack)
            continue;
        set_u64(summed, get_u64(block + AT_FIRST) + i);
        set_u64(summed + 8, XXH3_64bits(row, row_bytes));
        set_u64(summed + 16, XXH3_64bits(seqs + at, of_pack));
        memcpy(summed + 24, head + AT_N_SEQ, PACK_HEAD - AT_N_SEQ);
        set_u64(head, XXH3_64bits(summed, sizeof summed));
        digest = XXH3_64bits_withSeed(head, 8, digest);
    }
    return digest;
}

size_t seal_stream(unsigned char *p, size_t size)
{
    uint64_t digest, n;

    if (size < HEADER)
        return 0;
    seal_header(p, HEADER);
    digest = get_u64(p + HEADER - 8);
    for (size_t at = HEADER; size - at >= BLOCK_HEAD; at += n) {
        unsigned char *block = p + at;
        const uint32_t kind = get_u32(block + AT_KIND);

        n = get_u64(block + AT_BYTES);
        if (n >= BLOCK_HEAD && n <= size - at && kind == 0)
            digest = seal_block(p, block, n, digest);
        else if (n >= AT_DIGEST + 8 && n <= size - at) {
            if (kind == 1)
                set_u64(block + AT_DIGEST, digest);
            set_u64(block + AT_BODY,
                    XXH3_64bits(block + BLOCK_HEAD, n - BLOCK_HEAD));
        }
        set_u64(block + AT_CHECKSUM, XXH3_64bits(block, AT_CHECKSUM));
        if (n < BLOCK_HEAD || n > size - at)
            return 0;
        if (kind == 1)
            return at + n;
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
