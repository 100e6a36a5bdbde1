/*
 * token_reader.c - read token records, raw or framed.
 *
 * SPDX-License-Identifier: MIT
 *
 * Sequences are returned in place, contiguous in the input's buffer.  For
 * framed streams the reader maintains the counts and the digest that END must
 * match, so that a pipe that was cut between two records is detected.
 */

#include "stream/token_reader.h"

#include <inttypes.h>

#include "base/error.h"
#include "bytes.h"
#include "format/digest.h"

/* Start of every message about a record: "record 7 at byte 512: ". */
#define AT_RECORD "record %" PRIu64 " at byte %" PRIu64 ": "

/*
 * Number of bytes to skip at a time; small, so that the input need not join
 * blocks.
 */
#define SKIP_BYTES ((size_t)32 << 10)

/* Reports that the input ends after `got` of `of` bytes of r->record. */
static ps_result truncated(const ps_token_reader *r, uint64_t got,
                           uint64_t of, ps_error *err)
{
    return ps_fail(err, PS_ERR_TRUNCATED,
                   AT_RECORD "truncated: the input ends after %" PRIu64 " of "
                   "its %" PRIu64 " bytes",
                   r->record.id, r->record.offset, got, of);
}

/* ---------------------------------------------------------------------
 * Control records
 */

/*
 * Checks END against the records read.  After END, the input must end or
 * continue with a stream of equal schema; *more is set if it continues.
 */
static ps_result read_end(ps_token_reader *r, bool *more, ps_error *err)
{
    const unsigned char *data;
    size_t got;
    ps_token_end end;
    ps_schema schema;
    ps_error why;
    uint64_t at;
    ps_result result = ps_input_peek(r->input, PS_TOKEN_END_BYTES, &data,
                                     &got, err);

    if (result != PS_OK)
        return result;
    if (got < PS_TOKEN_END_BYTES)
        return truncated(r, got, PS_TOKEN_END_BYTES, err);
    if (load_u32(data) != 0 || load_u32(data + 4) != PS_TOKEN_END_KIND)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "something other than END follows LENGTHS at byte "
                       "%" PRIu64,
                       r->record.offset);
    end = ps_token_end_decode(data);
    if (end.sequences != r->seen.sequences || end.tokens != r->seen.tokens)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "END at byte %" PRIu64 " declares %" PRIu64 " sequences "
                       "and %" PRIu64 " tokens, but %" PRIu64 " and "
                       "%" PRIu64 " were read",
                       r->record.offset, end.sequences, end.tokens,
                       r->seen.sequences, r->seen.tokens);
    if (end.digest != r->seen.digest)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the records before END at byte %" PRIu64 " do not "
                       "match its digest",
                       r->record.offset);
    ps_input_take(r->input, PS_TOKEN_END_BYTES);
    r->lengths_taken = 0;

    at = r->input->taken;
    result = ps_input_peek(r->input, 8, &data, &got, err);
    *more = got > 0;
    if (result != PS_OK || got == 0)
        return result;
    if (!ps_is_token_magic_prefix(data, got))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "extra data after END, at byte %" PRIu64 ": not token "
                       "records",
                       at);
    result = ps_token_reader_header(r, &schema, err);
    if (result == PS_OK &&
        ps_schema_compare(&schema, &r->schema, &why) != PS_OK)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the stream at byte %" PRIu64 " cannot be joined to the "
                       "first: %s",
                       at, why.text);
    return result;
}

/* Compares a completely read LENGTHS record with the stream before it. */
static ps_result check_lengths(const ps_token_reader *r, ps_error *err)
{
    const uint64_t before = r->record.offset - r->stream_at;
    ps_result result = ps_lengths_compare(&r->lengths, r->seen.sequences,
                                          r->seen.tokens, err);

    if (result == PS_OK && r->stream_known &&
        r->lengths.stream_bytes != before)
        result = ps_fail(err, PS_ERR_CORRUPT,
                         "it declares %" PRIu64 " bytes before it, but there "
                         "are %" PRIu64,
                         r->lengths.stream_bytes, before);
    return result;
}

/* True if lengths are counted, to compare them with LENGTHS. */
static bool compares_lengths(const ps_token_reader *r)
{
    return r->check_lengths && r->stream_known;
}

/*
 * Compares LENGTHS entries with the sequences counted.  Because the sums match
 * as well, no length can be missing.
 */
