/*
 * forms.c - input forms and the options that apply to each.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/forms.h"

#include <stddef.h>

#include "cli/message.h"

/*
 * Options that apply to a form.  TYPED is a property instead: its files specify
 * the type of their numbers.
 */
enum {
    EMPTY = 1,
    IDS_KEY = 2,
    CHANNEL = 4,
    IGNORE = 8,
    TRIM = 16,
    TYPED = 32,
    AS_IT_IS = 64
};

#define OR(split) (1u << (split))
#define STREAM (OR(SPLIT_EOS) | OR(SPLIT_BOS) | OR(SPLIT_EVERY))

const option_word forms_from[] = {
    {"ids", FROM_IDS},           {"bytes", FROM_BYTES},
    {"jsonl", FROM_JSONL},       {"llmc", FROM_LLMC},
    {"nanogpt", FROM_NANOGPT},   {"npy", FROM_NPY},
    {"megatron", FROM_MEGATRON}, {"datatrove", FROM_DATATROVE},
    {"tfrecord", FROM_TFRECORD}, {NULL, 0}};

/* SPLIT_EVERY has no word; it is given as a number. */
const option_word forms_splits[] = {
    {"line", SPLIT_LINE},         {"paragraph", SPLIT_PARAGRAPH},
    {"eos", SPLIT_EOS},           {"bos", SPLIT_BOS},
    {"sequence", SPLIT_SEQUENCE}, {"document", SPLIT_DOCUMENT},
    {NULL, 0}};

typedef struct form {
    unsigned takes;  /* bit mask of options and TYPED */
    unsigned splits; /* bit mask of valid values of conf_split */
    bool must_split; /* --split is required */
} form;

static const form forms[] = {
    [FROM_NOTHING] = {0, 0, false},
    [FROM_IDS] = {EMPTY | AS_IT_IS, 0, false},
    [FROM_BYTES] = {AS_IT_IS, OR(SPLIT_LINE) | OR(SPLIT_PARAGRAPH), false},
    [FROM_JSONL] = {EMPTY | IDS_KEY | CHANNEL | IGNORE | TRIM | AS_IT_IS, 0,
                    false},
    [FROM_LLMC] = {TYPED, STREAM, true},
    [FROM_NANOGPT] = {AS_IT_IS, STREAM, true},
    [FROM_NPY] = {EMPTY | TRIM | TYPED, STREAM, false},
    [FROM_MEGATRON] = {EMPTY | TYPED, OR(SPLIT_SEQUENCE) | OR(SPLIT_DOCUMENT),
                       false},
    [FROM_DATATROVE] = {EMPTY | IGNORE, 0, false},
    [FROM_TFRECORD] = {EMPTY | IGNORE, 0, false},
};

const char *forms_set_split(void *to, const char *value)
{
    conf *c = to;
    uint64_t split;

    if (option_find_word(forms_splits, value, &split)) {
        c->split = (conf_split)split;
        return NULL;
    }
    c->split = SPLIT_EVERY;
    if (option_number(value, 1, UINT64_MAX, &c->split_every))
        return NULL;
    return "must be line, paragraph, eos, bos, sequence, document or a "
           "number of tokens";
}

bool forms_are_typed(conf_from from)
{
    return (forms[from].takes & TYPED) != 0;
}

int forms_check(const conf *c)
{
    const form *f = &forms[c->from];
    const char *name;
    const uint32_t *special = c->schema.special;
    const struct {
        const char *name;
        unsigned needs;
        bool given;
    } options[] = {
        {"--empty", EMPTY, c->empty_given},
        {"--ids-key", IDS_KEY, c->ids_key_given},
        {"--channel", CHANNEL, c->schema.n_channels > 0},
        {"--ignore", IGNORE, c->n_ignored > 0},
        {"--trim-pad", TRIM, c->trim},
        {"--no-decompress", AS_IT_IS, c->as_it_is},
    };

    if (c->from == FROM_NOTHING)
        return message_usage("missing --from=FORM: ids, bytes, jsonl, llmc, "
                             "nanogpt, npy, megatron, datatrove or tfrecord");
    name = option_word_name(forms_from, c->from);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && (f->takes & options[i].needs) == 0)
            return message_usage("%s cannot be used with --from=%s",
                                 options[i].name, name);
    if (c->trim && special[PS_PAD] == PS_NO_ID)
        return message_usage("--trim-pad needs --pad-id");
    if (c->from == FROM_TFRECORD && c->schema.labels == PS_LABELS_SHIFTED)
        return message_usage("--labels=shifted cannot be used with "
                             "--from=tfrecord, whose labels are aligned");

    if (!c->split_given)
        return f->must_split
                   ? message_usage("--from=%s needs --split=eos, --split=bos "
                                   "or --split=N", name)
                   : STATUS_OK;
    if ((f->splits & OR(c->split)) == 0)
        return message_usage("--split=%s cannot be used with --from=%s",
                             c->split == SPLIT_EVERY
                                 ? "N"
                                 : option_word_name(forms_splits, c->split),
                             name);
    if (c->split == SPLIT_EOS && special[PS_EOS] == PS_NO_ID)
        return message_usage("--split=eos needs --eos-id");
    if (c->split == SPLIT_BOS && special[PS_BOS] == PS_NO_ID)
        return message_usage("--split=bos needs --bos-id");
    return STATUS_OK;
}
