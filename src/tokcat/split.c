/*
 * split.c - tokens out of arrays.
 *
 * Numbers that are tokens already, byte by byte, are written from where they
 * were read to; others are made tokens first.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/split.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

/* So many numbers at once. */
#define PIECE (BINARY_BLOCK / 4)

/* A number that is no token of this stream. */
static int bad_number(const job *j, const binary *b, number_type type,
                      size_t i)
{
    const ps_schema *s = &j->out.schema;
    const uint64_t offset = binary_offset(b) + i * type.width;
    const uint64_t value = number_load(binary_at(b) + i * type.width, type);

    if (type.is_signed && value > INT64_MAX)
        return binary_bad(b, offset, "%" PRId64 " is negative",
                          -(int64_t)(UINT64_MAX - value) - 1);
    if (s->vocab_size != 0)
        return binary_bad(b, offset, "%" PRIu64 " is not below the "
                          "vocabulary size %" PRIu32, value, s->vocab_size);
    return binary_bad(b, offset, "%" PRIu64 " does not fit %s", value,
                      s->token_type == PS_U16 ? "u16 (see --type)" : "u32");
}

static int cut_off(const job *j, const binary *b, size_t ready)
{
    return binary_bad(b, b->next, "the file ends within %s %" PRIu64
                      ", which begins at byte %" PRIu64 "%s",
                      j->place.unit, j->place.number, j->place.offset,
                      ready > 0 ? ", and within a token" : "");
}

/* ---------------------------------------------------------------------
 * Sequences of a known length
 */

int cut_append(job *j, binary *b, number_type type, uint64_t n,
               uint64_t *n_tok)
{
    const ps_type token = j->out.schema.token_type;
    const size_t width = ps_type_bytes(token);
    size_t ready;

    if (n > job_max_tokens(j) - *n_tok)
        return job_too_large(j);
    while (n > 0) {
        size_t piece = n < PIECE ? (size_t)n : PIECE;
        int status = binary_need(b, type.width, &ready);

        if (status == STATUS_OK && ready < type.width)
            return cut_off(j, b, ready);
        if (piece > ready / type.width)
            piece = ready / type.width;
        if (status == STATUS_OK)
            status = records_room(&j->out, (*n_tok + piece) * width);
        if (status != STATUS_OK)
            return status;
        ready = number_make_tokens(j->out.payload + *n_tok * width, token,
                                   binary_at(b), type, piece,
                                   job_max_id(j));
        if (ready < piece)
            return bad_number(j, b, type, ready);
        binary_take(b, piece * type.width);
        *n_tok += piece;
        n -= piece;
    }
    return STATUS_OK;
}

