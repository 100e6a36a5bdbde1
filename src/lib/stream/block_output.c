/*
 * block_output.c - build packs in place, collect them in blocks, index and
 * write them.
 *
 * SPDX-License-Identifier: MIT
 */

#include "stream/block_output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem_bound.h"
#include "format/digest.h"
#include "format/pack_header.h"

/* Number of INDEX blocks in the memory bound: enough for 2^27 blocks. */
#define COUNTED_PARTS (UINT32_C(1) << 15)

/* ---- Output hooks ---- */

/* Computes the checksums of a block, on a writer thread. */
static void finalize(void *context, unsigned char *block)
{
    const ps_block_output *b = context;

    ps_block_finalize(b->info, block);
}

/*
 * Adds the checksums of a block to the digest.  The digest depends on all
 * earlier checksums, so one comparison, after `proof_packs` packs, verifies all
 * of them.
 */
static void follow(void *context, const unsigned char *block)
{
    ps_block_output *b = context;
    const uint32_t n = ps_block_n_packs(block);
    const unsigned char *head =
        block + ps_block_layout_of(b->info, n, 0).heads;

    for (uint32_t i = 0; i < n; i++, head += PS_PACK_HEAD_BYTES) {
        b->digest = ps_pack_digest(b->digest, ps_head_checksum(head));
        b->followed++;
        if (b->followed == b->proof_packs && b->digest != b->proof)
            b->differs = true;
    }
}

/* ---- Blocks ---- */

/* Layout of the open block, with space for all its packs. */
static ps_block_layout open_layout(const ps_block_output *b)
{
    return ps_block_layout_of(b->info, b->info->block_packs, b->n_seqs);
}

/* Sets the addresses at which the next pack is built. */
static void find_next(ps_block_output *b)
{
    unsigned char *block = ps_output_block(b->output);
    const ps_block_layout l = open_layout(b);

    b->row = block + PS_BLOCK_HEAD_BYTES +
             (size_t)b->n_packs * b->info->row_bytes;
    b->head = block + l.heads + (size_t)b->n_packs * PS_PACK_HEAD_BYTES;
    b->sequences = block + l.end;
}

ps_result ps_block_output_next_block(ps_block_output *b, ps_error *err)
{
    ps_result r = ps_block_output_close(b, err);

    if (r == PS_OK)
        find_next(b);
    return r;
}

ps_result ps_block_output_add(ps_block_output *b, const ps_pack_builder *pack,
                              uint64_t watermark, ps_error *err)
{
    ps_head_encode(b->head, pack, b->n_seqs, watermark);
    b->row += b->info->row_bytes;
    b->head += PS_PACK_HEAD_BYTES;
    b->sequences += (size_t)pack->n_seq * b->info->seq_bytes;
    b->n_packs++;
    b->n_seqs += pack->n_seq;
    b->watermark = watermark;
    return b->n_packs == b->info->block_packs ? ps_block_output_close(b, err)
                                              : PS_OK;
}

/*
 * Closes the gaps between the parts of the open block and writes its head.
 * Returns its size in bytes.
 */
static uint64_t complete(const ps_block_output *b)
{
    unsigned char *block = ps_output_block(b->output);
    const ps_block_layout from = open_layout(b);
    const ps_block_layout to =
        ps_block_layout_of(b->info, b->n_packs, b->n_seqs);
    const ps_block_head head = {.kind = PS_BLOCK_PACKS,
                                .n_packs = b->n_packs,
                                .n_seqs = b->n_seqs,
                                .first = b->first,
                                .bytes = to.bytes};

    if (b->n_packs < b->info->block_packs) {
        memmove(block + to.heads, block + from.heads,
                (size_t)b->n_packs * PS_PACK_HEAD_BYTES);
        memmove(block + to.sequences, block + from.sequences,
                (size_t)b->n_seqs * b->info->seq_bytes);
    }
    memset(block + to.end, 0, (size_t)(to.bytes - to.end));
    ps_block_head_encode(&head, block);
    return to.bytes;
}

/* Puts the header, an INDEX block or END, each into frames of its own. */
static ps_result put_whole(ps_block_output *b, const unsigned char *bytes,
                           size_t n, ps_error *err)
{
    const ps_result r = ps_output_put(b->output, bytes, n, err);

    return r == PS_OK ? ps_output_cut(b->output, err) : r;
}

