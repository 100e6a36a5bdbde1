/*
 * put.c - what is to become of a sequence that is put: it is admitted whole or
 * in pieces, held back or left out.
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

static ps_result tick(ps_packer *p, ps_error *err)
{
    return p->engine == NULL ? ps_lookahead_tick(p, err)
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

    return p->engine == NULL ? ps_lookahead_admit(p, &a, next_id, err)
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

    if (p->refill != NULL)
        r = ps_refill_put(p, sequence, &is_new, err);
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
    if (p->refill != NULL)
        r = ps_refill_put(p, &bare, &is_new, err);
    if (r != PS_OK || !is_new)
        return r;
    if (!is_due(p, &bare))
        return is_not_due(p, &bare, err);
    count_input(p, &bare);
    return put_dropped(p, &bare, reason, err);
}
