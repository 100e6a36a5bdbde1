/*
 * tokens.c - reads token records in every possible way; tokens.h.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokens.h"

#include <string.h>

#include "io/zstd_frame.h"

enum {
    WIDE = 1,
    FLUSHES = 2,
    SEALED = 4,
    LIMITED = 8,
    VOCABULARY = 16,
    GOES_ON = 32
};

token_way take_token_way(input *in)
{
    unsigned bits = take_u8(in);
    unsigned max = take_u8(in);
    unsigned vocab_size = take_u8(in);

    return (token_way){
        .raw_type = (bits & WIDE) != 0 ? PS_U32 : PS_U16,
        .max_tokens = (bits & LIMITED) != 0 ? max + 1 : UINT32_MAX,
        .vocab_size = (bits & VOCABULARY) != 0 ? vocab_size << 2 : 0,
        .flushes = (bits & FLUSHES) != 0,
        .goes_on = (bits & GOES_ON) != 0,
        .sealed = (bits & SEALED) != 0,
        .manner = take_u8(in)};
}

static ps_result count_flush(void *context, ps_error *err)
{
    token_yield *y = context;

    (void)err;
    y->flushes++;
    return PS_OK;
}

static ps_result pass(void *context, ps_error *err)
{
    (void)context;
    (void)err;
    return PS_OK;
}

/* No token of the sequence is outside the vocabulary. */
static void check_range(const ps_schema *schema, const ps_sequence *s,
                        uint32_t vocab_size)
{
    size_t width = ps_type_bytes(schema->token_type);

    for (size_t i = 0; i < s->n_tok && vocab_size > 0; i++) {
        uint32_t token = 0;

        for (size_t b = 0; b < width; b++)
            token |= (uint32_t)s->payload[i * width + b] << 8 * b;
        must(token < vocab_size);
        must(schema->vocab_size == 0 || token < schema->vocab_size);
    }
}

/* Counts a sequence, which may be outside the vocabulary. */
static void count_sequence(token_yield *y, const ps_token_reader *r,
                           const token_way *way, const ps_sequence *s,
                           bool outside)
{
    const ps_schema *schema = ps_token_reader_schema(r);

    must(s->id == y->sequences);
    must(s->n_tok > 0);
    must(s->payload_bytes ==
         ps_payload_bytes(schema, s->n_tok) +
             ps_payload_lists(schema, s->n_tok, s->payload));
    must(s->offset + 4 + s->payload_bytes == ps_token_reader_offset(r));
    if (!outside)
        check_range(schema, s, way->vocab_size);
    y->hash = hash_bytes(y->hash + s->offset, s->payload, s->payload_bytes);
    y->tokens += s->n_tok;
    y->sequences++;
}

static void hash_text(token_yield *y, const ps_error *err)
{
    y->hash = hash_bytes(y->hash, (const unsigned char *)err->text,
                         strnlen(err->text, sizeof err->text));
}

/* Holds or skips the sequence just refused. */
static ps_result hold_or_skip(token_yield *y, ps_token_reader *r,
                              ps_sequence *s)
{
    ps_error err = no_error();
    ps_result result = told(s->id % 2 == 0 ? ps_token_reader_hold(r, s, &err)
                                           : ps_token_reader_skip(r, &err),
                            &err);

    hash_text(y, &err);
    return result;
}

/*
 * Sequences that are too long or outside the vocabulary are held or skipped, in
 * turn; the second attempt does not check their tokens.
 */
static ps_result read_left(token_yield *y, ps_token_reader *r,
                           const token_way *way, ps_sequence *s, bool outside)
{
    uint32_t n_tok = s->n_tok;
    ps_result result;

    must(s->payload == NULL && (n_tok > way->max_tokens) == !outside);
    must(s->id == y->sequences);
    result = hold_or_skip(y, r, s);
    must(result != PS_ERR_RANGE || !outside);
    if (result == PS_ERR_RANGE && way->goes_on) {
        outside = true;
        result = hold_or_skip(y, r, s);
        must(result != PS_ERR_RANGE);
    }
    if (result == PS_OK && s->payload != NULL) {
        count_sequence(y, r, way, s, outside);
    } else if (result == PS_OK) {
        y->sequences++;
        y->tokens += n_tok;
    }
    return result;
}

static ps_result read_next(token_yield *y, ps_token_reader *r,
                           const token_way *way)
{
    ps_sequence s = {.id = 0};
    ps_error err = no_error();
    ps_result result = told(ps_token_reader_next(r, way->max_tokens, &s, &err),
                            &err);

    if (result == PS_ERR_OVERLONG)
        return read_left(y, r, way, &s, false);
    if (result == PS_OK)
        count_sequence(y, r, way, &s, false);
    else
        hash_text(y, &err);
    if (result == PS_ERR_RANGE && way->goes_on)
        return read_left(y, r, way, &s, true);
    if (result == PS_ERR_EMPTY && way->goes_on) {
        must(s.id == y->sequences && s.n_tok == 0 && s.payload == NULL);
        y->sequences++;
        return PS_OK;
    }
    return result;
}

token_yield read_tokens(const token_way *way)
{
    token_yield y = {.hash = 0};
    const ps_token_reader_options options = {
        .vocab_size = way->vocab_size,
        .raw_flush = way->flushes,
        .window = WINDOW,
        .on_flush = way->flushes ? count_flush : NULL,
        .flush_context = &y};
    ps_error err = no_error();
    ps_token_reader *r;

    y.result = told(
        ps_token_reader_open(&r, FEED_FD, way->raw_type, &options, &err),
        &err);
    must((r != NULL) == (y.result == PS_OK));
    if (r == NULL)
        return y;
    ps_token_reader_on_wait(r, pass, NULL);
    while (y.result == PS_OK)
        y.result = read_next(&y, r, way);
    y.read = ps_token_reader_offset(r);
    ps_token_reader_free(r);
    return y;
}

token_yield read_tokens_twice(const token_way *way,
                              const unsigned char *data, size_t n)
{
    token_yield whole;
    token_yield y;

    feed(data, n, way->manner);
    y = read_tokens(way);
    feed(data, n, FEED_WHOLE);
    whole = read_tokens(way);
    /* How much is read before damage to a zstd frame is noticed may differ. */
    if (n >= 4 && ps_is_frame_magic(data) && whole.result != PS_END) {
        must(y.result != PS_END);
        return y;
    }
    must(y.result == whole.result);
    must(y.sequences == whole.sequences && y.tokens == whole.tokens);
    must(y.flushes == whole.flushes && y.hash == whole.hash);
    must(y.read == whole.read);
    return y;
}
