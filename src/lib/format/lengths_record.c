/*
 * lengths_record.c - encode and decode LENGTHS records.
 *
 * SPDX-License-Identifier: MIT
 */

#include "format/lengths_record.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "format/token_header.h"

/* Offsets in the head and in the tail. */
enum { AT_KIND = 4, AT_N = 8 };
enum { AT_STREAM_BYTES = 0, AT_CHECKSUM = 8, AT_BYTES = 16 };

void ps_lengths_seal(unsigned char *record, uint32_t n, uint64_t stream_bytes)
{
    const size_t size = PS_LENGTHS_BYTES(n);
    unsigned char *tail = record + size - PS_LENGTHS_TAIL_BYTES;

    store_u32(record, 0);
    store_u32(record + AT_KIND, PS_TOKEN_LENGTHS_KIND);
    store_u32(record + AT_N, n);
    store_u64(tail + AT_STREAM_BYTES, stream_bytes);
    store_u64(tail + AT_CHECKSUM,
              ps_hash(record, (size_t)(tail - record) + AT_CHECKSUM));
    store_u64(tail + AT_BYTES, size);
}

ps_result ps_lengths_head_decode(ps_lengths *l, const unsigned char *head,
                                 ps_error *err)
{
    *l = (ps_lengths){.n = load_u32(head + AT_N)};
    if (load_u32(head) != 0 || load_u32(head + AT_KIND) !=
                                   PS_TOKEN_LENGTHS_KIND)
        return ps_fail(err, PS_ERR_CORRUPT, "unknown kind of record");
    if (l->n > PS_LENGTHS_MAX)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "%" PRIu32 " entries exceed the limit of %" PRIu32,
                       l->n, PS_LENGTHS_MAX);
    return PS_OK;
}

ps_result ps_lengths_entries_decode(ps_lengths *l,
                                    const unsigned char *entries, size_t n,
                                    ps_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char *entry = entries + i * PS_LENGTHS_ENTRY_BYTES;
        const uint32_t length = ps_lengths_length(entry);
        const uint64_t count = ps_lengths_count(entry);

        if (length <= l->last)
            return ps_fail(err, PS_ERR_CORRUPT,
                           "length %" PRIu32 " follows length %" PRIu32
                           ", but lengths must ascend", length, l->last);
        if (count == 0)
            return ps_fail(err, PS_ERR_CORRUPT,
                           "length %" PRIu32 " has a count of 0", length);
        if (count > UINT64_MAX - l->sequences ||
            count > (UINT64_MAX - l->tokens) / length)
            return ps_fail(err, PS_ERR_CORRUPT,
                           "the sums of its counts exceed 64 bits");
        l->last = length;
        l->sequences += count;
        l->tokens += count * length;
    }
    return PS_OK;
}

ps_result ps_lengths_tail_decode(ps_lengths *l, const unsigned char *tail,
                                 uint64_t checksum, ps_error *err)
{
    l->stream_bytes = load_u64(tail + AT_STREAM_BYTES);
    if (load_u64(tail + AT_CHECKSUM) != checksum)
        return ps_fail(err, PS_ERR_CORRUPT, "its checksum does not match");
    if (load_u64(tail + AT_BYTES) != PS_LENGTHS_BYTES(l->n))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "it has %zu bytes, but its tail declares %" PRIu64,
                       PS_LENGTHS_BYTES(l->n), load_u64(tail + AT_BYTES));
    return PS_OK;
}

ps_result ps_lengths_decode(ps_lengths *l, const unsigned char *record,
                            size_t n, ps_error *err)
{
    const size_t tail = n - PS_LENGTHS_TAIL_BYTES;
    ps_result r;

    if (n < PS_LENGTHS_MIN_BYTES)
        return ps_fail(err, PS_ERR_CORRUPT, "it is truncated");
    r = ps_lengths_head_decode(l, record, err);
    if (r == PS_OK && n != PS_LENGTHS_BYTES(l->n))
        r = ps_fail(err, PS_ERR_CORRUPT, "its size contradicts its entries");
    if (r == PS_OK)
        r = ps_lengths_tail_decode(l, record + tail,
                                   ps_hash(record, tail + AT_CHECKSUM), err);
    return r == PS_OK
               ? ps_lengths_entries_decode(l, record + PS_LENGTHS_HEAD_BYTES,
                                           l->n, err)
               : r;
}

ps_result ps_lengths_compare(const ps_lengths *l, uint64_t sequences,
                             uint64_t tokens, ps_error *err)
{
    if (l->sequences == sequences && l->tokens == tokens)
        return PS_OK;
    return ps_fail(err, PS_ERR_CORRUPT,
                   "it counts %" PRIu64 " sequences and %" PRIu64
                   " tokens, but the stream has %" PRIu64 " and %" PRIu64,
                   l->sequences, l->tokens, sequences, tokens);
}

ps_result ps_lengths_blame(ps_result r, uint64_t offset, ps_error *err)
{
    char why[sizeof err->text];

    if (r == PS_OK || err == NULL)
        return r;
    memcpy(why, err->text, sizeof why);
    return ps_fail(err, r, "LENGTHS at byte %" PRIu64 ": %.200s", offset, why);
}
