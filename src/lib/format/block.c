/*
 * block.c - blocks of a pack stream: packs, index and END.
 *
 * SPDX-License-Identifier: MIT
 */

#include "format/block.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "bytes.h"
#include "format/pack.h"
#include "format/version.h"

/* "PKSB" */
#define BLOCK_MAGIC UINT32_C(0x42534B50)

/* Offsets in a block head. */
enum {
    AT_MAGIC = 0,
    AT_KIND = 4,
    AT_N_PACKS = 8,
    AT_N_SEQS = 12,
    AT_FIRST = 16,
    AT_BYTES = 24,
    AT_ZERO = 32,
    AT_BODY = 48,
    AT_CHECKSUM = 56
};

/* Offsets in END. */
enum {
    AT_TOTALS = PS_BLOCK_HEAD_BYTES,
    AT_TOTALS_ZERO = AT_TOTALS + PS_TOTALS_BYTES,
    AT_N_PARTS = 184,
    AT_N_BLOCKS = 188,
    AT_ENTRIES = 192
};

static const unsigned char trailer_magic[8] = {0x89, 'P',  'K',  'E',
                                               '\r', '\n', 0x1a, '\n'};

/* ---- Heads ---- */

void ps_block_head_encode(const ps_block_head *head,
                          unsigned char to[PS_BLOCK_HEAD_BYTES])
{
    memset(to, 0, PS_BLOCK_HEAD_BYTES);
    store_u32(to + AT_MAGIC, BLOCK_MAGIC);
    store_u32(to + AT_KIND, (uint32_t)head->kind);
    store_u32(to + AT_N_PACKS, head->n_packs);
    store_u32(to + AT_N_SEQS, head->n_seqs);
    store_u64(to + AT_FIRST, head->first);
    store_u64(to + AT_BYTES, head->bytes);
    store_u64(to + AT_BODY, head->body);
    store_u64(to + AT_CHECKSUM, ps_hash(to, AT_CHECKSUM));
}

/* Checks that the numbers of a block head are valid for its kind. */
static bool fits_kind(const ps_pack_info *info, const ps_block_head *h)
{
    switch (h->kind) {
    case PS_BLOCK_PACKS:
        /*
         * Every pack has at least one sequence.  The header limits both counts,
         * so the layout cannot overflow.
         */
        return h->n_packs >= 1 && h->n_packs <= info->block_packs &&
               h->n_seqs >= h->n_packs &&
               (h->body == 0 || !ps_is_version_known(info)) &&
               h->bytes <= info->block_bytes &&
               h->n_seqs <= info->block_bytes / info->seq_bytes &&
               h->bytes ==
                   ps_block_layout_of(info, h->n_packs, h->n_seqs).bytes;
    case PS_BLOCK_INDEX:
        return h->n_packs == 0 && h->n_seqs == 0 && h->bytes == PS_INDEX_BYTES;
    case PS_BLOCK_END:
        return h->n_packs == 0 && h->n_seqs == 0 &&
               h->bytes % PS_BLOCK_ALIGN == 0 &&
               h->bytes >= ps_end_bytes(0, 0) &&
               h->bytes <= ps_end_bytes(PS_MAX_INDEX_PARTS, PS_INDEX_BLOCKS);
    default:
        return false;
    }
}

ps_result ps_block_head_decode(const ps_pack_info *info,
                               const unsigned char *from, ps_block_head *head,
                               ps_error *err)
{
    if (load_u32(from + AT_MAGIC) != BLOCK_MAGIC)
        return ps_fail(err, PS_ERR_CORRUPT, "no block starts here");
    if (load_u64(from + AT_CHECKSUM) != ps_hash(from, AT_CHECKSUM))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "its header's checksum does not match");
    *head = (ps_block_head){
        .kind = (ps_block_kind)load_u32(from + AT_KIND),
        .n_packs = load_u32(from + AT_N_PACKS),
        .n_seqs = load_u32(from + AT_N_SEQS),
        .first = load_u64(from + AT_FIRST),
        .bytes = load_u64(from + AT_BYTES),
        .body = load_u64(from + AT_BODY),
    };
    if (!fits_kind(info, head))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "kind %" PRIu32 ", %" PRIu32 " packs, %" PRIu32 " "
                       "sequences and %" PRIu64 " bytes contradict each other",
                       (uint32_t)head->kind, head->n_packs, head->n_seqs,
                       head->bytes);
    if (ps_is_version_known(info) &&
        !all_zero(from + AT_ZERO, AT_BODY - AT_ZERO))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "unused bytes of its header are not zero");
    return PS_OK;
}

/* ---- Blocks of packs ---- */