int cut_piece(job *j, binary *b, number_type type, uint64_t n,
              const unsigned char **tokens)
{
    const ps_type token = j->out.schema.token_type;
    uint64_t n_tok = 0;
    size_t ready;
    size_t good;
    int status;

    if (!number_is_token(type, token) || n > PIECE) {
        status = cut_append(j, b, type, n, &n_tok);
        *tokens = j->out.payload;
        return status;
    }
    status = binary_need(b, (size_t)n * type.width, &ready);
    if (status != STATUS_OK)
        return status;
    if (ready < n * type.width)
        return cut_off(j, b, ready % type.width);
    *tokens = binary_at(b);
    good = number_check_tokens(*tokens, token, (size_t)n, job_max_id(j));
    if (good < n)
        return bad_number(j, b, type, good);
    binary_take(b, (size_t)n * type.width);
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Streams
 */

/* The first `id` from `i` on, or `n`; `width` is a constant. */
static inline size_t find(const unsigned char *tokens, size_t width,
                          size_t i, size_t n, uint32_t id)
{
    for (; i < n; i++)
        if ((width == 2 ? load_u16(tokens + 2 * i)
                        : load_u32(tokens + 4 * i)) == id)
            break;
    return i;
}

static size_t find_id(const job *j, const unsigned char *tokens, size_t i,
                      size_t n, ps_special which)
{
    const uint32_t id = j->conf->schema.special[which];

    return j->out.schema.token_type == PS_U16
               ? find(tokens, 2, i, n, id)
               : find(tokens, 4, i, n, id);
}

/* How many of `n` tokens go with those before them, and if more follow. */
static size_t measure(const job *j, const unsigned char *tokens, size_t n,
                      bool *ends)
{
    size_t k;

    switch (j->conf->split) {
    case SPLIT_EOS:
        k = find_id(j, tokens, 0, n, PS_EOS);
        *ends = k < n;
        return k + (k < n);
    case SPLIT_BOS: /* the first one is what begins it */
        k = find_id(j, tokens, j->n_cut == 0, n, PS_BOS);
        *ends = k < n;
        return k;
    default:
        *ends = n >= j->conf->split_every - j->n_cut;
        return *ends ? (size_t)(j->conf->split_every - j->n_cut) : n;
    }
}

static int append(job *j, const unsigned char *tokens, size_t n)
{
    const size_t width = ps_type_bytes(j->out.schema.token_type);
    int status;

    if (n > job_max_tokens(j) - j->n_cut)
        return job_too_large(j);
    status = records_room(&j->out, (j->n_cut + n) * width);
    if (status != STATUS_OK || n == 0)
        return status;
    memcpy(j->out.payload + j->n_cut * width, tokens, n * width);
    j->n_cut += n;
    return STATUS_OK;
}

static int put(job *j, size_t number_width, const unsigned char *tokens,
               size_t n)
{
    j->place.number++;
    j->place.offset += (uint64_t)n * number_width;
    j->n_cut = 0;
    return records_put_tokens(&j->out, (uint32_t)n, tokens);
}

/* Cuts some tokens; what is of a sequence that goes on is kept. */
static int cut_tokens(job *j, size_t number_width,
                      const unsigned char *tokens, size_t n)
{
    const size_t width = ps_type_bytes(j->out.schema.token_type);
    int status = STATUS_OK;

    while (status == STATUS_OK && n > 0) {
        bool ends;
        const size_t k = measure(j, tokens, n, &ends);

        if (!ends || j->n_cut > 0)
            status = append(j, tokens, k);
        if (status == STATUS_OK && ends)
            status = j->n_cut > 0
                         ? put(j, number_width, j->out.payload, j->n_cut)
                         : put(j, number_width, tokens, k);
        tokens += k * width;
        n -= k;
    }
    return status;
}

/* The room for numbers that are no tokens yet. */
static int make_room(job *j)
{
    if (j->numbers == NULL)
        j->numbers = malloc(PIECE * sizeof(uint32_t));
    if (j->numbers != NULL)
        return STATUS_OK;
    message_errno("%s", binary_name(&j->data));
    return STATUS_FAILURE;
}

/* Some numbers, all there, that are ready. */
static int cut_numbers(job *j, number_type type, size_t n)
{
    const ps_type token = j->out.schema.token_type;
    const unsigned char *numbers = binary_at(&j->data);
    size_t good;
    int status = STATUS_OK;

    if (number_is_token(type, token)) {
        good = number_check_tokens(numbers, token, n, job_max_id(j));
    } else {
        status = make_room(j);
        if (status != STATUS_OK)
            return status;
        good = number_make_tokens(j->numbers, token, numbers, type, n,
                                  job_max_id(j));
        numbers = j->numbers;
    }
    status = cut_tokens(j, type.width, numbers, good);
    if (status == STATUS_OK && good < n)
        status = bad_number(j, &j->data, type, good);
    return status;
}

/* The numbers end, or the file does. */
static int end_stream(job *j, number_type type, uint64_t n, size_t ready)
{
    if (ready > 0 && n > 0)
        return binary_bad(&j->data, j->data.next, "the file ends within a "
                          "token%s", type.width == 4 ? " (see --type)" : "");
    if (n > 0 && n != CUT_ALL)
        return binary_bad(&j->data, j->data.next, "the file ends %" PRIu64
                          " tokens too early", n);
    return j->n_cut == 0 ? STATUS_OK
                         : put(j, type.width, j->out.payload, j->n_cut);
}

int cut_stream(job *j, number_type type, uint64_t n)
{
    const bool bounded = n != CUT_ALL;
    size_t ready = 0;
    int status = STATUS_OK;

    j->n_cut = 0;
    j->place = (job_place){"sequence", 0, binary_offset(&j->data)};
    while (status == STATUS_OK && n > 0) {
        size_t piece;

        status = binary_need(&j->data, type.width, &ready);
        piece = ready / type.width < PIECE ? ready / type.width : PIECE;
        if (piece > n)
            piece = (size_t)n;
        if (status != STATUS_OK || piece == 0)
            break;
        status = cut_numbers(j, type, piece);
        binary_take(&j->data, piece * type.width);
        j->out.figures.bytes += piece * type.width;
        n -= bounded ? piece : 0;
    }
    return status == STATUS_OK ? end_stream(j, type, n, ready) : status;
}