/* Writes an INDEX block with the blocks listed so far. */
static ps_result write_index(ps_block_output *b, ps_error *err)
{
    const ps_entry part = {b->at, b->index_first, b->watermark};
    unsigned char *to;
    unsigned char *larger;
    ps_result r;

    if (b->parts.n == PS_MAX_INDEX_PARTS)
        return ps_fail(err, PS_ERR_LIMIT,
                       "a stream cannot have more than %" PRIu64 " blocks",
                       (uint64_t)PS_MAX_INDEX_PARTS * PS_INDEX_BLOCKS);
    larger = ps_array_grow(b->parts.bytes, &b->parts.capacity, b->parts.n + 1,
                           16, PS_ENTRY_BYTES);
    to = malloc(PS_INDEX_BYTES);
    if (larger != NULL)
        b->parts.bytes = larger;
    if (larger == NULL || to == NULL) {
        free(to);
        return ps_fail_memory(err);
    }
    ps_entry_encode(&part, larger + b->parts.n++ * PS_ENTRY_BYTES);
    ps_index_encode(b->entries, b->first, to);
    r = put_whole(b, to, PS_INDEX_BYTES, err);
    free(to);
    b->n_blocks = 0;
    b->at += PS_INDEX_BYTES;
    return r;
}

ps_result ps_block_output_close(ps_block_output *b, ps_error *err)
{
    const ps_entry entry = {b->at, b->first, b->watermark};
    uint64_t bytes;
    bool keep;
    ps_result r;

    if (b->n_packs == 0)
        return PS_OK;
    bytes = complete(b);
    b->first += b->n_packs;
    b->n_packs = b->n_seqs = 0;
    keep = b->first > b->first_pack;
    r = ps_output_commit(b->output, (size_t)bytes, keep, err);
    if (r != PS_OK || !keep)
        return r;
    if (b->n_blocks == 0)
        b->index_first = entry.first;
    ps_entry_encode(&entry,
                    b->entries + (size_t)b->n_blocks++ * PS_ENTRY_BYTES);
    b->at += bytes;
    return b->n_blocks == PS_INDEX_BLOCKS ? write_index(b, err) : PS_OK;
}

ps_result ps_block_output_settle(ps_block_output *b, ps_error *err)
{
    ps_result r = ps_block_output_close(b, err);

    return r == PS_OK ? ps_output_flush(b->output, err) : r;
}

/* ---- The stream ---- */

/* Empties the index.  The next blocks follow a header that was just written. */
static void begin_index(ps_block_output *b)
{
    b->at = PS_PACK_HEADER_BYTES;
    b->n_blocks = 0;
    b->parts.n = 0;
}

ps_result ps_block_output_begin(ps_block_output *b, bool goes_on,
                                ps_error *err)
{
    unsigned char header[PS_PACK_HEADER_BYTES];

    ps_pack_header_encode(b->info, header);
    b->form = ps_form_of(b->info);
    if (!goes_on) {
        b->first = b->followed = 0;
        b->digest = ps_pack_digest_begin(header);
    }
    begin_index(b);
    return put_whole(b, header, sizeof header, err);
}

ps_result ps_block_output_end(ps_block_output *b, const ps_totals *totals,
                              ps_error *err)
{
    unsigned char *end;
    size_t bytes;
    ps_result r = ps_block_output_settle(b, err);

    if (r != PS_OK)
        return r;
    bytes = (size_t)ps_end_bytes((uint32_t)b->parts.n, b->n_blocks);
    end = malloc(bytes);
    if (end == NULL)
        return ps_fail_memory(err);
    ps_end_encode(totals, b->digest, b->parts.bytes, (uint32_t)b->parts.n,
                  b->entries, b->n_blocks, b->at, end);
    r = put_whole(b, end, bytes, err);
    free(end);
    return r;
}

/* ---- States ---- */

void ps_block_output_save(const ps_block_output *b, ps_saver *saver)
{
    const unsigned char *block = ps_output_block(b->output);
    const ps_block_layout l = open_layout(b);

    ps_save_u64(saver, b->at);
    ps_save_u64(saver, b->index_first);
    ps_save_u32(saver, (uint32_t)b->parts.n);
    ps_save_bytes(saver, b->parts.bytes, b->parts.n * PS_ENTRY_BYTES);
    ps_save_u32(saver, b->n_blocks);
    ps_save_bytes(saver, b->entries, (size_t)b->n_blocks * PS_ENTRY_BYTES);
    ps_save_u64(saver, b->watermark);
    ps_save_u32(saver, b->n_packs);
    ps_save_u32(saver, b->n_seqs);
    ps_save_bytes(saver, block + PS_BLOCK_HEAD_BYTES,
                  (size_t)b->n_packs * b->info->row_bytes);
    ps_save_bytes(saver, block + l.heads,
                  (size_t)b->n_packs * PS_PACK_HEAD_BYTES);
    ps_save_bytes(saver, block + l.sequences,
                  (size_t)b->n_seqs * b->info->seq_bytes);
}

