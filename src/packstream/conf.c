/*
 * conf.c - the option table of packstream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstream/conf.h"

#include <inttypes.h>

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

static const option_entry entries[] = {
    {'L', "capacity", "N", "tokens in a pack (required)",
     OPTION_NUMBER(conf, capacity, 1, PS_MAX_CAPACITY)},
    {'d', "depth", "N",
     "most sequences in a pack (default: no limit)",
     OPTION_NUMBER(conf, depth, 1, PS_MAX_DEPTH),
     .why = "must be a number from 1 to 1048576; for no limit leave it out"},
    {'w', "window", "N",
     "sequences held to choose from (default: 1024 or\n"
     "more, with tokens for 64 packs)",
     OPTION_NUMBER(conf, window, 1, PS_MAX_WINDOW)},
    {'a', "algorithm", "NAME",
     "auto (default), spfhp, nnlshp, bestfit, nextfit,\n"
     "none or concat",
     OPTION_WORD(conf, policy, algorithms)},
    {0, "order", "ORDER",
     "of packs: window (default), as it suits; input, by\n"
     "the oldest sequence of each",
     OPTION_WORD(conf, order, orders)},
    {0, "shuffle", "SEED", "random order of packs among those near",
     OPTION_NUMBER(conf, seed, 1, UINT64_MAX)},
    {0, "max-delay", "N",
     "records after which a sequence has left (default:\n"
     "twice the window, with --shuffle four times)",
     OPTION_NUMBER(conf, max_delay, 1, PS_MAX_WINDOW)},
    {'M', "memory", "BYTES",
     "take no more memory than that (default: 1Gi for the\n"
     "window)",
     OPTION_NUMBER(conf, memory, 1, UINT64_MAX),
     .why = "must be a number of bytes from 1, such as 64Mi"},
    {0, "even-cost", NULL, "of equally full packs prefer those of mean cost",
     OPTION_FLAG(conf, even_cost)},
    {0, "align", "N",
     "sequences begin at multiples of N in a pack; N\n"
     "divides the capacity (default: 1)",
     OPTION_NUMBER(conf, align, 1, PS_MAX_CAPACITY),
     .why = "must be a number that divides the capacity"},
    {0, "learn-from", "FILE",
     "pack as if sequences with the lengths in FILE, a\n"
     "histogram, had come before",
     OPTION_CALL(set_learn_from)},
    {0, "flush-every", "N", "pack all that is held after every N records",
     OPTION_NUMBER(conf, flush_every, 1, UINT64_MAX),
     .why = "must be a number of records from 1"},
    {0, "flush-idle", "MS", "the same when no input came for MS milliseconds",
     OPTION_NUMBER(conf, flush_idle, 1, MAX_IDLE),
     .why = "must be a number of milliseconds from 1 to 31536000000"},
    {0, "flush-records", NULL,
     "the same where a raw record has a length of 0",
     OPTION_FLAG(conf, flush_records)},
    {'t', "type", "TYPE", "tokens of raw records: u16 (default) or u32",
     OPTION_WORD(conf, type, option_token_types)},
    {0, "expect-end", NULL,
     "refuse raw records, whose end looks like a cut",
     OPTION_FLAG(conf, expect_end)},
    {0, "pad-id", "N",
     "token in unused places (default: the records'\n"
     "own pad id, else 0)",
     OPTION_NUMBER(conf, pad_id, 0, PS_NO_ID - 1),
     OPTION_GIVEN(conf, pad_given), .why = "must be a token id"},
    {0, "vocab", "N",
     "refuse tokens of N or above (default: what the\n"
     "records declare)",
     OPTION_NUMBER(conf, vocab_size, 1, UINT32_MAX)},
    {0, "out-of-vocab", "WHAT",
     "sequences with such a token: error (default) or drop",
     OPTION_WORD(conf, drop_outside, error_or_drop)},
    {0, "empty", "WHAT",
     "raw records of a length of 0: error (default) or\n"
     "drop",
     OPTION_WORD(conf, drop_empty, error_or_drop)},
    {0, "overlong", "WHAT",
     "sequences longer than a pack: error (default),\n"
     "drop, truncate or split",
     OPTION_WORD(conf, overlong, option_overlongs),
     OPTION_GIVEN(conf, overlong_given)},
    {0, "rejects", "FILE",
     "write what is dropped or truncated to FILE, whole",
     OPTION_TEXT(conf, rejects)},
    {0, "zstd", "LEVEL",
     "compress, at LEVEL (3) from 1 to 22, so that single\n"
     "packs can still be got at",
     OPTION_ZSTD(conf, zstd_level)},
    {'T', "threads", "N",
     "work on up to N threads, of which one packs; 0\n"
     "(default): as many as there are processors",
     OPTION_NUMBER(conf, threads, 0, THREADS_MAX)},
    STATE_FILE_ENTRIES(conf, "FILE", "packs",
                       "at the end or on SIGTERM or SIGINT"),
    {0, "verify", NULL,
     "with --resume, first read all that was written, and\n"
     "go on only if it is whole",
     OPTION_FLAG(conf, verify)},
    {0, "resume-from", "INDEX",
     "go on, too, but write the header and the packs from\n"
     "INDEX on, for a reader that has those before",
     OPTION_NUMBER(conf, resume_from, 1, UINT64_MAX),
     OPTION_GIVEN(conf, resume),
     .why = "must be the index of a pack, from 1"},
    {0, "stats", "json", "tell at the end, on stderr, what was packed",
     OPTION_WORD(conf, stats, stats_forms), .optional = true,
     .constant = STATS_TEXT, .why = "must be json, or nothing"},
    {0, "every", "N",
     "with --stats=json, a line after every N packs, too",
     OPTION_NUMBER(conf, stats_every, 1, UINT64_MAX),
     .why = "must be a number of packs from 1"},
    {'o', "output", "FILE", "write to FILE, not to stdout",
     OPTION_TEXT(conf, output)},
    {0, "block-packs", "N",
     "write N packs at a time, a power of two (default:\n"
     "1 to 2 MiB of them; 1: each when it is decided)",
     OPTION_NUMBER(conf, block_packs, 1, CONF_BLOCK_PACKS),
     .why = "must be a power of two from 1 to 65536"},
    {0, "no-sandbox", NULL, "keep all rights when the files are open",
     OPTION_FLAG(conf, no_sandbox)},
    {'v', "verbose", NULL,
     "tell at the start, on stderr, what is to be done",
     OPTION_FLAG(conf, verbose)},
    {'q', "quiet", NULL, "no progress line, and no warning of flushes or of\n"
     "an empty input",
     OPTION_FLAG(conf, quiet)},
    {0},
};

const option_program conf_program = {
    .usage = "-L N [OPTION]... [FILE]...",
    .summary =
        "Packs token records into rows of N tokens for training: each\n"
        "row holds whole sequences and padding.  Reads the FILEs, one\n"
        "after the other, or stdin; writes a pack stream.",
    .entries = entries,
};

int conf_check(const conf *c)
{
    if (c->policy == PS_POLICY_CONCAT && c->overlong_given)
        return message_usage("--overlong: with -a concat every sequence is "
                             "cut where a pack ends");
    if (c->order == PS_PACKS_BY_INPUT && c->seed != 0)
        return message_usage("--order=input and --shuffle exclude each "
                             "other");
    if (c->capacity == 0)
        return message_usage("the capacity is missing: give -L N");
    if (c->align > 1 && c->capacity % c->align != 0)
        return message_usage("--align: %" PRIu32 " does not divide the "
                             "capacity, %" PRIu32,
                             c->align, c->capacity);
    if ((c->block_packs & (c->block_packs - 1)) != 0)
        return message_usage("--block-packs: %" PRIu32 " is not a power of "
                             "two",
                             c->block_packs);
    if (c->state == NULL && (c->state_every != 0 ||
                             (c->resume && c->resume_from == 0)))
        return message_usage("--resume and --state-every need --state=FILE");
    if (c->verify && (!c->resume || c->state == NULL))
        return message_usage("--verify needs --resume and --state=FILE");
    if (c->stats_every != 0 && c->stats != STATS_JSON)
        return message_usage("--every needs --stats=json");
    if (c->flush_records && c->drop_empty)
        return message_usage("--flush-records and --empty=drop exclude each "
                             "other");
    if (c->rejects != NULL && c->overlong != PS_OVERLONG_DROP &&
        c->overlong != PS_OVERLONG_TRUNCATE && !c->drop_outside)
        return message_usage("--rejects needs --overlong=drop or truncate, "
                             "or --out-of-vocab=drop");
    if (c->learn_from != NULL && c->policy != PS_POLICY_AUTO)
        return message_usage("--learn-from: -a %s has nothing to learn",
                             ps_policy_name(c->policy));
    return STATUS_OK;
}
