/*
 * memory.c - how much memory a packer takes at most.
 *
 * Added up from what stands beside each allocation, for the worst that an
 * input can do with the options.  Nothing is allocated to learn it but the
 * packer itself.
 *
 * SPDX-License-Identifier: MIT
 */

#include "base/mem_bound.h"
#include "engine/auto_depth.h"
#include "format/record_layout.h"
#include "io/seek_table.h"
#include "packer/packer.h"
#include "plan/plan.h"

/* Depths up to this may be planned for with more effort than others. */
#define SMALL_DEPTH 3

/* What a state has besides what it says of lengths and sequences. */
#define STATE_HEAD_BYTES 16384

/* Numbers of a state for each slot, and for each token of the capacity. */
#define STATE_SLOT_BYTES 48
#define STATE_TOKEN_BYTES 12

/* Slots, and items of refill.c, which are sorted by way of a copy. */
#define SAVED_SLOT_BYTES 64

static uint64_t engine_bytes(const ps_packer *p, bool chosen)
{
    ps_engine_options o = ps_packer_engine_options(p);
    uint64_t bytes = ps_engine_bytes(&o);

    if (!chosen || o.depth <= SMALL_DEPTH)
        return bytes;
    o.depth = SMALL_DEPTH;
    return ps_mem_max(bytes, ps_engine_bytes(&o));
}

static uint32_t slots_of(const ps_packer *p)
{
    const ps_engine_options o = ps_packer_engine_options(p);

    return ps_engine_slots_for(&o);
}

/* Payloads wait in blocks of the reader as well, unless they are bounded. */
static uint64_t payload_bytes(const ps_packer *p)
{
    uint64_t bytes = ps_store_bytes(slots_of(p), ps_packer_max_payload(p));
    uint32_t blocks = ps_packer_max_blocks(p);

    if (blocks == 0)
        return bytes;
    return ps_mem_sum(bytes, ps_pool_bytes((uint64_t)blocks + 1));
}

/* All that is opened when the depth is known. */
static uint64_t open_bytes(const ps_packer *p, bool chosen)
{
    const ps_output_options output = ps_packer_output_options(p);
    uint64_t bytes = ps_mem_array(slots_of(p), sizeof(held));

    bytes = ps_mem_sum(bytes, engine_bytes(p, chosen));
    bytes = ps_mem_sum(bytes, payload_bytes(p));
    return ps_mem_sum(bytes, ps_output_bytes(&output));
}

/* The first sequences wait; then they are put, through one buffer. */
static uint64_t lookahead_bytes(const ps_packer *p)
{
    const ps_engine_options o = ps_packer_engine_options(p);
    uint32_t n = p->options.window;
    uint32_t longest = p->info.capacity;
    uint64_t waiting = ps_mem_times(n, ps_packer_room(p, longest));
    uint64_t choosing = ps_mem_sum(
        ps_depth_bytes(&o, n),
        ps_histogram_bytes(n < o.capacity ? n : o.capacity));
    uint64_t bytes;

    if (p->options.max_bytes != 0)
        waiting = ps_mem_min(waiting, p->options.max_bytes);
    bytes = ps_mem_sum(ps_store_bytes(n, waiting),
                       ps_mem_growing(n, 1, sizeof(ps_lookahead)));
    bytes = ps_mem_sum(
        bytes, ps_mem_array(1, ps_packer_payload_bytes(p, longest)));
    return ps_mem_sum(bytes,
                      ps_mem_max(choosing, open_bytes(p, true)));
}

/* With the greatest depth, where it is still to be chosen. */
static ps_packer *prepare(const ps_schema *schema,
                          const ps_packer_options *options, bool *choose)
{
    ps_packer *p;

    if (ps_packer_prepare(&p, -1, schema, options, NULL) != PS_OK)
        return NULL;
    *choose = p->info.depth == PS_DEPTH_AUTO;
    if (!*choose)
        return p;
    p->info.depth = ps_lookahead_max_depth(p);
    if (ps_layout(&p->info, NULL) == PS_OK)
        return p;
    ps_packer_free(p);
    return NULL;
}

uint64_t ps_packer_memory(const ps_schema *schema,
                          const ps_packer_options *options)
{
    bool choose = false;
    ps_packer *p = prepare(schema, options, &choose);
    uint64_t bytes;

    if (p == NULL)
        return UINT64_MAX;
    bytes = choose ? lookahead_bytes(p) : open_bytes(p, false);
    ps_packer_free(p);
    bytes = ps_mem_sum(bytes, ps_length_counts_bytes(options->capacity));
    bytes = ps_mem_sum(bytes, ps_depth_cost_bytes(options->capacity));
    return ps_mem_sum(bytes, ps_mem_array(1, sizeof *p));
}

/*
 * A state grows while it is written, and another one may be there from which
 * the packer was resumed; besides, what is held is put in the order of the
 * input, and read once more.
 */
static uint64_t save_bytes(const ps_packer *p, uint64_t note_bytes)
{
    uint64_t slots = slots_of(p);
    const ps_output_options output = ps_packer_output_options(p);
    uint64_t state = ps_mem_sum(
        note_bytes, STATE_HEAD_BYTES + slots * STATE_SLOT_BYTES +
                        (uint64_t)p->info.capacity * STATE_TOKEN_BYTES);
    uint64_t bytes;

    state = ps_mem_sum(state, ps_length_counts_bytes(p->info.capacity));
    if (output.compressed)
        state = ps_mem_sum(
            state, ps_mem_sum(output.frame,
                              ps_seek_table_takes(output.max_frames)));
    bytes = ps_mem_sum(ps_mem_growing(state, 1, 1),
                       ps_mem_array(state, 1));
    bytes = ps_mem_sum(bytes, ps_mem_array(slots, SAVED_SLOT_BYTES));
    return ps_mem_sum(
        bytes,
        ps_mem_array(2, ps_packer_payload_bytes(p, p->info.capacity)));
}

uint64_t ps_packer_save_memory(const ps_schema *schema,
                               const ps_packer_options *options,
                               size_t note_bytes)
{
    bool choose = false;
    ps_packer *p = prepare(schema, options, &choose);
    uint64_t bytes;

    if (p == NULL)
        return UINT64_MAX;
    bytes = save_bytes(p, note_bytes);
    ps_packer_free(p);
    return bytes;
}
