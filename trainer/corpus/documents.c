/*
 * documents.c - read documents from lines of token ids.
 *
 * SPDX-License-Identifier: MIT
 */
#include "corpus/documents.h"

#include <inttypes.h>
#include <stdlib.h>

#include "data/error.h"

bool document_open(document *d)
{
    *d = (document){.token = malloc(DOCUMENT_TOKENS * sizeof *d->token),
                    .begin = malloc((DOCUMENT_TOKENS + 1) *
                                    sizeof *d->begin)};
    return d->token != NULL && d->begin != NULL;
}

void document_free(document *d)
{
    free(d->token);
    free(d->begin);
}

uint32_t document_tokens(const document *d, uint32_t first, uint32_t count)
{
    return d->begin[first + count] - d->begin[first];
}

static int next_char(document_source *s)
{
    int c = getc(s->file);

    s->column++;
    return c;
}

static ps_result bad_place(const document_source *s, int c, ps_error *err)
{
    if (c < ' ' || c > '~')
        return tr_error(err, PS_ERR_CORRUPT,
                        "line %" PRIu64 ", column %" PRIu64
                        ": byte %d is not part of a number", s->line,
                        s->column, c);
    return tr_error(err, PS_ERR_CORRUPT,
                    "line %" PRIu64 ", column %" PRIu64
                    ": '%c' is not part of a number", s->line, s->column, c);
}

/* Reads a number that starts with `first`, and the character after it. */
static ps_result read_number(document_source *s, int first, int32_t *number,
                             int *after, ps_error *err)
{
    uint64_t column = s->column, value = (uint64_t)(first - '0');
    int c = next_char(s);

    for (; c >= '0' && c <= '9'; c = next_char(s))
        if (value < s->vocab_size)
            value = value * 10 + (uint64_t)(c - '0');
    if (value >= s->vocab_size)
        return tr_error(err, PS_ERR_RANGE,
                        "line %" PRIu64 ", column %" PRIu64
                        ": the token is not below the vocabulary of %" PRIu32,
                        s->line, column, s->vocab_size);
    *number = (int32_t)value;
    *after = c;
    return PS_OK;
}

static void end_sentence(document *d, uint32_t n_tok)
{
    if (n_tok > d->begin[d->n_sentences])
        d->begin[++d->n_sentences] = n_tok;
}

ps_result document_read(document_source *s, document *d, ps_error *err)
{
    uint32_t n = 0; /* tokens */
    bool empty = true;
    int c = next_char(s);

    d->n_sentences = 0;
    d->begin[0] = 0;
    while (c != EOF && n < DOCUMENT_TOKENS) {
        if (c == '\n') {
            s->line++;
            s->column = 0;
            end_sentence(d, n);
            if (empty && n > 0)
                return PS_OK;
            empty = true;
            c = next_char(s);
        } else if (c == ' ' || c == '\t' || c == '\r') {
            c = next_char(s);
        } else if (c >= '0' && c <= '9') {
            ps_result r = read_number(s, c, &d->token[n], &c, err);

            if (r != PS_OK)
                return r;
            n++;
            empty = false;
        } else {
            return bad_place(s, c, err);
        }
    }
    end_sentence(d, n);
    if (c != EOF)
        s->column -= (uint64_t)(ungetc(c, s->file) == c);
    if (ferror(s->file))
        return tr_error_errno(err);
    return n > 0 ? PS_OK : PS_END;
}
