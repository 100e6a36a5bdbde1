/*
 * loader_fill.c - batches of packs, read into their buffers.
 *
 * Each batch is a rank's part of a round: of `packs` packs for every rank.
 * All packs of a round are read before its batch is given, so that all ranks
 * know the same of where the input ends, and have the same marks.
 *
 * Of a plain regular file several threads read batches straight into their
 * buffers, each from where it must lie if nothing but packs is before it.  To
 * read a file that the system has in memory is to copy it, and the thread that
 * copies a pack checks it as well, while its cache has it; little remains to
 * be done in order.  Whatever is no pack, such as END and damage, is left to
 * the reader, which reads it again and says what it is.
 *
 * SPDX-License-Identifier: MIT
 */

#include "batch/loader.h"

#include <string.h>

#include "batch/spans.h"
#include "io/fd.h"

/* Read at once, so that they are in the cache when they are checked. */
#define CACHED_BYTES ((size_t)64 << 10)

/* Record `p` of a buffer. */
static unsigned char *record_at(const ps_loader *l, const ps_slot *slot,
                                uint32_t p)
{
    return slot->memory + (size_t)p * l->info.record_bytes;
}

/* A slot for a batch that begins behind all packs that were counted. */
static void begin(const ps_loader *l, ps_slot *slot)
{
    const uint64_t ranks = l->options.ranks;
    const uint64_t read = ps_pack_reader_packs(l->reader);
    const uint64_t to_ours = (l->options.rank + ranks - read % ranks) % ranks;

    slot->batch = (ps_batch){.first = read + to_ours,
                             .records = slot->memory,
                             .heads = slot->heads,
                             .memory = slot->memory};
}

/*
 * Makes the batch of the packs in a slot: adds padding, merges the arrays,
 * and marks the place.  int32 is enough for all, as ps_loader_plan saw.
 */
static void finish(const ps_loader *l, ps_slot *slot)
{
    const bool pad = l->options.last == PS_LAST_PAD;
    const ps_view view = l->options.view;
    ps_batch *b = &slot->batch;
    ps_spans *spans = &b->spans;
    int32_t *cu = (void *)(slot->memory + l->layout.cu);
    uint32_t *n_seqs = (void *)(slot->memory + l->layout.n_seqs);
    int32_t *lengths =
        l->layout.lengths == 0 ? NULL
                               : (void *)(slot->memory + l->layout.lengths);

    /* Packs of padding have neither an index nor a checksum. */
    for (uint32_t p = b->n_packs; pad && p < l->options.packs; p++) {
        ps_record record = {.form = &l->form, .bytes = record_at(l, slot, p)};

        ps_record_end(&record, 0, 0);
        memset(record.bytes, 0, PS_CHECKSUM_BYTES);
    }

    *spans = (ps_spans){.view = view,
                        .n_packs = pad ? l->options.packs : b->n_packs,
                        .n_seqs = n_seqs,
                        .cu = cu,
                        .lengths = lengths};
    for (uint32_t p = 0; p < spans->n_packs; p++) {
        const unsigned char *record = record_at(l, slot, p);
        const uint32_t n_seq = p < b->n_packs ? slot->heads[p].n_seq : 0;
        const uint32_t n = ps_view_spans(view, n_seq, l->info.depth);
        const uint32_t places = view == PS_VIEW_STATIC ? l->info.depth : n_seq;

        /* All boundaries but the one where the next pack begins. */
        for (uint32_t i = 0; i < n; i++)
            cu[spans->n_spans + i] =
                (int32_t)(spans->n_rows + ps_record_cu(&l->info, record, i));
        for (uint32_t i = 0; i < n_seq; i++) {
            const uint64_t rows = ps_record_length(&l->info, record, i);

            b->sum_len_sq += rows * rows;
        }
        for (uint32_t i = 0; lengths != NULL && i < places; i++)
            *lengths++ =
                i < n_seq ? (int32_t)ps_record_length(&l->info, record, i) : 0;
        n_seqs[p] = n_seq;
        b->n_tok += p < b->n_packs ? slot->heads[p].n_tok : 0;
        spans->n_seq += n_seq;
        spans->n_spans += n;
        spans->n_rows += view == PS_VIEW_RAGGED
                             ? ps_record_cu(&l->info, record, n_seq)
                             : l->info.capacity;
    }
    cu[spans->n_spans] = (int32_t)spans->n_rows;
    spans->max_seqlen = ps_longest_span(cu, spans->n_spans);
    b->n_seq = spans->n_seq;
    ps_pack_reader_save(l->reader, slot->mark);
}