static ps_result compare_entries(const ps_token_reader *r,
                                 const unsigned char *entry, size_t n,
                                 ps_error *err)
{
    if (!compares_lengths(r))
        return PS_OK;
    if (r->counter.full)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "it has %" PRIu32 " lengths, but the stream has more "
                       "than %" PRIu32,
                       r->lengths.n, PS_LENGTHS_MAX);
    for (size_t i = 0; i < n; i++, entry += PS_LENGTHS_ENTRY_BYTES) {
        const uint32_t length = ps_lengths_length(entry);
        const uint64_t seen = ps_length_counter_count(&r->counter, length);

        if (ps_lengths_count(entry) != seen)
            return ps_fail(err, PS_ERR_CORRUPT,
                           "it declares %" PRIu64 " sequences of %" PRIu32 " "
                           "tokens, but the stream has %" PRIu64,
                           ps_lengths_count(entry), length, seen);
    }
    return PS_OK;
}

/*
 * Reads the next part of LENGTHS: its head, some entries, or its tail.  A peek
 * at the whole record could take more memory than any sequence.
 */
static ps_result read_part(ps_token_reader *r, ps_error *err)
{
    const uint64_t all = r->lengths_taken == 0
                             ? PS_LENGTHS_HEAD_BYTES
                             : PS_LENGTHS_BYTES(r->lengths.n);
    const uint64_t tail = all - PS_LENGTHS_TAIL_BYTES;
    const bool is_head = r->lengths_taken == 0;
    const bool is_tail = !is_head && r->lengths_taken == tail;
    size_t want = SKIP_BYTES / PS_LENGTHS_ENTRY_BYTES * PS_LENGTHS_ENTRY_BYTES;
    const unsigned char *data;
    size_t got;
    ps_result result;

    if (is_head)
        want = PS_LENGTHS_HEAD_BYTES;
    else if (is_tail)
        want = PS_LENGTHS_TAIL_BYTES;
    else if (want > tail - r->lengths_taken)
        want = (size_t)(tail - r->lengths_taken);
    result = ps_input_peek(r->input, want, &data, &got, err);
    if (result != PS_OK)
        return result;
    if (got < want)
        return truncated(r, r->lengths_taken + got, all, err);

    if (is_head) {
        (void)XXH3_64bits_reset(r->skip_hash);
        result = ps_lengths_head_decode(&r->lengths, data, err);
    } else if (is_tail) {
        ps_hash_update(r->skip_hash, data, 8);
        result = ps_lengths_tail_decode(&r->lengths, data,
                                        XXH3_64bits_digest(r->skip_hash),
                                        err);
        if (result == PS_OK)
            result = check_lengths(r, err);
    } else {
        const size_t n = want / PS_LENGTHS_ENTRY_BYTES;

        result = ps_lengths_entries_decode(&r->lengths, data, n, err);
        if (result == PS_OK)
            result = compare_entries(r, data, n, err);
    }
    if (result != PS_OK)
        return ps_lengths_blame(result, r->record.offset, err);
    if (!is_tail)
        ps_hash_update(r->skip_hash, data, want);
    ps_input_take(r->input, want);
    r->lengths_taken += want;
    return PS_OK;
}

/* Reads LENGTHS, or the rest of it, and the END that follows. */
static ps_result read_lengths(ps_token_reader *r, bool *more, ps_error *err)
{
    ps_result result = PS_OK;

    while (result == PS_OK &&
           (r->lengths_taken == 0 ||
            r->lengths_taken < PS_LENGTHS_BYTES(r->lengths.n)))
        result = read_part(r, err);
    if (result != PS_OK)
        return result;
    r->record.offset += r->lengths_taken;
    return read_end(r, more, err);
}

/*
 * Reads a control record: END, LENGTHS or FLUSH.  In a raw stream, FLUSH is
 * only a count of 0.  *more is set if records can follow, in this stream or in
 * the next, whose header has then been read.
 */
static ps_result read_control(ps_token_reader *r, bool *more, ps_error *err)
{
    const ps_token_reader_options *o = &r->options;

    if (!r->schema.framed) {
        ps_input_take(r->input, 4);
    } else {
        const unsigned char *data;
        size_t got;
        uint32_t kind;
        ps_result result = ps_input_peek(r->input, PS_TOKEN_CONTROL_BYTES,
                                         &data, &got, err);

        if (result != PS_OK)
            return result;
        /* An incomplete control record is reported as a truncated END. */
        kind = got < PS_TOKEN_CONTROL_BYTES ? PS_TOKEN_END_KIND
                                            : load_u32(data + 4);
        if (kind == PS_TOKEN_END_KIND)
            return read_end(r, more, err);
        if (kind == PS_TOKEN_LENGTHS_KIND)
            return read_lengths(r, more, err);
        if (kind != PS_TOKEN_FLUSH_KIND)
            return ps_fail(err, PS_ERR_UNSUPPORTED,
                           AT_RECORD "a control record of unknown kind "
                           "%" PRIu32,
                           r->record.id, r->record.offset, kind);
        r->seen.digest = ps_token_digest(
            r->seen.digest, 0, ps_hash(data + 4, PS_TOKEN_CONTROL_BYTES - 4));
        ps_input_take(r->input, PS_TOKEN_CONTROL_BYTES);
    }
    return o->on_flush == NULL ? PS_OK : o->on_flush(o->flush_context, err);
}

