/*
 * setters.c - one small setter for each option of tokcat.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/setters.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tokcat/channel_defaults.h"
#include "tokcat/conf.h"
#include "tokcat/element.h"
#include "tokcat/forms.h"
#include "tokcat/memory.h"

const char *set_from(void *context, const char *value)
{
    conf *c = context;

    return forms_find(value, &c->from)
               ? NULL
               : "must be ids, bytes, jsonl, llmc, nanogpt, npy, megatron, "
                 "datatrove or tfrecord";
}

const char *set_type(void *context, const char *value)
{
    conf *c = context;

    c->type_given = true;
    return option_token_type(value, &c->schema.token_type);
}

const char *set_raw(void *context, const char *value)
{
    conf *c = context;

    (void)value;
    c->schema.framed = false;
    return NULL;
}

const char *set_output(void *context, const char *value)
{
    conf *c = context;

    c->output = value;
    return NULL;
}

const char *set_quiet(void *context, const char *value)
{
    conf *c = context;

    (void)value;
    c->quiet = true;
    return NULL;
}

const char *set_split(void *context, const char *value)
{
    conf *c = context;

    c->split_given = true;
    if (forms_find_split(value, &c->split))
        return NULL;
    c->split = SPLIT_EVERY;
    return option_number(value, 1, UINT64_MAX, &c->split_every)
               ? NULL
               : "must be line, paragraph, eos, bos, sequence, document or "
                 "a number of tokens";
}

const char *set_trim(void *context, const char *value)
{
    conf *c = context;

    (void)value;
    c->trim = true;
    return NULL;
}

const char *set_empty(void *context, const char *value)
{
    conf *c = context;

    c->empty_given = true;
    if (strcmp(value, "skip") == 0)
        c->empty = EMPTY_SKIP;
    else if (strcmp(value, "error") == 0)
        c->empty = EMPTY_ERROR;
    else
        return "must be skip or error";
    return NULL;
}

const char *set_ids_key(void *context, const char *value)
{
    conf *c = context;

    c->ids_key = value;
    c->ids_key_given = true;
    return NULL;
}

const char *set_ignore(void *context, const char *value)
{
    conf *c = context;

    if (c->n_ignored == CONF_IGNORED)
        return "there can be no more than 64 keys to ignore";
    c->ignored[c->n_ignored++] = value;
    return NULL;
}

/* Takes "TYPE" or "TYPE:FILL" after the name. */
static const char *channel_type(ps_channel *channel, const char *text)
{
    const size_t n = strcspn(text, ":");
    char name[8] = "";

    if (n < sizeof name)
        memcpy(name, text, n);
    if (!ps_type_from_name(name, &channel->type))
        return "the type must be u8, u16, u32, u64, i32, i64, f32 or f64";
    channel->fill = known_fill(channel->name, channel->type);
    if (text[n] != '\0' &&
        !element_fill(channel->type, text + n + 1, &channel->fill))
        return memory_ran_out()
                   ? "out of memory"
                   : "the fill must be a number that the type can hold";
    return NULL;
}

static bool is_declared(const conf *c, const char *name)
{
    for (uint32_t i = 0; i < c->schema.n_channels; i++)
        if (strcmp(c->schema.channels[i].name, name) == 0)
            return true;
    return false;
}

const char *set_channel(void *context, const char *value)
{
    conf *c = context;
    ps_channel channel = {.kind = PS_PER_TOKEN};
    const size_t n = strcspn(value, ":");
    const char *why;

    if (value[n] == '\0')
        return "must be KEY:TYPE or KEY:TYPE:FILL";
    if (n < sizeof channel.name)
        memcpy(channel.name, value, n);
    if (!known_good_name(channel.name))
        return "the key cannot name a channel";
    if (is_declared(c, channel.name))
        return "the channel is declared twice";
    if (c->schema.n_channels == PS_MAX_CHANNELS)
        return "there can be no more than 23 channels";
    why = channel_type(&channel, value + n + 1);
    if (why == NULL)
        c->schema.channels[c->schema.n_channels++] = channel;
    return why;
}

const char *set_vocab(void *context, const char *value)
{
    conf *c = context;
    uint64_t n;

    if (!option_number(value, 1, UINT32_MAX, &n))
        return "must be a number between 1 and 4294967295";
    c->schema.vocab_size = (uint32_t)n;
    return NULL;
}

/* The highest value stands for "no such id" in the header. */
static const char *set_special(conf *c, ps_special which, const char *value)
{
    uint64_t n;

    if (!option_number(value, 0, PS_NO_ID - 1, &n))
        return "must be a token id between 0 and 4294967294";
    c->schema.special[which] = (uint32_t)n;
    return NULL;
}

const char *set_pad(void *context, const char *value)
{
    return set_special(context, PS_PAD, value);
}

const char *set_bos(void *context, const char *value)
{
    return set_special(context, PS_BOS, value);
}

const char *set_eos(void *context, const char *value)
{
    return set_special(context, PS_EOS, value);
}

const char *set_cls(void *context, const char *value)
{
    return set_special(context, PS_CLS, value);
}

const char *set_sep(void *context, const char *value)
{
    return set_special(context, PS_SEP, value);
}

const char *set_mask(void *context, const char *value)
{
    return set_special(context, PS_MASK, value);
}

const char *set_tokenizer(void *context, const char *value)
{
    conf *c = context;

    if (strcmp(value, "-") == 0)
        return "must be a file, standard input is for the tokens";
    c->tokenizer = value;
    return NULL;
}

const char *set_labels(void *context, const char *value)
{
    conf *c = context;

    if (strcmp(value, "aligned") == 0)
        c->schema.labels = PS_LABELS_ALIGNED;
    else if (strcmp(value, "shifted") == 0)
        c->schema.labels = PS_LABELS_SHIFTED;
    else
        return "must be aligned or shifted";
    return NULL;
}
