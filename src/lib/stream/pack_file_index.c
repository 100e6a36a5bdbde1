/*
 * pack_file_index.c - find the block of a pack.
 *
 * SPDX-License-Identifier: MIT
 *
 * The index of a stream is read when one of its packs is requested, one INDEX
 * block at a time.
 */

#include "stream/pack_file_parts.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem_bound.h"
#include "format/pack_layout.h"

/* Copies entries to a list. */
static ps_result keep(ps_file_entries *list, const unsigned char *from,
                      uint32_t n, ps_error *err)
{
    unsigned char *bytes = ps_array_grow(list->bytes, &list->capacity, n + 1u,
                                         1, PS_ENTRY_BYTES);

    if (bytes == NULL)
        return ps_fail_memory(err);
    list->bytes = bytes;
    list->n = n;
    memcpy(bytes, from, (size_t)n * PS_ENTRY_BYTES);
    return PS_OK;
}

static ps_entry entry_at(const ps_file_entries *list, uint32_t i)
{
    return ps_entry_decode(list->bytes + (size_t)i * PS_ENTRY_BYTES);
}

/* Caches the entries in END of stream `i`. */
static ps_result index_stream(ps_pack_file *f, uint32_t i, ps_error *err)
{
    ps_pack_info info;
    ps_end end;
    ps_result r;

    if (f->indexed == i)
        return PS_OK;
    f->indexed = f->n_streams;
    r = ps_pack_file_end(f, i, &info, &end, err);
    if (r == PS_OK)
        r = keep(&f->end, end.entries, end.n_parts + end.n_blocks, err);
    if (r != PS_OK)
        return r;
    f->n_parts = f->part = end.n_parts;
    f->indexed = i;
    return PS_OK;
}

/* Caches INDEX block `i` of a stream. */
static ps_result index_part(ps_pack_file *f, const ps_file_stream *s,
                            uint32_t i, ps_error *err)
{
    const ps_entry part = entry_at(&f->end, i);
    const uint64_t at = s->at + part.offset;
    const ps_index_end end = {part.offset, s->packs};
    const unsigned char *bytes;
    ps_block_head head;
    ps_result r = PS_OK;

    if (f->part == i)
        return PS_OK;
    f->part = f->n_parts;
    if (s->end - at < PS_INDEX_BYTES)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "part %" PRIu32 " of the index is not located before "
                       "END", i);
    r = ps_random_input_read(f->input, at, PS_INDEX_BYTES, &bytes, err);
    if (r != PS_OK)
        return r;
    r = ps_block_head_decode(&f->info, bytes, &head, err);
    bytes += PS_BLOCK_HEAD_BYTES;
    if (r == PS_OK &&
        (head.kind != PS_BLOCK_INDEX ||
         head.body != ps_hash(bytes, PS_INDEX_BYTES - PS_BLOCK_HEAD_BYTES)))
        r = ps_fail(err, PS_ERR_CORRUPT, "incomplete part of the index");
    if (r == PS_OK)
        r = ps_entries_check(bytes, PS_INDEX_BLOCKS, end, err);
    if (r == PS_OK && ps_entry_decode(bytes).first != part.first)
        r = ps_fail(err, PS_ERR_CORRUPT,
                    "its first pack is not the one that END lists");
    if (r != PS_OK)
        return ps_blame(NULL, at, r, err);
    r = keep(&f->listed, bytes, PS_INDEX_BLOCKS, err);
    f->part = r == PS_OK ? i : f->n_parts;
    return r;
}

/*
 * Returns the last entry in low to high - 1 whose first pack is <= `k`, or
 * `low` if there is none.
 */
static uint32_t last_below(const ps_file_entries *list, uint32_t low,
                           uint32_t high, uint64_t k)
{
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (entry_at(list, middle).first <= k)
            low = middle;
        else
            high = middle;
    }
    return low;
}

ps_result ps_pack_file_block(ps_pack_file *f, uint32_t i, uint64_t k,
                             ps_file_block *b, ps_error *err)
{
    const ps_file_stream *s = &f->streams[i];
    const ps_file_entries *list = &f->end;
    uint64_t next = s->packs; /* index of the first pack after the list, then
                                 after the block found */
    uint64_t end = s->end;    /* end of the blocks in the list */
    uint32_t low, high, at;
    ps_entry e;
    ps_result r = index_stream(f, i, err);

    if (r != PS_OK)
        return r;
    low = f->n_parts;
    high = f->end.n;
    if (low == high || entry_at(list, low).first > k) {
        const uint32_t part = last_below(list, 0, f->n_parts, k);

        end = s->at + entry_at(&f->end, part).offset;
        if (part + 1 < high)
            next = entry_at(list, part + 1).first;
        r = index_part(f, s, part, err);
        if (r != PS_OK)
            return r;
        list = &f->listed;
        low = 0;
        high = list->n;
    }
    at = last_below(list, low, high, k);
    e = entry_at(list, at);
    if (at + 1 < high) {
        next = entry_at(list, at + 1).first;
        end = s->at + entry_at(list, at + 1).offset;
    }
    if (next - e.first > PS_MAX_BLOCK_PACKS ||
        (next - e.first) * (f->info.row_bytes + PS_PACK_HEAD_BYTES) >
            s->end - s->at - e.offset)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the index of the stream at byte %" PRIu64
                       " has no block with pack %" PRIu64,
                       s->at, k);
    *b = (ps_file_block){s->at + e.offset, end, e.first,
                         (uint32_t)(next - e.first)};
    return PS_OK;
}

/*
 * Returns the first entry in low to high - 1 whose watermark is >= `least`, or
 * `high` if there is none.
 */
static uint32_t first_marked(const ps_file_entries *list, uint32_t low,
                             uint32_t high, uint64_t least)
{
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (entry_at(list, middle).watermark >= least)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

ps_result ps_pack_file_marked(ps_pack_file *f, uint32_t i, uint64_t least,
                              uint64_t *first, uint64_t *end, ps_error *err)
{
    const ps_file_stream *s = &f->streams[i];
    const ps_file_entries *list = &f->end;
    uint32_t at;
    ps_file_block b;
    ps_result r = index_stream(f, i, err);

    *first = *end = s->first + s->packs;
    if (r != PS_OK)
        return r;
    at = first_marked(list, 0, f->end.n, least);
    if (at == f->end.n)
        return PS_OK;
    if (at < f->n_parts) {
        r = index_part(f, s, at, err);
        list = &f->listed;
        at = first_marked(list, 0, f->listed.n, least);
        if (r == PS_OK && at == f->listed.n)
            r = ps_fail(err, PS_ERR_CORRUPT,
                        "its last watermark is not the one that END lists");
    }
    if (r == PS_OK)
        r = ps_pack_file_block(f, i, entry_at(list, at).first, &b, err);
    if (r != PS_OK)
        return r;
    *first = s->first + b.first;
    *end = *first + b.n_packs;
    return PS_OK;
}

ps_result ps_pack_file_find(ps_pack_file *f, uint32_t i, uint64_t packs,
                            ps_pack_file_at *at, ps_error *err)
{
    ps_file_block b = {0};
    ps_result r = PS_OK;

    if (i >= f->n_streams || packs > f->streams[i].packs)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the file has fewer packs");
    if (packs > 0)
        r = ps_pack_file_block(f, i, packs - 1, &b, err);
    *at = (ps_pack_file_at){f->streams[i].at, f->streams[i].first, b.at,
                            b.first};
    return r;
}
