/*
 * conf.c - the option table of packstream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstream/conf.h"

#include <inttypes.h>
#include <string.h>

#include "cli/message.h"
#include "cli/threads.h"
#include "files/files.h"
#include "files/state_file.h"

/* One year in milliseconds, which fits in any time_t. */
#define MAX_IDLE UINT64_C(31536000000)

const conf conf_defaults = {0};

/* The same names as in ps_policy_name. */
static const option_word algorithms[] = {
    {"auto", PS_POLICY_AUTO},       {"spfhp", PS_POLICY_SPFHP},
    {"nnlshp", PS_POLICY_NNLSHP},   {"bestfit", PS_POLICY_BESTFIT},
    {"nextfit", PS_POLICY_NEXTFIT}, {"none", PS_POLICY_NONE},
    {"concat", PS_POLICY_CONCAT},   {NULL, 0}};
static const option_word orders[] = {
    {"window", PS_PACKS_BY_WINDOW}, {"input", PS_PACKS_BY_INPUT}, {NULL, 0}};
static const option_word error_or_drop[] = {
    {"error", false}, {"drop", true}, {NULL, 0}};
static const option_word stats_forms[] = {{"json", STATS_JSON}, {NULL, 0}};

static const char *set_learn_from(void *to, const char *value)
{
    ((conf *)to)->learn_from = value;
    return *value == '\0' || files_is_standard(value)
               ? "must be the name of a file"
               : NULL;
}

static const char *add_budget(void *to, const char *value)
{
    return budget_list_add(&((conf *)to)->budgets, value);
}

