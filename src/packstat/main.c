/*
 * main.c - print statistics of pack streams and token records, and verify them.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/options.h"
#include "cli/range.h"
#include "files/files.h"
#include "files/packs.h"
#include "packstat/packstat.h"
#include "packstream.h"

/* Adds a name to a name_list; names are not copied. */
static const char *add_name(void *to, const char *name)
{
    name_list *list = to;
    const char **longer;

    longer = realloc(list->names, ((size_t)list->n + 1) * sizeof(*longer));
    if (longer == NULL)
        return "cannot be added: out of memory";
    list->names = longer;
    list->names[list->n++] = name;
    return NULL;
}

static const option_entry entries[] = {
    {0, "json", NULL, "print one JSON object for each file, on one line",
     OPTION_FLAG(packstat_conf, json)},
    {0, "histogram", NULL,
     "print only the histogram of lengths of all files, as\n"
     "lines of `length count`",
     OPTION_FLAG(packstat_conf, histogram)},
    {0, "verify", NULL, "check every rule of the formats",
     OPTION_FLAG(packstat_conf, verify)},
    {0, "against", "FILE",
     "with --verify, compare the packs with FILE, the token\n"
     "records they were made from; repeatable",
     OPTION_CALL_FOR(packstat_conf, against, add_name)},
    {0, "rejects", "FILE", "with --against, compare dropped and truncated\n"
     "sequences with FILE; repeatable",
     OPTION_CALL_FOR(packstat_conf, rejects, add_name)},
    {0, "vocab", "N",
     "with --against, sequences with a token id >= N may be\n"
     "dropped (default: as packs and input declare)",
     OPTION_NUMBER(packstat_conf, vocab_size, 1, UINT32_MAX)},
    {0, "empty", NULL,
     "with --against, raw records without tokens are dropped\n"
     "sequences, not flush records",
     OPTION_FLAG(packstat_conf, empty)},
    {0, "range", "A:B",
     "read only packs A to B - 1, from 0; negative numbers\n"
     "count from the end",
     OPTION_CALL_FOR(packstat_conf, range, range_parse),
     OPTION_GIVEN(packstat_conf, range_given)},
    {0, "quick", NULL,
     "read only header and END of packs, or LENGTHS of token\n"
     "records",
     OPTION_FLAG(packstat_conf, quick)},
    {0, "find", "ID",
     "print only where the sequences with these ids are,\n"
     "separated by commas",
     OPTION_CALL_FOR(packstat_conf, find, ids_parse)},
    {0, "by", "CHANNEL",
     "count sequences and tokens by the values of this\n"
     "per-sequence channel of integers",
     OPTION_TEXT(packstat_conf, by)},
    {0, "group", "CHANNEL",
     "with --histogram of token records, print the lengths\n"
     "of groups, as packstream --group packs them",
     OPTION_TEXT(packstat_conf, group)},
    {0, "align", "N",
     "with --group, round the length of each sequence up to\n"
     "a multiple of N, as packstream --align does",
     OPTION_NUMBER(packstat_conf, align, 1, PS_MAX_CAPACITY)},
    {'t', "type", "u16|u32",
     "token type of raw records (default: u16, or for\n"
     "--against the token type of the packs)",
     OPTION_WORD(packstat_conf, raw_type, option_token_types),
     OPTION_GIVEN(packstat_conf, type_given)},
    {'q', "quiet", NULL, "do not show progress, or print OK for --verify",
     OPTION_FLAG(packstat_conf, quiet)},
    {0},
};

static const option_program program = {
    .usage = "[OPTION]... [FILE]...",
    .summary = "Prints statistics of pack streams and token records, and "
               "verifies them.",
    .entries = entries,
};

/*
 * Reads one file and prints the requested statistics.  Returns an exit status.
 */
static int stat_file(const packstat_conf *conf, const char *name,
                     packstat_output *out)
{
    faults f = {.file = name};
    packs packs_in = {0};
    ps_token_reader *tokens = NULL;
    ps_histogram *lengths = NULL;
    ps_result result = PS_ERR_UNSUPPORTED;
    ps_error err;
    ps_error ignored;
    int fd = files_open_input(name);

    if (fd < 0)
        return STATUS_FAILURE;
    out->fd = fd;

    /* Use random access if only some packs are needed. */
    if (conf->range_given || conf->quick || conf->find.n > 0)
        result = packs_open_file(&packs_in, fd, &err);
    /* A damaged LENGTHS is detected when the records are read. */
    if (((conf->histogram && conf->group == NULL) || conf->quick) &&
        (result == PS_ERR_UNSUPPORTED || result == PS_ERR_MAGIC) &&
        ps_histogram_read(&lengths, fd, &ignored) != PS_OK)
        lengths = NULL;
    if (result == PS_ERR_UNSUPPORTED || result == PS_ERR_MAGIC)
        result = ps_open_any(fd, conf->raw_type, &packs_in.reader, &tokens,
                             &err);
    if (result != PS_OK)
        faults_fatal(&f, &err);
    else if (tokens != NULL && conf->find.n > 0)
        f.status = message_usage("--find needs packs: %s has token records",
                                 files_input_name(name));
    else if (conf->find.n > 0)
        packs_find(conf, &packs_in, &f);
    else if (tokens == NULL)
        packs_stat(conf, &packs_in, out, &f);
    else
        tokens_stat(conf, tokens, lengths, out, &f);
    /* Move stdin to its end, as if it had been read. */
    if (lengths != NULL)
        (void)lseek(fd, 0, SEEK_END);

    faults_end(&f);
    packs_close(&packs_in);
    ps_token_reader_free(tokens);
    ps_histogram_free(lengths);
    files_close_input(fd);
    return f.status;
}

