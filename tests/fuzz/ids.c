/*
 * ids.c - fuzzing target: lines of token ids, and of bytes.
 *
 * The input: a byte of options, one for the vocabulary, one for how to read
 * (fuzz.h), then text.  The few lines here compute the expected ids, unless the
 * text is compressed: then any result is allowed.
 *
 * SPDX-License-Identifier: MIT
 */

#include "text.h"

#include <string.h>

#include "cli/message.h"
#include "tokcat/decompress.h"

enum {
    WIDE = 1,
    RAW = 2,
    VOCABULARY = 4,
    STRICT = 8,
    BYTES = 16,
    WHOLE = 32,
    AS_IT_IS = 64
};

static conf make_conf(unsigned bits, unsigned vocab_size)
{
    conf c = conf_defaults();

    c.quiet = true;
    c.from = (bits & BYTES) != 0 ? FROM_BYTES : FROM_IDS;
    c.type_given = true;
    c.schema.token_type = (bits & WIDE) != 0 ? PS_U32 : PS_U16;
    c.schema.framed = (bits & RAW) == 0;
    if ((bits & VOCABULARY) != 0)
        c.schema.vocab_size = 256 + vocab_size;
    if ((bits & STRICT) != 0)
        c.empty = EMPTY_ERROR;
    if ((bits & WHOLE) != 0)
        c.split = SPLIT_PARAGRAPH;
    c.as_it_is = (bits & AS_IT_IS) != 0;
    return c;
}

/* Reads a word as an id; false if it is not one. */
static bool is_id(const unsigned char *p, size_t n, uint64_t max)
{
    uint64_t value = 0;

    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        value = 10 * value + (p[i] - '0');
        if (value > max)
            return false;
    }
    return true;
}

/* Counts the ids of a line without its newline; false if one is bad. */
static bool count_line(const unsigned char *p, size_t n, uint64_t max,
                       uint64_t *ids)
{
    size_t begin = 0;

    *ids = 0;
    if (n > 0 && p[n - 1] == '\r')
        n--;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && p[i] != ' ' && p[i] != '\t')
            continue;
        if (!is_id(p + begin, i - begin, max))
            return false;
        *ids += i > begin;
        begin = i + 1;
    }
    return true;
}

/* True if the text is valid; *y counts the sequences before an error. */
static bool count_ids(const conf *c, const unsigned char *p, size_t n,
                      token_yield *y)
{
    uint64_t max = c->schema.vocab_size > 0
                        ? c->schema.vocab_size - 1
                        : c->schema.token_type == PS_U16 ? UINT16_MAX
                                                         : UINT32_MAX;
    size_t mark = n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

    for (; n > 0; mark = 0) {
        const unsigned char *end = memchr(p, '\n', n);
        size_t line = end != NULL ? (size_t)(end - p) : n;
        uint64_t ids;

        if (!count_line(p + mark, line - mark, max, &ids) ||
            (ids == 0 && c->empty == EMPTY_ERROR))
            return false;
        y->sequences += ids > 0;
        y->tokens += ids;
        p += line < n ? line + 1 : line;
        n -= line < n ? line + 1 : line;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    unsigned bits = take_u8(&in);
    unsigned vocab_size = take_u8(&in);
    unsigned manner = take_u8(&in);
    conf c = make_conf(bits, vocab_size);
    token_yield own = {.hash = 0};
    token_yield y;
    compression packed;
    int status;

    must(settle(&c) == STATUS_OK);
    if (is_too_much(in.at, in.left))
        return 0;
    status = run_tokcat(&c, in.at, in.left, manner, &y);
    packed = in.left > 0 ? compression_of(in.at, in.left) : COMPRESSION_NONE;
    if (!c.as_it_is &&
        (packed == COMPRESSION_GZIP || packed == COMPRESSION_ZSTD))
        return 0;
    if (c.from == FROM_BYTES) {
        must(status == STATUS_OK && y.tokens <= in.left);
        return 0;
    }
    must(count_ids(&c, in.at, in.left, &own) == (status == STATUS_OK));
    must(own.sequences == y.sequences && own.tokens == y.tokens);
    return 0;
}
