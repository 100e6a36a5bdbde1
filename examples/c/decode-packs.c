/*
 * decode-packs.c - checks and prints a plain pack stream; see packstream(5).
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define UP(n, unit) (((n) + (unit)-1) / (unit) * (unit))
#define LISTED 4096 /* blocks of packs in an INDEX block */

static struct stream {
    uint64_t capacity, align, width, row_bytes, seq_bytes;
    uint64_t block_packs, block_bytes, most; /* sequences of a pack */
    uint64_t at, packs, sequences, tokens, digest; /* read so far */
    uint64_t n_parts, n_blocks; /* entries of the index that END must have */
} s;
static const uint8_t zeros[64];

static uint64_t get(const uint8_t *p, int bytes)
{
    return bytes == 0 ? 0 : p[0] | get(p + 1, bytes - 1) << 8;
}

static void put(uint8_t *p, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(value >> 8 * i);
}

static void check(int right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "decode-packs: byte %" PRIu64 ": %s\n", s.at, what);
    exit(65);
}

static void take(uint8_t *to, uint64_t bytes)
{
    check(to != NULL && fread(to, 1, bytes, stdin) == bytes, "cut short");
    s.at += bytes;
}

/* Tokens, id, start and n_tok come first in the rows: no table is needed. */
static void read_header(const uint8_t *h)
{
    check(memcmp(h, "\x89PKS\r\n\x1a\n\4\3\2\1\2", 14) == 0 &&
          get(h + 16, 4) == 4096, "not a pack stream of format 2");
    s = (struct stream){
        .capacity = get(h + 48, 4), .align = MAX(get(h + 180, 4), 1),
        .width = h[120], .row_bytes = get(h + 20, 4),
        .seq_bytes = get(h + 184, 4), .block_packs = get(h + 188, 4),
        .block_bytes = get(h + 192, 8), .at = 4096,
        .digest = XXH3_64bits(h, 4088)};
    check(get(h + 4088, 8) == s.digest, "the header's checksum");
    const uint64_t depth = get(h + 52, 4);
    const uint64_t fit = MIN(s.capacity / s.align, 1 << 20);
    check(s.capacity >= 1 && s.capacity <= 1 << 24 && depth <= fit &&
          s.capacity % s.align == 0 && get(h + 80, 8) == (s.align > 1),
          "capacity, align or depth");
    check((s.width == 2 || s.width == 4) && s.row_bytes <= 1 << 28 &&
          s.row_bytes >= s.capacity * s.width && s.row_bytes % 8 == 0 &&
          s.seq_bytes >= 16 && s.seq_bytes <= 28 * 8 && s.seq_bytes % 8 == 0,
          "row_bytes or seq_bytes");
    s.most = depth > 0 ? depth : fit;
    const uint64_t seqs = MIN(s.block_packs * s.most * s.seq_bytes,
                              MAX(1 << 20, s.most * s.seq_bytes));
    check(s.block_packs >= 1 && s.block_packs <= 65536 &&
          (s.block_packs & (s.block_packs - 1)) == 0 &&
          s.block_packs * s.row_bytes <= 1 << 28 && s.block_bytes ==
          UP(64 + s.block_packs * (s.row_bytes + 40) + seqs, 64), "blocks");
}

static void read_pack(const uint8_t *head, const uint8_t *row,
                      const uint8_t *seq)
{
    uint64_t start = 0, n_tok = 0, longest = 0, n_seq = get(head + 12, 4);
    uint8_t sums[52];

    s.sequences += n_seq;
    put(sums, s.packs++);
    put(sums + 8, XXH3_64bits(row, s.row_bytes));
    put(sums + 16, XXH3_64bits(seq, n_seq * s.seq_bytes));
    memcpy(sums + 24, head + 12, 28);
    check(get(head, 8) == XXH3_64bits(sums, 52), "a pack's checksum");
    s.digest = XXH3_64bits_withSeed(head, 8, s.digest);
    for (uint64_t i = 0; i < n_seq; i++, seq += s.seq_bytes) {
        const uint64_t n = get(seq + 12, 4);
        check(get(seq + 8, 4) == start && n >= 1 && n <= s.capacity - start,
              "a sequence's start or n_tok");
        for (uint64_t k = start; k < start + n; k++)
            printf("%" PRIu64 "%c", get(row + k * s.width, (int)s.width),
                   k + 1 < start + n ? ' ' : '\n');
        start = UP(start + n, s.align);
        n_tok += n;
        longest = MAX(longest, n);
    }
    check(get(head + 16, 4) == n_tok && get(head + 20, 4) == longest,
          "a pack's n_tok or max_seqlen");
    s.tokens += n_tok;
}