/* Copies a pack into the slot, as the next of the batch. */
static void take(const ps_loader *l, ps_slot *slot, const ps_pack *pack)
{
    ps_batch *b = &slot->batch;
    unsigned char *to = record_at(l, slot, b->n_packs);

    memcpy(to, pack->record, l->info.record_bytes);
    slot->heads[b->n_packs] = *pack;
    slot->heads[b->n_packs++].record = to;
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
        if (is_dealt)
            r = ps_loader_keep(l, n, &pack, &slot->err);
        else if ((ps_pack_reader_packs(l->reader) - 1) % o->ranks == o->rank)
            take(l, slot, &pack);
        n++;
    }

    /* Of a round that is dealt, ours are known when it is whole. */
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

    /* A last round that is not whole may still give a batch. */
    if (r == PS_END && ((o->last == PS_LAST_SHORT && b->n_packs > 0) ||
                        (o->last == PS_LAST_PAD && n > 0)))
        r = PS_OK;
    slot->result = r;
    if (r == PS_OK)
        finish(l, slot);
}

/* ---- Batches that are read where they lie in a file ---- */

void ps_loader_read_direct(const ps_loader *l, ps_slot *slot)
{
    const size_t size = l->info.record_bytes;
    const uint32_t n = l->options.packs;
    const uint32_t at_once =
        size > CACHED_BYTES ? 1 : (uint32_t)(CACHED_BYTES / size);
    const int fd = ps_input_descriptor(l->reader->input);
    const int64_t start = l->input_start;

    slot->must_reread = true;
    /* No place in the file can overflow. */
    if (start > INT64_MAX / 2 ||
        slot->offset > (uint64_t)INT64_MAX / 2 - l->bytes)
        return;
    for (uint32_t p = 0; p < n; p++) {
        unsigned char *record = record_at(l, slot, p);
        const uint64_t offset = slot->offset + p * size;
        const size_t some = (n - p < at_once ? n - p : at_once) * size;
        bool is_end;

        if (p % at_once == 0 &&
            ps_read_at(fd, record, some, (uint64_t)(start + (int64_t)offset)) !=
                (ssize_t)some)
            return;
        if (ps_record_check(&l->info, record, &is_end, NULL) != PS_OK ||
            is_end ||
            ps_record_decode(&l->info, record, &slot->heads[p], NULL) !=
                PS_OK)
            return;
        slot->heads[p].offset = offset;
    }
    slot->must_reread = false;
}

void ps_loader_take_direct(ps_loader *l, ps_slot *slot)
{
    const uint64_t index = l->reader->place.seen.packs;
    ps_input *input = l->reader->input;
    bool are_next = !slot->must_reread && slot->offset == l->next_offset;

    for (uint32_t p = 0; are_next && p < l->options.packs; p++)
        are_next = slot->heads[p].index == index + p;
    if (!are_next) {
        /* The reader goes to where the last batch ended, and reads. */
        slot->result = ps_input_skip(
            input, l->next_offset - input->taken, &slot->err);
        if (slot->result == PS_OK)
            ps_loader_fill(l, slot);
        l->next_offset = input->taken;
        return;
    }

    begin(l, slot);
    slot->batch.n_packs = l->options.packs;
    for (uint32_t p = 0; p < l->options.packs; p++) {
        slot->heads[p].stream = l->reader->place.stream;
        ps_pack_reader_count(l->reader, &slot->heads[p]);
    }
    l->next_offset += l->bytes;
    slot->result = PS_OK;
    finish(l, slot);
}
