/*
 * forms.c - the forms of input and the options that go with each.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/forms.h"

#include <stddef.h>
#include <string.h>

#include "cli/message.h"

/* The options that a form takes; TYPED: its files tell the type of numbers. */
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

typedef struct form {
    const char *name;
    unsigned takes;
    unsigned splits;
    bool must_split;
} form;

static const form forms[] = {
    [FROM_NOTHING] = {"", 0, 0, false},
    [FROM_IDS] = {"ids", EMPTY | AS_IT_IS, 0, false},
    [FROM_BYTES] = {"bytes", AS_IT_IS, OR(SPLIT_LINE) | OR(SPLIT_PARAGRAPH),
                    false},
    [FROM_JSONL] = {"jsonl", EMPTY | IDS_KEY | CHANNEL | IGNORE | AS_IT_IS,
                    0, false},
    [FROM_LLMC] = {"llmc", TYPED, STREAM, true},
    [FROM_NANOGPT] = {"nanogpt", AS_IT_IS, STREAM, true},
    [FROM_NPY] = {"npy", EMPTY | TRIM | TYPED, STREAM, false},
    [FROM_MEGATRON] = {"megatron", EMPTY | TYPED,
                       OR(SPLIT_SEQUENCE) | OR(SPLIT_DOCUMENT), false},
    [FROM_DATATROVE] = {"datatrove", EMPTY | IGNORE, 0, false},
    [FROM_TFRECORD] = {"tfrecord", EMPTY | IGNORE, 0, false},
};

static const char *const splits[] = {
    [SPLIT_LINE] = "line",         [SPLIT_PARAGRAPH] = "paragraph",
    [SPLIT_EOS] = "eos",           [SPLIT_BOS] = "bos",
    [SPLIT_EVERY] = "N",           [SPLIT_SEQUENCE] = "sequence",
    [SPLIT_DOCUMENT] = "document",
};

const char *forms_set_from(void *member, const char *value)
{
    conf_from *from = member;

    for (size_t i = FROM_NOTHING + 1; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].name, value) == 0) {
            *from = (conf_from)i;
            return NULL;
        }
    return "must be ids, bytes, jsonl, llmc, nanogpt, npy, megatron, "
           "datatrove or tfrecord";
}

const char *forms_set_split(void *to, const char *value)
{
    conf *c = to;

    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
        if (i != SPLIT_EVERY && strcmp(splits[i], value) == 0) {
            c->split = (conf_split)i;
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
        return message_usage("say with --from what the input is");
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && (f->takes & options[i].needs) == 0)
            return message_usage("%s does not go with --from=%s",
                                 options[i].name, f->name);
    if (c->trim && special[PS_PAD] == PS_NO_ID)
        return message_usage("--trim-pad needs --pad-id");
    if (c->from == FROM_TFRECORD && c->schema.labels == PS_LABELS_SHIFTED)
        return message_usage("--labels=shifted does not go with "
                             "--from=tfrecord, where labels are aligned");

    if (!c->split_given)
        return f->must_split
                   ? message_usage("--from=%s needs --split=eos, --split=bos "
                                   "or --split=N", f->name)
                   : STATUS_OK;
    if ((f->splits & OR(c->split)) == 0)
        return message_usage("--split=%s does not go with --from=%s",
                             splits[c->split], f->name);
    if (c->split == SPLIT_EOS && special[PS_EOS] == PS_NO_ID)
        return message_usage("--split=eos needs --eos-id");
    if (c->split == SPLIT_BOS && special[PS_BOS] == PS_NO_ID)
        return message_usage("--split=bos needs --bos-id");
    return STATUS_OK;
}