ps_result ps_token_reader_count_framed(ps_token_reader *r, uint32_t n_tok,
                                       uint64_t hash, ps_error *err)
{
    r->seen.digest = ps_token_digest(r->seen.digest, n_tok, hash);
    return compares_lengths(r)
               ? ps_length_counter_add_one(&r->counter, n_tok, err)
               : PS_OK;
}

/*
 * Finds the next sequence and sets id, offset and length of r->record, without
 * consuming its count.  Returns PS_END at a valid end of the input.
 */
static ps_result find_sequence(ps_token_reader *r, ps_error *err)
{
    bool more = true;

    while (more) {
        const unsigned char *data;
        size_t got;
        ps_result result;

        r->record = (ps_sequence){
            .id = r->next_id,
            .offset = r->input->taken - r->lengths_taken};
        /* The wait hook may have ended the previous call inside LENGTHS. */
        if (r->lengths_taken > 0) {
            result = read_lengths(r, &more, err);
            if (result != PS_OK)
                return result;
            continue;
        }
        result = ps_input_peek(r->input, 4, &data, &got, err);
        if (result != PS_OK)
            return result;
        if (got == 0 && !r->schema.framed)
            return PS_END;
        if (got == 0)
            return ps_fail(err, PS_ERR_TRUNCATED,
                           "truncated: the input ends at byte %" PRIu64 " "
                           "without END, after %" PRIu64 " records",
                           r->record.offset, r->seen.sequences);
        if (got < 4)
            return truncated(r, got, 4, err);
        r->record.n_tok = load_u32(data);
        if (r->record.n_tok > 0)
            return PS_OK;

        if (!r->schema.framed && !r->options.raw_flush) {
            ps_input_take(r->input, 4);
            r->next_id++;
            r->seen.sequences++;
            if (r->options.expect_empty)
                return PS_ERR_EMPTY;
            return ps_fail(err, PS_ERR_EMPTY, AT_RECORD "an empty sequence "
                           "(length 0)",
                           r->record.id, r->record.offset);
        }
        result = read_control(r, &more, err);
        if (result != PS_OK)
            return result;
    }
    return PS_END;
}

/* ---------------------------------------------------------------------
 * Sequences
 */

/*
 * Checks `n` tokens against the vocabulary, starting with token `first` of the
 * record.  Does nothing after a token outside has been reported.
 */
static ps_result check_tokens(ps_token_reader *r, const unsigned char *tokens,
                              uint32_t first, uint32_t n, ps_error *err)
{
    ps_type type = r->schema.token_type;
    uint32_t bad;

    if (r->vocab_size == 0 || (r->pending && r->outside))
        return PS_OK;
    bad = ps_tokens_check(tokens, n, type, r->vocab_size);
    if (bad == n)
        return PS_OK;
    r->outside = true;
    if (r->options.expect_outside)
        return PS_ERR_RANGE;
    return ps_fail(err, PS_ERR_RANGE,
                   AT_RECORD "token %" PRIu32 " is %" PRIu32
                   ", outside the vocabulary of %" PRIu32,
                   r->record.id, r->record.offset, first + bad,
                   ps_token_at(tokens, bad, type), r->vocab_size);
}

/* Consumes only the count.  The user must hold or skip the payload. */
static void leave_pending(ps_token_reader *r, bool outside,
                          ps_sequence *sequence)
{
    ps_input_take(r->input, 4);
    r->pending = true;
    r->outside = outside;
    r->done = 4;
    r->lists = 0;
    *sequence = r->record;
}

/* Peeks at `bytes` of the payload of r->record, after `before` bytes. */
static ps_result peek_payload(ps_token_reader *r, size_t before,
                              uint64_t bytes, const unsigned char **data,
                              ps_error *err)
{
    size_t got;
    ps_result result;

    if (bytes > r->max_bytes)
        return ps_fail(err, PS_ERR_LIMIT,
                       AT_RECORD "%" PRIu32 " tokens%s take %" PRIu64 " bytes, "
                       "but the limit is %" PRIu64,
                       r->record.id, r->record.offset, r->record.n_tok,
                       r->shape.n_lists > 0 ? " and their lists" : "", bytes,
                       r->max_bytes);
    result = ps_input_peek(r->input, before + (size_t)bytes, data, &got, err);
    if (result == PS_OK && got < before + bytes)
        result = truncated(r, got + 4 - before, bytes + 4, err);
    return result;
}

