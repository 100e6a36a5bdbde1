/*
 * token_header.c - the header of framed token records and END.
 *
 * SPDX-License-Identifier: MIT
 */

#include "format/token_header.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "bytes.h"
#include "format/version.h"

/* The high bit and the line ends betray text-mode and 7-bit transport. */
static const unsigned char magic[8] = {0x89, 'T',  'O',  'K',
                                       '\r', '\n', 0x1a, '\n'};

bool ps_is_token_magic_prefix(const unsigned char *bytes, size_t n)
{
    return memcmp(bytes, magic, n < sizeof magic ? n : sizeof magic) == 0;
}

static size_t header_bytes(uint32_t n_channels)
{
    return PS_TOKEN_FIXED_BYTES +
           (size_t)n_channels * PS_CHANNEL_ENTRY_BYTES + 8;
}

size_t ps_token_header_encode(const ps_schema *schema, unsigned char *to)
{
    size_t size = header_bytes(schema->n_channels);
    unsigned char *entry = to + PS_TOKEN_FIXED_BYTES;

    memset(to, 0, PS_TOKEN_FIXED_BYTES);
    memcpy(to, magic, sizeof magic);
    ps_version_encode(to + 8);
    store_u32(to + 16, (uint32_t)size);
    store_u32(to + 20, schema->n_channels);
    to[40] = (unsigned char)ps_type_bytes(schema->token_type);
    to[41] = (unsigned char)schema->labels;
    store_u32(to + 44, schema->vocab_size);
    ps_specials_encode(schema, to + 48);
    memcpy(to + 72, schema->tokenizer, sizeof schema->tokenizer);
    for (uint32_t i = 0; i < schema->n_channels; i++) {
        ps_channel_encode(&schema->channels[i], 0, 0, entry);
        entry += PS_CHANNEL_ENTRY_BYTES;
    }
    store_u64(entry, XXH3_64bits(to, size - 8));
    return size;
}

ps_result ps_token_header_size(const unsigned char *from, size_t *size,
                               ps_error *err)
{
    uint32_t n_channels = load_u32(from + 20);
    ps_result r = ps_version_decode(from + 8, NULL, NULL, err);

    if (r != PS_OK)
        return r;
    if (n_channels > PS_MAX_CHANNELS)
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the header lists %u channels, at most %d are "
                       "possible",
                       (unsigned)n_channels, PS_MAX_CHANNELS);
    *size = header_bytes(n_channels);
    if (load_u32(from + 16) != *size)
        return ps_fail(err, PS_ERR_CORRUPT, "bad header length");
    return PS_OK;
}

static ps_result decode_channels(const unsigned char *entry, uint32_t n,
                                 ps_schema *schema, ps_error *err)
{
    schema->n_channels = n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t offset;
        uint32_t count;
        ps_result r = ps_channel_decode(entry, &schema->channels[i],
                                        &offset, &count, err);

        if (r != PS_OK)
            return r;
        entry += PS_CHANNEL_ENTRY_BYTES;
    }
    return PS_OK;
}

ps_result ps_token_header_decode(const unsigned char *from, size_t size,
                                 ps_schema *schema, ps_error *err)
{
    ps_result r;

    if (load_u64(from + size - 8) != XXH3_64bits(from, size - 8))
        return ps_fail(err, PS_ERR_CORRUPT,
                       "the header's checksum does not agree");
    r = ps_incompat_check(load_u64(from + 24), 0, err);
    if (r != PS_OK)
        return r;
    *schema = (ps_schema){.framed = true};
    if (!ps_token_type(from[40], &schema->token_type))
        return ps_fail(err, PS_ERR_CORRUPT, "tokens of %u bytes",
                       (unsigned)from[40]);
    schema->labels = (ps_label_convention)from[41];
    schema->vocab_size = load_u32(from + 44);
    ps_specials_decode(from + 48, schema);
    memcpy(schema->tokenizer, from + 72, sizeof schema->tokenizer);
    r = decode_channels(from + PS_TOKEN_FIXED_BYTES, load_u32(from + 20),
                        schema, err);
    if (r == PS_OK && ps_schema_check(schema, err) != PS_OK) {
        if (err != NULL)
            err->code = PS_ERR_CORRUPT;
        r = PS_ERR_CORRUPT;
    }
    return r;
}

void ps_token_end_encode(const ps_token_end *end, unsigned char *to)
{
    store_u32(to, 0);
    store_u32(to + 4, PS_TOKEN_END_KIND);
    store_u64(to + 8, end->sequences);
    store_u64(to + 16, end->tokens);
    store_u64(to + 24, end->digest);
}

ps_token_end ps_token_end_decode(const unsigned char *from)
{
    return (ps_token_end){.sequences = load_u64(from + 8),
                          .tokens = load_u64(from + 16),
                          .digest = load_u64(from + 24)};
}
