/*
 * main.c - convert packs to token records or other forms.
 *
 * SPDX-License-Identifier: MIT
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/options.h"
#include "cli/range.h"
#include "files/files.h"
#include "packcat/formats.h"
#include "packcat/input.h"
#include "packcat/output.h"

typedef struct conf {
    format_id format;
    ps_order order;
    bool order_given;
    bool range_given;
    range range;
    uint64_t max_bytes;   /* in bytes; 0: not given */
    uint64_t predictions; /* masked tokens per example; 0: not given */
    uint32_t zstd_level;  /* 0: not given */
    bool merge;
    bool to_given;
    const char *output; /* name; NULL: stdout */
    bool quiet;
    const char *const *names;
    int n_names;
} conf;

static const option_word orders[] = {
    {"input", PS_ORDER_INPUT}, {"pack", PS_ORDER_PACK}, {NULL, 0}};

static const option_entry entries[] = {
    {0, "to", "FORM",
     "write this form, one of the above (default: records)",
     OPTION_WORD(conf, format, format_words), OPTION_GIVEN(conf, to_given)},
    {0, "merge", NULL, "the same as --to=packs", OPTION_FLAG(conf, merge)},
    {0, "order", "ORDER",
     "write sequences in the order of the input (default)\n"
     "or of the packs (pack)",
     OPTION_WORD(conf, order, orders), OPTION_GIVEN(conf, order_given)},
    {'M', "memory", "BYTES",
     "hold at most BYTES of sequences to restore the order\n"
     "(default: 4Gi)",
     OPTION_NUMBER(conf, max_bytes, 1, UINT64_MAX),
     .why = "must be a number of bytes from 1, such as 64Mi"},
    {0, "range", "A:B",
     "read only packs A to B - 1, from 0; negative numbers\n"
     "count from the end",
     OPTION_CALL_FOR(conf, range, range_parse),
     OPTION_GIVEN(conf, range_given)},
    {0, "max-predictions", "N",
     "tfrecord: allow N masked tokens (default: 20)",
     OPTION_NUMBER(conf, predictions, 1, PS_MAX_CAPACITY),
     .why = "must be a number from 1 to 16777216"},
    {0, "zstd", "LEVEL",
     "packs: compress at LEVEL, 1 to 22 (default: 3)",
     OPTION_ZSTD(conf, zstd_level)},
    {'o', "output", "FILE", "write to FILE (default: standard output)",
     OPTION_TEXT(conf, output)},
    {'q', "quiet", NULL, "do not print progress", OPTION_FLAG(conf, quiet)},
    {0},
};

static const option_program program = {
    .usage = "[OPTION]... [FILE]...",
    .summary =
        "Restores the token records that packstream packed, byte for byte "
        "and\n"
        "in their order, or converts them to another form. Reads pack "
        "streams\n"
        "from each FILE in turn, or from standard input; records, jsonl, "
        "ids,\n"
        "bytes and datatrove can also be made from framed token records.\n"
        "\n"
        "Forms made of sequences:\n"
        "  records    token records, as packstream read them\n"
        "  jsonl      a JSON object per line, for tokcat --from=jsonl\n"
        "  ids        a line of decimal token ids per sequence\n"
        "  bytes      a byte per token, nothing between sequences\n"
        "  datatrove  FILE: tokens; FILE.index: ends; FILE.loss: loss mask\n"
        "  tfrecord   examples for BERT pre-training\n"
        "Forms made of packs, always in their order:\n"
        "  rows       the tokens of each pack and its padding, without a "
        "header,\n"
        "             as nanoGPT reads them\n"
        "  npy        rows with per-token channels, for numpy.load\n"
        "  llmc       rows after an llm.c header\n"
        "  trl        a JSON object per line, with seq_lengths\n"
        "  packs      all input joined to one pack stream\n"
        "Made of packs, or with --order=input of sequences:\n"
        "  megatron   FILE.bin: tokens; FILE.idx: Megatron-LM's index",
    .entries = entries,
};

