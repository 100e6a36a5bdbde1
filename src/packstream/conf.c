/*
 * conf.c - the options of packstream.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstream/conf.h"

#include <inttypes.h>
#include <string.h>

#include "cli/message.h"

#define DEFAULT_WINDOW 1024
#define DEFAULT_LEVEL 3 /* as zstd itself */
#define MAX_LEVEL 22
#define MAX_THREADS 256

/* A year is more than a wait ever is, and less than time_t can hold. */
#define LONGEST_IDLE UINT64_C(31536000000)

conf conf_new(void)
{
    return (conf){.depth = PS_DEPTH_AUTO, .window = DEFAULT_WINDOW};
}

static const char *set_u32(uint32_t *to, const char *value, uint32_t min,
                           uint32_t max, const char *why)
{
    uint64_t number;

    if (!option_number(value, min, max, &number))
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
    if (strcmp(value, "auto") == 0) {
        ((conf *)to)->depth = PS_DEPTH_AUTO;
        return NULL;
    }
    return set_u32(&((conf *)to)->depth, value, 1, PS_MAX_DEPTH,
                   "must be a number from 1 to 65536, or auto");
}

static const char *set_window(void *to, const char *value)
{
    return set_u32(&((conf *)to)->window, value, 1, PS_MAX_WINDOW,
                   "must be a number from 1 to 16777216");
}

static const char *set_algorithm(void *to, const char *value)
{
    const char *name;

    for (unsigned i = 0; (name = ps_policy_name((ps_policy)i)) != NULL; i++)
        if (strcmp(value, name) == 0) {
            ((conf *)to)->policy = (ps_policy)i;
            return NULL;
        }
    return "must be auto, spfhp, nnlshp, bestfit, nextfit, none or concat";
}

static const char *set_order(void *to, const char *value)
{
    conf *c = to;

    c->order = strcmp(value, "input") == 0 ? PS_PACKS_BY_INPUT
                                           : PS_PACKS_BY_WINDOW;
    if (c->order == PS_PACKS_BY_WINDOW && strcmp(value, "window") != 0)
        return "must be window or input";
    return NULL;
}

static const char *set_shuffle(void *to, const char *value)
{
    if (!option_number(value, 1, UINT64_MAX, &((conf *)to)->seed))
        return "must be a number from 1 to 18446744073709551615";
    return NULL;
}

static const char *set_max_delay(void *to, const char *value)
{
    if (!option_number(value, 1, PS_MAX_WINDOW, &((conf *)to)->max_delay))
        return "must be a number from 1 to 16777216";
    return NULL;
}

static const char *set_memory(void *to, const char *value)
{
    if (!option_number(value, 1, UINT64_MAX, &((conf *)to)->memory))
        return "must be a number of bytes from 1";
    return NULL;
}

static const char *set_even_cost(void *to, const char *value)
{
    (void)value;
    ((conf *)to)->even_cost = true;
    return NULL;
}

static const char *set_align(void *to, const char *value)
{
    return set_u32(&((conf *)to)->align, value, 1, PS_MAX_CAPACITY,
                   "must be a number that divides the capacity");
}

static const char *set_flush_every(void *to, const char *value)
{
    if (!option_number(value, 1, UINT64_MAX, &((conf *)to)->flush_every))
        return "must be a number of records from 1";
    return NULL;
}

static const char *set_flush_idle(void *to, const char *value)
{
    if (!option_number(value, 1, LONGEST_IDLE, &((conf *)to)->flush_idle))
        return "must be a number of milliseconds from 1 to 31536000000";
    return NULL;
}

static const char *set_flush_records(void *to, const char *value)
{
    (void)value;
    ((conf *)to)->flush_records = true;
    return NULL;
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

    ((conf *)to)->overlong_given = true;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(value, names[i]) == 0) {
            ((conf *)to)->overlong = (ps_overlong)i;
            return NULL;
        }
    return "must be error, drop, truncate or split";
}

/* One of the two things that can be done with what cannot be packed. */
static const char *set_drop(bool *to, const char *value)
{
    *to = strcmp(value, "drop") == 0;
    return *to || strcmp(value, "error") == 0 ? NULL
                                              : "must be error or drop";
}

static const char *set_out_of_vocab(void *to, const char *value)
{
    return set_drop(&((conf *)to)->drop_outside, value);
}

static const char *set_empty(void *to, const char *value)
{
    return set_drop(&((conf *)to)->drop_empty, value);
}

static const char *set_rejects(void *to, const char *value)
{
    ((conf *)to)->rejects = value;
    return NULL;
}

static const char *set_zstd(void *to, const char *value)
{
    conf *c = to;

    c->zstd_level = DEFAULT_LEVEL;
    return value == NULL ? NULL
                         : set_u32(&c->zstd_level, value, 1, MAX_LEVEL,
                                   "must be a level from 1 to 22");
}

static const char *set_threads(void *to, const char *value)
{
    return set_u32(&((conf *)to)->threads, value, 0, MAX_THREADS,
                   "must be a number from 0 to 256");
}

static const char *set_state(void *to, const char *value)
{
    ((conf *)to)->state = value;
    return *value == '\0' ? "must be the name of a file" : NULL;
}

static const char *set_resume(void *to, const char *value)
{
    (void)value;
    ((conf *)to)->resume = true;
    return NULL;
}

static const char *set_resume_from(void *to, const char *value)
{
    conf *c = to;

    c->resume = true;
    if (!option_number(value, 1, UINT64_MAX, &c->resume_from))
        return "must be the index of a pack, from 1";
    return NULL;
}