static const option_entry entries[] = {
    {'L', "capacity", "N", "set the capacity of a pack to N tokens (required)",
     OPTION_NUMBER(conf, capacity, 1, PS_MAX_CAPACITY)},
    {'d', "depth", "N",
     "put at most N sequences in a pack (default: no\n"
     "limit)",
     OPTION_NUMBER(conf, depth, 1, PS_MAX_DEPTH),
     .why = "must be a number from 1 to 1048576; omit it for no limit"},
    {'w', "window", "N",
     "choose from N sequences (default: 1024, or more if\n"
     "needed to hold tokens for 64 packs)",
     OPTION_NUMBER(conf, window, 1, PS_MAX_WINDOW)},
    {'a', "algorithm", "NAME",
     "select the packing algorithm: auto (default), spfhp,\n"
     "nnlshp, bestfit, nextfit, none or concat",
     OPTION_WORD(conf, policy, algorithms)},
    {0, "order", "ORDER",
     "order packs by: window (default), the best first;\n"
     "input, the oldest sequence of each",
     OPTION_WORD(conf, order, orders)},
    {0, "shuffle", "SEED", "shuffle packs that are near each other",
     OPTION_NUMBER(conf, seed, 1, UINT64_MAX)},
    {0, "max-delay", "N",
     "delay a sequence by at most N records (default:\n"
     "twice the window, with --shuffle four times)",
     OPTION_NUMBER(conf, max_delay, 1, PS_MAX_WINDOW)},
    {'M', "memory", "BYTES",
     "use at most BYTES of memory (default: 1Gi for the\n"
     "window)",
     OPTION_NUMBER(conf, memory, 1, UINT64_MAX),
     .why = "must be a number of bytes from 1, such as 64Mi"},
    {0, "even-cost", NULL, "among equally full packs, prefer an average cost",
     OPTION_FLAG(conf, even_cost)},
    {0, "align", "N",
     "start every sequence at a multiple of N, which\n"
     "divides the capacity (default: 1)",
     OPTION_NUMBER(conf, align, 1, PS_MAX_CAPACITY),
     .why = "must be a number that divides the capacity"},
    {0, "group", "CHANNEL",
     "keep consecutive sequences with the same value of\n"
     "CHANNEL in one pack",
     OPTION_TEXT(conf, group)},
    {0, "by", "CHANNEL",
     "prefer sequences with the same value of CHANNEL for a\n"
     "pack, without making packs less full",
     OPTION_TEXT(conf, by)},
    {0, "budget", "CHANNEL:N",
     "limit the sum of CHANNEL in a pack to N; attention:N:\n"
     "the sum of squared lengths; up to four times",
     OPTION_CALL(add_budget)},
    {0, "learn-from", "FILE",
     "start as if sequences with the lengths in FILE, a\n"
     "histogram, had already been packed",
     OPTION_CALL(set_learn_from)},
    {0, "flush-every", "N", "empty the window after every N records",
     OPTION_NUMBER(conf, flush_every, 1, UINT64_MAX),
     .why = "must be a number of records from 1"},
    {0, "flush-idle", "MS", "empty the window after MS milliseconds without "
                            "input",
     OPTION_NUMBER(conf, flush_idle, 1, MAX_IDLE),
     .why = "must be a number of milliseconds from 1 to 31536000000"},
    {0, "flush-records", NULL,
     "empty the window at a raw record of length 0",
     OPTION_FLAG(conf, flush_records)},
    {'t', "type", "TYPE", "token type of raw records: u16 (default) or u32",
     OPTION_WORD(conf, type, option_token_types)},
    {0, "expect-end", NULL,
     "refuse raw records, whose truncation goes unnoticed",
     OPTION_FLAG(conf, expect_end)},
    {0, "pad-id", "N",
     "fill unused positions with token N (default: the pad\n"
     "id that the records declare, otherwise 0)",
     OPTION_NUMBER(conf, pad_id, 0, PS_NO_ID - 1),
     OPTION_GIVEN(conf, pad_given), .why = "must be a token id"},
    {0, "vocab", "N",
     "refuse tokens not below N (default: the vocabulary\n"
     "that the records declare)",
     OPTION_NUMBER(conf, vocab_size, 1, UINT32_MAX)},
    {0, "out-of-vocab", "WHAT",
     "treat sequences with such a token: error (default)\n"
     "or drop",
     OPTION_WORD(conf, drop_outside, error_or_drop)},
    {0, "empty", "WHAT",
     "treat raw records of length 0: error (default) or\n"
     "drop",
     OPTION_WORD(conf, drop_empty, error_or_drop)},
    {0, "overlong", "WHAT",
     "treat sequences longer than a pack: error (default),\n"
     "drop, truncate or split",
     OPTION_WORD(conf, overlong, option_overlongs),
     OPTION_GIVEN(conf, overlong_given)},
    {0, "rejects", "FILE",
     "write dropped and truncated sequences, uncut, to\n"
     "FILE",
     OPTION_TEXT(conf, rejects)},
    {0, "zstd", "LEVEL",
     "compress at LEVEL, 1 to 22 (default: 3); packs can\n"
     "still be read individually",
     OPTION_ZSTD(conf, zstd_level)},
    {'T', "threads", "N",
     "use up to N threads, one of which packs (default: 0,\n"
     "as many as there are processors)",
     OPTION_NUMBER(conf, threads, 0, THREADS_MAX)},
    STATE_FILE_ENTRIES(conf, "FILE", "packs",
                       "at the end or on SIGTERM or SIGINT"),
    {0, "verify", NULL,
     "with --resume: first read the whole output, and\n"
     "continue only if it is undamaged",
     OPTION_FLAG(conf, verify)},
    {0, "resume-from", "INDEX",
     "resume, but write the header and the packs from\n"
     "INDEX on, for a reader that has the earlier packs",
     OPTION_NUMBER(conf, resume_from, 1, UINT64_MAX),
     OPTION_GIVEN(conf, resume),
     .why = "must be the index of a pack, from 1"},
    {0, "stats", "json", "print what was packed to stderr at the end",
     OPTION_WORD(conf, stats, stats_forms), .optional = true,
     .constant = STATS_TEXT, .why = "must be json, or nothing"},
    {0, "every", "N",
     "with --stats=json: also print a line every N packs",
     OPTION_NUMBER(conf, stats_every, 1, UINT64_MAX),
     .why = "must be a number of packs from 1"},
    {'o', "output", "FILE", "write to FILE (default: standard output)",
     OPTION_TEXT(conf, output)},
    {0, "block-packs", "N",
     "write N packs at a time, a power of two (default: 1\n"
     "to 2 MiB of packs; 1: write each at once)",
     OPTION_NUMBER(conf, block_packs, 1, CONF_BLOCK_PACKS),
     .why = "must be a power of two from 1 to 65536"},
    {0, "no-sandbox", NULL, "do not enter the Landlock sandbox",
     OPTION_FLAG(conf, no_sandbox)},
    {'v', "verbose", NULL,
     "print the settings to stderr at the start",
     OPTION_FLAG(conf, verbose)},
    {'q', "quiet", NULL, "do not print progress or warnings",
     OPTION_FLAG(conf, quiet)},
    {0},
};

