/*
 * conf.c - the option table of tokshuf, and its outputs.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokshuf/conf.h"

#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "cli/weights.h"
#include "files/files.h"
#include "files/state_file.h"

#define DEFAULT_MEMORY ((uint64_t)1 << 30)
#define MIN_MEMORY ((uint64_t)64 << 10)
#define MAX_MEMORY (UINT64_MAX / 4)

static const option_entry entries[] = {
    {0, "seed", "N", "seed of the order (default: 0)",
     OPTION_NUMBER(conf, seed, 0, UINT64_MAX),
     OPTION_GIVEN(conf, seed_given)},
    {0, "no-shuffle", NULL, "keep the input's order",
     OPTION_FLAG(conf, in_order)},
    {0, "head-count", "COUNT", "write at most COUNT sequences",
     OPTION_NUMBER(conf, count, 0, UINT64_MAX - 1),
     .why = "must be a number of sequences"},
    {0, "min-length", "N", "skip sequences with fewer than N tokens",
     OPTION_NUMBER(conf, min_length, 1, UINT32_MAX)},
    {0, "max-length", "N", "skip sequences with more than N tokens",
     OPTION_NUMBER(conf, max_length, 1, UINT32_MAX)},
    {0, "by-length", "W",
     "sort every W consecutive sequences by length,\n"
     "after the shuffle",
     OPTION_NUMBER(conf, by_length, 1, UINT64_MAX),
     .why = "must be a number of sequences from 1"},
    {0, "group", "CHANNEL",
     "move consecutive sequences with the same value of\n"
     "CHANNEL together",
     OPTION_TEXT(conf, group)},
    {0, "split", "SHARE:FILE,...",
     "write each SHARE of the sequences to its FILE",
     OPTION_TEXT(conf, split)},
    {'M', "memory", "SIZE",
     "bytes of memory to use before temporary files\n"
     "(default: 1Gi)",
     OPTION_NUMBER(conf, memory, MIN_MEMORY, MAX_MEMORY),
     .why = "must be a number of bytes from 64Ki, such as 4Gi"},
    {0, "temporary-directory", "DIR",
     "directory of temporary files (default: $TMPDIR, or\n"
     "/tmp)",
     OPTION_TEXT(conf, folder)},
    {'t', "type", "TYPE", "token type of raw records: u16 (default) or u32",
     OPTION_WORD(conf, type, option_token_types)},
    {'o', "output", "FILE", "write to FILE (default: standard output)",
     OPTION_TEXT(conf, output)},
    STATE_FILE_ENTRIES(conf, "FILE,\nFILE.0 and FILE.1", "sequences",
                       "at the end or on SIGTERM or SIGINT"),
    {0, "no-sandbox", NULL, "do not enter the Landlock sandbox",
     OPTION_FLAG(conf, no_sandbox)},
    {'v', "verbose", NULL, "print the number of sequences at the end",
     OPTION_FLAG(conf, verbose)},
    {'q', "quiet", NULL, "do not show progress", OPTION_FLAG(conf, quiet)},
    {0},
};

const option_program conf_program = {
    .usage = "[OPTION]... [FILE]...",
    .summary =
        "Shuffles token records; all orders are equally likely. Reads each\n"
        "FILE in turn, or standard input.",
    .entries = entries,
};

conf conf_defaults(void)
{
    const char *folder = getenv("TMPDIR");

    return (conf){
        .count = UINT64_MAX,
        .min_length = 1,
        .max_length = UINT32_MAX,
        .memory = DEFAULT_MEMORY,
        .folder = folder == NULL || folder[0] == '\0' ? "/tmp" : folder,
    };
}

/* ---------------------------------------------------------------------
 * Outputs
 */

/* Parses the shares and names of --split, of which c->text is a copy. */
static int read_split(conf *c, weight *weights)
{
    char *part = c->text;

    for (uint32_t i = 0; i < c->n_outputs; i++) {
        char *end = part + strcspn(part, ",");
        const size_t n = strcspn(part, ":");
        const char *why;

        *end = '\0';
        if (part + n >= end || part[n + 1] == '\0')
            return message_usage("--split: '%s' must be SHARE:FILE",
                                 message_name(part));
        why = weight_read(&weights[i], part, n);
        if (why != NULL)
            return message_usage("--split: '%s': the share %s",
                                 message_name(part), why);
        c->names[i] = part + n + 1;
        if (files_is_standard(c->names[i]))
            return message_usage("--split: '%s': cannot write a share to "
                                 "stdout",
                                 message_name(part));
        part = end + 1;
    }
    return weights_settle(weights, c->n_outputs, c->weights)
               ? STATUS_OK
               : message_usage("--split: the shares have too many digits to "
                               "add");
}

/* Checks that a job with a state can resume its outputs. */
static int check_state(const conf *c)
{
    return state_file_check_options(c->state, c->resume, c->state_every,
                                    c->names, c->n_outputs);
}

int conf_settle(conf *c)
{
    weight *weights;
    int status = STATUS_OK;

    if (c->min_length > c->max_length)
        return message_usage("--min-length is greater than --max-length: no "
                             "sequence fits");
    if (c->in_order && c->seed_given)
        return message_usage("--no-shuffle and --seed cannot be combined");
    if (c->in_order && c->split != NULL)
        return message_usage("--no-shuffle and --split cannot be combined");
    if (c->in_order && c->state != NULL)
        return message_usage("--no-shuffle and --state cannot be combined");
    if (c->group != NULL && (c->in_order || c->count != UINT64_MAX ||
                             c->by_length > 0 || c->split != NULL ||
                             c->min_length > 1 || c->max_length < UINT32_MAX))
        return message_usage("--group and %s cannot be combined",
                             c->in_order              ? "--no-shuffle"
                             : c->count != UINT64_MAX ? "--head-count"
                             : c->by_length > 0       ? "--by-length"
                             : c->split != NULL       ? "--split"
                             : c->min_length > 1      ? "--min-length"
                                                      : "--max-length");
    if (c->split != NULL && c->output != NULL)
        return message_usage("--split and -o cannot be combined");

    c->n_outputs = 1;
    for (const char *p = c->split; p != NULL && *p != '\0'; p++)
        c->n_outputs += *p == ',';
    c->names = calloc(c->n_outputs, sizeof *c->names);
    c->weights = calloc(c->n_outputs, sizeof *c->weights);
    c->text = malloc(c->split == NULL ? 1 : strlen(c->split) + 1);
    weights = calloc(c->n_outputs, sizeof *weights);
    if (c->names == NULL || c->weights == NULL || c->text == NULL ||
        weights == NULL) {
        status = message_memory();
    } else if (c->split == NULL) {
        c->names[0] = c->output;
        c->weights[0] = 1;
    } else {
        (void)strcpy(c->text, c->split);
        status = read_split(c, weights);
    }
    free(weights);
    return status == STATUS_OK ? check_state(c) : status;
}

void conf_free(conf *c)
{
    free(c->names);
    free(c->weights);
    free(c->text);
}
