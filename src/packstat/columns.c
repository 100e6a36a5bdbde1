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
    /*
     * Copy in the order of the payload, so that no value is overwritten before
     * it has been copied.
     */
    for (uint32_t i = 0; i < 2 * c->n; i++) {
        const column *one = &c->column[i % c->n];
        const uint32_t channel = one->channel;
        const ps_channel *described = &one->field->channel;
        const bool per_token = described->kind == PS_PER_TOKEN;
        const size_t n = per_token ? kept : 1;

        if (per_token != (i < c->n))
            continue;
        memmove(to + ps_payload_offset(c->schema, channel, kept),
                payload + ps_payload_offset(c->schema, channel, n_tok),
                n * ps_channel_bytes(described));
    }
}

const column *columns_compare(const columns *c, const ps_pack_info *info,
                              const ps_pack *pack, uint32_t i,
                              const ps_piece *piece,
                              const unsigned char *payload, uint32_t n_tok,
                              uint32_t *element)
{
    for (uint32_t k = 0; k < c->n; k++) {
        const column *one = &c->column[k];
        const bool per_token = one->field->channel.kind == PS_PER_TOKEN;
        const size_t bytes = ps_channel_bytes(&one->field->channel);
        const size_t n = per_token ? piece->n_tok : 1;
        const unsigned char *a =
            packs_values(info, pack, one->field, i, piece->begin);
        const unsigned char *b =
            payload + ps_payload_offset(c->schema, one->channel, n_tok) +
            (per_token ? piece->seq_off : 0) * bytes;
        size_t at = 0;

        if (memcmp(a, b, n * bytes) == 0)
            continue;
        while (a[at] == b[at])
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