const option_program conf_program = {
    .usage = "-L N [OPTION]... [FILE]...",
    .summary =
        "Packs token records into rows of N tokens for training. Each row\n"
        "holds whole sequences and padding. Reads each FILE in turn, or\n"
        "standard input; writes a pack stream.",
    .entries = entries,
};

int conf_check(const conf *c)
{
    if (c->policy == PS_POLICY_CONCAT && c->overlong_given)
        return message_usage("--overlong cannot be used with -a concat, which "
                             "cuts sequences wherever a pack ends");
    if (c->order == PS_PACKS_BY_INPUT && c->seed != 0)
        return message_usage("--order=input and --shuffle cannot be combined");
    if (c->capacity == 0)
        return message_usage("missing -L N");
    if (c->align > 1 && c->capacity % c->align != 0)
        return message_usage("--align=%" PRIu32 " does not divide the "
                             "capacity, %" PRIu32,
                             c->align, c->capacity);
    if ((c->block_packs & (c->block_packs - 1)) != 0)
        return message_usage("--block-packs=%" PRIu32 " is not a power of two",
                             c->block_packs);
    if (c->state == NULL && (c->state_every != 0 ||
                             (c->resume && c->resume_from == 0)))
        return message_usage("--resume and --state-every need --state=FILE");
    if (c->verify && (!c->resume || c->state == NULL))
        return message_usage("--verify needs --resume and --state=FILE");
    if (c->stats_every != 0 && c->stats != STATS_JSON)
        return message_usage("--every needs --stats=json");
    if (c->flush_records && c->drop_empty)
        return message_usage("--flush-records and --empty=drop cannot be "
                             "combined");
    if (c->rejects != NULL && c->overlong != PS_OVERLONG_DROP &&
        c->overlong != PS_OVERLONG_TRUNCATE && !c->drop_outside)
        return message_usage("--rejects needs --overlong=drop or truncate, "
                             "or --out-of-vocab=drop");
    /* A group is dropped after sequences in it, so rejects are out of order. */
    if (c->rejects != NULL && c->group != NULL && c->drop_outside &&
        c->overlong == PS_OVERLONG_DROP)
        return message_usage("--rejects with --group needs --overlong=drop or "
                             "--out-of-vocab=drop, not both");
    if (c->budgets.n > 0 && c->policy != PS_POLICY_AUTO)
        return message_usage("--budget needs -a auto, not -a %s",
                             ps_policy_name(c->policy));
    if (c->budgets.n > 0 && c->even_cost)
        return message_usage("--budget and --even-cost cannot be combined: use "
                             "--budget=attention:N");
    if (c->budgets.n > 0 && c->learn_from != NULL)
        return message_usage("--budget and --learn-from cannot be combined");
    if (c->learn_from != NULL && c->policy != PS_POLICY_AUTO)
        return message_usage("--learn-from needs -a auto, not -a %s",
                             ps_policy_name(c->policy));
    return STATUS_OK;
}
