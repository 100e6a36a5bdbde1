/*
 * put.c - the way of a sequence through a packer: into the window,
 * and out of it in a pack.
 *
 * Each piece of a split sequence counts as a record, so that what overtakes
 * a waiting sequence is bounded in pieces, and thereby in tokens.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <string.h>

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
    ps_result r = ps_sink_reserve(p->sink, p->info.record_bytes, &room, err);

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

ps_result ps_packer_emit(ps_packer *p, ps_leave leave, ps_error *err)
{
    ps_result r = PS_OK;
    uint32_t n = 1;

    while (r == PS_OK && n > 0) {
        const uint32_t *slots;

        r = ps_engine_decide(p->engine, leave, &slots, &n, err);
        if (r == PS_OK && n > 0)
            r = emit_pack(p, slots, n, err);
    }
    return r;
}

/* Emits the packs that are due. */
static ps_result emit_due(ps_packer *p, ps_error *err)
{
    return ps_engine_is_idle(p->engine) ? PS_OK
                                        : ps_packer_emit(p, PS_LEAVE_DUE, err);
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

        r = ps_engine_press(p->engine, &slots, &n, err);
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

static ps_result tick(ps_packer *p, ps_error *err)
{
    return p->engine == NULL ? ps_early_tick(p, err)
                             : ps_packer_tick(p, err);
}

/* Takes in `n` tokens of a sequence, the first of which is token `off`. */
static ps_result put_piece(ps_packer *p, const ps_sequence *sequence,
                           uint32_t off, uint32_t n, uint64_t next_id,
                           ps_error *err)
{
    ps_block *block =
        sequence->payload == sequence->lent ? sequence->block : NULL;
    const ps_arrival a = {sequence->id, n, off, sequence->n_tok,
                          {sequence->payload, sequence->n_tok, off, block}};

    return p->engine == NULL ? ps_early_admit(p, &a, next_id, err)
                             : ps_packer_admit(p, &a, next_id, err);
}

/* One piece: a sequence whole, or the beginning of one. */
static ps_result put_one(ps_packer *p, const ps_sequence *sequence,
                         uint32_t n, ps_error *err)
{
    ps_result r = tick(p, err);

    return r == PS_OK ? put_piece(p, sequence, 0, n, sequence->id + 1, err)
                      : r;
}

static ps_result put_truncated(ps_packer *p, const ps_sequence *sequence,
                               ps_error *err)
{
    p->totals.truncated_sequences++;
    p->totals.truncated_tokens += sequence->n_tok - p->info.capacity;
    return put_one(p, sequence, p->info.capacity, err);
}

/* Where the next piece of a sequence is to be cut. */
static uint32_t piece_length(const ps_packer *p, uint32_t left)
{
    uint32_t room = p->info.capacity;

    if (p->options.policy == PS_POLICY_CONCAT)
        room -= (uint32_t)ps_engine_tokens(p->engine) * p->info.align;
    return left < room ? left : room;
}

/* Until the last piece is in, the sequence's own id is still to come. */
static ps_result put_split(ps_packer *p, const ps_sequence *sequence,
                           ps_error *err)
{
    uint32_t left = sequence->n_tok;
    uint32_t pieces = 0;
    ps_result r = PS_OK;

    while (left > 0 && r == PS_OK) {
        uint32_t n;

        r = tick(p, err);
        if (r != PS_OK)
            return r;
        n = piece_length(p, left);
        pieces++;
        r = put_piece(p, sequence, sequence->n_tok - left, n,
                      n == left ? sequence->id + 1 : sequence->id, err);
        left -= n;
    }
    if (pieces > 1)
        p->totals.split_sequences++;
    p->totals.extra_pieces += pieces - 1;
    return r;
}

static ps_result put_dropped(ps_packer *p, const ps_sequence *sequence,
                             ps_reject reason, ps_error *err)
{
    p->totals.rejected_sequences++;
    p->totals.rejected_tokens += sequence->n_tok;
    p->rejected[reason].sequences++;
    p->rejected[reason].tokens += sequence->n_tok;
    p->next_id = sequence->id + 1;
    return tick(p, err);
}

static ps_result put_overlong(ps_packer *p, const ps_sequence *sequence,
                              ps_error *err)
{
    switch (p->options.overlong) {
    case PS_OVERLONG_DROP:
        return put_dropped(p, sequence, PS_REJECT_OVERLONG, err);
    case PS_OVERLONG_TRUNCATE:
        return put_truncated(p, sequence, err);
    case PS_OVERLONG_SPLIT:
        return put_split(p, sequence, err);
    case PS_OVERLONG_ERROR:
        break;
    }
    return ps_fail(err, PS_ERR_OVERLONG,
                   "record %" PRIu64 " at byte %" PRIu64 ": %" PRIu32
                   " tokens, more than the capacity of %" PRIu32,
                   sequence->id, sequence->offset, sequence->n_tok,
                   p->info.capacity);
}

/* A payload may be left out only where it will not be looked at. */
static bool is_payload_right(const ps_packer *p, const ps_sequence *sequence,
                             uint64_t bytes)
{
    if (sequence->payload == NULL)
        return sequence->n_tok > p->info.capacity &&
               p->options.policy != PS_POLICY_CONCAT &&
               (p->options.overlong == PS_OVERLONG_DROP ||
                p->options.overlong == PS_OVERLONG_ERROR);
    return sequence->payload_bytes == bytes;
}

/* Whether it is the one that is to come. */
static inline bool is_due(const ps_packer *p, const ps_sequence *sequence)
{
    return !p->finished && sequence->id == p->totals.input_sequences;
}

static ps_result is_not_due(const ps_packer *p, const ps_sequence *sequence,
                            ps_error *err)
{
    if (p->finished)
        return ps_fail(err, PS_ERR_ARGUMENT, "the stream has ended");
    return ps_fail(err, PS_ERR_ARGUMENT,
                   "sequence %" PRIu64 " comes where %" PRIu64 " is due",
                   sequence->id, p->totals.input_sequences);
}

static ps_result check_sequence(const ps_packer *p,
                                const ps_sequence *sequence, ps_error *err)
{
    uint64_t bytes =
        (uint64_t)p->shape.per_token * sequence->n_tok + p->shape.fixed;

    if (!is_due(p, sequence))
        return is_not_due(p, sequence, err);
    if (sequence->n_tok == 0 || !is_payload_right(p, sequence, bytes))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "sequence %" PRIu64 " has %" PRIu32
                       " tokens, but not a payload for them",
                       sequence->id, sequence->n_tok);
    if (sequence->payload != NULL && bytes > PS_MAX_SEQUENCE_BYTES)
        return ps_fail(err, PS_ERR_LIMIT,
                       "sequence %" PRIu64 " is %" PRIu64
                       " bytes, the limit is %" PRIu32,
                       sequence->id, bytes, PS_MAX_SEQUENCE_BYTES);
    return PS_OK;
}

