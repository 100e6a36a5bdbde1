/*
 * conf.c - the option table of tokmix, its stages, sources and weights.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokmix/conf.h"

#include <inttypes.h>
#include <stdio.h>
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
 * Sets the per-sequence integer channel.  All bits of its fill are set (-1 in a
 * signed type), which is never the index of a source.
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

/* Collects the stages; conf_sources parses them, since --by can follow. */
static const char *add_stage(void *to, const char *value)
{
    conf *c = to;

    if (c->n_given == CONF_MAX_STAGES)
        return "there are more than 1000 stages";
    c->given[c->n_given++] = value;
    return NULL;
}

static const option_entry entries[] = {
    {0, "stage", "LENGTH:SOURCES",
     "mix LENGTH tokens from SOURCES, which is\n"
     "'WEIGHT=FILE ...', then go to the next stage",
     OPTION_CALL(add_stage)},
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
 * Sources and stages
 */

#define BLANKS " \t\n"

/* A parsed WEIGHT=FILE. */
typedef struct share {
    weight weight;
    uint32_t stage;
    uint32_t source;
} share;

typedef struct shares {
    share *of; /* owned */
    uint32_t n;
    /* for each source, the last stage that names it, plus 1; owned */
    uint32_t *last;
} shares;

/* "stage 3: ", to begin a message on a stage; empty for operands. */
static const char *stage_name(const conf *c, uint32_t stage)
{
    static char text[24];

    text[0] = '\0';
    if (stage < c->n_given)
        (void)snprintf(text, sizeof text, "stage %" PRIu32 ": ", stage + 1);
    return text;
}

/*
 * Index of a source, which is added if it is new.  Without --stage, every
 * operand is a source of its own.
 */
static uint32_t find_source(conf *c, const char *name)
{
    uint32_t i = c->n_given > 0 ? 0 : c->n;

    while (i < c->n && strcmp(c->names[i], name) != 0)
        i++;
    if (i == c->n)
        c->names[c->n++] = name;
    return i;
}

/* Parses a WEIGHT=FILE of a stage. */
static int add_share(conf *c, shares *all, uint32_t stage, const char *word)
{
    const char *of = stage_name(c, stage);
    const size_t n = strcspn(word, "=");
    share *one = &all->of[all->n];
    const char *why;

    if (word[n] == '\0' || word[n + 1] == '\0')
        return message_usage("%s%s: must be WEIGHT=FILE", of,
                             message_name(word));
    why = weight_read(&one->weight, word, n);
    if (why != NULL)
        return message_usage("%s%s: the weight %s", of, message_name(word),
                             why);
    one->stage = stage;
    one->source = find_source(c, word + n + 1);
    if (all->last[one->source] == stage + 1)
        return message_usage("%s%s: this source is named twice", of,
                             message_name(word));
    all->last[one->source] = stage + 1;
    all->n++;
    return STATUS_OK;
}

/* Parses the length of a stage.  Sets *rest to the sources that follow it. */
static int read_length(const conf *c, uint32_t stage, char *text, char **rest)
{
    uint64_t *length = &c->stages[stage].length;
    const char *of = stage_name(c, stage);
    const size_t n = strcspn(text, ":");

    if (text[n] == '\0' || memchr(text, '=', n) != NULL)
        return message_usage("%s%s: must be LENGTH:'WEIGHT=FILE ...'", of,
                             message_name(text));
    text[n] = '\0';
    *rest = text + n + 1;
    *length = CONF_NOW;
    if (strcmp(text, "now") == 0)
        return c->resume ? STATUS_OK
                         : message_usage("%sthe length can be now only with "
                                         "--resume",
                                         of);
    if (!option_number(text, 1, CONF_ENDLESS - 1, length))
        return message_usage("%s%s: the length must be a number of %s from 1, "
                             "or now", of, message_name(text),
                             c->by_sequences ? "sequences" : "tokens");
    return STATUS_OK;
}

/* Parses a value of --stage, which is then cut into words. */
static int read_stage(conf *c, shares *all, uint32_t stage, char *text)
{
    char *word = text;
    int status = read_length(c, stage, text, &word);
    const uint32_t n = all->n;

    while (status == STATUS_OK && *(word += strspn(word, BLANKS)) != '\0') {
        char *end = word + strcspn(word, BLANKS);
        const bool is_last = *end == '\0';

        *end = '\0';
        status = add_share(c, all, stage, word);
        word = end + !is_last;
    }
    if (status == STATUS_OK && all->n == n)
        return message_usage("%smissing sources: name each as WEIGHT=FILE",
                             stage_name(c, stage));
    return status;
}

/* Parses all stages and operands. */
static int read_shares(conf *c, shares *all, char *const *operands, uint32_t n)
{
    uint32_t n_stdin = 0;
    int status = STATUS_OK;

    for (uint32_t i = 0; status == STATUS_OK && i < c->n_given; i++)
        status = read_stage(c, all, i, c->texts[i]);
    if (n > 0)
        c->stages[c->n_given].length = CONF_ENDLESS;
    for (uint32_t i = 0; status == STATUS_OK && i < n; i++)
        status = add_share(c, all, c->n_given, operands[i]);
    for (uint32_t i = 0; status == STATUS_OK && i < c->n; i++)
        n_stdin += files_is_standard(c->names[i]);
    return n_stdin > 1 ? message_usage("\"-\": only one source can be standard "
                                       "input")
                       : status;
}

/* Sets the weights of each stage. */
static int settle(conf *c, const shares *all)
{
    weight *weights = malloc(c->n * sizeof *weights);
    const share *one = all->of;
    int status = weights == NULL ? message_memory() : STATUS_OK;

    for (uint32_t i = 0; status == STATUS_OK && i < c->n_stages; i++) {
        memset(weights, 0, c->n * sizeof *weights);
        for (; one < all->of + all->n && one->stage == i; one++)
            weights[one->source] = one->weight;
        c->stages[i].weights = calloc(c->n, sizeof *c->stages[i].weights);
        if (c->stages[i].weights == NULL)
            status = message_memory();
        else if (!weights_settle(weights, c->n, c->stages[i].weights))
            status = message_usage("%sthe weights have too many digits",
                                   stage_name(c, i));
    }
    free(weights);
    return status;
}

/* Copies --stage into `texts`.  Sets *n_words to the most words they have. */
static bool copy_stages(conf *c, size_t *n_words)
{
    *n_words = 0;
    for (uint32_t i = 0; i < c->n_given; i++) {
        const size_t n = strlen(c->given[i]) + 1;

        c->texts[i] = malloc(n);
        if (c->texts[i] == NULL)
            return false;
        memcpy(c->texts[i], c->given[i], n);
        *n_words += n / 2;
    }
    return true;
}

int conf_sources(conf *c, char *const *operands, int n)
{
    shares all = {NULL, 0, NULL};
    size_t n_words;
    int status;

    c->n_stages = c->n_given + (n > 0);
    if (c->n_stages == 0)
        return message_usage("missing sources: name each as WEIGHT=FILE");
    c->stages = calloc(c->n_stages, sizeof *c->stages);
    c->texts = calloc(c->n_given + 1, sizeof *c->texts);
    if (c->stages == NULL || c->texts == NULL || !copy_stages(c, &n_words))
        return message_memory();
    n_words += (size_t)n;
    c->names = calloc(n_words + 1, sizeof *c->names);
    all.of = calloc(n_words + 1, sizeof *all.of);
    all.last = calloc(n_words + 1, sizeof *all.last);
    status = c->names == NULL || all.of == NULL || all.last == NULL
                 ? message_memory()
                 : read_shares(c, &all, operands, (uint32_t)n);
    if (status == STATUS_OK && c->channel.name[0] != '\0' &&
        c->n > c->channel.fill)
        status = message_usage("--channel: type %s is too small to number "
                               "%" PRIu32 " sources",
                               ps_type_name(c->channel.type), c->n);
    if (status == STATUS_OK)
        status = settle(c, &all);
    free(all.of);
    free(all.last);
    return status;
}

void conf_free(conf *c)
{
    for (uint32_t i = 0; c->stages != NULL && i < c->n_stages; i++)
        free(c->stages[i].weights);
    for (uint32_t i = 0; c->texts != NULL && i < c->n_given; i++)
        free(c->texts[i]);
    free(c->stages);
    free(c->texts);
    free(c->names);
}
