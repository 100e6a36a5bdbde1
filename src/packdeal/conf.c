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
    {'n', "ranks", "R", "ranks that train together (required)",
     OPTION_NUMBER(conf, ranks, 1, PS_MAX_DEAL)},
    {'b', "batch", "B", "packs that a rank takes in a step (required)",
     OPTION_NUMBER(conf, per_rank, 1, PS_MAX_DEAL)},
    {0, "rank", "RANK", "only the share of this rank, from 0 on",
     OPTION_NUMBER(conf, rank, 0, PS_MAX_DEAL - 1),
     OPTION_GIVEN(conf, rank_given)},
    {'o', "output", "FILE",
     "write to files of this name, in which %d stands for\n"
     "the rank",
     OPTION_TEXT(conf, output)},
    {0, "cost", "COST",
     "of a pack: attention (default), tokens, or A:B for\n"
     "A * tokens + B * sum of squared lengths",
     OPTION_CALL_FOR(conf, cost, set_cost), .words = costs},
    {0, "hidden", "H",
     "width of the model, for --cost=attention (default:\n"
     "768)",
     OPTION_NUMBER(conf, hidden, 1, UINT32_MAX)},
    {0, "last", "WHAT",
     "packs that fill no global batch: short (default),\n"
     "dealt as they are; drop; or pad, so that each rank has\n"
     "a batch",
     OPTION_WORD(conf, last, lasts)},
    {0, "seed", "SEED",
     "packs in an order that is drawn for each epoch; files\n"
     "must be regular ones",
     OPTION_NUMBER(conf, seed, 0, UINT64_MAX), OPTION_GIVEN(conf, seed_given)},
    {0, "epoch", "EPOCH", "which one, with --seed (default: 0)",
     OPTION_NUMBER(conf, epoch, 0, UINT64_MAX),
     OPTION_GIVEN(conf, epoch_given)},
    {0, "window", "W",
     "even out W steps at a time: packs come up to W - 1\n"
     "steps earlier or later; files must be regular ones",
     OPTION_NUMBER(conf, window, 1, PS_MAX_DEAL)},
    {0, "start", "STEP",
     "begin with this step, from 0 on: those before it\n"
     "were made",
     OPTION_NUMBER(conf, start, 0, UINT64_MAX)},
    {0, "steps", NULL, "only print how many steps there are",
     OPTION_CONSTANT(conf, what, CONF_STEPS)},
    {0, "list", NULL,
     "only print lines of a step, a rank and its packs'\n"
     "numbers",
     OPTION_CONSTANT(conf, what, CONF_LIST)},
    {0, "json", NULL,
     "with --list: a JSON object for each step, with the\n"
     "costs of ranks",
     OPTION_FLAG(conf, json)},
    {0, "zstd", "LEVEL",
     "compress, at LEVEL (3) from 1 to 22, so that single\n"
     "packs can still be got at",
     OPTION_ZSTD(conf, zstd_level)},
    {0, "no-sandbox", NULL, "keep all rights when the outputs are open",
     OPTION_FLAG(conf, no_sandbox)},
    {'v', "verbose", NULL, "tell at the end, on stderr, how even steps are",
     OPTION_FLAG(conf, verbose)},
    {'q', "quiet", NULL, "no progress line", OPTION_FLAG(conf, quiet)},
    {0},
};

const option_program conf_program = {
    .usage = "-n R -b B [OPTION]... [FILE]...",
    .summary =
        "Deals the packs of each step to R ranks, B to each, so that all\n"
        "have as much to compute.  Reads pack streams from the FILEs, one\n"
        "after the other, or from stdin, or token records, each as a pack of\n"
        "its own; writes a stream for each rank, or that of --rank to stdout.",
    .entries = entries,
};

/* Checks that -o has a conversion for the rank if it needs one. */
static int check_output(const conf *c)
{
    unsigned places;

    if (c->output == NULL)
        return c->what != CONF_SHARES || c->rank_given
                   ? STATUS_OK
                   : message_usage("name the files of the ranks with -o, or "
                                   "the share to write with --rank");
    if (c->what != CONF_SHARES)
        return message_usage("-o: nothing is written with --%s",
                             c->what == CONF_LIST ? "list" : "steps");
    if (c->output[0] == '\0')
        return message_usage("-o: is empty");
    if (!pattern_places(c->output, &places))
        return message_usage("-o: %s: behind %% stands d, 03d or the like, or "
                             "%%", message_name(c->output));
    if (places > 1 || (places == 0 && !c->rank_given))
        return message_usage("-o: %s: must have one %%d, for the rank",
                             message_name(c->output));
    return STATUS_OK;
}

bool conf_reorders(const conf *c)
{
    return c->seed_given || c->window > 1;
}

int conf_check(conf *c)
{
    if (c->ranks == 0 || c->per_rank == 0)
        return message_usage("%s missing: give -n R and -b B",
                             c->ranks == 0 && c->per_rank == 0
                                 ? "ranks and batch are"
                             : c->ranks == 0 ? "the number of ranks is"
                                             : "the batch is");
    if (c->ranks > PS_MAX_DEAL / c->per_rank)
        return message_usage("-n and -b: a global batch has at most %" PRIu32
                             " packs", PS_MAX_DEAL);
    if (c->window == 0)
        c->window = 1;
    if (c->window > PS_MAX_DEAL / c->per_rank / c->ranks)
        return message_usage("--window: has at most %" PRIu32 " packs",
                             PS_MAX_DEAL);
    if (c->rank_given && c->rank >= c->ranks)
        return message_usage("--rank: %" PRIu32 " is none of the %" PRIu32
                             " ranks, which count from 0",
                             c->rank, c->ranks);
    if (c->cost.tokens != 0 || c->cost.squares != 0) {
        if (c->hidden != 0)
            return message_usage("--hidden: is for --cost=attention");
    } else {
        c->cost = ps_cost_attention(c->hidden == 0 ? DEFAULT_HIDDEN
                                                   : c->hidden);
    }
    if (c->epoch_given && !c->seed_given)
        return message_usage("--epoch: is for --seed");
    if (c->json && (c->what != CONF_LIST || c->rank_given))
        return message_usage("--json needs --list, and all ranks: give no "
                             "--rank");
    return check_output(c);
}
