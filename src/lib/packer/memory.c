/*
 * memory.c - upper bound on the memory of a packer.
 *
 * SPDX-License-Identifier: MIT
 *
 * The bounds of all allocations are added up for the worst possible input.
 * Nothing is allocated, since an allocation failure would distort the result.
 */

#include "base/mem_bound.h"
#include "io/seek_table.h"
#include "packer/packer.h"
#include "plan/plan.h"

/* Bytes of a state, except data per slot and per token. */
#define STATE_HEAD_BYTES 16384

/*
 * Bytes of a state per slot, and per token of capacity up to a maximum number
 * of tokens: prices are per unit, with at most 1,024 units.
 */
#define STATE_SLOT_BYTES 48
#define STATE_USE_BYTES 8    /* per budget of a slot, or its topic */
#define STATE_PIECE_BYTES 20 /* per piece of a group */
#define STATE_TOKEN_BYTES 12
#define STATE_MAX_TOKENS 16384

/* Bytes per slot: slot numbers, and pieces of refill.c, sorted via a copy. */
#define SAVED_SLOT_BYTES 64

static void add(uint64_t *sum, uint64_t bytes)
{
    *sum = ps_mem_sum(*sum, bytes);
}

/* Everything opened by ps_packer_start. */
static uint64_t start_bytes(const ps_settings *s)
{
    const ps_output_options output = ps_settings_output(s);
    const ps_engine_options o = ps_settings_engine(s);
    const uint32_t slots = ps_engine_slots_for(&o) + ps_settings_spare(s);
    uint64_t stored = ps_settings_window_bytes(s);
    uint32_t blocks = ps_settings_max_blocks(s);
    uint64_t bytes = ps_engine_bytes(&o);

    add(&bytes, ps_mem_array(slots, sizeof(ps_held)));

    if (s->options.order == PS_PACKS_SHUFFLED)
        add(&stored,
            ps_settings_chunks(s, ps_shuffle_sequences(o.window, o.depth),
                               PS_SHUFFLE_MAX_PACKS));
    if (s->options.max_bytes != 0)
        stored = ps_mem_min(stored, s->options.max_bytes);
    if (s->group != 0) {
        add(&stored, ps_settings_item_bytes(s));
        /* The payload of a sequence, while its group is dropped. */
        add(&bytes, ps_mem_array(ps_settings_max_payload(s), 1));
    }
    add(&bytes, ps_store_bytes(slots, stored));
    /* Payloads can also be in the reader's blocks. */
    if (blocks != 0)
        add(&bytes, ps_pool_bytes((uint64_t)blocks + 1));
    add(&bytes, ps_block_output_bytes(&s->info, &output));
    return bytes;
}

uint64_t ps_packer_memory(const ps_schema *schema,
                          const ps_packer_options *options)
{
    const ps_histogram *h = options->learn_from;
    ps_settings s = {0};
    uint64_t bytes;

    if (ps_settings_set(&s, schema, options, NULL) != PS_OK)
        return UINT64_MAX;
    bytes = start_bytes(&s);
    /* The histogram and a copy in units. */
    if (h != NULL)
        add(&bytes, ps_mem_times(2, ps_histogram_bytes(
                                        (uint32_t)ps_histogram_size(h))));
    add(&bytes, ps_mem_array(1, sizeof(ps_packer)));
    return bytes;
}

uint64_t ps_packer_save_memory(const ps_schema *schema,
                               const ps_packer_options *options,
                               size_t note_bytes)
{
    ps_settings s = {0};
    ps_output_options output;
    ps_engine_options o;
    uint64_t slots;
    uint64_t pieces;
    uint64_t state;
    uint64_t bytes;

    if (ps_settings_set(&s, schema, options, NULL) != PS_OK)
        return UINT64_MAX;
    o = ps_settings_engine(&s);
    slots = ps_engine_slots_for(&o);
    state = ps_mem_sum(note_bytes, STATE_HEAD_BYTES);
    pieces = ps_settings_pieces(&s, slots);
    add(&state, slots * (STATE_SLOT_BYTES + STATE_USE_BYTES *
                                               (o.n_budgets + o.by_topic)));
    add(&state, ps_mem_times(pieces, STATE_PIECE_BYTES));
    add(&state,
        ps_mem_min(s.info.capacity, STATE_MAX_TOKENS) * STATE_TOKEN_BYTES);
    /* The open block and the index so far. */
    add(&state, s.info.block_bytes);
    add(&state, (uint64_t)2 * PS_INDEX_BLOCKS * PS_ENTRY_BYTES);
    output = ps_settings_output(&s);
    if (output.compressed)
        add(&state, ps_seek_table_takes(output.max_frames));

    /* The state grows while it is saved.  The resumed state still exists. */
    bytes = ps_mem_growing(state, 1, 1);
    add(&bytes, ps_mem_array(state, 1));
    /* The sequences held are sorted by id, and one payload is copied. */
    add(&bytes, ps_mem_array(slots, SAVED_SLOT_BYTES));
    if (pieces != 0)
        add(&bytes, ps_mem_array(pieces, sizeof(ps_held_piece)));
    add(&bytes, ps_mem_array(2, ps_settings_max_payload(&s)));
    return bytes;
}
