/*
 * packstat.c - tell what pack streams and token records hold, and verify
 * them.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/files.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/packs.h"
#include "cli/range.h"
#include "packstat/conf.h"
#include "packstat/faults.h"
#include "packstat/histogram.h"
#include "packstat/packs.h"
#include "packstat/tokens.h"
#include "packstream.h"

static const char *set_json(void *conf, const char *value)
{
    (void)value;
    ((packstat_conf *)conf)->json = true;
    return NULL;
}

static const char *set_histogram(void *conf, const char *value)
{
    (void)value;
    ((packstat_conf *)conf)->histogram = true;
    return NULL;
}

static const char *set_verify(void *conf, const char *value)
{
    (void)value;
    ((packstat_conf *)conf)->verify = true;
    return NULL;
}

static const char *set_range(void *conf, const char *value)
{
    packstat_conf *c = conf;

    c->range_given = true;
    return range_parse(value, &c->range);
}

static const char *set_quick(void *conf, const char *value)
{
    (void)value;
    ((packstat_conf *)conf)->quick = true;
    return NULL;
}

static const char *set_raw_type(void *conf, const char *value)
{
    return option_token_type(value, &((packstat_conf *)conf)->raw_type);
}

static const char *set_quiet(void *conf, const char *value)
{
    (void)value;
    ((packstat_conf *)conf)->quiet = true;
    return NULL;
}

static const option_entry entries[] = {
    {0, "json", OPTION_FLAG, NULL,
     "print a JSON object for each file, one a line", set_json},
    {0, "histogram", OPTION_FLAG, NULL,
     "print nothing but `length count` lines, ascending,\n"
     "of all files together",
     set_histogram},
    {0, "verify", OPTION_FLAG, NULL,
     "check every checksum, boundary, pad, id and total", set_verify},
    {0, "range", OPTION_VALUE, "A:B",
     "of pack streams only packs A up to, but without, B,\n"
     "from 0 on; negative ones from the end",
     set_range},
    {0, "quick", OPTION_FLAG, NULL,
     "of pack streams what header and END say, no histograms:\n"
     "of a file without reading the packs",
     set_quick},
    {'t', "type", OPTION_VALUE, "u16|u32",
     "tokens of raw records (u16)", set_raw_type},
    {'q', "quiet", OPTION_FLAG, NULL,
     "no progress line, and no OK from --verify", set_quiet},
    {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
};

static const option_program program = {
    .usage = "[OPTION]... [FILE]...",
    .summary = "Tell what pack streams and token records hold, and verify "
               "them.",
    .entries = entries,
};

/* Whether only a part of a pack stream is to be read. */
static bool wants_part(const packstat_conf *conf)
{
    return conf->range_given || conf->quick;
}

/*
 * Opens whichever kind of stream `fd` holds; of a file of packs, when only
 * some are wanted, so that they can be got at any place.
 */
static ps_result open_stream(const packstat_conf *conf, int fd,
                             packs *packs_in, ps_token_reader **tokens,
                             ps_error *err)
{
    *tokens = NULL;
    *packs_in = (packs){0};
    if (wants_part(conf)) {
        const ps_result result = packs_open_file(packs_in, fd, err);

        if (result != PS_ERR_UNSUPPORTED && result != PS_ERR_MAGIC)
            return result;
    }
    return ps_open_any(fd, conf->raw_type, &packs_in->reader, tokens, err);
}

/* Reads one file and prints what is asked for; returns its exit status. */
static int stat_file(const packstat_conf *conf, const char *name,
                     packstat_output *out)
{
    faults f = {.file = name};
    packs packs_in;
    ps_token_reader *tokens;
    ps_error err;
    int fd = files_open_input(name);

    if (fd < 0)
        return STATUS_FAILURE;
    if (open_stream(conf, fd, &packs_in, &tokens, &err) != PS_OK)
        faults_fatal(&f, &err);
    else if (tokens == NULL)
        packs_stat(conf, &packs_in, out, &f);
    else
        tokens_stat(conf, tokens, out, &f);
    faults_end(&f);
    packs_close(&packs_in);
    ps_token_reader_free(tokens);
    files_close_input(fd);
    return f.status;
}

/* Every file, stdin if there is none; returns the worst exit status. */
static int stat_files(const packstat_conf *conf, char *const *names, int n,
                      packstat_output *out)
{
    int status = STATUS_OK;

    if (n == 0)
        return stat_file(conf, NULL, out);
    for (int i = 0; i < n; i++)
        status = faults_worse(status, stat_file(conf, names[i], out));
    return status;
}

static void print_histogram(histogram *lengths)
{
    histogram_sort(lengths);
    for (size_t i = 0; i < lengths->n_used; i++)
        printf("%" PRIu32 " %" PRIu64 "\n", lengths->bins[i].value,
               lengths->bins[i].count);
}

/* Checks what no option can know alone. */
static int check(const packstat_conf *conf)
{
    if (conf->json && conf->histogram)
        return message_usage("--json and --histogram exclude each other");
    if (wants_part(conf) && conf->verify)
        return message_usage("--verify reads all that there is: not with "
                             "--range or --quick");
    if (conf->quick && (conf->histogram || conf->range_given))
        return message_usage("--quick reads no packs: not with --histogram "
                             "or --range");
    return STATUS_OK;
}

int main(int argc, char **argv)
{
    packstat_conf conf = {.raw_type = PS_U16};
    packstat_output out = {0};
    option_outcome outcome;
    int first;
    int status;

    files_init();
    message_init(argv[0]);
    outcome = option_parse(&program, argc, argv, &conf, &first);
    if (outcome != OPTION_RUN)
        return option_status(outcome);
    status = check(&conf);
    if (status != STATUS_OK)
        return status;
    status = stat_files(&conf, argv + first, argc - first, &out);
    /* A planner must not take part of the input for all of it. */
    if (conf.histogram && status == STATUS_OK)
        print_histogram(&out.lengths);
    if (!files_close_stdout())
        status = faults_worse(status, STATUS_FAILURE);
    histogram_free(&out.lengths);
    return status;
}