static const char *set_state_every(void *to, const char *value)
{
    if (!option_number(value, 1, UINT64_MAX, &((conf *)to)->state_every))
        return "must be a number of packs from 1";
    return NULL;
}

static const char *set_no_sandbox(void *to, const char *value)
{
    (void)value;
    ((conf *)to)->no_sandbox = true;
    return NULL;
}

static const char *set_verbose(void *to, const char *value)
{
    (void)value;
    ((conf *)to)->verbose = true;
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
     "most sequences in a pack; auto (default): few, but\n"
     "enough for what comes first",
     set_depth},
    {'w', "window", OPTION_VALUE, "N",
     "sequences held to choose from (default: 1024)", set_window},
    {'a', "algorithm", OPTION_VALUE, "NAME",
     "auto (default), spfhp, nnlshp, bestfit, nextfit,\n"
     "none or concat",
     set_algorithm},
    {0, "order", OPTION_VALUE, "ORDER",
     "of packs: window (default), as it suits; input, by\n"
     "the oldest sequence of each",
     set_order},
    {0, "shuffle", OPTION_VALUE, "SEED",
     "random order of packs among those near", set_shuffle},
    {0, "max-delay", OPTION_VALUE, "N",
     "records after which a sequence has left (default:\n"
     "twice the window, with --shuffle four times)",
     set_max_delay},
    {'M', "memory", OPTION_VALUE, "BYTES",
     "take no more memory than that", set_memory},
    {0, "even-cost", OPTION_FLAG, NULL,
     "of equally full packs prefer those of mean cost", set_even_cost},
    {0, "align", OPTION_VALUE, "N",
     "sequences begin at multiples of N in a pack; N\n"
     "divides the capacity (default: 1)",
     set_align},
    {0, "flush-every", OPTION_VALUE, "N",
     "pack all that is held after every N records", set_flush_every},
    {0, "flush-idle", OPTION_VALUE, "MS",
     "the same when no input came for MS milliseconds", set_flush_idle},
    {0, "flush-records", OPTION_FLAG, NULL,
     "in raw records a length of 0 asks for the same", set_flush_records},
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
    {0, "out-of-vocab", OPTION_VALUE, "WHAT",
     "sequences with such a token: error (default) or drop",
     set_out_of_vocab},
    {0, "empty", OPTION_VALUE, "WHAT",
     "raw records of a length of 0: error (default) or\n"
     "drop",
     set_empty},
    {0, "overlong", OPTION_VALUE, "WHAT",
     "sequences longer than a pack: error (default),\n"
     "drop, truncate or split",
     set_overlong},
    {0, "rejects", OPTION_VALUE, "FILE",
     "write what is dropped or truncated to FILE, whole", set_rejects},
    {0, "zstd", OPTION_OPTIONAL, "LEVEL",
     "compress, at LEVEL (3) from 1 to 22, so that single\n"
     "packs can still be got at",
     set_zstd},
    {'T', "threads", OPTION_VALUE, "N",
     "work on up to N threads, of which one packs; 0\n"
     "(default): as many as there are processors",
     set_threads},
    {0, "state", OPTION_VALUE, "FILE",
     "keep in FILE what --resume needs", set_state},
    {0, "state-every", OPTION_VALUE, "N",
     "write it after every N packs (default: 256 MiB of\n"
     "them), and at the end or on SIGTERM or SIGINT",
     set_state_every},
    {0, "resume", OPTION_FLAG, NULL,
     "go on where --state=FILE says, or begin if there\n"
     "is no FILE",
     set_resume},
    {0, "resume-from", OPTION_VALUE, "INDEX",
     "the same, but write the header and the packs from\n"
     "INDEX on, for a reader that has those before",
     set_resume_from},
    {0, "stats", OPTION_OPTIONAL, "json",
     "tell at the end, on stderr, what was packed", set_stats},
    {'o', "output", OPTION_VALUE, "FILE", "write to FILE, not to stdout",
     set_output},
    {0, "no-sandbox", OPTION_FLAG, NULL,
     "keep all rights when the files are open", set_no_sandbox},
    {'v', "verbose", OPTION_FLAG, NULL,
     "tell at the start, on stderr, what is to be done", set_verbose},
    {'q', "quiet", OPTION_FLAG, NULL,
     "no progress line, and no word on what -d costs", set_quiet},
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

/* What algorithm and order rule out. */
static int check_packing(const conf *c)
{
    if (c->policy == PS_POLICY_CONCAT && c->overlong_given)
        return message_usage("--overlong: with -a concat every sequence is "
                             "cut where a pack ends");
    if (c->order == PS_PACKS_BY_INPUT && c->seed != 0)
        return message_usage("--order=input and --shuffle exclude each "
                             "other");
    return STATUS_OK;
}

int conf_check(const conf *c)
{
    int status = check_packing(c);

    if (status != STATUS_OK)
        return status;
    if (c->capacity == 0)
        return message_usage("the capacity is missing: give -L N");
    if (c->align > 1 && c->capacity % c->align != 0)
        return message_usage("--align: %" PRIu32 " does not divide the "
                             "capacity, %" PRIu32,
                             c->align, c->capacity);
    if (c->state == NULL && (c->state_every != 0 ||
                             (c->resume && c->resume_from == 0)))
        return message_usage("--resume and --state-every need --state=FILE");
    if (c->flush_records && c->drop_empty)
        return message_usage("--flush-records and --empty=drop exclude each "
                             "other");
    if (c->rejects != NULL && c->overlong != PS_OVERLONG_DROP &&
        c->overlong != PS_OVERLONG_TRUNCATE && !c->drop_outside)
        return message_usage("--rejects needs --overlong=drop or truncate, "
                             "or --out-of-vocab=drop");
    return STATUS_OK;
}
