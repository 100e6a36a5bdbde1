/*
 * jsonl.c - fuzzing target: JSON Lines, and the options that go with them.
 *
 * The input: a byte of options, one for how to read (fuzz.h); with some of the
 * options a line that declares a channel; then text.  The output must equal
 * that of a run that reads each line with jansson, in whatever pieces the input
 * is read, except before damage in zstd.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "json_trees.h"
#include "text.h"
#include "tokcat/conf.h"
#include "tokcat/decompress.h"

enum {
    WIDE = 1,
    RAW = 2,
    VOCABULARY = 4,
    STRICT = 8,
    CHANNEL = 16,
    IGNORE = 32,
    TRIM = 64
};

static void make_conf(conf *c, unsigned bits)
{
    *c = conf_defaults();
    c->quiet = true;
    c->from = FROM_JSONL;
    c->type_given = true;
    c->schema.token_type = (bits & WIDE) != 0 ? PS_U32 : PS_U16;
    c->schema.framed = (bits & RAW) == 0;
    if ((bits & VOCABULARY) != 0)
        c->schema.vocab_size = 300;
    if ((bits & STRICT) != 0)
        c->empty = EMPTY_ERROR;
    if ((bits & IGNORE) != 0)
        must(conf_set_ignore(c, "x") == NULL);
    c->trim = (bits & TRIM) != 0;
    if (c->trim)
        c->schema.special[PS_PAD] = 0;
}

/* The first line of the text declares a channel, or tries to. */
static void declare(conf *c, input *in)
{
    const unsigned char *end =
        in->left > 0 ? memchr(in->at, '\n', in->left) : NULL;
    size_t n = end != NULL ? (size_t)(end - in->at) : in->left;
    char *value = malloc(n + 1);
    const char *why;

    must(value != NULL);
    memcpy(value, take_bytes(in, n, &n), n);
    value[n] = '\0';
    why = conf_set_channel(c, value);
    must(why == NULL || *why != '\0');
    free(value);
    (void)take_u8(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    unsigned bits = take_u8(&in);
    unsigned manner = take_u8(&in);
    token_yield whole;
    token_yield y;
    conf c;
    int status;

    make_conf(&c, bits);
    if ((bits & CHANNEL) != 0)
        declare(&c, &in);
    if (settle(&c) != STATUS_OK || is_too_much(in.at, in.left))
        return 0;
    status = run_tokcat(&c, in.at, in.left, manner, &y);
    json_use_trees(true);
    must(run_tokcat(&c, in.at, in.left, FEED_WHOLE, &whole) == status);
    json_use_trees(false);
    /* How much zstd returns before damage depends on the pieces of a frame. */
    if (status != STATUS_OK && in.left > 0 &&
        compression_of(in.at, in.left) == COMPRESSION_ZSTD)
        return 0;
    must(y.result == whole.result && y.sequences == whole.sequences);
    must(y.tokens == whole.tokens && y.hash == whole.hash);
    return 0;
}
