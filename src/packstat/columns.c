/*
 * columns.c - where the values of a sequence lie, in a payload and in a pack.
 *
 * SPDX-License-Identifier: MIT
 */

#include "columns.h"

#include <string.h>

#include "common/bytes.h"

/* The field of a pack that channel `channel` of the schema became. */
static const ps_field *field_of(const ps_pack_info *info, uint32_t channel)
{
    const ps_field *field = &info->fields[info->tokens_field];

    for (uint32_t i = 0; channel != PS_TOKENS && i < info->n_fields; i++)
        if (info->fields[i].source == channel)
            field = &info->fields[i];
    return field;
}

static void add(lanes *l, const ps_pack_info *info, uint32_t channel)
{
    const ps_field *field = field_of(info, channel);
    const bool per_token = field->channel.kind == PS_PER_TOKEN;

    l->lane[l->n++] = (lane){
        .name = channel == PS_TOKENS ? NULL : field->channel.name,
        .per_token = per_token,
        .bytes = (uint32_t)ps_type_bytes(field->channel.type),
        .before = ps_payload_offset(&info->schema, channel, per_token),
        .in_pack = field->offset,
    };
}

lanes columns_of(const ps_pack_info *info)
{
    const ps_schema *schema = &info->schema;
    lanes l = {0};

    add(&l, info, PS_TOKENS);
    for (uint32_t i = 0; i < schema->n_channels; i++)
        add(&l, info, i);
    l.per_token = ps_payload_bytes(schema, 1) - ps_payload_bytes(schema, 0);
    return l;
}

/* Where a lane begins in a payload of `n_tok` tokens. */
static size_t begin(const lanes *l, const lane *one, uint32_t n_tok)
{
    return (size_t)(one->per_token ? one->before * n_tok
                                   : l->per_token * n_tok + one->before);
}

void columns_cut(const lanes *l, const unsigned char *payload, uint32_t n_tok,
                 uint32_t kept, unsigned char *to)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const lane *one = &l->lane[i];

        memcpy(to + begin(l, one, kept), payload + begin(l, one, n_tok),
               (size_t)one->bytes * (one->per_token ? kept : 1));
    }
}

const lane *columns_compare(const lanes *l, const ps_pack *pack, uint32_t i,
                            const ps_piece *piece, const unsigned char *payload,
                            uint32_t n_tok, uint32_t *element)
{
    for (uint32_t k = 0; k < l->n; k++) {
        const lane *one = &l->lane[k];
        const size_t bytes = one->bytes;
        const size_t in_pack = one->per_token ? piece->begin : i;
        const size_t off = one->per_token ? piece->seq_off : 0;
        const size_t n = one->per_token ? piece->n_tok : 1;
        const unsigned char *a = pack->record + one->in_pack + in_pack * bytes;
        const unsigned char *b = payload + begin(l, one, n_tok) + off * bytes;
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

static uint32_t load(const unsigned char *at, size_t bytes)
{
    return bytes == 2 ? load_u16(at) : load_u32(at);
}

uint32_t columns_pack_token(const lanes *l, const ps_pack *pack, uint32_t at)
{
    const lane *tokens = &l->lane[0];

    return load(pack->record + tokens->in_pack + (size_t)at * tokens->bytes,
                tokens->bytes);
}

uint32_t columns_token(const lanes *l, const unsigned char *payload,
                       uint32_t at)
{
    const lane *tokens = &l->lane[0];

    return load(payload + (size_t)at * tokens->bytes, tokens->bytes);
}
