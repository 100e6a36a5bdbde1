/*
 * channel_defaults.c - channels that are what they are called.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/channel_defaults.h"

#include <string.h>

#include "tokcat/element.h"

/* -100 is the label that the loss functions of trainers leave out. */
static const known_channel known[] = {
    {"labels", PS_I32, -100},     {"seq_label", PS_I32, -1},
    {"token_type_ids", PS_U8, 0}, {"loss_mask", PS_U8, 0},
    {"attention_mask", PS_U8, 0}, {"next_sentence_label", PS_I32, -1},
};

const known_channel *known_find(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0)
            return &known[i];
    return NULL;
}

bool known_good_name(const char *name)
{
    ps_schema alone = ps_schema_raw(PS_U16);
    const size_t n = strlen(name);

    if (n >= PS_NAME_BYTES)
        return false;
    alone.framed = true;
    alone.n_channels = 1;
    alone.channels[0].type = PS_U8;
    alone.channels[0].kind = PS_PER_TOKEN;
    memcpy(alone.channels[0].name, name, n + 1);
    return ps_schema_check(&alone, NULL) == PS_OK;
}

uint64_t known_fill(const char *name, ps_type type)
{
    const known_channel *k = known_find(name);
    uint64_t fill;

    return k != NULL && element_fill_integer(type, k->fill, &fill) ? fill : 0;
}
