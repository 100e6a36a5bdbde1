/*
 * text.c - lines of decimal token ids, as printed by tokenizers, and raw bytes
 * as tokens, by line or paragraph.
 *
 * Ids in text take several times the space of the tokens, so the loop over the
 * digits has to be fast.  In memory every line ends with a newline, which saves
 * a bounds check per byte.
 *
 * With --from=bytes, the concatenated sequences equal the text: a newline is
 * part of the line that it ends, and blank lines are part of the paragraph
 * before them.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <string.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "tokcat/reader.h"

/* ---------------------------------------------------------------------
 * Ids
 */

/* Limits, destination, and current word of a line of ids. */
typedef struct scan {
    const unsigned char *word; /* the last word read */
    uint64_t max;              /* largest valid id */
    size_t capacity;           /* size of `to`, in tokens */
    unsigned char *to;
} scan;

typedef enum scan_result {
    SCAN_DONE,
    SCAN_BAD, /* a word is not a valid id */
    SCAN_FULL
} scan_result;

static bool is_blank(unsigned char c)
{
    return c == ' ' || c == '\t';
}

/* True at a newline, or at the CR of a CR LF. */
static bool is_line_end(const unsigned char *p)
{
    return *p == '\n' || (*p == '\r' && p[1] == '\n');
}

/* Inlined with a constant `width`, so that each call has its own loop. */
static inline scan_result scan_words(scan *s, const unsigned char *p,
                                     size_t width, size_t *n_tok)
{
    size_t n = 0;

    for (;;) {
        uint64_t id = 0;
        unsigned digit;

        while (is_blank(*p))
            p++;
        *n_tok = n;
        if (is_line_end(p))
            return SCAN_DONE;
        if (n == s->capacity)
            return SCAN_FULL;

        /* A value above `max` does not grow further, so it cannot overflow. */
        s->word = p;
        while ((digit = (unsigned)*p - '0') <= 9) {
            if (id <= s->max)
                id = 10 * id + digit;
            p++;
        }
        if (p == s->word || id > s->max ||
            !(is_blank(*p) || is_line_end(p)))
            return SCAN_BAD;
        store_low(s->to + n * width, id, width);
        n++;
    }
}

static int bad_word(const reader *r, const scan *s, const input_line *line)
{
    const uint64_t column = (uint64_t)(s->word - line->bytes) + 1;
    char why[READER_WHY_BYTES];
    char word[41];
    const char *shown;
    const char *bom;
    size_t n = 0;
    size_t digits;

    /* Show the start of a long word, without NUL bytes. */
    while (n < sizeof word - 1 && !is_blank(s->word[n]) &&
           !is_line_end(s->word + n)) {
        word[n] = s->word[n] == '\0' ? '?' : (char)s->word[n];
        n++;
    }
    word[n] = '\0';
    shown = message_name(word);

    bom = strstr(word, INPUT_BOM);
    if (bom != NULL)
        return input_bad_bom(&r->in, column + (uint64_t)(bom - word));
    digits = strspn(word, "0123456789");
    if (word[0] == '-' && word[1] >= '0' && word[1] <= '9')
        return input_bad_line(&r->in, column, "%s is negative", shown);
    /* A number such as 1.5 or 1e3. */
    if (digits > 0 && digits < n && strspn(word, "0123456789.eE+-") == n)
        return input_bad_line(&r->in, column, "%s is not an integer", shown);
    if (digits < n)
        return input_bad_line(&r->in, column, "'%s' is not a number", shown);
    return input_bad_line(&r->in, column, "%s %s", shown,
                          reader_above_max(r, why));
}

static int take_ids(reader *r, const input_line *line)
{
    const ps_type type = r->out.schema.token_type;
    scan s = {.max = reader_max_id(r)};
    scan_result result;
    size_t n_tok;
    int status;

    /* A token has at least one digit and a blank or newline. */
    s.capacity = line->n / 2 + 1;
    if (s.capacity > reader_max_tokens(r))
        s.capacity = reader_max_tokens(r);
    status = records_reserve(&r->out, s.capacity * ps_type_bytes(type));
    if (status != STATUS_OK)
        return status;

    s.to = r->out.payload;
    result = type == PS_U16 ? scan_words(&s, line->bytes, 2, &n_tok)
                            : scan_words(&s, line->bytes, 4, &n_tok);
    if (result == SCAN_BAD)
        return bad_word(r, &s, line);
    if (result == SCAN_FULL)
        return reader_too_large(r);
    if (n_tok == 0)
        return reader_empty(r, 1);
    return state_put(&r->state, &r->out, (uint32_t)n_tok, r->out.payload);
}

const form_reader reader_ids = {
    .unit = "line",
    .expected = "text",
    .skip_bom = true,
    .max_line = PS_MAX_SEQUENCE_BYTES,
    .line = take_ids,
};

/* ---------------------------------------------------------------------
 * Bytes
 */

static int put_paragraph(reader *r)
{
    r->has_text = r->ends_blank = false;
    return r->n_tok == 0 ? STATUS_OK : reader_put(r);
}

/*
 * Blank lines are part of the paragraph before them.  At the start of a file,
 * they are part of the paragraph after them.
 */
static int take_bytes(reader *r, const input_line *line)
{
    const uint32_t vocab = r->out.schema.vocab_size;
    const size_t width = ps_type_bytes(r->out.schema.token_type);
    const size_t n = line->n + line->newline;
    const unsigned char *bytes = line->bytes;
    const bool by_line = r->conf->split == SPLIT_LINE;
    const bool blank = !by_line && input_is_blank(line);
    const char *seems = NULL;
    unsigned char *to;
    int status = STATUS_OK;

    /* Any bytes are valid, but an archive is probably a mistake. */
    if (r->in.line == 1 && !r->conf->as_it_is)
        seems = input_seems(&r->in);
    if (seems != NULL)
        message_warning("%s: this looks like %s: its bytes become tokens",
                        input_name(&r->in), seems);

    if (r->has_text && r->ends_blank && !blank)
        status = put_paragraph(r);
    if (status != STATUS_OK)
        return status;
    r->has_text = r->has_text || !blank;
    r->ends_blank = blank;

    /* Unless the vocabulary has fewer than 256 ids, all bytes are valid. */
    for (size_t i = 0; i < n && vocab <= UINT8_MAX; i++)
        if (bytes[i] >= vocab)
            return input_bad_line(&r->in, (uint64_t)i + 1, "byte %u is not "
                                  "below the vocabulary size %" PRIu32,
                                  (unsigned)bytes[i], vocab);

    status = reader_reserve(r, n);
    if (status != STATUS_OK)
        return status;
    to = r->out.payload + r->n_tok * width;
    if (width == 2)
        for (size_t i = 0; i < n; i++)
            store_u16(to + 2 * i, bytes[i]);
    else
        for (size_t i = 0; i < n; i++)
            store_u32(to + 4 * i, bytes[i]);
    r->n_tok += n;
    return by_line ? put_paragraph(r) : STATUS_OK;
}

/* The end of a file ends a paragraph. */
static int read_bytes(reader *r)
{
    const int status = reader_each_line(r, take_bytes);

    return status == STATUS_OK ? put_paragraph(r) : status;
}

const form_reader reader_bytes = {
    .unit = "line",
    .max_line = PS_MAX_SEQUENCE_BYTES,
    .read = read_bytes,
};
