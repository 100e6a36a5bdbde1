/*
 * put.c - admit sequences to the window, whole, truncated or split, or reject
 * them.
 *
 * SPDX-License-Identifier: MIT
 *
 * A payload in a reader's block stays there, and the block is held.  Other
 * payloads are copied to the store, and so are all payloads of a reader while
 * too many of its blocks are held.
 */

#include <inttypes.h>

#include "base/error.h"
#include "packer/budget.h"
#include "packer/emit.h"
#include "packer/group.h"
#include "packer/refill.h"
#include "stream/token_reader.h"

/* ---- Admitting ---- */

/* Admits a sequence or piece with what it uses of the budgets, or its topic. */
static uint32_t admit_using(ps_packer *p, const ps_sequence *sequence,
                            uint32_t n_tok, uint32_t units)
{
    uint64_t uses[PS_MAX_BUDGETS];

    if (p->set.topics != NULL)
        uses[0] = ps_settings_value(&p->set, sequence, p->set.topics);
    else
        ps_budget_uses(&p->set, sequence, n_tok, uses);
    return ps_engine_admit(p->engine, units, uses);
}

/*
 * Admits `n_tok` tokens of a sequence, starting at `off`, to the window.  The
 * window is not full, because all due packs have been emitted.  `next_id` is
 * the lowest id that can follow.
 */
static inline ps_result admit(ps_packer *p, const ps_sequence *sequence,
                              uint32_t off, uint32_t n_tok, uint64_t next_id,
                              ps_error *err)
{
    const uint32_t units = ps_settings_units(&p->set, n_tok);
    uint32_t slot;
    ps_result r = PS_OK;

    if (p->set.options.max_bytes != 0)
        r = ps_packer_make_room(
            p,
            ps_settings_store_bytes(&p->set, n_tok,
                                    ps_settings_lists(&p->set, sequence)),
            err);
    if (r != PS_OK)
        return r;
    slot = p->set.has_uses ? admit_using(p, sequence, n_tok, units)
                           : ps_engine_admit(p->engine, units, NULL);
    p->held[slot].id = sequence->id;
    p->held[slot].seq_off = off;
    p->held[slot].seq_len = sequence->n_tok;
    p->next_id = next_id;
    r = ps_packer_keep(p, slot, sequence, err);
    return r == PS_OK ? ps_packer_emit_due(p, err) : r;
}

/*
 * Admits the first `n_tok` tokens of a sequence, in pieces of at most a pack.
 * With PS_POLICY_CONCAT a piece ends where the open pack is full.
 *
 * Each piece counts as a record.  This bounds the delay of a waiting sequence
 * in pieces, and therefore in tokens.
 */
static ps_result put_pieces(ps_packer *p, const ps_sequence *sequence,
                            uint32_t n_tok, ps_error *err)
{
    const uint64_t id = sequence->id;
    uint32_t pieces = 0;
    uint32_t off = 0;

    while (off < n_tok) {
        const uint32_t left = n_tok - off;
        uint32_t n = left <= p->set.longest ? left : p->set.piece;
        ps_result r = ps_packer_tick(p, err);

        if (r != PS_OK)
            return r;
        if (p->set.options.policy == PS_POLICY_CONCAT) {
            n = p->set.info.capacity -
                (uint32_t)p->engine->window.tokens * p->set.info.align;
            n = left < n ? left : n;
        }
        /* The id itself can follow until the last piece is admitted. */
        r = admit(p, sequence, off, n, n == left ? id + 1 : id, err);
        if (r != PS_OK)
            return r;
        off += n;
        pieces++;
    }
    if (pieces > 1)
        p->totals.split_sequences++;
    p->totals.extra_pieces += pieces - 1;
    return PS_OK;
}

/* Admits a sequence that fits a pack. */
static inline ps_result put_whole(ps_packer *p, const ps_sequence *sequence,
                                  ps_error *err)
{
    ps_result r = ps_packer_tick(p, err);

    return r == PS_OK ? admit(p, sequence, 0, sequence->n_tok,
                              sequence->id + 1, err)
                      : r;
}

/* ---- Rejecting ---- */

/* Counts a record that is not admitted.  `next_id` as for admit. */
static ps_result tick(ps_packer *p, uint64_t next_id, ps_error *err)
{
    if (p->set.by != NULL)
        return ps_group_tick(p, next_id, err);
    p->next_id = next_id;
    return ps_packer_tick(p, err);
}

static ps_result leave_out(ps_packer *p, const ps_sequence *sequence,
                           ps_reject reason, ps_error *err)
{
    p->totals.rejected_sequences++;
    p->totals.rejected_tokens += sequence->n_tok;
    p->rejected[reason].sequences++;
    p->rejected[reason].tokens += sequence->n_tok;
    return tick(p, sequence->id + 1, err);
}

/* Checks that `id` is the next in order. */
static ps_result check_due(const ps_packer *p, uint64_t id, ps_error *err)
{
    if (p->finished)
        return ps_fail(err, PS_ERR_ARGUMENT, "the stream has ended");
    if (id != p->totals.input_sequences)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "sequence %" PRIu64 " arrived, expected %" PRIu64,
                       id, p->totals.input_sequences);
    return PS_OK;
}

