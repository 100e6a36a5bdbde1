/*
 * loader_fill.c - a batch of packs, read into its buffer.
 *
 * Each batch is a rank's part of a round: of `packs` packs for every rank.
 * All packs of a round are read before its batch is given, so that all ranks
 * know the same of where the input ends, and have the same marks.
 *
 * SPDX-License-Identifier: MIT
 */

#include "batch/loader.h"

#include <string.h>

#include "batch/spans.h"
#include "bytes.h"

/* Packs read so far, through all streams. */
static uint64_t packs_read(const ps_loader *l)
{
    const ps_pack_place *place = &l->reader->place;

    return place->before.packs + place->seen.packs;
}

/* Record `p` of a buffer. */
static unsigned char *record_at(const ps_loader *l, const ps_slot *slot,
                                uint32_t p)
{
    return slot->memory + (size_t)p * l->info.record_bytes;
}

static void take_pack(const ps_loader *l, ps_slot *slot, const ps_pack *pack)
{
    const uint32_t p = slot->batch.n_packs++;
    unsigned char *to = record_at(l, slot, p);

    memcpy(to, pack->record, l->info.record_bytes);
    slot->heads[p] = *pack;
    slot->heads[p].record = to;
}

/* Reads a round; *n is how many packs there were, ours or not. */
static ps_result read_round(ps_loader *l, ps_slot *slot, uint64_t *n)
{
    const ps_loader_options *o = &l->options;
    const uint64_t whole = (uint64_t)o->packs * o->ranks;

    for (*n = 0; *n < whole; ++*n) {
        ps_pack pack;
        ps_result r = ps_pack_reader_next(l->reader, &pack, &slot->err);

        if (r != PS_OK)
            return r;
        if ((packs_read(l) - 1) % o->ranks == o->rank)
            take_pack(l, slot, &pack);
    }
    return PS_OK;
}

/* Whether the `n` packs of a round that is not whole are given. */
static bool is_given(const ps_loader *l, const ps_slot *slot, uint64_t n)
{
    switch (l->options.last) {
    case PS_LAST_SHORT:
        return slot->batch.n_packs > 0;
    case PS_LAST_PAD:
        return n > 0;
    default:
        return false;
    }
}

/* Packs of padding have neither an index nor a checksum. */
static void add_padding(const ps_loader *l, ps_slot *slot)
{
    for (uint32_t p = slot->batch.n_packs; p < l->options.packs; p++) {
        ps_record record = ps_record_begin(&l->form, record_at(l, slot, p));

        ps_record_end(&record, 0, 0);
        memset(record.bytes, 0, PS_CHECKSUM_BYTES);
    }
}

/* Adds how long the sequences of a pack with `n_seq` are. */
static void merge_lengths(const ps_loader *l, ps_spans *spans, uint32_t p,
                          const unsigned char *record, uint32_t n_seq,
                          int32_t *lengths)
{
    const bool places = spans->view == PS_VIEW_STATIC;
    const uint32_t n = places ? l->info.depth : n_seq;
    const size_t first = places ? (size_t)p * n : spans->n_seq;

    for (uint32_t i = 0; i < n; i++)
        lengths[first + i] =
            i < n_seq ? (int32_t)ps_record_length(&l->info, record, i) : 0;
}

/* Adds the boundaries of pack `p`, but for the one where the next begins. */
static void merge_pack(const ps_loader *l, ps_slot *slot, uint32_t p,
                       int32_t *cu, uint32_t *n_seqs, int32_t *lengths)
{
    ps_batch *b = &slot->batch;
    ps_spans *spans = &b->spans;
    const unsigned char *record = record_at(l, slot, p);
    const uint32_t n_seq = p < b->n_packs ? slot->heads[p].n_seq : 0;
    const uint32_t n_tok = p < b->n_packs ? slot->heads[p].n_tok : 0;
    const uint32_t n = ps_view_spans(spans->view, n_seq, l->info.depth);
    const uint32_t used = ps_record_cu(&l->info, record, n_seq);

    for (uint32_t i = 0; i < n; i++)
        cu[spans->n_spans + i] =
            (int32_t)(spans->n_rows + ps_record_cu(&l->info, record, i));
    for (uint32_t i = 0; i < n_seq; i++) {
        const uint64_t rows = ps_record_length(&l->info, record, i);

        b->sum_len_sq += rows * rows;
    }
    if (lengths != NULL)
        merge_lengths(l, spans, p, record, n_seq, lengths);
    n_seqs[p] = n_seq;
    b->n_tok += n_tok;
    spans->n_seq += n_seq;
    spans->n_spans += n;
    spans->n_rows +=
        spans->view == PS_VIEW_RAGGED ? used : l->info.capacity;
}

/* The arrays of the batch; int32 is enough for them, as ps_loader_plan saw. */
static void merge(const ps_loader *l, ps_slot *slot)
{
    ps_batch *b = &slot->batch;
    int32_t *cu = (void *)(slot->memory + l->layout.cu);
    uint32_t *n_seqs = (void *)(slot->memory + l->layout.n_seqs);
    int32_t *lengths =
        l->layout.lengths == 0 ? NULL
                               : (void *)(slot->memory + l->layout.lengths);

    b->spans = (ps_spans){.view = l->options.view,
                          .n_packs = l->options.last == PS_LAST_PAD
                                         ? l->options.packs
                                         : b->n_packs,
                          .n_seqs = n_seqs,
                          .cu = cu,
                          .lengths = lengths};
    for (uint32_t p = 0; p < b->spans.n_packs; p++)
        merge_pack(l, slot, p, cu, n_seqs, lengths);
    cu[b->spans.n_spans] = (int32_t)b->spans.n_rows;
    b->spans.max_seqlen = ps_longest_span(cu, b->spans.n_spans);
    b->n_seq = b->spans.n_seq;
}

/* The first number from `start` on that is ours. */
static uint64_t first_of(const ps_loader *l, uint64_t start)
{
    const uint64_t ranks = l->options.ranks;

    return start + (l->options.rank + ranks - start % ranks) % ranks;
}

void ps_loader_begin(const ps_loader *l, ps_slot *slot)
{
    slot->batch = (ps_batch){.first = first_of(l, packs_read(l)),
                             .records = slot->memory,
                             .heads = slot->heads,
                             .memory = slot->memory};
}

void ps_loader_finish(const ps_loader *l, ps_slot *slot)
{
    if (l->options.last == PS_LAST_PAD)
        add_padding(l, slot);
    merge(l, slot);
    ps_pack_reader_save(l->reader, slot->mark);
}

void ps_loader_fill(ps_loader *l, ps_slot *slot)
{
    uint64_t n;
    ps_result r;

    ps_loader_begin(l, slot);
    r = read_round(l, slot, &n);
    if (r == PS_END && is_given(l, slot, n))
        r = PS_OK;
    slot->result = r;
    if (r == PS_OK)
        ps_loader_finish(l, slot);
}
