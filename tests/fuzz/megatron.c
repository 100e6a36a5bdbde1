/*
 * megatron.c - fuzzing target: the indexed data sets of Megatron-LM.
 *
 * The input: a byte of options, two for the size of the index, the index,
 * then the data.
 *
 * SPDX-License-Identifier: MIT
 */

#include "text.h"

#include "cli/message.h"

enum { DOCUMENTS = 1, WIDE = 2, RAW = 4, STRICT = 8, VOCABULARY = 16 };

static conf make_conf(unsigned bits)
{
    conf c = conf_defaults();

    c.quiet = true;
    c.from = FROM_MEGATRON;
    c.type_given = true;
    c.schema.token_type = (bits & WIDE) != 0 ? PS_U32 : PS_U16;
    c.schema.framed = (bits & RAW) == 0;
    c.split_given = (bits & DOCUMENTS) != 0;
    if (c.split_given)
        c.split = SPLIT_DOCUMENT;
    if ((bits & STRICT) != 0)
        c.empty = EMPTY_ERROR;
    if ((bits & VOCABULARY) != 0)
        c.schema.vocab_size = 256;
    return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    conf c = make_conf(take_u8(&in));
    size_t n = take_u16(&in);
    const unsigned char *index = take_bytes(&in, n, &n);
    token_yield y;

    must(settle(&c) == STATUS_OK);
    give_files(feed_file_of(0, index, n),
               feed_file_of(1, in.at, in.left));
    (void)run_tokcat(&c, NULL, 0, FEED_WHOLE, &y);
    /* Sequences take 12 bytes of the index and may overlap in the data. */
    must(y.sequences <= n / 8 && y.tokens <= n / 12 * (uint64_t)in.left);
    return 0;
}

/* Mostly bytes that change in place, since sizes have to fit. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
                               unsigned seed)
{
    size_t at;
    size_t n;

    if (size == 0 || seed % 4 == 0)
        return LLVMFuzzerMutate(data, size, max);
    at = seed / 4 % size;
    n = size - at < 8 ? size - at : 8;
    (void)LLVMFuzzerMutate(data + at, n, n);
    return size;
}