#define PREDICTIONS 20

/* Checks combinations of options. */
static int check(const conf *c)
{
    const format *form = &formats[c->format];
    const char *name = option_word_name(format_words, c->format);

    if (c->range_given && c->order_given && c->order == PS_ORDER_INPUT)
        return message_usage("--order=input cannot be used with --range, "
                             "which keeps the order of the packs");
    if (form->units == OF_PACKS && c->order_given &&
        c->order == PS_ORDER_INPUT)
        return message_usage("--order=input cannot be used with --to=%s, "
                             "which keeps the order of the packs", name);
    if (form->namer != NULL && c->output == NULL)
        return message_usage("--to=%s writes several files: name them with -o "
                             "FILE", name);
    if (c->range_given && c->format == FORMAT_PACKS)
        return message_usage("--range cannot be used with --to=packs, which "
                             "joins all packs");
    if (c->zstd_level != 0 && c->format != FORMAT_PACKS)
        return message_usage("--zstd needs --to=packs");
    if (c->predictions != 0 && c->format != FORMAT_TFRECORD)
        return message_usage("--max-predictions needs --to=tfrecord");
    return STATUS_OK;
}

static int run(const conf *c)
{
    const format *form = &formats[c->format];
    outputs outs = {.parts = {{.fd = -1}}};
    /* A progress line would be mixed with text printed on the same terminal. */
    const bool shown = c->output == NULL && isatty(STDOUT_FILENO) == 1;
    const input_options from = {
        .names = c->names,
        .n_names = c->n_names,
        .order = c->order,
        .max_bytes = c->max_bytes,
        .range = c->range_given ? &c->range : NULL,
        .tokens_do = form->units == OF_SEQUENCES && !c->range_given &&
                     (form->same & SAME_CAPACITY) == 0,
        .same = form->same,
        .progress = !c->quiet && !shown,
        .on_wait = output_flush_before_wait,
        .context = &outs.parts[0],
    };
    const output_options to = {
        .name = c->output,
        .binary = form->binary,
        .namer = form->namer,
        .predictions = (uint32_t)c->predictions,
        .zstd_level = c->zstd_level,
    };
    input in;
    int input_status;
    int output_status;

    if (input_begin(&in, &from) && outputs_begin(&outs, &to, &in)) {
        form->convert(&in, outs.parts);
        if (!outs.several)
            (void)output_flush(&outs.parts[0]);
    }
    input_status = input_end(&in);
    output_status = outputs_end(&outs, input_status);
    return input_status != STATUS_OK ? input_status : output_status;
}

int main(int argc, char **argv)
{
    conf c = {.format = FORMAT_RECORDS, .order = PS_ORDER_INPUT};
    option_outcome outcome;
    int first;
    int status;

    files_init();
    message_init(argv[0]);
    outcome = option_parse(&program, argc, argv, &c, &first);
    if (outcome != OPTION_RUN)
        return option_status(outcome);
    c.names = option_files(argc, argv, first, &c.n_names);
    if (c.output != NULL && strcmp(c.output, "-") == 0)
        c.output = NULL;
    if (c.merge && c.to_given && c.format != FORMAT_PACKS)
        return message_usage("--merge means --to=packs and cannot be combined "
                             "with another --to");
    if (c.merge)
        c.format = FORMAT_PACKS;
    status = check(&c);
    if (status != STATUS_OK)
        return status;

    /* Defaults that depend on other options. */
    if (!c.order_given && formats[c.format].units != OF_SEQUENCES)
        c.order = PS_ORDER_PACK;
    if (c.predictions == 0)
        c.predictions = PREDICTIONS;

    /* Check this before any output is opened or truncated. */
    if (files_check_readable(c.names, c.n_names) != STATUS_OK)
        return STATUS_FAILURE;
    if (formats[c.format].namer != NULL
            ? !outputs_can_have_name(c.output)
            : files_check_inputs(c.output, c.names, c.n_names) != STATUS_OK)
        return STATUS_FAILURE;
    return run(&c);
}
