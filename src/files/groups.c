/*
 * groups.c - the channel that --group names.
 *
 * SPDX-License-Identifier: MIT
 */

#include "files/groups.h"

#include <string.h>

#include "common/bytes.h"

bool groups_find(const ps_schema *schema, const char *name, uint32_t *channel)
{
    uint32_t i = 0;

    while (i < schema->n_channels &&
           strcmp(schema->channels[i].name, name) != 0)
        i++;
    *channel = i;
    return i < schema->n_channels &&
           schema->channels[i].kind == PS_PER_SEQUENCE &&
           schema->channels[i].count == 0;
}

uint64_t groups_value(const ps_schema *schema, uint32_t channel,
                      const ps_sequence *sequence)
{
    return load_low(
        sequence->payload +
            ps_payload_offset(schema, channel, sequence->n_tok),
        ps_type_bytes(schema->channels[channel].type));
}