/* Loads the index.  The offsets of its entries must be less than `at`. */
static ps_result load_index(ps_block_output *b, ps_restorer *restorer,
                            ps_error *err)
{
    const ps_index_end end = {b->at, b->first};
    const uint32_t n_parts =
        ps_load_count(restorer, PS_MAX_INDEX_PARTS, PS_ENTRY_BYTES);
    const unsigned char *parts =
        ps_load_bytes(restorer, (uint64_t)n_parts * PS_ENTRY_BYTES);
    const uint32_t n_blocks = ps_load_within(restorer, 0, PS_INDEX_BLOCKS - 1);
    const unsigned char *blocks =
        ps_load_bytes(restorer, (uint64_t)n_blocks * PS_ENTRY_BYTES);

    if (restorer->failed ||
        ps_entries_check(parts, n_parts, end, NULL) != PS_OK ||
        ps_entries_check(blocks, n_blocks, end, NULL) != PS_OK)
        return ps_fail_state(err);
    if (n_parts > 0) {
        b->parts.bytes = malloc((size_t)n_parts * PS_ENTRY_BYTES);
        if (b->parts.bytes == NULL)
            return ps_fail_memory(err);
        memcpy(b->parts.bytes, parts, (size_t)n_parts * PS_ENTRY_BYTES);
    }
    b->parts.n = b->parts.capacity = n_parts;
    memcpy(b->entries, blocks, (size_t)n_blocks * PS_ENTRY_BYTES);
    b->n_blocks = n_blocks;
    return PS_OK;
}

/* Copies the next `n` bytes of a state; returns false if there are fewer. */
static bool load_to(ps_restorer *restorer, unsigned char *to, uint64_t n)
{
    const unsigned char *bytes = ps_load_bytes(restorer, n);

    if (bytes == NULL)
        return false;
    memcpy(to, bytes, (size_t)n);
    return true;
}

/*
 * Loads the packs of the open block.  The heads must divide the sequence rows
 * of the block without gaps.
 */
static bool load_packs(ps_block_output *b, ps_restorer *restorer)
{
    const ps_pack_info *info = b->info;
    unsigned char *block = ps_output_block(b->output);
    const ps_block_layout l = open_layout(b);
    const unsigned char *head = block + l.heads;
    uint64_t n_seqs = 0;

    if (l.end > info->block_bytes ||
        !load_to(restorer, block + PS_BLOCK_HEAD_BYTES,
                 (uint64_t)b->n_packs * info->row_bytes) ||
        !load_to(restorer, block + l.heads,
                 (uint64_t)b->n_packs * PS_PACK_HEAD_BYTES) ||
        !load_to(restorer, block + l.sequences,
                 (uint64_t)b->n_seqs * info->seq_bytes))
        return false;
    for (uint32_t i = 0; i < b->n_packs; i++, head += PS_PACK_HEAD_BYTES) {
        ps_pack pack;

        if (ps_head_first_seq(head) != n_seqs ||
            ps_head_decode(info, head, &pack, NULL) != PS_OK)
            return false;
        n_seqs += pack.n_seq;
    }
    find_next(b);
    return n_seqs == b->n_seqs;
}

ps_result ps_block_output_load(ps_block_output *b, ps_restorer *restorer,
                               uint64_t n_packs, uint64_t n_all, ps_error *err)
{
    ps_result r;

    b->form = ps_form_of(b->info);
    b->first = b->followed = n_packs;
    b->at = ps_load_u64(restorer);
    b->index_first = ps_load_u64(restorer);
    if (b->at < PS_PACK_HEADER_BYTES || b->at % PS_BLOCK_ALIGN != 0)
        return ps_fail_state(err);
    r = load_index(b, restorer, err);
    if (r != PS_OK)
        return r;
    b->watermark = ps_load_u64(restorer);
    b->n_packs = ps_load_within(restorer, 0, b->info->block_packs - 1);
    b->n_seqs = ps_load_u32(restorer);
    if (restorer->failed || b->n_packs != n_all - n_packs ||
        !load_packs(b, restorer))
        return ps_fail_state(err);
    if (b->first_pack > 0)
        begin_index(b);
    return PS_OK;
}

/* ---- Opening and closing ---- */

uint64_t ps_block_output_bytes(const ps_pack_info *info,
                               const ps_output_options *options)
{
    ps_output_options o = *options;
    uint64_t bytes;

    o.largest = (size_t)info->block_bytes;
    bytes = ps_output_bytes(&o);
    bytes = ps_mem_sum(bytes, ps_mem_array(2, PS_INDEX_BYTES));
    return ps_mem_sum(bytes,
                      ps_mem_growing(COUNTED_PARTS, 16, PS_ENTRY_BYTES));
}

ps_result ps_block_output_open(ps_block_output *b, int fd,
                               const ps_pack_info *info,
                               const ps_output_options *options, ps_error *err)
{
    const ps_output_finalizer finalizer = {finalize, follow, b};
    ps_output_options o = *options;

    b->info = info;
    o.largest = (size_t)info->block_bytes;
    o.finalizer = &finalizer;
    b->entries = malloc((size_t)PS_INDEX_BLOCKS * PS_ENTRY_BYTES);
    if (b->entries == NULL)
        return ps_fail_memory(err);
    return ps_output_open(&b->output, fd, &o, err);
}

void ps_block_output_free(ps_block_output *b)
{
    ps_output_free(b->output);
    free(b->entries);
    free(b->parts.bytes);
    *b = (ps_block_output){0};
}