ps_block_layout ps_block_layout_of(const ps_pack_info *info, uint32_t n_packs,
                                   uint32_t n_seqs)
{
    ps_block_layout l;

    l.heads = PS_BLOCK_HEAD_BYTES + (uint64_t)n_packs * info->row_bytes;
    l.sequences = l.heads + (uint64_t)n_packs * PS_PACK_HEAD_BYTES;
    l.end = l.sequences + (uint64_t)n_seqs * info->seq_bytes;
    l.bytes = round_up(l.end, PS_BLOCK_ALIGN);
    return l;
}

ps_result ps_block_check(const ps_pack_info *info, const ps_block_head *head,
                         const unsigned char *block, ps_error *err)
{
    const ps_block_layout l =
        ps_block_layout_of(info, head->n_packs, head->n_seqs);
    const unsigned char *at = block + l.heads;
    uint64_t n_seqs = 0;

    for (uint32_t i = 0; i < head->n_packs; i++, at += PS_PACK_HEAD_BYTES) {
        if (ps_head_first_seq(at) != n_seqs)
            return ps_fail(err, PS_ERR_CORRUPT,
                           "the sequences of pack %" PRIu32 " of the block "
                           "start at %" PRIu32 ", not %" PRIu64,
                           i, ps_head_first_seq(at), n_seqs);
        n_seqs += ps_head_n_seq(at);
    }
    if (n_seqs != head->n_seqs)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "its packs have %" PRIu64 " sequences, not %" PRIu32,
                       n_seqs, head->n_seqs);
    if (ps_is_version_known(info) &&
        !all_zero(block + l.end, (size_t)(l.bytes - l.end)))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the bytes at its end are not zero");
    return PS_OK;
}

uint64_t ps_block_watermark(const ps_pack_info *info,
                            const ps_block_head *head,
                            const unsigned char *block)
{
    const ps_block_layout l = ps_block_layout_of(info, head->n_packs, 0);

    return ps_head_watermark(block + l.sequences - PS_PACK_HEAD_BYTES);
}

uint32_t ps_block_n_packs(const unsigned char *block)
{
    return load_u32(block + AT_N_PACKS);
}

void ps_block_finalize(const ps_pack_info *info, unsigned char *block)
{
    const uint32_t n = ps_block_n_packs(block);
    const uint64_t first = load_u64(block + AT_FIRST);
    const ps_block_layout l = ps_block_layout_of(info, n, 0);
    const unsigned char *row = block + PS_BLOCK_HEAD_BYTES;
    const unsigned char *seq = block + l.sequences;
    unsigned char *head = block + l.heads;

    for (uint32_t i = 0; i < n; i++) {
        store_u64(head, ps_pack_checksum(info, first + i, head, row, seq));
        seq += (size_t)ps_head_n_seq(head) * info->seq_bytes;
        row += info->row_bytes;
        head += PS_PACK_HEAD_BYTES;
    }
}

/* ---- The index ---- */

void ps_entry_encode(const ps_entry *entry, unsigned char *to)
{
    store_u64(to, entry->offset);
    store_u64(to + 8, entry->first);
    store_u64(to + 16, entry->watermark);
}

ps_entry ps_entry_decode(const unsigned char *from)
{
    return (ps_entry){load_u64(from), load_u64(from + 8), load_u64(from + 16)};
}

ps_result ps_entries_check(const unsigned char *entries, uint32_t n,
                           ps_index_end end, ps_error *err)
{
    ps_entry before = {0};

    for (uint32_t i = 0; i < n; i++) {
        const ps_entry e =
            ps_entry_decode(entries + (size_t)i * PS_ENTRY_BYTES);

        if (e.offset < PS_PACK_HEADER_BYTES || e.offset >= end.offset ||
            e.offset % PS_BLOCK_ALIGN != 0 || e.first >= end.first ||
            (i > 0 && (e.offset <= before.offset || e.first <= before.first)))
            return ps_fail(err, PS_ERR_CORRUPT,
                           "entry %" PRIu32 " of the index is out of order", i);
        before = e;
    }
    return PS_OK;
}

/* Writes the head of an INDEX or END block.  Its body must be complete. */
static void encode_head(ps_block_kind kind, uint64_t first, uint64_t bytes,
                        unsigned char *to)
{
    const ps_block_head head = {
        .kind = kind,
        .first = first,
        .bytes = bytes,
        .body = ps_hash(to + PS_BLOCK_HEAD_BYTES,
                        (size_t)(bytes - PS_BLOCK_HEAD_BYTES)),
    };

    ps_block_head_encode(&head, to);
}

void ps_index_encode(const unsigned char *entries, uint64_t first,
                     unsigned char *to)
{
    memcpy(to + PS_BLOCK_HEAD_BYTES, entries,
           PS_INDEX_BYTES - PS_BLOCK_HEAD_BYTES);
    encode_head(PS_BLOCK_INDEX, first, PS_INDEX_BYTES, to);
}

/* ---- END ---- */

uint64_t ps_end_bytes(uint32_t n_parts, uint32_t n_blocks)
{
    return round_up(AT_ENTRIES +
                        ((uint64_t)n_parts + n_blocks) * PS_ENTRY_BYTES +
                        PS_TRAILER_BYTES,
                    PS_BLOCK_ALIGN);
}

