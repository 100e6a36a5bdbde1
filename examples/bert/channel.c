/*
 * channel.c - numbers of a channel of a pack, whatever their type.
 *
 * SPDX-License-Identifier: MIT
 */
#include "channel.h"

#include <stddef.h>

bool channel_is_whole(ps_type type)
{
    return type >= PS_U8 && type <= PS_I64;
}

static uint64_t load(const unsigned char *p, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | p[i];
    return value;
}

int64_t channel_at(const ps_field *field, const unsigned char *record,
                   uint32_t i)
{
    size_t bytes = ps_type_bytes(field->channel.type);
    uint64_t value = load(record + field->offset + i * bytes, bytes);

    if (!channel_is_whole(field->channel.type))
        return 0;
    if (field->channel.type == PS_I32)
        return (int32_t)(uint32_t)value;
    return (int64_t)value;
}
