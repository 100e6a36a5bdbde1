/*
 * payload.c - payloads, from the input to the pack.
 *
 * A payload that lies in a block of a reader stays there, held, until it is
 * copied into its pack: the only copy there is.  If too many blocks are held
 * already, for the sake of a few old sequences perhaps, or if it lies
 * elsewhere, it waits in the store.
 *
 * SPDX-License-Identifier: MIT
 */

#include <string.h>

#include "base/mem_bound.h"
#include "base/prefetch.h"
#include "packer/packer.h"

#define PREFETCH_MAX 1024

/* Blocks that may be held whatever the options: those that are being read. */
#define FEW_BLOCKS 4

/* As many as the payloads of a window full of the longest sequences take. */
uint32_t ps_packer_max_blocks(const ps_packer *p)
{
    uint64_t room = ps_packer_room(p, p->info.capacity);
    uint64_t blocks = p->options.window * room / PS_BLOCK_BYTES;

    if (p->options.max_bytes != 0)
        return 0;
    return blocks < UINT32_MAX - FEW_BLOCKS ? (uint32_t)blocks + FEW_BLOCKS
                                            : UINT32_MAX;
}

/*
 * Packs that wait to be shuffled are no longer than a pack each, but for the
 * end of the last chunk of each sequence.
 */
static uint64_t max_shuffled(const ps_packer *p, uint32_t depth)
{
    uint64_t n = ps_shuffle_sequences(p->options.window, depth);
    uint64_t alone = ps_mem_times(n, ps_packer_room(p, p->info.capacity));
    uint64_t packs = ps_mem_times(
        PS_SHUFFLE_MAX_PACKS,
        (uint64_t)p->shape.per_token * p->info.capacity);

    packs = ps_mem_sum(packs, ps_mem_times(n, ps_packer_room(p, 0) +
                                           PS_STORE_CHUNK_BYTES));
    return ps_mem_min(alone, packs);
}

uint64_t ps_packer_max_payload(const ps_packer *p)
{
    uint64_t max = ps_mem_times(p->options.window,
                                ps_packer_room(p, p->info.capacity));

    if (p->options.order == PS_PACKS_SHUFFLED)
        max = ps_mem_sum(max, max_shuffled(p, p->info.depth));
    if (p->options.max_bytes != 0)
        max = ps_mem_min(max, p->options.max_bytes);
    return max;
}

/* What is meant of a lane. */
static const unsigned char *lane_of(const ps_packer *p, const ps_lane *lane,
                                    const ps_part *part)
{
    uint64_t n_tok = part->payload_tok;

    if (!lane->per_token)
        return part->payload + p->shape.per_token * n_tok + lane->before;
    return part->payload + lane->before * n_tok +
           (uint64_t)part->first * lane->bytes;
}

static size_t lane_bytes(const ps_lane *lane, uint32_t n_tok)
{
    return (size_t)lane->bytes * (lane->per_token ? n_tok : 1);
}

/* ---- In ---- */

ps_result ps_packer_store(const ps_packer *p, ps_store *store, uint32_t slot,
                          uint32_t n_tok, const ps_part *part, ps_error *err)
{
    ps_result r = PS_OK;

    if (n_tok == part->payload_tok)
        return ps_store_append(store, slot, part->payload,
                               ps_packer_payload_bytes(p, n_tok), err);
    for (uint32_t l = 0; l < p->n_lanes && r == PS_OK; l++)
        r = ps_store_append(store, slot, lane_of(p, &p->lanes[l], part),
                            lane_bytes(&p->lanes[l], n_tok), err);
    return r;
}

static bool can_hold(const ps_packer *p, const ps_part *part)
{
    return part->block != NULL &&
           ps_pool_held(part->block->pool) <= p->max_blocks &&
           ps_block_has(part->block, part->payload,
                        ps_packer_payload_bytes(p, part->payload_tok));
}

ps_result ps_packer_keep(ps_packer *p, uint32_t slot, uint32_t n_tok,
                         const ps_part *part, ps_error *err)
{
    held *h = &p->held[slot];

    h->part = *part;
    if (can_hold(p, part)) {
        ps_block_hold(part->block);
        return PS_OK;
    }
    h->part.block = NULL;
    return ps_packer_store(p, p->store, slot, n_tok, part, err);
}

/* ---- Out ---- */

/* Of a long payload the processor itself sees what comes next. */
static size_t min_bytes(size_t n)
{
    return n < PREFETCH_MAX ? n : PREFETCH_MAX;
}

void ps_packer_prefetch(const ps_packer *p, uint32_t slot)
{
    const ps_part *part = &p->held[slot].part;

    if (part->block == NULL)
        ps_store_prefetch(p->store, slot);
    else
        ps_prefetch_bytes(part->payload,
                          min_bytes(p->shape.token_bytes *
                                    part->payload_tok));
}

/* Where the next sequence of a record has its part of a lane. */
static unsigned char *lane_in(const ps_record *record, const ps_lane *lane)
{
    size_t first = lane->per_token ? record->n_rows : record->n_seq;

    return record->bytes + lane->offset + first * lane->bytes;
}

static ps_store_cursor start(const ps_packer *p, uint32_t slot)
{
    if (p->held[slot].part.block != NULL)
        return (ps_store_cursor){.chunk = 0};
    return ps_store_start(p->store, slot);
}

/* Copies the next lane; gives where the one behind it may go. */
static unsigned char *read_lane(const ps_packer *p, const ps_part *part,
                                const ps_lane *lane, uint32_t n_tok,
                                ps_store_cursor *cursor, unsigned char *to)
{
    size_t n = lane_bytes(lane, n_tok);

    if (part->block == NULL)
        ps_store_read(p->store, cursor, to, n);
    else
        memcpy(to, lane_of(p, lane, part), n);
    return to + n;
}

void ps_packer_copy(const ps_packer *p, uint32_t slot, uint32_t n_tok,
                    unsigned char *to)
{
    ps_store_cursor cursor = start(p, slot);

    for (uint32_t l = 0; l < p->n_lanes; l++)
        to = read_lane(p, &p->held[slot].part, &p->lanes[l], n_tok, &cursor,
                       to);
}

void ps_packer_fetch(ps_packer *p, uint32_t slot, uint32_t n_tok,
                     const ps_record *record)
{
    ps_part *part = &p->held[slot].part;
    ps_store_cursor cursor = start(p, slot);

    for (uint32_t l = 0; l < p->n_lanes; l++) {
        const ps_lane *lane = &p->lanes[l];

        (void)read_lane(p, part, lane, n_tok, &cursor,
                        lane_in(record, lane));
    }
    if (part->block == NULL)
        ps_store_clear(p->store, slot);
    else
        ps_block_release(part->block);
    part->block = NULL;
}

void ps_packer_release(ps_packer *p)
{
    uint32_t n = p->held == NULL ? 0 : ps_engine_slots(p->engine);

    for (uint32_t i = 0; i < n; i++)
        if (p->held[i].part.block != NULL)
            ps_block_release(p->held[i].part.block);
}