/* The payload may be missing only if it is never read. */
static ps_result check_payload(const ps_packer *p,
                               const ps_sequence *sequence, ps_error *err)
{
    bool is_right = ps_settings_is_payload(&p->set, sequence);

    if (sequence->payload == NULL)
        is_right = p->set.by == NULL &&
                   (p->set.info.n_budgets == 0 ||
                    p->set.options.rejects == NULL) &&
                   sequence->n_tok > p->set.info.capacity &&
                   p->set.options.policy != PS_POLICY_CONCAT &&
                   (p->set.options.overlong == PS_OVERLONG_DROP ||
                    p->set.options.overlong == PS_OVERLONG_ERROR);
    if (sequence->n_tok == 0 || !is_right)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "sequence %" PRIu64 " has %" PRIu32 " tokens but no "
                       "payload",
                       sequence->id, sequence->n_tok);
    if (sequence->payload != NULL &&
        sequence->payload_bytes > PS_MAX_SEQUENCE_BYTES)
        return ps_fail(err, PS_ERR_LIMIT,
                       "sequence %" PRIu64 " has %zu bytes, but the limit is "
                       "%" PRIu32,
                       sequence->id, sequence->payload_bytes,
                       PS_MAX_SEQUENCE_BYTES);
    return PS_OK;
}

static inline void count_input(ps_packer *p, const ps_sequence *sequence)
{
    p->totals.input_sequences++;
    p->totals.input_tokens += sequence->n_tok;
}

/* True if a sequence fits an empty pack. */
static inline bool fits(const ps_packer *p, const ps_sequence *sequence)
{
    return sequence->n_tok <= p->set.longest &&
           (!p->set.has_uses || ps_budget_allows(&p->set, sequence));
}

/* Drops, truncates or splits a sequence that does not fit a pack. */
static ps_result put_overlong(ps_packer *p, const ps_sequence *sequence,
                              ps_error *err)
{
    const uint32_t piece = p->set.piece;
    const uint32_t n_tok = sequence->n_tok;
    ps_overlong overlong = p->set.options.overlong;
    ps_result r = PS_OK;

    /* If a channel's value is too high, no piece can be packed either. */
    if (overlong != PS_OVERLONG_DROP && sequence->payload != NULL &&
        !ps_budget_allows(&p->set, sequence))
        overlong = PS_OVERLONG_ERROR;
    if (p->set.info.n_budgets > 0 && (overlong == PS_OVERLONG_DROP ||
                                      overlong == PS_OVERLONG_TRUNCATE))
        r = ps_packer_report(p, sequence, overlong == PS_OVERLONG_TRUNCATE,
                             err);
    if (r != PS_OK)
        return r;
    switch (overlong) {
    case PS_OVERLONG_DROP:
        return leave_out(p, sequence, PS_REJECT_OVERLONG, err);
    case PS_OVERLONG_TRUNCATE:
        p->totals.truncated_sequences++;
        p->totals.truncated_tokens += n_tok - piece;
        return put_pieces(p, sequence, piece, err);
    case PS_OVERLONG_SPLIT:
        return put_pieces(p, sequence, n_tok, err);
    case PS_OVERLONG_ERROR:
        break;
    }
    /* Fail as if the sequence had not been put. */
    p->totals.input_sequences--;
    p->totals.input_tokens -= n_tok;
    return ps_budget_blame(&p->set, sequence, err);
}

/* Adds a sequence that is put for the first time. */
static inline ps_result put_new(ps_packer *p, const ps_sequence *sequence,
                                ps_error *err)
{
    ps_result r = check_due(p, sequence->id, err);

    if (r == PS_OK)
        r = check_payload(p, sequence, err);
    if (r != PS_OK)
        return r;
    count_input(p, sequence);
    if (p->set.by != NULL)
        return ps_group_put(p, sequence, err);
    p->next_id = sequence->id;
    if (p->set.options.policy == PS_POLICY_CONCAT)
        return put_pieces(p, sequence, sequence->n_tok, err);
    if (fits(p, sequence))
        return put_whole(p, sequence, err);
    return put_overlong(p, sequence, err);
}

ps_result ps_packer_put(ps_packer *p, const ps_sequence *sequence,
                        ps_error *err)
{
    bool is_new = true;
    ps_result r = PS_OK;

    if (p->refill != NULL)
        r = ps_refill_put(p, sequence, &is_new, err);
    return r == PS_OK && is_new ? put_new(p, sequence, err) : r;
}

ps_result ps_packer_put_ready(ps_packer *p, ps_token_reader *reader,
                              uint64_t most, uint64_t packs, uint64_t *n,
                              ps_error *err)
{
    uint64_t left = most;
    ps_result r = PS_OK;

    *n = 0;
    if (p->refill != NULL)
        return PS_OK;
    while (r == PS_OK && left > 0 && p->totals.packs < packs &&
           ps_token_reader_is_ready(reader, p->set.info.capacity)) {
        ps_sequence sequence;

        r = ps_token_reader_take_ready(reader, &sequence, err);
        if (r == PS_OK)
            r = put_new(p, &sequence, err);
        left--;
    }
    *n = most - left;
    return r;
}

ps_result ps_packer_reject(ps_packer *p, const ps_sequence *sequence,
                           ps_reject reason, ps_error *err)
{
    /* Omit the payload: it must not be taken for a held sequence's payload. */
    const ps_sequence bare = {.id = sequence->id, .n_tok = sequence->n_tok};
    bool is_new = true;
    ps_result r = PS_OK;

    if (ps_reject_name(reason) == NULL)
        return ps_fail(err, PS_ERR_ARGUMENT, "sequence %" PRIu64 ": unknown "
                       "reject reason %u",
                       sequence->id, (unsigned)reason);
    if (p->refill != NULL)
        r = ps_refill_put(p, &bare, &is_new, err);
    if (r != PS_OK || !is_new)
        return r;
    r = check_due(p, bare.id, err);
    if (r != PS_OK)
        return r;
    count_input(p, &bare);
    return leave_out(p, &bare, reason, err);
}
