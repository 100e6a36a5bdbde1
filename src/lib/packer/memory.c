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

/* What a state has besides what it says of lengths and sequences. */
#define STATE_HEAD_BYTES 16384

/* Numbers of a state for each slot, and for each token of the capacity. */
#define STATE_SLOT_BYTES 48
#define STATE_TOKEN_BYTES 12

/* Slots, and items of refill.c, which are sorted by way of a copy. */
#define SAVED_SLOT_BYTES 64

static void add(uint64_t *sum, uint64_t bytes)
{
    *sum = ps_mem_sum(*sum, bytes);
}

/*
 * All that ps_packer_start opens; `any_depth`: the depth is the greatest of
 * those that may be chosen.
 */
static uint64_t start_bytes(const ps_packer *p, bool any_depth)
{
    const ps_output_options output = ps_packer_output_options(p);
    ps_engine_options o = ps_packer_engine_options(p);
    const uint32_t slots = ps_engine_slots_for(&o);
    const uint64_t longest = ps_packer_store_bytes(p, p->info.capacity);
    uint64_t stored = ps_mem_times(p->options.window, longest);
    uint32_t blocks = ps_packer_max_blocks(p);
    uint64_t bytes = ps_engine_bytes(&o);

    if (any_depth && o.depth > PS_SMALL_DEPTH) {
        o.depth = PS_SMALL_DEPTH;
        bytes = ps_mem_max(bytes, ps_engine_bytes(&o));
    }
    add(&bytes, ps_mem_array(slots, sizeof(ps_held)));

    /*
     * The sequences of packs that wait to be shuffled are together no longer
     * than these packs, but for the end of the last chunk of each.
     */
    if (p->options.order == PS_PACKS_SHUFFLED) {
        uint64_t n = ps_shuffle_sequences(p->options.window, p->info.depth);
        uint64_t packs = ps_mem_times(
            PS_SHUFFLE_MAX_PACKS,
            (uint64_t)p->shape.per_token * p->info.capacity);

        add(&packs, ps_mem_times(n, ps_packer_store_bytes(p, 0) +
                                        PS_STORE_CHUNK_BYTES));
        add(&stored, ps_mem_min(ps_mem_times(n, longest), packs));
    }
    if (p->options.max_bytes != 0)
        stored = ps_mem_min(stored, p->options.max_bytes);
    add(&bytes, ps_store_bytes(slots, stored));
    /* Payloads wait in blocks of the reader as well. */
    if (blocks != 0)
        add(&bytes, ps_pool_bytes((uint64_t)blocks + 1));
    add(&bytes, ps_output_bytes(&output));
    return bytes;
}

/* The first sequences wait; then they are put, through one buffer. */
static uint64_t lookahead_bytes(const ps_packer *p)
{
    const ps_engine_options o = ps_packer_engine_options(p);
    uint32_t n = p->options.window;
    uint64_t waiting =
        ps_mem_times(n, ps_packer_store_bytes(p, p->info.capacity));
    uint64_t choosing = ps_mem_sum(
        ps_depth_bytes(&o, n),
        ps_histogram_bytes(n < o.capacity ? n : o.capacity));
    uint64_t bytes = ps_mem_max(choosing, start_bytes(p, true));

    if (p->options.max_bytes != 0)
        waiting = ps_mem_min(waiting, p->options.max_bytes);
    add(&bytes, ps_store_bytes(n, waiting));
    add(&bytes, ps_mem_growing(n, 1, sizeof(ps_lookahead)));
    add(&bytes,
        ps_mem_array(1, ps_packer_payload_bytes(p, p->info.capacity)));
    return bytes;
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
    p->info.depth = ps_packer_max_depth(p);
    if (ps_layout(&p->info, NULL) == PS_OK)
        return p;
    ps_packer_free(p);
    return NULL;
}

uint64_t ps_packer_memory(const ps_schema *schema,
                          const ps_packer_options *options)
{
    const ps_histogram *h = options->learn_from;
    bool choose = false;
    ps_packer *p = prepare(schema, options, &choose);
    ps_engine_options o;
    uint64_t bytes;

    if (p == NULL)
        return UINT64_MAX;
    o = ps_packer_engine_options(p);
    bytes = choose && h == NULL ? lookahead_bytes(p) : start_bytes(p, choose);
    /* A histogram chooses the depth, or else the rest is opened, beside a
       copy of it in units. */
    if (choose && h != NULL)
        bytes = ps_mem_max(bytes, ps_depth_bytes(&o, UINT32_MAX));
    if (h != NULL)
        add(&bytes, ps_mem_times(2, ps_histogram_bytes(
                                        (uint32_t)ps_histogram_size(h))));
    ps_packer_free(p);
    add(&bytes, ps_length_counts_bytes(options->capacity));
    add(&bytes, ps_depth_cost_bytes(options->capacity));
    add(&bytes, ps_mem_array(1, sizeof *p));
    return bytes;
}

uint64_t ps_packer_save_memory(const ps_schema *schema,
                               const ps_packer_options *options,
                               size_t note_bytes)
{
    bool choose = false;
    ps_packer *p = prepare(schema, options, &choose);
    ps_output_options output;
    ps_engine_options o;
    uint64_t slots;
    uint64_t state;
    uint64_t bytes;

    if (p == NULL)
        return UINT64_MAX;
    o = ps_packer_engine_options(p);
    slots = ps_engine_slots_for(&o);
    state = ps_mem_sum(note_bytes, STATE_HEAD_BYTES);
    add(&state, slots * STATE_SLOT_BYTES);
    add(&state, (uint64_t)p->info.capacity * STATE_TOKEN_BYTES);
    add(&state, ps_length_counts_bytes(p->info.capacity));
    output = ps_packer_output_options(p);
    if (output.compressed) {
        add(&state, output.frame);
        add(&state, ps_seek_table_takes(output.max_frames));
    }

    /* It grows while it is written, beside the one that was resumed from. */
    bytes = ps_mem_growing(state, 1, 1);
    add(&bytes, ps_mem_array(state, 1));
    /* What is held is put in the order of the input, and read once more. */
    add(&bytes, ps_mem_array(slots, SAVED_SLOT_BYTES));
    add(&bytes,
        ps_mem_array(2, ps_packer_payload_bytes(p, p->info.capacity)));
    ps_packer_free(p);
    return bytes;
}
