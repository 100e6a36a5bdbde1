/*
 * conf.c - the option table of tokmix, its sources and their weights.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokmix/conf.h"

#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "cli/weights.h"
#include "files/files.h"
#include "files/state_file.h"

const conf conf_defaults = {.stop = STOP_FIRST};

/* ---------------------------------------------------------------------
 * Options
 */

static const option_word units[] = {
    {"tokens", false}, {"sequences", true}, {NULL, 0}};
static const option_word stops[] = {{"first", STOP_FIRST},
                                    {"longest", STOP_LONGEST},
                                    {"repeat", STOP_REPEAT},
                                    {NULL, 0}};

/*
 * Sets the per-sequence integer channel.  Its fill is the greatest number of
 * the type, which is never the index of a source.
 */
static const char *set_channel(void *to, const char *value)
{
    ps_channel *channel = to;
    const size_t n = strcspn(value, ":");
    ps_schema alone = ps_schema_raw(PS_U16);

    *channel = (ps_channel){.type = PS_U8, .kind = PS_PER_SEQUENCE};
    if (value[n] != '\0' &&
        (!ps_type_from_name(value + n + 1, &channel->type) ||
         channel->type == PS_F32 || channel->type == PS_F64))
        return "the type must be u8, u16, u32, u64, i32 or i64";
    channel->fill = UINT64_MAX >> (64 - 8 * ps_type_bytes(channel->type));
    if (n < sizeof channel->name)
        memcpy(channel->name, value, n);
    alone.framed = true;
    alone.n_channels = 1;
    alone.channels[0] = *channel;
    return ps_schema_check(&alone, NULL) == PS_OK
               ? NULL
               : "is not a valid channel name";
}

static const option_entry entries[] = {
    {0, "by", "UNIT", "weights apply to tokens (default) or sequences",
     OPTION_WORD(conf, by_sequences, units)},
    {0, "stop", "WHEN",
     "when a source ends: first (default) ends the mix,\n"
     "longest continues with the others, repeat starts\n"
     "it again until all have ended",
     OPTION_WORD(conf, stop, stops)},
    {0, "channel", "NAME[:TYPE]",
     "add a channel with the number of the source, from\n"
     "0; TYPE u8 (default), u16, u32, u64, i32 or i64",
     OPTION_CALL_FOR(conf, channel, set_channel)},
    {'t', "type", "TYPE", "token type of raw records: u16 (default) or u32",
     OPTION_WORD(conf, type, option_token_types)},
    STATE_FILE_ENTRIES(conf, "FILE", "sequences",
                       "at the end or on SIGTERM or SIGINT"),
    {'o', "output", "FILE", "write to FILE (default: standard output)",
     OPTION_TEXT(conf, output)},
    {0, "no-sandbox", NULL, "do not enter the Landlock sandbox",
     OPTION_FLAG(conf, no_sandbox)},
    {'v', "verbose", NULL, "print the share of each source at the end",
     OPTION_FLAG(conf, verbose)},
    {'q', "quiet", NULL, "do not print warnings or show progress",
     OPTION_FLAG(conf, quiet)},
    {0},
};

const option_program conf_program = {
    .usage = "[OPTION]... WEIGHT=FILE...",
    .summary =
        "Mixes streams of token records. Each supplies a share of the tokens,\n"
        "its WEIGHT divided by the sum of all weights, throughout the output.\n"
        "If FILE is -, it is standard input.",
    .entries = entries,
};

int conf_check(const conf *c)
{
    return state_file_check_options(c->state, c->resume, c->state_every,
                                    &c->output, 1);
}

/* ---------------------------------------------------------------------
 * Sources
 */

/* Parses the operands, WEIGHT=FILE. */
static int read_sources(conf *c, char *const *operands, weight *weights)
{
    uint32_t n_stdin = 0;

    for (uint32_t i = 0; i < c->n; i++) {
        const size_t n = strcspn(operands[i], "=");
        const char *why;

        if (operands[i][n] == '\0' || operands[i][n + 1] == '\0')
            return message_usage("%s: must be WEIGHT=FILE",
                                 message_name(operands[i]));
        why = weight_read(&weights[i], operands[i], n);
        if (why != NULL)
            return message_usage("%s: the weight %s",
                                 message_name(operands[i]), why);
        c->names[i] = operands[i] + n + 1;
        n_stdin += files_is_standard(c->names[i]);
    }
    if (n_stdin > 1)
        return message_usage("\"-\": only one source can be standard input");
    if (!weights_settle(weights, c->n, c->weights))
        return message_usage("the weights have too many digits");
    return STATUS_OK;
}

int conf_sources(conf *c, char *const *operands, int n)
{
    weight *weights;
    int status;

    if (n == 0)
        return message_usage("missing sources: name each as WEIGHT=FILE");
    if (c->channel.name[0] != '\0' && (uint64_t)n > c->channel.fill)
        return message_usage("--channel: type %s is too small to number %d "
                             "sources",
                             ps_type_name(c->channel.type), n);
    c->n = (uint32_t)n;
    c->names = calloc(c->n, sizeof *c->names);
    c->weights = calloc(c->n, sizeof *c->weights);
    weights = calloc(c->n, sizeof *weights);
    if (c->names == NULL || c->weights == NULL || weights == NULL)
        status = message_memory();
    else
        status = read_sources(c, operands, weights);
    free(weights);
    return status;
}

void conf_free(conf *c)
{
    free(c->names);
    free(c->weights);
}
