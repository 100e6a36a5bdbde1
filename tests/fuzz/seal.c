/*
 * seal.c - recomputes checksums of framed records after changes, and makes
 * changes that checksums cover.
 *
 * Offsets are those of packstream(5).
 *
 * SPDX-License-Identifier: MIT
 */

#include "fuzz.h"

#include <string.h>

#include "bytes.h"
#include "format/lengths_record.h"
#include "format/token_header.h"

enum {
    AT_TOKEN_CHANNELS = 20,
    AT_TOKEN_BYTES = 40,
    AT_CHANNELS = 128,
    CHANNEL_BYTES = 64,
    AT_KIND = 25, /* in a channel, followed by its width */
    AT_TOKEN_DIGEST = 24 /* in END */
};

/* Bytes for each token and for each sequence, by the header. */
static void widths(const unsigned char *header, size_t size,
                   uint64_t *per_token, uint64_t *per_sequence)
{
    *per_token = header[AT_TOKEN_BYTES];
    *per_sequence = 0;
    for (size_t at = AT_CHANNELS; at + CHANNEL_BYTES < size;
         at += CHANNEL_BYTES)
        if (header[at + AT_KIND] == PS_PER_TOKEN)
            *per_token += header[at + AT_KIND + 1];
        else
            *per_sequence += header[at + AT_KIND + 1];
}

/*
 * Seals the records from `at` to END, where their digest goes, and to LENGTHS,
 * if END seems intact.
 */
static void finalize_records(unsigned char *p, size_t size, size_t at,
                             uint64_t per_token, uint64_t per_sequence)
{
    uint64_t digest = 0;

    while (size - at >= PS_LENGTHS_HEAD_BYTES) {
        uint32_t count = load_u32(p + at);
        uint64_t n = count * per_token + per_sequence;

        if (count == 0 && load_u32(p + at + 4) == PS_TOKEN_END_KIND)
            break;
        if (count == 0 && load_u32(p + at + 4) == PS_TOKEN_LENGTHS_KIND &&
            PS_LENGTHS_BYTES(load_u32(p + at + 8)) <= size - at) {
            n = PS_LENGTHS_BYTES(load_u32(p + at + 8));
            seal_lengths(p + at, (size_t)n, at);
            at += (size_t)n;
            break;
        }
        if (count == 0)
            n = PS_TOKEN_CONTROL_BYTES - 4;
        if (n > size - at - 4)
            return;
        digest = chain_record(digest, p + at, 4 + (size_t)n);
        at += 4 + (size_t)n;
    }
    if (size - at >= PS_TOKEN_END_BYTES)
        store_u64(p + at + AT_TOKEN_DIGEST, digest);
}

void seal_tokens(unsigned char *p, size_t size)
{
    uint64_t per_token;
    uint64_t per_sequence;
    size_t header;

    if (size < AT_CHANNELS + 8 ||
        load_u32(p + AT_TOKEN_CHANNELS) > PS_MAX_CHANNELS)
        return;
    header = AT_CHANNELS + 8 +
             (size_t)load_u32(p + AT_TOKEN_CHANNELS) * CHANNEL_BYTES;
    if (header > size)
        return;
    seal_header(p, header);
    widths(p, header, &per_token, &per_sequence);
    finalize_records(p, size, header, per_token, per_sequence);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
                               unsigned seed)
{
    uint8_t part[64];
    size_t n;
    const size_t *place;
    size_t end;
    size_t at;

    seed = (seed ^ seed >> 15) * 0x2c1b3c6du;
    place = places[(seed >> 24) % n_places];
    end = place[1] > 0 && place[1] < size ? place[1] : size;
    if (place[0] >= end || (seed & 7) == 0)
        return LLVMFuzzerMutate(data, size, max);
    at = place[0] + (seed >> 4) % (end - place[0]) / 32 * 32;
    n = end - at < sizeof part ? end - at : sizeof part;
    memcpy(part, data + at, n);
    (void)LLVMFuzzerMutate(part, n, n);
    memcpy(data + at, part, n);
    return size;
}