/* Rows, pack heads, sequence rows, zeros; returns the last watermark. */
static uint64_t read_packs(const uint8_t *row, const uint8_t *end, uint64_t n,
                           uint64_t n_seqs)
{
    const uint8_t *head = row + n * s.row_bytes, *seqs = head + 40 * n;
    const uint8_t *pad = seqs + n_seqs * s.seq_bytes;
    uint64_t first = 0, n_seq;

    for (; n > 0; n--, row += s.row_bytes, head += 40, first += n_seq) {
        n_seq = get(head + 12, 4);
        check(get(head + 8, 4) == first && n_seq >= 1 &&
              n_seq <= MIN(s.most, n_seqs - first), "first_seq or n_seq");
        read_pack(head, row, seqs + first * s.seq_bytes);
    }
    check(first == n_seqs && memcmp(pad, zeros, (size_t)(end - pad)) == 0,
          "the end of a block");
    return get(head - 8, 8);
}

static void read_end(const uint8_t *body, const uint8_t *index, uint64_t bytes)
{
    const uint64_t n = 24 * (s.n_parts + s.n_blocks);
    uint8_t tail[88] = {0}, *trailer = tail + (bytes - 216 - n);

    put(trailer, bytes);
    put(trailer + 8, s.at);
    memcpy(trailer + 16, "\x89PKE\r\n\x1a\n", 8);
    check(get(body, 8) == s.packs && get(body + 8, 8) == s.sequences &&
          get(body + 16, 8) == s.tokens && get(body + 24, 8) == s.digest &&
          get(body + 116, 4) == 0, "END's totals or digest");
    check(get(body + 32, 8) + get(body + 88, 8) ==
          s.sequences + get(body + 48, 8) && get(body + 40, 8) ==
          s.tokens + get(body + 56, 8) + get(body + 72, 8), "END's books");
    check(get(body + 120, 8) == (s.n_parts | s.n_blocks << 32) &&
          memcmp(body + 128, index, n) == 0, "END's index");
    check(memcmp(body + 128 + n, tail, bytes - 192 - n) == 0, "the trailer");
}

/* Reads a block and returns its kind. */
static uint64_t read_block(void)
{
    static uint8_t *body, *index; /* END's entries */
    const uint64_t begin = s.at, first = s.packs;
    const uint64_t ends = 128 + 24 * (s.n_parts + s.n_blocks + 1);
    uint8_t h[64], *entry;

    take(h, 64);
    const uint64_t kind = get(h + 4, 4), n = get(h + 8, 4);
    const uint64_t n_seqs = get(h + 12, 4);
    const uint64_t packs = n * (s.row_bytes + 40) + n_seqs * s.seq_bytes;
    const uint64_t bytes =
        kind == 2 ? 24 * LISTED : UP(kind == 0 ? packs : ends, 64);
    check(memcmp(h, "PKSB", 4) == 0 && memcmp(h + 32, zeros, 16) == 0 &&
          get(h + 56, 8) == XXH3_64bits(h, 56) && kind <= 2 &&
          (kind == 2) == (s.n_blocks == LISTED) && get(h + 16, 8) == first &&
          get(h + 24, 8) == 64 + bytes &&
          (kind > 0 ? n + n_seqs == 0 : n >= 1 && n <= s.block_packs &&
           64 + bytes <= s.block_bytes), "a block's head");
    take(body = realloc(body, bytes), bytes);
    index = realloc(index, 24 * (s.n_parts + LISTED));
    check(index != NULL && get(h + 48, 8) ==
          (kind == 0 ? 0 : XXH3_64bits(body, bytes)), "a block's body");
    entry = index + 24 * (s.n_parts + (kind == 0 ? s.n_blocks : 0));
    if (kind == 1)
        read_end(body, index, 64 + bytes);
    check(kind != 2 || memcmp(entry, body, bytes) == 0, "INDEX");
    put(entry, begin); /* of this block, or of the part that it ends */
    if (kind == 0) {
        put(entry + 8, first);
        put(entry + 16, read_packs(body, body + bytes, n, n_seqs));
    } else if (kind == 2) {
        memcpy(entry + 16, body + bytes - 8, 8);
    }
    s.n_parts += kind == 2;
    s.n_blocks = kind == 0 ? s.n_blocks + 1 : 0;
    return kind;
}

int main(void)
{
    uint8_t header[4096];

    do {
        take(header, sizeof header);
        read_header(header);
        while (read_block() != 1)
            continue;
    } while (ungetc(getchar(), stdin) != EOF);
    return fclose(stdout) == 0 ? 0 : 1;
}
