/*
 * conf.c - the option table of packdeal.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packdeal/conf.h"

#include <inttypes.h>
#include <string.h>

#include "cli/message.h"
#include "cli/pattern.h"
#include "files/files.h"

#define DEFAULT_HIDDEN 768 /* as in BERT-base and GPT-2 */

static const option_word lasts[] = {
    {"short", CONF_SHORT}, {"drop", CONF_DROP}, {"pad", CONF_PAD}, {NULL, 0}};

/* The value is ps_cost.tokens. */
static const option_word costs[] = {{"attention", 0}, {"tokens", 1}, {NULL, 0}};

/* Parses "tokens", "attention" or "A:B". */
static const char *set_cost(void *to, const char *value)
{
    ps_cost *cost = to;
    const char *colon = strchr(value, ':');
    char tokens[24];

    *cost = (ps_cost){0};
    if (option_find_word(costs, value, &cost->tokens))
        return NULL;
    if (colon != NULL && (size_t)(colon - value) < sizeof tokens) {
        memcpy(tokens, value, (size_t)(colon - value));
        tokens[colon - value] = '\0';
        if (option_number(tokens, 0, UINT64_MAX, &cost->tokens) &&
            option_number(colon + 1, 0, UINT64_MAX, &cost->squares) &&
            (cost->tokens != 0 || cost->squares != 0))
            return NULL;
    }
    return "must be tokens, attention, or A:B, two numbers that are not "
           "both 0";
}

static const option_entry entries[] = {
    {'n', "ranks", "R", "number of ranks that train together (required)",
     OPTION_NUMBER(conf, ranks, 1, PS_MAX_DEAL)},
    {'b', "batch", "B", "packs for each rank in a step (required)",
     OPTION_NUMBER(conf, per_rank, 1, PS_MAX_DEAL)},
    {0, "rank", "RANK", "write only the share of this rank, from 0",
     OPTION_NUMBER(conf, rank, 0, PS_MAX_DEAL - 1),
     OPTION_GIVEN(conf, rank_given)},
    {'o', "output", "FILE",
     "write each share to FILE, with %d replaced by the\n"
     "rank",
     OPTION_TEXT(conf, output)},
    {0, "cost", "COST",
     "cost of a pack: attention (default), tokens, or A:B\n"
     "for A * tokens + B * sum of squared lengths",
     OPTION_CALL_FOR(conf, cost, set_cost), .words = costs},
    {0, "hidden", "H",
     "width of the model, for --cost=attention (default:\n"
     "768)",
     OPTION_NUMBER(conf, hidden, 1, UINT32_MAX)},
    {0, "last", "ACTION",
     "if packs do not fill the last step: short (default),\n"
     "pad (every rank takes part) or drop",
     OPTION_WORD(conf, last, lasts)},
    {0, "seed", "SEED",
     "read packs of regular files in random order",
     OPTION_NUMBER(conf, seed, 0, UINT64_MAX), OPTION_GIVEN(conf, seed_given)},
    {0, "epoch", "EPOCH",
     "with --seed, number of the epoch, from 0 (default: 0)",
     OPTION_NUMBER(conf, epoch, 0, UINT64_MAX),
     OPTION_GIVEN(conf, epoch_given)},
    {0, "window", "W",
     "exchange packs of regular files within W steps\n"
     "(default: 1, no exchange)",
     OPTION_NUMBER(conf, window, 1, PS_MAX_DEAL)},
    {0, "start", "STEP", "skip the steps before STEP, from 0",
     OPTION_NUMBER(conf, start, 0, UINT64_MAX)},
    {0, "steps", NULL, "print only the number of steps",
     OPTION_CONSTANT(conf, what, CONF_STEPS)},
    {0, "list", NULL,
     "print only lines of step, rank and pack numbers",
     OPTION_CONSTANT(conf, what, CONF_LIST)},
    {0, "find", "STEP", "print only the sequences of this step, from 0",
     OPTION_NUMBER(conf, find, 0, UINT64_MAX), OPTION_GIVEN(conf, find_given)},
    {0, "find-id", "ID",
     "print only the step and rank of the sequences with\n"
     "these ids, separated by commas",
     OPTION_CALL_FOR(conf, wanted, ids_parse)},
    {0, "skip", "FILE", "omit the sequences whose ids are in FILE, one a line",
     OPTION_TEXT(conf, skip)},
    {0, "json", NULL,
     "with --list, print a JSON object for each step, with\n"
     "the costs of ranks; with --find or --find-id, for each\n"
     "sequence",
     OPTION_FLAG(conf, json)},
    {0, "zstd", "LEVEL",
     "compress at LEVEL, 1 to 22 (default: 3); packs remain\n"
     "accessible",
     OPTION_ZSTD(conf, zstd_level)},
    {0, "no-sandbox", NULL, "do not enter the Landlock sandbox",
     OPTION_FLAG(conf, no_sandbox)},
    {'v', "verbose", NULL, "print the imbalance of the costs at the end",
     OPTION_FLAG(conf, verbose)},
    {'q', "quiet", NULL, "do not show progress", OPTION_FLAG(conf, quiet)},
    {0},
};

