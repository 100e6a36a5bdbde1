/*
 * admit.c - the way of a sequence into the window, and out of it in a pack.
 *
 * SPDX-License-Identifier: MIT
 */

#include "base/error.h"
#include "format/totals.h"
#include "packer/packer.h"

/* ---- Out ---- */

/*
 * The engine knows it rounded up.  What ends before that is the end of its
 * sequence, as whatever else is cut is cut where a unit ends.
 */
uint32_t ps_packer_length(const ps_packer *p, uint32_t slot)
{
    const held *h = &p->held[slot];
    uint32_t n = ps_engine_length(p->engine, slot) * p->info.align;
    uint32_t left = h->seq_len - h->seq_off;

    return n < left ? n : left;
}

static void emit_sequence(ps_packer *p, ps_record *record, uint32_t slot)
{
    const held *h = &p->held[slot];
    ps_piece piece = {.id = h->id,
                      .n_tok = ps_packer_length(p, slot),
                      .seq_off = h->seq_off,
                      .seq_len = h->seq_len};

    ps_packer_fetch(p, slot, piece.n_tok, record);
    p->bytes -= ps_packer_room(p, piece.n_tok);
    ps_length_counts_add(&p->packed, ps_packer_units(p, piece.n_tok));
    ps_record_add(record, &piece);
}

/* How far the sequences of a pack fell behind the newest that has left. */
static void note_displacement(ps_packer *p, const uint32_t *slots,
                              uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (p->held[slots[i]].id > p->newest_out)
            p->newest_out = p->held[slots[i]].id;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t behind = p->newest_out - p->held[slots[i]].id;

        if (behind > p->totals.max_displacement)
            p->totals.max_displacement = behind;
    }
}

/* Ids below it have left: that of the oldest held, or the next to come. */
static uint64_t watermark(const ps_packer *p)
{
    uint32_t oldest = ps_engine_oldest(p->engine);

    return oldest == PS_NO_SLOT ? p->next_id : p->held[oldest].id;
}

static ps_result emit_pack(ps_packer *p, const uint32_t *slots, uint32_t n,
                           ps_error *err)
{
    unsigned char *room;
    ps_record record;
    ps_result r = ps_output_reserve(p->output, p->info.record_bytes, &room,
                                    err);

    if (r != PS_OK)
        return r;
    record = ps_record_begin(&p->form, room);
    for (uint32_t i = 0; i < n; i++)
        ps_packer_prefetch(p, slots[i]);
    for (uint32_t i = 0; i < n; i++)
        emit_sequence(p, &record, slots[i]);
    note_displacement(p, slots, n);
    ps_record_end(&record, p->totals.packs, watermark(p));
    ps_totals_add_pack(&p->totals, record.n_seq, record.n_tok,
                       record.max_seqlen);
    return PS_OK;
}

ps_result ps_packer_emit(ps_packer *p, ps_emit_mode mode, ps_error *err)
{
    ps_result r = PS_OK;
    uint32_t n = 1;

    while (r == PS_OK && n > 0) {
        const uint32_t *slots;

        r = ps_engine_decide(p->engine, mode, &slots, &n, err);
        if (r == PS_OK && n > 0)
            r = emit_pack(p, slots, n, err);
    }
    return r;
}

/* Emits the packs that are due. */
static ps_result emit_due(ps_packer *p, ps_error *err)
{
    return ps_engine_is_idle(p->engine) ? PS_OK
                                        : ps_packer_emit(p, PS_EMIT_DUE, err);
}

ps_result ps_packer_tick(ps_packer *p, ps_error *err)
{
    ps_engine_tick(p->engine);
    return emit_due(p, err);
}

/* ---- In ---- */

/* Lets packs leave until the window has room for so many bytes. */
static ps_result make_room(ps_packer *p, uint64_t bytes, ps_error *err)
{
    ps_result r = PS_OK;
    uint32_t n = 1;

    if (p->options.max_bytes == 0)
        return PS_OK;
    while (r == PS_OK && n > 0 && bytes > p->options.max_bytes - p->bytes) {
        const uint32_t *slots;

        r = ps_engine_evict(p->engine, &slots, &n, err);
        if (r == PS_OK && n > 0)
            r = emit_pack(p, slots, n, err);
    }
    return r;
}

ps_result ps_packer_admit(ps_packer *p, const ps_arrival *a,
                          uint64_t next_id, ps_error *err)
{
    uint64_t bytes = ps_packer_room(p, a->n_tok);
    uint32_t slot;
    ps_result r = make_room(p, bytes, err);

    if (r != PS_OK)
        return r;
    slot = ps_engine_admit(p->engine, ps_packer_units(p, a->n_tok));
    p->held[slot].id = a->id;
    p->held[slot].seq_off = a->seq_off;
    p->held[slot].seq_len = a->seq_len;
    p->bytes += bytes;
    p->next_id = next_id;
    r = ps_packer_keep(p, slot, a->n_tok, &a->part, err);
    return r == PS_OK ? emit_due(p, err) : r;
}