/* Number of names that mean stdin. */
static int count_stdin(const char *const *names, int n)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        count += strcmp(names[i], "-") == 0;
    return count;
}

/* Checks combinations of options. */
static int check(const packstat_conf *conf, char *const *names, int n)
{
    int in = count_stdin(conf->against.names, conf->against.n) +
             count_stdin(conf->rejects.names, conf->rejects.n);

    if (conf->json && conf->histogram)
        return message_usage("--json and --histogram cannot be combined");
    if ((conf->range_given || conf->quick) && conf->verify)
        return message_usage("--verify reads the whole file and cannot be "
                             "combined with --range or --quick");
    if (conf->quick && (conf->histogram || conf->range_given))
        return message_usage("--quick reads no packs and cannot be combined "
                             "with --histogram or --range");

    if (conf->by != NULL &&
        (conf->histogram || conf->quick || (conf->verify && !conf->json)))
        return message_usage("--by is for a summary or --json: it cannot be "
                             "combined with --histogram, --quick or --verify");

    if (conf->find.n > 0 &&
        (conf->histogram || conf->quick || conf->verify || conf->range_given ||
         conf->by != NULL))
        return message_usage("--find prints only where sequences are: it can "
                             "be combined with --json, but not with "
                             "--histogram, --quick, --verify, --range or --by");
    if (conf->align != 0 && conf->group == NULL)
        return message_usage("--align needs --group");
    if (conf->group != NULL && !conf->histogram)
        return message_usage("--group needs --histogram");
    if (conf->rejects.n > 0 && conf->against.n == 0)
        return message_usage("--rejects needs --against");
    if ((conf->vocab_size > 0 || conf->empty) && conf->against.n == 0)
        return message_usage("--vocab and --empty need --against");
    if (conf->against.n == 0)
        return STATUS_OK;
    if (!conf->verify)
        return message_usage("--against needs --verify");
    if (n > 1)
        return message_usage("--against needs a single file of packs");
    if (n == 0 || strcmp(names[0], "-") == 0)
        in++;
    if (in > 1)
        return message_usage("only one of packs, --against and --rejects "
                             "can be stdin");
    return STATUS_OK;
}

/* Reports the sequences that were in no file.  Returns an exit status. */
static int check_found(const id_set *ids)
{
    int status = STATUS_OK;

    for (size_t i = 0; i < ids->n; i++)
        if (!ids->found[i]) {
            message_error("--find=%" PRIu64 ": no pack has this sequence",
                          ids->ids[i]);
            status = STATUS_DATA;
        }
    return status;
}

/* Processes all files.  Returns the worst exit status. */
static int run(const packstat_conf *conf, int argc, char **argv, int first)
{
    int n;
    const char *const *names = option_files(argc, argv, first, &n);
    packstat_output out = {0};
    int status = STATUS_OK;

    for (int i = 0; i < n; i++)
        status = faults_worse(
            status,
            stat_file(conf, first < argc ? names[i] : NULL, &out));

    /*
     * Print nothing after an error, so that packplan does not use a partial
     * histogram.
     */
    if (conf->histogram && status == STATUS_OK) {
        const ps_histogram *h;

        if (!histogram_finish(&out.lengths))
            status = message_memory();
        h = out.lengths.all;
        for (size_t i = 0; status == STATUS_OK && i < ps_histogram_size(h);
             i++)
            printf("%" PRIu32 " %" PRIu64 "\n", ps_histogram_length(h, i),
                   ps_histogram_count(h, i));
    }
    if (status == STATUS_OK)
        status = check_found(&conf->find);
    if (!files_close_stdout())
        status = faults_worse(status, STATUS_FAILURE);
    histogram_free(&out.lengths);
    return status;
}

int main(int argc, char **argv)
{
    packstat_conf conf = {.raw_type = PS_U16};
    option_outcome outcome;
    int first;
    int status;

    files_init();
    (void)setlocale(LC_CTYPE, ""); /* for the characters of bars */
    message_init(argv[0]);
    outcome = option_parse(&program, argc, argv, &conf, &first);
    status = option_status(outcome);
    if (outcome == OPTION_RUN) {
        status = check(&conf, argv + first, argc - first);
        if (status == STATUS_OK)
            status = run(&conf, argc, argv, first);
    }
    ids_free(&conf.find);
    free(conf.against.names);
    free(conf.rejects.names);
    return status;
}
