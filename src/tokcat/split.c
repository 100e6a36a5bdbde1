/*
 * split.c - convert arrays of numbers to tokens and split them into sequences.
 *
 * Numbers of the stream's token type are written directly from the input's
 * buffer; other numbers are converted first.  There is one loop per type, so
 * that the type is not tested for each number.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/split.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

/* Number of numbers converted at a time. */
#define PIECE (INPUT_BLOCK / 4)

/* ---------------------------------------------------------------------
 * Numbers as tokens
 */

/*
 * Loads a number; a negative number becomes its two's complement.  If `type` is
 * a constant, this is a single load.
 */
static inline uint64_t load(const unsigned char *p, number_type type)
{
    const uint64_t sign = UINT64_C(1) << (8 * type.width - 1);
    uint64_t value = *p;

    if (type.width == 8)
        return load_u64(p);
    if (type.width == 4)
        value = load_u32(p);
    else if (type.width == 2)
        value = load_u16(p);
    return type.is_signed ? (value ^ sign) - sign : value;
}

/*
 * Converts numbers of a constant type to tokens of `token` bytes.  Stops at the
 * first number that is negative or greater than `max`, and returns how many
 * precede it.
 */
static inline size_t convert_from(number_type type,
                                  const unsigned char *from,
                                  unsigned char *to, size_t token, size_t n,
                                  uint32_t max)
{
    uint64_t value;
    size_t i = 0;

    if (token == 2)
        for (; i < n && (value = load(from + i * type.width, type)) <= max;
             i++)
            store_u16(to + 2 * i, (uint16_t)(value & 0xffff));
    else
        for (; i < n && (value = load(from + i * type.width, type)) <= max;
             i++)
            store_u32(to + 4 * i, (uint32_t)value);
    return i;
}

/* Converts numbers up to the first invalid token and returns their number. */
static size_t convert(const reader *r, unsigned char *to,
                      const unsigned char *from, number_type type, size_t n)
{
    static const number_type i8 = {1, true}, u8 = {1, false};
    static const number_type i16 = {2, true}, u16 = {2, false};
    static const number_type i32 = {4, true}, u32 = {4, false};
    static const number_type u64 = {8, false};
    const size_t token = ps_type_bytes(r->out.schema.token_type);
    const uint32_t max = reader_max_id(r);

    switch (type.width) {
    case 1:
        return type.is_signed ? convert_from(i8, from, to, token, n, max)
                              : convert_from(u8, from, to, token, n, max);
    case 2:
        return type.is_signed ? convert_from(i16, from, to, token, n, max)
                              : convert_from(u16, from, to, token, n, max);
    case 4:
        return type.is_signed ? convert_from(i32, from, to, token, n, max)
                              : convert_from(u32, from, to, token, n, max);
    default: /* negative numbers, taken as unsigned, are too large */
        return convert_from(u64, from, to, token, n, max);
    }
}

number_type split_token_type(const reader *r)
{
    return (number_type){.width = ps_type_bytes(r->out.schema.token_type)};
}

/*
 * Returns how many of the `n` tokens precede the first invalid token.
 */
static size_t count_valid(const reader *r, const unsigned char *tokens,
                          size_t n)
{
    const number_type type = split_token_type(r);
    const uint32_t max = reader_max_id(r);
    uint32_t greatest = 0;
    size_t i;

    if (max == (type.width == 2 ? UINT16_MAX : UINT32_MAX))
        return n;

    /* Find the maximum first, in a loop without branches. */
    if (type.width == 2)
        for (i = 0; i < n; i++) {
            const uint32_t id = load_u16(tokens + 2 * i);

            greatest = id > greatest ? id : greatest;
        }
    else
        for (i = 0; i < n; i++) {
            const uint32_t id = load_u32(tokens + 4 * i);

            greatest = id > greatest ? id : greatest;
        }
    if (greatest <= max)
        return n;

    for (i = 0; load(tokens + i * type.width, type) <= max; i++)
        continue;
    return i;
}