/* Reads the payload of r->record, which starts after `before` bytes. */
static ps_result read_payload(ps_token_reader *r, size_t before,
                              ps_sequence *sequence, ps_error *err)
{
    uint64_t bytes = ps_shape_bytes(&r->shape, r->record.n_tok);
    const unsigned char *data;
    ps_result result = peek_payload(r, before, bytes, &data, err);

    if (result == PS_OK && r->shape.n_lists > 0) {
        bytes = ps_shape_all(&r->shape, r->record.n_tok, data + before);
        result = peek_payload(r, before, bytes, &data, err);
    }
    if (result != PS_OK)
        return result;
    result = check_tokens(r, data + before, 0, r->record.n_tok, err);
    if (result != PS_OK) {
        if (!r->pending)
            leave_pending(r, true, sequence);
        return result;
    }

    return ps_token_reader_take(r, r->record.offset, r->record.n_tok, before,
                                (size_t)bytes, sequence, err);
}

ps_result ps_token_reader_next(ps_token_reader *r, uint32_t max_tokens,
                               ps_sequence *sequence, ps_error *err)
{
    ps_result result;

    if (ps_token_reader_is_ready(r, max_tokens))
        return ps_token_reader_take_ready(r, sequence, err);
    if (r->pending)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "a sequence is still pending");
    if (r->ended)
        return PS_END;
    result = find_sequence(r, err);
    r->ended = result == PS_END;
    if (result != PS_OK) {
        *sequence = r->record;
        return result;
    }
    if (r->record.n_tok <= max_tokens)
        return read_payload(r, 4, sequence, err);

    leave_pending(r, false, sequence);
    if (r->options.expect_overlong)
        return PS_ERR_OVERLONG;
    return ps_fail(err, PS_ERR_OVERLONG,
                   AT_RECORD "%" PRIu32 " tokens exceed the capacity, %" PRIu32,
                   r->record.id, r->record.offset, r->record.n_tok,
                   max_tokens);
}

ps_result ps_token_reader_hold(ps_token_reader *r, ps_sequence *sequence,
                               ps_error *err)
{
    if (!r->pending)
        return ps_fail(err, PS_ERR_ARGUMENT, "no sequence is pending");
    if (r->done > 4)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "part of the sequence has already been skipped");
    return read_payload(r, 0, sequence, err);
}

ps_result ps_token_reader_skip(ps_token_reader *r, ps_error *err)
{
    const uint64_t tokens_end =
        4 + (uint64_t)r->shape.token_bytes * r->record.n_tok;
    const uint64_t lists_at = 4 + ps_shape_bytes(&r->shape, r->record.n_tok);
    const uint64_t values_at = lists_at - r->shape.fixed;
    uint64_t end = lists_at + r->lists;

    if (!r->pending)
        return ps_fail(err, PS_ERR_ARGUMENT, "no sequence is pending");
    if (r->schema.framed && r->done == 4)
        (void)XXH3_64bits_reset(r->skip_hash);
    while (r->done < end) {
        /* Read tokens, their channels, all values, or lists. */
        const bool are_tokens = r->done < tokens_end;
        const bool are_values = r->done == values_at;
        const uint64_t part_end = are_tokens              ? tokens_end
                                  : r->done < values_at ? values_at
                                  : are_values          ? lists_at
                                                        : end;
        const uint64_t left = part_end - r->done;
        const size_t want =
            left < SKIP_BYTES || are_values ? (size_t)left : SKIP_BYTES;
        const unsigned char *data;
        size_t got;
        ps_result result = ps_input_peek(r->input, want, &data, &got, err);

        if (result != PS_OK)
            return result;
        if (got < want)
            return truncated(r, r->done + got, end, err);
        if (are_tokens)
            result = check_tokens(
                r, data, (uint32_t)((r->done - 4) / r->shape.token_bytes),
                (uint32_t)(want / r->shape.token_bytes), err);
        if (result != PS_OK)
            return result;
        if (r->schema.framed)
            ps_hash_update(r->skip_hash, data, want);
        if (are_values) {
            r->lists = ps_shape_lists(&r->shape, data);
            end = lists_at + r->lists;
        }
        ps_input_take(r->input, want);
        r->done += want;
    }
    ps_token_reader_count(r, r->record.n_tok);
    return r->schema.framed
               ? ps_token_reader_count_framed(
                     r, r->record.n_tok, XXH3_64bits_digest(r->skip_hash), err)
               : PS_OK;
}
