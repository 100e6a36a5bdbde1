/*
 * token_header.c - header and END of framed token records.
 *
 * SPDX-License-Identifier: MIT
 */

#include "format/token_header.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "bytes.h"
#include "format/version.h"

/* Offsets in the header; packstream(5) describes the fields. */
enum {
    AT_VERSION = 8,
    AT_HEADER_BYTES = 16,
    AT_N_CHANNELS = 20,
    AT_INCOMPAT = 24,
    AT_TOKEN_BYTES = 40,
    AT_LABELS = 41,
    AT_ZERO = 42,
    AT_VOCAB_SIZE = 44,
    AT_SPECIALS = 48,
    AT_TOKENIZER = 72,
    AT_ZEROS = 104,
    AT_TABLE = PS_TOKEN_FIXED_BYTES
};

/* Offsets in END, which starts with a count of 0. */
enum {
    AT_END_KIND = 4,
    AT_END_SEQUENCES = 8,
    AT_END_TOKENS = 16,
    AT_END_DIGEST = 24
};

/* As in PNG, damage by text-mode or 7-bit transfers is detectable. */
static const unsigned char magic[8] = {0x89, 'T',  'O',  'K',
                                       '\r', '\n', 0x1a, '\n'};

bool ps_is_token_magic_prefix(const unsigned char *bytes, size_t n)
{
    return memcmp(bytes, magic, n < sizeof magic ? n : sizeof magic) == 0;
}

size_t ps_token_header_encode(const ps_schema *schema, unsigned char *to)
{
    unsigned char *entry = to + AT_TABLE;
    size_t size;

    memset(to, 0, PS_TOKEN_FIXED_BYTES);
    memcpy(to, magic, sizeof magic);
    ps_version_encode(to + AT_VERSION, PS_TOKEN_MAJOR);
    store_u32(to + AT_N_CHANNELS, schema->n_channels);
    to[AT_TOKEN_BYTES] = (unsigned char)ps_type_bytes(schema->token_type);
    to[AT_LABELS] = (unsigned char)schema->labels;
    store_u32(to + AT_VOCAB_SIZE, schema->vocab_size);
    ps_specials_encode(schema, to + AT_SPECIALS);
    memcpy(to + AT_TOKENIZER, schema->tokenizer, sizeof schema->tokenizer);
    for (uint32_t i = 0; i < schema->n_channels; i++) {
        ps_channel_encode(&schema->channels[i], 0, 0, entry);
        entry += PS_CHANNEL_ENTRY_BYTES;
    }
    size = (size_t)(entry - to) + 8;
    store_u32(to + AT_HEADER_BYTES, (uint32_t)size);
    store_u64(entry, ps_hash(to, size - 8));
    return size;
}

ps_result ps_token_header_size(const unsigned char *from, size_t *size,
                               ps_error *err)
{
    uint32_t n_channels = load_u32(from + AT_N_CHANNELS);
    ps_result r = ps_version_decode(from + AT_VERSION, PS_TOKEN_MAJOR, NULL,
                                    NULL, err);

    if (r != PS_OK)
        return r;
    if (n_channels > PS_MAX_CHANNELS)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the header lists %u channels, but the limit is %d",
                       (unsigned)n_channels, PS_MAX_CHANNELS);
    *size = PS_TOKEN_FIXED_BYTES +
            (size_t)n_channels * PS_CHANNEL_ENTRY_BYTES + 8;
    if (load_u32(from + AT_HEADER_BYTES) != *size)
        return ps_fail(err, PS_ERR_CORRUPT, "bad header length");
    return PS_OK;
}

ps_result ps_token_header_decode(const unsigned char *from, size_t size,
                                 ps_schema *schema, ps_error *err)
{
    const unsigned char *entry = from + AT_TABLE;
    bool zero;
    ps_result r;

    if (load_u64(from + size - 8) != ps_hash(from, size - 8))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the header's checksum does not match");
    r = ps_incompat_check(load_u64(from + AT_INCOMPAT), 0, err);
    if (r != PS_OK)
        return r;
    *schema = (ps_schema){.framed = true};
    if (!ps_token_type(from[AT_TOKEN_BYTES], &schema->token_type))
        return ps_fail(err, PS_ERR_CORRUPT, "invalid size: tokens of %u bytes",
                       (unsigned)from[AT_TOKEN_BYTES]);
    schema->labels = (ps_label_convention)from[AT_LABELS];
    schema->vocab_size = load_u32(from + AT_VOCAB_SIZE);
    ps_specials_decode(from + AT_SPECIALS, schema);
    memcpy(schema->tokenizer, from + AT_TOKENIZER, sizeof schema->tokenizer);

    /* In known versions, bytes reserved for later versions are zero. */
    zero = all_zero(from + AT_ZERO, AT_VOCAB_SIZE - AT_ZERO) &&
           all_zero(from + AT_ZEROS, AT_TABLE - AT_ZEROS);
    schema->n_channels = load_u32(from + AT_N_CHANNELS);
    for (uint32_t i = 0; i < schema->n_channels; i++) {
        uint32_t offset;

        r = ps_channel_decode(entry, &schema->channels[i], &offset, 0, err);
        if (r != PS_OK)
            return r;
        zero = zero && ps_channel_unused_is_zero(entry, false);
        entry += PS_CHANNEL_ENTRY_BYTES;
    }
    if (!zero && ps_is_minor_known(from + AT_VERSION))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "unused bytes of the header are not zero");
    if (ps_schema_check(schema, err) == PS_OK)
        return PS_OK;
    /* Report invalid values in a header as damage, not as an argument error. */
    if (err != NULL)
        err->code = PS_ERR_CORRUPT;
    return PS_ERR_CORRUPT;
}

void ps_token_end_encode(const ps_token_end *end, unsigned char *to)
{
    store_u32(to, 0);
    store_u32(to + AT_END_KIND, PS_TOKEN_END_KIND);
    store_u64(to + AT_END_SEQUENCES, end->sequences);
    store_u64(to + AT_END_TOKENS, end->tokens);
    store_u64(to + AT_END_DIGEST, end->digest);
}

ps_token_end ps_token_end_decode(const unsigned char *from)
{
    return (ps_token_end){.sequences = load_u64(from + AT_END_SEQUENCES),
                          .tokens = load_u64(from + AT_END_TOKENS),
                          .digest = load_u64(from + AT_END_DIGEST)};
}
