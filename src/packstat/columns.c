/*
 * columns.c - locate the tokens and channels of a sequence.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstat/columns.h"

#include <stdbool.h>
#include <string.h>

#include "common/bytes.h"
#include "files/packs.h"

columns columns_of(const ps_pack_info *info)
{
    columns c = {.schema = &info->schema, .n = info->schema.n_channels + 1};

    c.column[0] = (column){PS_TOKENS, &info->fields[PS_FIELD_TOKENS]};
    for (uint32_t i = 0; i < info->n_fields; i++) {
        const ps_field *field = &info->fields[i];

        if (field->source != PS_BUILT_IN)
            c.column[field->source + 1] = (column){field->source, field};
    }
    return c;
}

void columns_truncate(const columns *c, const unsigned char *payload,
                      uint32_t n_tok, uint32_t kept, unsigned char *to)
{
    const uint64_t fixed = ps_payload_bytes(c->schema, 0);
    const size_t lists =
        (size_t)ps_payload_lists(c->schema, n_tok, payload);

    /*
     * Copy in the order of the payload, so that no value is overwritten before
     * it has been copied.
     */
    for (uint32_t i = 0; i < c->n; i++) {
        const column *one = &c->column[i];
        const ps_channel *described = &one->field->channel;

        if (described->kind == PS_PER_TOKEN)
            memmove(to + ps_payload_offset(c->schema, one->channel, kept),
                    payload + ps_payload_offset(c->schema, one->channel, n_tok),
                    kept * ps_channel_bytes(described));
    }
    memmove(to + (ps_payload_bytes(c->schema, kept) - fixed),
            payload + (ps_payload_bytes(c->schema, n_tok) - fixed),
            (size_t)fixed + lists);
}

/* The values of a column in piece `i` of a pack: `n` elements. */
static const unsigned char *in_pack(const columns *c, const column *one,
                                    const ps_pack_info *info,
                                    const ps_pack *pack, uint32_t i, size_t *n)
{
    const ps_piece piece = ps_pack_piece(info, pack, i);
    ps_list list;

    *n = one->field->channel.kind == PS_PER_TOKEN ? piece.n_tok : 1;
    if (one->channel == PS_TOKENS ||
        c->schema->channels[one->channel].kind != PS_LIST)
        return packs_values(info, pack, one->field, i, piece.begin);
    list = ps_pack_list(info, pack, one->channel, i);
    *n = list.n;
    return list.elements;
}

/* The same values in the payload of the sequence. */
static const unsigned char *in_payload(const columns *c, const column *one,
                                       const ps_piece *piece,
                                       const unsigned char *payload,
                                       uint32_t n_tok, size_t *n)
{
    uint32_t length = 1;
    uint64_t offset;

    if (one->field->channel.kind == PS_PER_TOKEN) {
        *n = piece->n_tok;
        return payload + ps_payload_offset(c->schema, one->channel, n_tok) +
               piece->seq_off * ps_channel_bytes(&one->field->channel);
    }
    if (c->schema->channels[one->channel].kind == PS_LIST)
        offset = ps_payload_list(c->schema, one->channel, n_tok, payload,
                                 &length);
    else
        offset = ps_payload_offset(c->schema, one->channel, n_tok);
    *n = length;
    return payload + offset;
}

const column *columns_compare(const columns *c, const ps_pack_info *info,
                              const ps_pack *pack, uint32_t i,
                              const ps_piece *piece,
                              const unsigned char *payload, uint32_t n_tok,
                              uint32_t *element)
{
    for (uint32_t k = 0; k < c->n; k++) {
        const column *one = &c->column[k];
        const size_t bytes = ps_channel_bytes(
            one->channel == PS_TOKENS ? &one->field->channel
                                      : &c->schema->channels[one->channel]);
        size_t n;
        size_t length;
        const unsigned char *a = in_pack(c, one, info, pack, i, &n);
        const unsigned char *b =
            in_payload(c, one, piece, payload, n_tok, &length);
        size_t at = 0;

        if (n == length && memcmp(a, b, n * bytes) == 0)
            continue;
        while (at < bytes * (n < length ? n : length) && a[at] == b[at])
            at++;
        *element = (uint32_t)(at / bytes);
        return one;
    }
    return NULL;
}

uint32_t columns_token(const columns *c, const unsigned char *tokens,
                       uint32_t i)
{
    return c->schema->token_type == PS_U16 ? load_u16(tokens + (size_t)2 * i)
                                           : load_u32(tokens + (size_t)4 * i);
}
