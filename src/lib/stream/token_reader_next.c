/*
 * token_reader_next.c - token records in, raw or framed: the records
 * themselves.
 *
 * A record is handed out as one piece of the source's buffer.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>

#include "base/error.h"
#include "base/prefetch.h"
#include "bytes.h"
#include "format/digest.h"
#include "stream/token_reader.h"

/* A part of what is passed over: little, so that it need not be joined. */
#define SKIP_BYTES ((size_t)32 << 10)

/* Peeks at the next count.  PS_END where the input may end and does. */
static ps_result read_count(ps_token_reader *r, uint32_t *count,
                            ps_error *err)
{
    const unsigned char *data;
    size_t got;
    ps_result result = ps_input_peek(r->input, 4, &data, &got, err);

    if (result != PS_OK)
        return result;
    if (got == 0 && !r->schema.framed)
        return PS_END;
    if (got == 0)
        return ps_fail(err, PS_ERR_TRUNCATED,
                       "the input ends at byte %" PRIu64 " without END: "
                       "it was cut after %" PRIu64 " records",
                       ps_input_offset(r->input), r->seen.sequences);
    if (got < 4)
        return ps_token_reader_cut(r, got, 4, err);
    *count = load_u32(data);
    return PS_OK;
}

/* A record was passed over; what is behind its count has this hash. */
static void count_record(ps_token_reader *r, uint64_t hash)
{
    if (r->schema.framed)
        r->seen.digest =
            ps_token_digest(r->seen.digest, r->record.n_tok, hash);
    r->next_id++;
    r->seen.sequences++;
    r->seen.tokens += r->record.n_tok;
    r->pending = false;
}

/*
 * A count of 0 in a raw stream: a flush record, if they were asked for, else
 * a sequence without tokens.
 */
static ps_result read_raw_zero(ps_token_reader *r, ps_error *err)
{
    ps_input_take(r->input, 4);
    if (r->on_flush != NULL)
        return r->on_flush(r->flush_context, err);
    count_record(r, 0);
    if (r->expects_empty)
        return PS_ERR_EMPTY;
    return ps_fail(err, PS_ERR_EMPTY, AT_RECORD "a length of 0",
                   r->record.id, r->record.offset);
}

/* Finds the next record that is a sequence and fills in r->record. */
static ps_result find_record(ps_token_reader *r, ps_error *err)
{
    bool more = true;

    while (more) {
        uint32_t count = 0;
        ps_result result;

        r->record = (ps_sequence){
            .id = r->next_id, .offset = ps_input_offset(r->input)};
        result = read_count(r, &count, err);
        if (result != PS_OK)
            return result;
        r->record.n_tok = count;
        if (count > 0)
            return PS_OK;
        result = r->schema.framed ? ps_token_reader_control(r, &more, err)
                                  : read_raw_zero(r, err);
        if (result != PS_OK)
            return result;
    }
    return PS_END;
}

/*
 * Checks `n` tokens, of which the first is token `first` of the record, unless
 * it was told already that one is outside.
 */
static ps_result check_range(ps_token_reader *r, const unsigned char *tokens,
                             uint32_t first, uint32_t n, ps_error *err)
{
    ps_type type = r->schema.token_type;
    uint32_t bad;

    if (r->pending && r->outside)
        return PS_OK;
    bad = ps_tokens_check(tokens, n, type, r->vocab_size);
    if (bad == n)
        return PS_OK;
    r->outside = true;
    if (r->expects_outside)
        return PS_ERR_RANGE;
    return ps_fail(err, PS_ERR_RANGE,
                   AT_RECORD "token %" PRIu32 " is %" PRIu32
                   ", outside the vocabulary of %" PRIu32,
                   r->record.id, r->record.offset, first + bad,
                   ps_token_at(tokens, bad, type), r->vocab_size);
}

static inline ps_result check_tokens(ps_token_reader *r,
                                     const unsigned char *tokens,
                                     uint32_t first, uint32_t n,
                                     ps_error *err)
{
    return r->vocab_size == 0 ? PS_OK
                              : check_range(r, tokens, first, n, err);
}

/* Takes only the count: what follows is to be held or skipped. */
static void leave_pending(ps_token_reader *r, bool outside,
                          ps_sequence *sequence)
{
    ps_input_take(r->input, 4);
    r->pending = true;
    r->outside = outside;
    r->passed = 4;
    *sequence = r->record;
}

