/*
 * loader_fill.c - read batches of packs into their buffers.
 *
 * SPDX-License-Identifier: MIT
 *
 * A batch is one rank's part of a round, which has `packs` packs for every
 * rank.  All packs of a round are read before the batch is returned.  All ranks
 * therefore agree on the round in which the input ends, and have identical
 * marks.
 */

#include "batch/loader.h"

#include <string.h>

#include "batch/spans.h"

/* Address of the row of pack `p` in a buffer. */
static unsigned char *row_at(const ps_loader *l, const ps_slot *slot,
                             uint32_t p)
{
    return slot->memory + (size_t)p * l->info.row_bytes;
}

/* Starts a batch after all packs counted so far. */
static void begin(const ps_loader *l, ps_slot *slot)
{
    const uint64_t ranks = l->options.ranks;
    const uint64_t read = ps_pack_reader_packs(l->reader);
    const uint64_t to_ours = (l->options.rank + ranks - read % ranks) % ranks;

    slot->batch = (ps_batch){.first = read + to_ours,
                             .rows = slot->memory,
                             .sequences = slot->memory + l->layout.sequences,
                             .heads = slot->heads,
                             .memory = slot->memory};
}

/*
 * Completes the batch from the packs in a slot: adds padding, merges the arrays
 * and saves the position.  int32 cannot overflow, since ps_loader_plan has
 * checked the sizes.
 */
static void finish(const ps_loader *l, ps_slot *slot)
{
    const bool pad = l->options.last == PS_LAST_PAD;
    const ps_pack padding = {0};
    ps_batch *b = &slot->batch;
    ps_spans *spans = &b->spans;
    const uint32_t n = pad ? l->options.packs : b->n_packs;
    int32_t *cu = (void *)(slot->memory + l->layout.cu);
    uint32_t *n_seqs = (void *)(slot->memory + l->layout.n_seqs);
    int32_t *lengths =
        l->layout.lengths == 0 ? NULL
                               : (void *)(slot->memory + l->layout.lengths);

    *spans = (ps_spans){.view = l->options.view,
                        .n_seqs = n_seqs,
                        .cu = cu,
                        .lengths = lengths};
    for (uint32_t p = 0; p < n; p++) {
        const bool is_real = p < b->n_packs;
        const ps_pack *pack = is_real ? &slot->heads[p] : &padding;

        n_seqs[p] = pack->n_seq;
        ps_spans_add(spans, &l->info, pack, l->places, cu, lengths);
        if (!is_real)
            ps_pack_end(&(ps_pack_builder){.form = &l->form,
                                           .row = row_at(l, slot, p)});
    }
    for (uint32_t i = 0; i < b->n_seq; i++) {
        const uint64_t n_tok =
            ps_seq_n_tok(b->sequences + (size_t)i * l->info.seq_bytes);

        b->sum_len_sq += n_tok * n_tok;
    }
    ps_pack_reader_save(l->reader, slot->mark);
}

/* Appends a copy of a pack to the batch. */
static void take(const ps_loader *l, ps_slot *slot, const ps_pack *pack)
{
    const size_t size = l->info.seq_bytes;
    ps_batch *b = &slot->batch;
    ps_pack *head = &slot->heads[b->n_packs];

    *head = *pack;
    head->row = memcpy(row_at(l, slot, b->n_packs), pack->row,
                       l->info.row_bytes);
    head->sequences =
        memcpy(slot->memory + l->layout.sequences + b->n_seq * size,
               pack->sequences, pack->n_seq * size);
    b->n_packs++;
    b->n_seq += pack->n_seq;
    b->n_tok += pack->n_tok;
}

void ps_loader_fill(ps_loader *l, ps_slot *slot)
{
    const ps_loader_options *o = &l->options;
    const uint64_t round = (uint64_t)o->packs * o->ranks;
    const bool is_dealt = l->round.deal != NULL;
    ps_batch *b = &slot->batch;
    uint64_t n = 0;
    ps_result r = PS_OK;

    begin(l, slot);
    while (r == PS_OK && n < round) {
        ps_pack pack;

        r = ps_pack_reader_next(l->reader, &pack, &slot->err);
        if (r != PS_OK)
            break;
        /*
         * Check packs of all ranks, so that all ranks fail at the same batch.
         */
        if (pack.n_seq > l->places)
            r = ps_view_refuse(&pack, l->places, &slot->err);
        else if (is_dealt)
            r = ps_loader_keep(l, n, &pack, &slot->err);
        else if ((ps_pack_reader_packs(l->reader) - 1) % o->ranks == o->rank)
            take(l, slot, &pack);
        n++;
    }

    /* With costs, a rank's packs are unknown until the round is complete. */
    if (is_dealt && n > 0 &&
        (r == PS_OK || (r == PS_END && o->last != PS_LAST_DROP))) {
        const uint64_t first = ps_pack_reader_packs(l->reader) - n;
        const ps_result dealt = ps_loader_deal(l, n, &slot->err);

        for (uint64_t i = 0; dealt == PS_OK && i < n; i++)
            if (l->round.ranks[i] == o->rank) {
                if (b->n_packs == 0)
                    b->first = first + i;
                take(l, slot, &l->round.heads[i]);
            }
        r = dealt == PS_OK ? r : dealt;
    }

    /* An incomplete last round can still provide a batch. */
    if (r == PS_END && ((o->last == PS_LAST_SHORT && b->n_packs > 0) ||
                        (o->last == PS_LAST_PAD && n > 0)))
        r = PS_OK;
    slot->result = r;
    if (r == PS_OK)
        finish(l, slot);
}