/* Reports that buffered number `i` is not a valid token. */
static int bad_number(const reader *r, number_type type, size_t i)
{
    const uint64_t offset = input_offset(&r->in) + i * type.width;
    const uint64_t value = load(input_at(&r->in) + i * type.width, type);
    char why[READER_WHY_BYTES];

    if (type.is_signed && value > INT64_MAX)
        return input_bad(&r->in, offset, "%" PRId64 " is negative",
                         -(int64_t)(UINT64_MAX - value) - 1);
    return input_bad(&r->in, offset, "%" PRIu64 " %s", value,
                     reader_above_max(r, why));
}

static int cut_off(const reader *r, size_t ready)
{
    return input_bad(&r->in, r->in.next, "the file ends within %s %" PRIu64
                     ", which begins at byte %" PRIu64 "%s", r->place.unit,
                     r->place.number, r->place.offset,
                     ready > 0 ? ", and within a token" : "");
}

int split_number(input_file *in, number_type type, const char *within,
                 uint64_t *number)
{
    const int status = input_require(in, type.width, within);

    if (status != STATUS_OK)
        return status;
    *number = load(input_at(in), type);
    input_take(in, type.width);
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Sequences of a known length
 */

int split_append(reader *r, number_type type, uint64_t n)
{
    const size_t width = ps_type_bytes(r->out.schema.token_type);
    size_t ready;

    if (n > reader_max_tokens(r) - r->n_tok)
        return reader_too_large(r);
    while (n > 0) {
        size_t piece = n < PIECE ? (size_t)n : PIECE;
        size_t good;
        int status = input_need(&r->in, type.width, &ready);

        if (status == STATUS_OK && ready < type.width)
            return cut_off(r, ready);
        if (piece > ready / type.width)
            piece = ready / type.width;
        /*
         * Grow with the data: the header may declare more tokens than exist.
         */
        if (status == STATUS_OK)
            status = records_reserve(&r->out, (r->n_tok + piece) * width);
        if (status != STATUS_OK)
            return status;
        good = convert(r, r->out.payload + r->n_tok * width,
                       input_at(&r->in), type, piece);
        if (good < piece)
            return bad_number(r, type, good);
        input_take(&r->in, piece * type.width);
        r->n_tok += piece;
        n -= piece;
    }
    return STATUS_OK;
}

int split_sequence(reader *r, number_type type, uint64_t n)
{
    const size_t width = ps_type_bytes(r->out.schema.token_type);
    const uint32_t pad = r->conf->schema.special[PS_PAD];
    const unsigned char *tokens;
    size_t bytes;
    size_t ready;
    size_t good;
    int status;

    if (n == 0)
        return reader_empty(r, 1);

    /* Convert to the payload, or use the tokens directly in the buffer. */
    if (type.is_signed || type.width != width || n > PIECE) {
        r->n_tok = 0;
        status = split_append(r, type, n);
        r->n_tok = 0;
        if (status != STATUS_OK)
            return status;
        tokens = r->out.payload;
    } else {
        bytes = (size_t)n * width;
        status = input_need(&r->in, bytes, &ready);
        if (status != STATUS_OK)
            return status;
        if (ready < bytes)
            return cut_off(r, ready % width);
        tokens = input_at(&r->in);
        good = count_valid(r, tokens, (size_t)n);
        if (good < n)
            return bad_number(r, type, good);
        input_take(&r->in, bytes);
    }

    while (r->conf->trim && n > 0 &&
           (width == 2 ? load_u16(tokens + 2 * (n - 1))
                       : load_u32(tokens + 4 * (n - 1))) == pad)
        n--;
    return n == 0 ? reader_empty(r, 1)
                  : state_put(&r->state, &r->out, (uint32_t)n, tokens);
}

/* ---------------------------------------------------------------------
 * Streams
 */

/*
 * Returns how many of the `n` tokens belong to the current sequence, and sets
 * *ends if the sequence ends after them.
 */
static size_t measure(const reader *r, const unsigned char *tokens, size_t n,
                      bool *ends)
{
    const bool by_eos = r->conf->split == SPLIT_EOS;
    uint32_t id;
    size_t k;

    if (!by_eos && r->conf->split != SPLIT_BOS) {
        const uint64_t left = r->conf->split_every - r->n_tok;

        *ends = n >= left;
        return *ends ? (size_t)left : n;
    }
    id = r->conf->schema.special[by_eos ? PS_EOS : PS_BOS];
    /* A BOS token belongs to the sequence that it starts. */
    k = !by_eos && r->n_tok == 0;
    if (r->out.schema.token_type == PS_U16)
        while (k < n && load_u16(tokens + 2 * k) != id)
            k++;
    else
        while (k < n && load_u32(tokens + 4 * k) != id)
            k++;
    *ends = k < n;
    return k + (by_eos && *ends);
}

static int put(reader *r, size_t number_width, const unsigned char *tokens,
               size_t n)
{
    r->place.number++;
    r->place.offset += (uint64_t)n * number_width;
    r->n_tok = 0;
    return state_put(&r->state, &r->out, (uint32_t)n, tokens);
}

/* Writes the sequences that end within `n` tokens, and keeps the rest. */
static int cut_tokens(reader *r, size_t number_width,
                      const unsigned char *tokens, size_t n)
{
    const size_t width = ps_type_bytes(r->out.schema.token_type);

    while (n > 0) {
        bool ends;
        const size_t k = measure(r, tokens, n, &ends);
        int status = STATUS_OK;

        if (ends && r->n_tok == 0) {
            status = put(r, number_width, tokens, k);
        } else {
            status = reader_reserve(r, k);
            if (status == STATUS_OK && k > 0)
                memcpy(r->out.payload + r->n_tok * width, tokens, k * width);
            r->n_tok += k;
            if (status == STATUS_OK && ends)
                status = put(r, number_width, r->out.payload, r->n_tok);
        }
        if (status != STATUS_OK)
            return status;
        tokens += k * width;
        n -= k;
    }
    return STATUS_OK;
}

int split_stream(reader *r, number_type type, uint64_t n)
{
    const bool as_is =
        !type.is_signed && type.width == split_token_type(r).width;
    const bool bounded = n != SPLIT_ALL;
    size_t ready = 0;

    r->n_tok = 0;
    r->place = (reader_place){"sequence", 0, input_offset(&r->in)};
    while (n > 0) {
        const unsigned char *tokens;
        size_t piece;
        size_t good;
        int status = input_need(&r->in, type.width, &ready);

        if (status != STATUS_OK)
            return status;
        piece = ready / type.width < PIECE ? ready / type.width : PIECE;
        if (piece > n)
            piece = (size_t)n;
        if (piece == 0)
            break;

        tokens = input_at(&r->in);
        if (as_is) {
            good = count_valid(r, tokens, piece);
        } else {
            if (r->tokens == NULL)
                r->tokens = malloc(PIECE * sizeof(uint32_t));
            if (r->tokens == NULL) {
                message_errno("%s", input_name(&r->in));
                return STATUS_FAILURE;
            }
            good = convert(r, r->tokens, tokens, type, piece);
            tokens = r->tokens;
        }
        status = cut_tokens(r, type.width, tokens, good);
        if (status == STATUS_OK && good < piece)
            status = bad_number(r, type, good);
        if (status != STATUS_OK)
            return status;

        input_take(&r->in, piece * type.width);
        r->out.figures.bytes += piece * type.width;
        n -= bounded ? piece : 0;
    }

    /* Either all numbers were read, or the file has ended. */
    if (ready > 0 && n > 0)
        return input_bad(&r->in, r->in.next, "the file ends within a token%s",
                         type.width == 4 ? ": check --type" : "");
    if (n > 0 && bounded)
        return input_bad(&r->in, r->in.next, "truncated: %" PRIu64 " tokens "
                         "are missing at the end", n);
    return r->n_tok == 0 ? STATUS_OK
                         : put(r, type.width, r->out.payload, r->n_tok);
}