/* Reads the payload behind `before` bytes of the record (its count). */
static ps_result read_payload(ps_token_reader *r, size_t before,
                              ps_sequence *sequence, ps_error *err)
{
    uint64_t bytes = (uint64_t)r->shape.per_token * r->record.n_tok +
                     r->shape.fixed;
    const unsigned char *data;
    size_t got;
    ps_result result;

    if (bytes > r->longest)
        return ps_fail(err, PS_ERR_LIMIT,
                       AT_RECORD "%" PRIu32 " tokens are %" PRIu64
                       " bytes, the limit is %" PRIu64,
                       r->record.id, r->record.offset, r->record.n_tok,
                       bytes, r->longest);
    result = ps_input_peek(r->input, before + (size_t)bytes, &data, &got,
                           err);
    if (result != PS_OK)
        return result;
    if (got < before + bytes)
        return ps_token_reader_cut(r, got + 4 - before, bytes + 4, err);
    result = check_tokens(r, data + before, 0, r->record.n_tok, err);
    if (result != PS_OK) {
        if (!r->pending)
            leave_pending(r, true, sequence);
        return result;
    }
    ps_prefetch(data + before + bytes); /* the next count */
    ps_input_take(r->input, before + (size_t)bytes);
    count_record(r, r->schema.framed
                        ? XXH3_64bits(data + before, (size_t)bytes)
                        : 0);
    *sequence = (ps_sequence){.id = r->record.id,
                              .offset = r->record.offset,
                              .n_tok = r->record.n_tok,
                              .payload = data + before,
                              .payload_bytes = (size_t)bytes,
                              .lent = data + before,
                              .block = ps_input_block(r->input)};
    return PS_OK;
}

static ps_result is_overlong(ps_token_reader *r, uint32_t max_tokens,
                             ps_sequence *sequence, ps_error *err)
{
    leave_pending(r, false, sequence);
    if (r->expects_overlong)
        return PS_ERR_OVERLONG;
    return ps_fail(err, PS_ERR_OVERLONG,
                   AT_RECORD "%" PRIu32 " tokens, more than %" PRIu32,
                   r->record.id, r->record.offset, r->record.n_tok,
                   max_tokens);
}

ps_result ps_token_reader_next(ps_token_reader *r, uint32_t max_tokens,
                               ps_sequence *sequence, ps_error *err)
{
    ps_result result;

    if (r->pending)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "a sequence is still pending");
    if (r->ended)
        return PS_END;
    result = find_record(r, err);
    r->ended = result == PS_END;
    if (result != PS_OK) {
        *sequence = r->record;
        return result;
    }
    if (r->record.n_tok > max_tokens)
        return is_overlong(r, max_tokens, sequence, err);
    return read_payload(r, 4, sequence, err);
}

ps_result ps_token_reader_hold(ps_token_reader *r, ps_sequence *sequence,
                               ps_error *err)
{
    if (!r->pending)
        return ps_fail(err, PS_ERR_ARGUMENT, "no sequence is pending");
    if (r->passed > 4)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "a part of the sequence was passed over");
    return read_payload(r, 0, sequence, err);
}

/* The whole record, with its count: what a message about a cut one says. */
static uint64_t record_bytes(const ps_token_reader *r)
{
    return (uint64_t)r->shape.per_token * r->record.n_tok +
           r->shape.fixed + 4;
}

/*
 * Passes over the record up to a byte of it, in pieces that hold whole
 * tokens; these are checked, as those of any sequence.
 */
static ps_result pass(ps_token_reader *r, uint64_t up_to, bool are_tokens,
                      ps_error *err)
{
    while (r->passed < up_to) {
        uint64_t left = up_to - r->passed;
        size_t want = left < SKIP_BYTES ? (size_t)left : SKIP_BYTES;
        const unsigned char *data;
        size_t got;
        ps_result result = ps_input_peek(r->input, want, &data, &got, err);

        if (result != PS_OK)
            return result;
        if (got < want)
            return ps_token_reader_cut(r, r->passed + got, record_bytes(r),
                                       err);
        if (are_tokens)
            result = check_tokens(
                r, data, (uint32_t)((r->passed - 4) / r->shape.token_bytes),
                (uint32_t)(want / r->shape.token_bytes), err);
        if (result != PS_OK)
            return result;
        if (r->schema.framed)
            (void)XXH3_64bits_update(r->skipped, data, want);
        ps_input_take(r->input, want);
        r->passed += want;
    }
    return PS_OK;
}

ps_result ps_token_reader_skip(ps_token_reader *r, ps_error *err)
{
    uint64_t tokens = (uint64_t)r->shape.token_bytes * r->record.n_tok;
    ps_result result;

    if (!r->pending)
        return ps_fail(err, PS_ERR_ARGUMENT, "no sequence is pending");
    if (r->schema.framed && r->passed == 4)
        (void)XXH3_64bits_reset(r->skipped);
    result = pass(r, 4 + tokens, true, err);
    if (result == PS_OK)
        result = pass(r, record_bytes(r), false, err);
    if (result == PS_OK)
        count_record(r, r->schema.framed ? XXH3_64bits_digest(r->skipped)
                                         : 0);
    return result;
}