void ps_end_encode(const ps_totals *totals, uint64_t digest,
                   const unsigned char *parts, uint32_t n_parts,
                   const unsigned char *blocks, uint32_t n_blocks, uint64_t at,
                   unsigned char *to)
{
    const size_t bytes = (size_t)ps_end_bytes(n_parts, n_blocks);
    const size_t of_parts = (size_t)n_parts * PS_ENTRY_BYTES;
    unsigned char *trailer = to + bytes - PS_TRAILER_BYTES;

    memset(to, 0, bytes);
    ps_totals_encode(totals, digest, to + AT_TOTALS);
    store_u32(to + AT_N_PARTS, n_parts);
    store_u32(to + AT_N_BLOCKS, n_blocks);
    if (n_parts > 0)
        memcpy(to + AT_ENTRIES, parts, of_parts);
    if (n_blocks > 0)
        memcpy(to + AT_ENTRIES + of_parts, blocks,
               (size_t)n_blocks * PS_ENTRY_BYTES);
    store_u64(trailer, bytes);
    store_u64(trailer + 8, at + bytes);
    memcpy(trailer + 16, trailer_magic, sizeof trailer_magic);
    encode_head(PS_BLOCK_END, totals->packs, bytes, to);
}

bool ps_trailer_decode(const unsigned char *from, uint64_t *end_bytes,
                       uint64_t *stream_bytes)
{
    *end_bytes = load_u64(from);
    *stream_bytes = load_u64(from + 8);
    return memcmp(from + 16, trailer_magic, sizeof trailer_magic) == 0 &&
           *end_bytes % PS_BLOCK_ALIGN == 0 &&
           *end_bytes >= ps_end_bytes(0, 0) &&
           *end_bytes <= ps_end_bytes(PS_MAX_INDEX_PARTS, PS_INDEX_BLOCKS) &&
           *stream_bytes >= PS_PACK_HEADER_BYTES &&
           *stream_bytes - PS_PACK_HEADER_BYTES >= *end_bytes;
}

ps_result ps_end_decode(const ps_pack_info *info, const unsigned char *from,
                        const ps_block_head *head, ps_end *end, ps_error *err)
{
    const bool is_known = ps_is_version_known(info);
    const size_t bytes = (size_t)head->bytes;
    const unsigned char *trailer = from + bytes - PS_TRAILER_BYTES;
    uint64_t used;
    uint64_t end_bytes;
    ps_index_end here;
    ps_result r;

    if (head->body !=
        ps_hash(from + PS_BLOCK_HEAD_BYTES, bytes - PS_BLOCK_HEAD_BYTES))
        return ps_fail(err, PS_ERR_CORRUPT, "END's checksum does not match");
    ps_totals_decode(from + AT_TOTALS, &end->totals, &end->digest);
    end->n_parts = load_u32(from + AT_N_PARTS);
    end->n_blocks = load_u32(from + AT_N_BLOCKS);
    end->entries = from + AT_ENTRIES;
    if (end->n_parts > PS_MAX_INDEX_PARTS ||
        end->n_blocks >= PS_INDEX_BLOCKS ||
        bytes != ps_end_bytes(end->n_parts, end->n_blocks) ||
        !ps_trailer_decode(trailer, &end_bytes, &end->stream_bytes) ||
        end_bytes != bytes)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "END's index or trailer contradicts its size of %zu "
                       "bytes",
                       bytes);
    used = AT_ENTRIES +
           ((uint64_t)end->n_parts + end->n_blocks) * PS_ENTRY_BYTES;
    if (head->first != end->totals.packs ||
        (is_known &&
         (!all_zero(from + AT_TOTALS_ZERO, AT_N_PARTS - AT_TOTALS_ZERO) ||
          !all_zero(from + used, (size_t)(trailer - (from + used))))))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "END's header or unused bytes are invalid");
    here = (ps_index_end){end->stream_bytes - bytes, head->first};
    r = ps_entries_check(end->entries, end->n_parts, here, err);
    if (r == PS_OK)
        r = ps_entries_check(end->entries +
                                 (size_t)end->n_parts * PS_ENTRY_BYTES,
                             end->n_blocks, here, err);
    return r;
}

ps_result ps_blame(const ps_pack *pack, uint64_t block, ps_result code,
                   ps_error *err)
{
    char of_pack[40] = "";
    ps_error why;

    if (err == NULL)
        return code;
    if (pack != NULL)
        (void)snprintf(of_pack, sizeof of_pack, "pack %" PRIu64 " in the ",
                       pack->index);
    why = *err;
    (void)ps_fail(err, code, "%sblock at byte %" PRIu64 ": %s", of_pack, block,
                  why.text);
    err->sys_errno = why.sys_errno;
    return code;
}