const option_program conf_program = {
    .usage = "-n R -b B [OPTION]... [FILE]...",
    .summary =
        "Assigns the packs of each training step to R ranks, B to each, so\n"
        "that all ranks have equal computing cost. Reads pack streams, or\n"
        "token records, from each FILE or standard input. Writes a stream for\n"
        "each rank or, with --rank, a single stream to standard output.",
    .entries = entries,
};

/* The option that prints something instead of writing shares. */
static const char *printing_option(const conf *c)
{
    if (c->what == CONF_FIND)
        return c->find_given ? "find" : "find-id";
    return c->what == CONF_LIST ? "list" : "steps";
}

/* Checks that -o has a conversion for the rank if it needs one. */
static int check_output(const conf *c)
{
    unsigned places;

    if (c->output == NULL)
        return c->what != CONF_SHARES || c->rank_given
                   ? STATUS_OK
                   : message_usage("missing -o or --rank: use -o to write all "
                                   "shares, or --rank to write one");
    if (c->what != CONF_SHARES)
        return message_usage("-o: --%s writes no shares", printing_option(c));
    if (c->output[0] == '\0')
        return message_usage("-o: the name is empty");
    if (!pattern_places(c->output, &places))
        return message_usage("-o: %s: %% must be followed by d, 03d or "
                             "similar, or %%", message_name(c->output));
    if (places > 1 || (places == 0 && !c->rank_given))
        return message_usage("-o: %s: needs exactly one %%d, for the rank",
                             message_name(c->output));
    return STATUS_OK;
}

bool conf_reorders(const conf *c)
{
    return c->seed_given || c->window > 1;
}

/* Checks the options of lookups and of --skip. */
static int check_lookup(conf *c)
{
    const bool by_id = c->wanted.n > 0;

    if (c->find_given && by_id)
        return message_usage("--find and --find-id cannot be combined");
    if (c->find_given || by_id) {
        if (c->what != CONF_SHARES)
            return message_usage("--%s cannot be combined with --%s",
                                 c->find_given ? "find" : "find-id",
                                 printing_option(c));
        c->what = CONF_FIND;
        if (c->start != 0 || (by_id && c->rank_given))
            return message_usage("--%s cannot be combined with --%s",
                                 printing_option(c),
                                 c->start != 0 ? "start" : "rank");
    }
    if (c->skip != NULL && c->what != CONF_SHARES)
        return message_usage("--skip: --%s writes no shares",
                             printing_option(c));
    for (int i = 0; c->skip != NULL && i < c->n_names; i++)
        if (files_is_standard(c->skip) && files_is_standard(c->names[i]))
            return message_usage("--skip and the packs cannot both be stdin");
    return STATUS_OK;
}

int conf_check(conf *c)
{
    int status;

    if (c->ranks == 0 || c->per_rank == 0)
        return message_usage("missing %s",
                             c->ranks == 0 && c->per_rank == 0
                                 ? "-n R and -b B"
                             : c->ranks == 0 ? "-n R" : "-b B");
    if (c->ranks > PS_MAX_DEAL / c->per_rank)
        return message_usage("-n and -b: a step has at most %" PRIu32 " packs",
                             PS_MAX_DEAL);
    if (c->window == 0)
        c->window = 1;
    if (c->window > PS_MAX_DEAL / c->per_rank / c->ranks)
        return message_usage("--window: a window has at most %" PRIu32 " packs",
                             PS_MAX_DEAL);
    if (c->rank_given && c->rank >= c->ranks)
        return message_usage("--rank: %" PRIu32 " is out of range: ranks are 0 "
                             "to %" PRIu32, c->rank, c->ranks - 1);
    if (c->cost.tokens != 0 || c->cost.squares != 0) {
        if (c->hidden != 0)
            return message_usage("--hidden needs --cost=attention");
    } else {
        c->cost = ps_cost_attention(c->hidden == 0 ? DEFAULT_HIDDEN
                                                   : c->hidden);
    }
    if (c->epoch_given && !c->seed_given)
        return message_usage("--epoch needs --seed");
    status = check_lookup(c);
    if (status != STATUS_OK)
        return status;
    if (c->json && c->what != CONF_FIND &&
        (c->what != CONF_LIST || c->rank_given))
        return message_usage("--json needs --list without --rank, or --find or "
                             "--find-id");
    return check_output(c);
}
