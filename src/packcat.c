/*
 * packcat.c - packs back to token records, or on to other forms.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/files.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/range.h"
#include "packcat/formats.h"
#include "packcat/input.h"
#include "packcat/output.h"

typedef struct conf {
    const format *format;
    ps_order order;
    bool order_given;
    bool range_given;
    range range;
    const char *output; /* NULL: stdout */
    bool quiet;
    const char *const *names;
    int n_names;
} conf;

static const char *set_to(void *to, const char *value)
{
    conf *c = to;

    c->format = format_find(value);
    if (c->format == NULL)
        return "must be records, jsonl, npy, rows, ids or bytes";
    return NULL;
}

static const char *set_order(void *to, const char *value)
{
    conf *c = to;

    c->order_given = true;
    c->order = strcmp(value, "pack") == 0 ? PS_ORDER_PACK : PS_ORDER_INPUT;
    if (c->order == PS_ORDER_INPUT && strcmp(value, "input") != 0)
        return "must be input or pack";
    return NULL;
}

static const char *set_range(void *to, const char *value)
{
    conf *c = to;

    c->range_given = true;
    return range_parse(value, &c->range);
}

static const char *set_output(void *to, const char *value)
{
    ((conf *)to)->output = strcmp(value, "-") == 0 ? NULL : value;
    return NULL;
}

static const char *set_quiet(void *to, const char *value)
{
    (void)value;
    ((conf *)to)->quiet = true;
    return NULL;
}

static const option_entry entries[] = {
    {0, "to", OPTION_VALUE, "FORM",
     "what to make of the packs (default: records):\n"
     "records, jsonl, npy, rows, ids or bytes",
     set_to},
    {0, "order", OPTION_VALUE, "ORDER",
     "sequences as they came (input, the default)\n"
     "or as they lie in the packs (pack)",
     set_order},
    {0, "range", OPTION_VALUE, "A:B",
     "only packs A up to, but without, B, from 0 on,\n"
     "in their order; negative ones from the end",
     set_range},
    {'o', "output", OPTION_VALUE, "FILE", "write to FILE, not to stdout",
     set_output},
    {'q', "quiet", OPTION_FLAG, NULL, "no progress line", set_quiet},
    {0},
};

static const option_program program = {
    .usage = "[OPTION]... [FILE]...",
    .summary =
        "Gives back the token records that packstream packed, byte for\n"
        "byte and in their order, or makes another form of them.  Reads\n"
        "pack streams from the FILEs, one after the other, or from stdin.\n"
        "\n"
        "Forms made of sequences:\n"
        "  records  token records, as packstream read them\n"
        "  jsonl    a JSON object per line, for tokcat --from=jsonl\n"
        "  ids      a line of decimal token ids per sequence\n"
        "  bytes    a byte per token, nothing between sequences\n"
        "Forms made of packs, always in their order:\n"
        "  rows     the tokens of each pack with their padding, no header\n"
        "  npy      a numpy array of the records, for numpy.load",
    .entries = entries,
};

/* Checks what no option can know alone. */
static int check(const conf *c)
{
    if (c->range_given && c->order_given && c->order == PS_ORDER_INPUT)
        return message_usage("--order=input: with --range sequences come in "
                             "the order of the packs");
    if (c->format->packs && c->order_given && c->order == PS_ORDER_INPUT)
        return message_usage("--order=input: --to=%s is always in the "
                             "order of the packs", c->format->name);
    return STATUS_OK;
}

static input_options input_of(const conf *c, output *out)
{
    /* A line that redraws itself would spoil text on the same screen. */
    const bool shown = c->output == NULL && isatty(STDOUT_FILENO) == 1;

    return (input_options){
        .names = c->names,
        .n_names = c->n_names,
        .order = c->order,
        .range = c->range_given ? &c->range : NULL,
        .match = c->format->match,
        .progress = !c->quiet && !shown,
        .on_wait = output_pass_on,
        .context = out,
    };
}

static int run(const conf *c)
{
    output out = {.fd = -1};
    const input_options options = input_of(c, &out);
    input in;
    int input_status;
    int output_status;

    if (input_begin(&in, &options) &&
        output_begin(&out, c->output, c->format->binary, in.fd))
        c->format->convert(&in, &out);
    input_status = input_end(&in);
    output_status = output_end(&out);
    return input_status != STATUS_OK ? input_status : output_status;
}

int main(int argc, char **argv)
{
    conf c = {.format = format_find("records"), .order = PS_ORDER_INPUT};
    option_outcome outcome;
    int first;
    int status;

    files_init();
    message_init(argv[0]);
    outcome = option_parse(&program, argc, argv, &c, &first);
    if (outcome != OPTION_RUN)
        return option_status(outcome);
    c.names = option_files(argc, argv, first, &c.n_names);
    status = check(&c);
    if (status == STATUS_OK &&
        !files_spare_inputs(c.output, c.names, c.n_names))
        status = STATUS_FAILURE;
    return status == STATUS_OK ? run(&c) : status;
}
