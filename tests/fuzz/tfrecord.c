/*
 * tfrecord.c - fuzzing target: TFRecord files of BERT's samples.
 *
 * The input: a byte of options, one for how to read (fuzz.h), then, as the
 * options select, either the file or its records, each preceded by two bytes of
 * length.
 * SPDX-License-Identifier: MIT
 */

#include "text.h"

#include "cli/message.h"
#include "common/bytes.h"
#include "wire/tfrecord.h"

enum { FRAMED = 1, WIDE = 2, STRICT = 4, VOCABULARY = 8, IGNORE = 16 };

static conf make_conf(unsigned bits)
{
    conf c = conf_defaults();

    c.quiet = true;
    c.from = FROM_TFRECORD;
    c.type_given = true;
    c.schema.token_type = (bits & WIDE) != 0 ? PS_U32 : PS_U16;
    if ((bits & STRICT) != 0)
        c.empty = EMPTY_ERROR;
    if ((bits & VOCABULARY) != 0)
        c.schema.vocab_size = 256;
    if ((bits & IGNORE) != 0)
        c.ignored[c.n_ignored++] = "labels";
    return c;
}

static void put_record(bytes *file, const unsigned char *p, size_t n)
{
    unsigned char head[TFRECORD_HEAD_BYTES];
    unsigned char tail[TFRECORD_TAIL_BYTES];

    tfrecord_make_head(n, head);
    store_u32(tail, tfrecord_checksum(p, n));
    put_bytes(file, head, sizeof head);
    put_bytes(file, p, n);
    put_bytes(file, tail, sizeof tail);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    unsigned bits = take_u8(&in);
    unsigned manner = take_u8(&in);
    conf c = make_conf(bits);
    bytes file = {0};
    token_yield y;

    while ((bits & FRAMED) != 0 && in.left > 0) {
        size_t n = take_u16(&in);
        const unsigned char *p = take_bytes(&in, n, &n);

        put_record(&file, p, n);
    }
    put_bytes(&file, in.at, in.left);
    must(settle(&c) == STATUS_OK);
    (void)run_tokcat(&c, file.data, file.size, manner, &y);
    must(y.tokens <= file.size && y.sequences <= y.tokens);
    free_bytes(&file);
    return 0;
}
