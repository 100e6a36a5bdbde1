/*
 * arrays.c - fuzzing target: streams and arrays of numbers, of llm.c,
 * nanoGPT and numpy.
 *
 * The input: a byte for the form and the options, one for the end of
 * sequences, one for how to read (fuzz.h), then the file.
 *
 * SPDX-License-Identifier: MIT
 */

#include "text.h"

#include "cli/message.h"

enum { FORM = 3, SPLIT = 12, WIDE = 16, TYPE = 32, VOCABULARY = 64,
       TRIM = 128 };

/* Options that are valid for the form. */
static conf make_conf(unsigned bits, unsigned id)
{
    static const conf_from forms[] = {FROM_NPY, FROM_NPY, FROM_LLMC,
                                      FROM_NANOGPT};
    static const conf_split splits[] = {SPLIT_EVERY, SPLIT_EOS, SPLIT_BOS,
                                        SPLIT_EVERY};
    conf c = conf_defaults();

    c.quiet = true;
    c.from = forms[bits & FORM];
    /* Forms 0 and 1 are both .npy, without and with a split. */
    c.split_given = (bits & FORM) != 0;
    c.split = splits[(bits & SPLIT) >> 2];
    c.split_every = id + 1u;
    c.schema.special[PS_EOS] = c.schema.special[PS_BOS] = id;
    c.schema.special[PS_PAD] = id;
    c.type_given = (bits & TYPE) != 0;
    if (c.type_given && (bits & WIDE) != 0)
        c.schema.token_type = PS_U32;
    if ((bits & VOCABULARY) != 0)
        c.schema.vocab_size = 256;
    /* Any bytes are tokens, even if they look like a compressed file. */
    c.as_it_is = c.from == FROM_NANOGPT;
    c.trim = c.from == FROM_NPY && (bits & TRIM) != 0;
    if (!c.split_given)
        c.split = SPLIT_LINE;
    return c;
}

/* Checks the result for a stream without a header. */
static void check_stream(const conf *c, size_t n, int status,
                         const token_yield *y)
{
    const size_t width = ps_type_bytes(c->schema.token_type);
    const uint64_t tokens = n / width;

    if (c->schema.vocab_size == 0)
        must((status == STATUS_OK) == (n % width == 0));
    if (status != STATUS_OK)
        return;
    must(y->tokens == tokens);
    if (c->split == SPLIT_EVERY)
        must(y->sequences ==
             (tokens + c->split_every - 1) / c->split_every);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    unsigned bits = take_u8(&in);
    unsigned id = take_u8(&in);
    unsigned manner = take_u8(&in);
    conf c = make_conf(bits, id);
    token_yield y;
    int status;

    must(settle(&c) == STATUS_OK);
    status = run_tokcat(&c, in.at, in.left, manner, &y);
    must(y.tokens <= in.left && y.sequences <= y.tokens);
    if (c.from == FROM_NANOGPT)
        check_stream(&c, in.left, status, &y);
    return 0;
}