static inline void count_input(ps_packer *p, const ps_sequence *sequence)
{
    p->totals.input_sequences++;
    p->totals.input_tokens += sequence->n_tok;
    p->next_id = sequence->id;
}

ps_result ps_packer_put(ps_packer *p, const ps_sequence *sequence,
                        ps_error *err)
{
    bool is_new = true;
    ps_result r = PS_OK;

    if (p->again != NULL)
        r = ps_again_put(p, sequence, &is_new, err);
    if (r != PS_OK || !is_new)
        return r;
    r = check_sequence(p, sequence, err);
    if (r != PS_OK)
        return r;
    count_input(p, sequence);
    if (p->options.policy == PS_POLICY_CONCAT)
        return put_split(p, sequence, err);
    if (sequence->n_tok > p->info.capacity)
        return put_overlong(p, sequence, err);
    return put_one(p, sequence, sequence->n_tok, err);
}

ps_result ps_packer_reject(ps_packer *p, const ps_sequence *sequence,
                           ps_reject reason, ps_error *err)
{
    /* Who has no payload cannot get back what a state says is held. */
    const ps_sequence bare = {.id = sequence->id, .n_tok = sequence->n_tok};
    bool is_new = true;
    ps_result r = PS_OK;

    if (ps_reject_name(reason) == NULL)
        return ps_fail(err, PS_ERR_ARGUMENT, "no reason to reject sequence "
                       "%" PRIu64 " has the number %u",
                       sequence->id, (unsigned)reason);
    if (p->again != NULL)
        r = ps_again_put(p, &bare, &is_new, err);
    if (r != PS_OK || !is_new)
        return r;
    if (!is_due(p, &bare))
        return is_not_due(p, &bare, err);
    count_input(p, &bare);
    return put_dropped(p, &bare, reason, err);
}
