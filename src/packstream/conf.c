/*
 * conf.c - the options of packstream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstream/conf.h"

#include <string.h>

#include "cli/message.h"

#define DEFAULT_DEPTH 16
#define DEFAULT_WINDOW 1024

conf conf_new(void)
{
    return (conf){.depth = DEFAULT_DEPTH, .window = DEFAULT_WINDOW};
}

static const char *set_u32(uint32_t *to, const char *value, uint32_t least,
                           uint32_t most, const char *why)
{
    uint64_t number;

    if (!option_number(value, least, most, &number))
        return why;
    *to = (uint32_t)number;
    return NULL;
}

static const char *set_capacity(void *to, const char *value)
{
    return set_u32(&((conf *)to)->capacity, value, 1, PS_MAX_CAPACITY,
                   "must be a number from 1 to 16777216");
}

static const char *set_depth(void *to, const char *value)
{
    return set_u32(&((conf *)to)->depth, value, 1, PS_MAX_DEPTH,
                   "must be a number from 1 to 65536");
}

static const char *set_window(void *to, const char *value)
{
    return set_u32(&((conf *)to)->window, value, 1, PS_MAX_WINDOW,
                   "must be a number from 1 to 16777216");
}

static const char *set_type(void *to, const char *value)
{
    return option_token_type(value, &((conf *)to)->type);
}

static const char *set_pad_id(void *to, const char *value)
{
    ((conf *)to)->pad_given = true;
    return set_u32(&((conf *)to)->pad_id, value, 0, PS_NO_ID - 1,
                   "must be a token id");
}

static const char *set_vocab(void *to, const char *value)
{
    return set_u32(&((conf *)to)->vocab_size, value, 1, UINT32_MAX,
                   "must be a number from 1 to 4294967295");
}

static const char *set_overlong(void *to, const char *value)
{
    static const char *const names[] = {[PS_OVERLONG_ERROR] = "error",
                                        [PS_OVERLONG_DROP] = "drop",
                                        [PS_OVERLONG_TRUNCATE] = "truncate",
                                        [PS_OVERLONG_SPLIT] = "split"};

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(value, names[i]) == 0) {
            ((conf *)to)->overlong = (ps_overlong)i;
            return NULL;
        }
    return "must be error, drop, truncate or split";
}

static const char *set_rejects(void *to, const char *value)
{
    ((conf *)to)->rejects = value;
    return NULL;
}

static const char *set_stats(void *to, const char *value)
{
    conf *c = to;

    c->stats = value == NULL ? STATS_TEXT : STATS_JSON;
    if (value != NULL && strcmp(value, "json") != 0)
        return "must be json, or nothing";
    return NULL;
}

static const char *set_output(void *to, const char *value)
{
    ((conf *)to)->output = value;
    return NULL;
}

static const char *set_quiet(void *to, const char *value)
{
    (void)value;
    ((conf *)to)->quiet = true;
    return NULL;
}

static const option_entry entries[] = {
    {'L', "capacity", OPTION_VALUE, "N", "tokens in a pack (required)",
     set_capacity},
    {'d', "depth", OPTION_VALUE, "N",
     "most sequences in a pack (default: 16)", set_depth},
    {'w', "window", OPTION_VALUE, "N",
     "sequences held to choose from (default: 1024)", set_window},
    {'t', "type", OPTION_VALUE, "TYPE",
     "tokens of raw records: u16 (default) or u32", set_type},
    {0, "pad-id", OPTION_VALUE, "N",
     "token in unused places (default: the records'\n"
     "own pad id, else 0)",
     set_pad_id},
    {0, "vocab", OPTION_VALUE, "N",
     "refuse tokens of N or above (default: what the\n"
     "records declare)",
     set_vocab},
    {0, "overlong", OPTION_VALUE, "WHAT",
     "sequences longer than a pack: error (default),\n"
     "drop, truncate or split",
     set_overlong},
    {0, "rejects", OPTION_VALUE, "FILE",
     "write what is dropped or truncated to FILE, whole", set_rejects},
    {0, "stats", OPTION_OPTIONAL, "json",
     "tell at the end, on stderr, what was packed", set_stats},
    {'o', "output", OPTION_VALUE, "FILE", "write to FILE, not to stdout",
     set_output},
    {'q', "quiet", OPTION_FLAG, NULL, "no progress line", set_quiet},
    {0},
};

const option_program conf_program = {
    .usage = "-L N [OPTION]... [FILE]...",
    .summary =
        "Packs token records into fixed-size records for training: each\n"
        "holds whole sequences, at most N tokens together.  Reads the\n"
        "FILEs, one after the other, or stdin; writes a pack stream.",
    .entries = entries,
};

int conf_check(const conf *c)
{
    if (c->capacity == 0)
        return message_usage("the capacity is missing: give -L N");
    if (c->rejects != NULL && c->overlong != PS_OVERLONG_DROP &&
        c->overlong != PS_OVERLONG_TRUNCATE)
        return message_usage("--rejects needs --overlong=drop or truncate");
    return STATUS_OK;
}
