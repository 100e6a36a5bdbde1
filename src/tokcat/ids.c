/*
 * ids.c - lines of decimal token ids, as tokenizers print them.
 *
 * Text is several times as large as the tokens in it, so the loop over its
 * digits is kept tight: every line ends with a newline in memory, which
 * saves a check for the end at each byte.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <string.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "tokcat/job.h"

/* The line being read, and what its ids have to keep to. */
typedef struct scan {
    const unsigned char *at;   /* where we are: at a word or the newline */
    const unsigned char *word; /* the word read last */
    uint64_t max;             /* the greatest id */
    size_t room;               /* in tokens */
    unsigned char *to;
} scan;

typedef enum scan_result {
    SCAN_DONE,
    SCAN_BAD, /* the word is no id within range */
    SCAN_FULL
} scan_result;

static bool is_blank(unsigned char c)
{
    return c == ' ' || c == '\t';
}

/* The carriage return of a line that ends as on Windows is no word. */
static bool is_line_end(const unsigned char *p)
{
    return *p == '\n' || (*p == '\r' && p[1] == '\n');
}

/*
 * Reads one id at s->at.  Once above `max` a value grows no more, so that
 * it cannot overflow.
 */
static inline bool scan_id(scan *s, uint64_t *id)
{
    const unsigned char *p = s->at;
    uint64_t value = 0;
    unsigned digit;

    s->word = p;
    while ((digit = (unsigned)*p - '0') <= 9) {
        if (value <= s->max)
            value = 10 * value + digit;
        p++;
    }
    s->at = p;
    *id = value;
    return p != s->word && value <= s->max &&
           (is_blank(*p) || is_line_end(p));
}

/* With `width` a constant, each call below becomes a loop of its own. */
static inline scan_result scan_words(scan *s, size_t width, size_t *n_tok)
{
    uint64_t id;
    size_t n = 0;

    for (;;) {
        while (is_blank(*s->at))
            s->at++;
        *n_tok = n;
        if (is_line_end(s->at))
            return SCAN_DONE;
        if (n == s->room)
            return SCAN_FULL;
        if (!scan_id(s, &id))
            return SCAN_BAD;
        store_low(s->to + n * width, id, width);
        n++;
    }
}

static scan_result scan_line(scan *s, ps_type type, size_t *n_tok)
{
    return type == PS_U16 ? scan_words(s, 2, n_tok)
                          : scan_words(s, 4, n_tok);
}

/* Whether a word is a number such as 1.5 or 1e3. */
static bool is_fraction(const char *word)
{
    const size_t n = strspn(word, "0123456789");

    return n > 0 && word[n] != '\0' &&
           strspn(word, "0123456789.eE+-") == strlen(word);
}

/* Takes the word for a message: not all of a long one, no NUL within. */
static const char *copy_word(const scan *s, char *to, size_t size)
{
    size_t n = 0;

    while (n < size - 1 && !is_blank(s->word[n]) &&
           !is_line_end(s->word + n)) {
        to[n] = s->word[n] == '\0' ? '?' : (char)s->word[n];
        n++;
    }
    to[n] = '\0';
    return message_name(to);
}

static int bad_word(const job *j, const scan *s, const text_line *line)
{
    const ps_schema *schema = &j->out.schema;
    const uint64_t column = (uint64_t)(s->word - line->bytes) + 1;
    char word[41];
    const char *shown = copy_word(s, word, sizeof word);

    if (word[0] == '-' && word[1] >= '0' && word[1] <= '9')
        return text_bad_at(&j->in, column, "%s is negative", shown);
    if (is_fraction(word))
        return text_bad_at(&j->in, column, "%s is not an integer", shown);
    if (word[strspn(word, "0123456789")] != '\0')
        return text_bad_at(&j->in, column, "'%s' is not a number", shown);
    if (schema->vocab_size != 0)
        return text_bad_at(&j->in, column, "%s is not below the vocabulary "
                           "size %" PRIu32, shown, schema->vocab_size);
    return text_bad_at(&j->in, column, "%s does not fit %s", shown,
                       schema->token_type == PS_U16 ? "u16 (see --type)"
                                                    : "u32");
}

static int ids_line(job *j, const text_line *line)
{
    const ps_schema *schema = &j->out.schema;
    const size_t width = ps_type_bytes(schema->token_type);
    scan s = {.at = line->bytes, .max = job_max_id(j)};
    size_t n_tok;
    int status;

    /* A token takes at least a digit and a blank, or the end. */
    s.room = line->n / 2 + 1;
    if (s.room > job_max_tokens(j))
        s.room = job_max_tokens(j);
    status = records_room(&j->out, s.room * width);
    if (status != STATUS_OK)
        return status;
    s.to = j->out.payload;
    switch (scan_line(&s, schema->token_type, &n_tok)) {
    case SCAN_BAD:
        return bad_word(j, &s, line);
    case SCAN_FULL:
        return job_too_large(j);
    case SCAN_DONE:
        break;
    }
    if (n_tok == 0)
        return job_empty(j);
    return records_put(&j->out, (uint32_t)n_tok);
}

const job_source source_ids = {
    .unit = "line",
    .longest = PS_MAX_SEQUENCE_BYTES,
    .line = ids_line,
};
