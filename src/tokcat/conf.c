/*
 * conf.c - the command line of tokcat: its table, its defaults, and the
 * choices that depend on more than one option.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/conf.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "cli/message.h"
#include "tokcat/digest.h"
#include "tokcat/forms.h"
#include "tokcat/setters.h"

static const option_entry entries[] = {
    {0, "from", OPTION_VALUE, "FORM",
     "what the input is: lines of decimal ids, bytes that\n"
     "are tokens as they are, jsonl, llmc, nanogpt, npy,\n"
     "megatron, datatrove or tfrecord", set_from},
    {'t', "type", OPTION_VALUE, "u16|u32",
     "type of the tokens (default u16;\n"
     "u32 with a --vocab above 65536)", set_type},
    {0, "raw", OPTION_FLAG, NULL,
     "write records alone, without header and end", set_raw},
    {'o', "output", OPTION_VALUE, "FILE",
     "write to FILE instead of standard output", set_output},
    {0, "empty", OPTION_VALUE, "skip|error",
     "what to do with lines without tokens\n"
     "(default skip: their number is told at the end)", set_empty},
    {0, "split", OPTION_VALUE, "WHERE",
     "where a sequence ends\n"
     "bytes: line (default) or paragraph\n"
     "megatron: sequence (default) or document\n"
     "llmc, nanogpt, npy: eos (behind each --eos-id),\n"
     "bos (before each --bos-id) or N (tokens)", set_split},
    {0, "trim-pad", OPTION_FLAG, NULL,
     "npy: leave out --pad-id at the end of rows", set_trim},
    {0, "ids-key", OPTION_VALUE, "KEY",
     "jsonl: key of the token ids (default input_ids)", set_ids_key},
    {0, "channel", OPTION_VALUE, "KEY:TYPE[:FILL]",
     "jsonl: the channel's type (u8 u16 u32 u64 i32 i64\n"
     "f32 f64) and fill (default 0); repeatable", set_channel},
    {0, "ignore", OPTION_VALUE, "KEY",
     "jsonl, datatrove, tfrecord: leave this key, or the\n"
     "channel of this name, out; repeatable", set_ignore},
    {0, "vocab", OPTION_VALUE, "N",
     "declare N token ids, and refuse those not below N\n"
     "(default with --from=bytes: 256)", set_vocab},
    {0, "pad-id", OPTION_VALUE, "N", "declare the padding token", set_pad},
    {0, "bos-id", OPTION_VALUE, "N", "declare the token that begins text",
     set_bos},
    {0, "eos-id", OPTION_VALUE, "N", "declare the token that ends text",
     set_eos},
    {0, "cls-id", OPTION_VALUE, "N", "declare the classification token",
     set_cls},
    {0, "sep-id", OPTION_VALUE, "N", "declare the separator token",
     set_sep},
    {0, "mask-id", OPTION_VALUE, "N", "declare the mask token", set_mask},
    {0, "tokenizer", OPTION_VALUE, "FILE",
     "record the digest of FILE, which made the tokens", set_tokenizer},
    {0, "labels", OPTION_VALUE, "aligned|shifted",
     "record what `labels` are for: their own position,\n"
     "or already the next one", set_labels},
    {'q', "quiet", OPTION_FLAG, NULL,
     "no warnings and no progress line", set_quiet},
    {.name = NULL},
};

const option_program conf_program = {
    .usage = "--from=FORM [OPTION]... [FILE]...",
    .summary = "Turns text, or other programs' files of tokens, into token "
               "records, the\ninput of packstream.  Reads the FILEs one "
               "after another; without any, or\nas \"-\", standard input.",
    .entries = entries,
};

conf conf_defaults(void)
{
    conf c = {.ids_key = "input_ids", .schema = ps_schema_raw(PS_U16)};

    c.schema.framed = true;
    return c;
}

bool conf_ignores(const conf *c, const char *key)
{
    for (uint32_t i = 0; i < c->n_ignored; i++)
        if (strcmp(c->ignored[i], key) == 0)
            return true;
    return false;
}

static const char *const special_options[PS_SPECIALS] = {
    [PS_PAD] = "--pad-id", [PS_BOS] = "--bos-id", [PS_EOS] = "--eos-id",
    [PS_CLS] = "--cls-id", [PS_SEP] = "--sep-id", [PS_MASK] = "--mask-id",
};

/* An id that is of use to us need not be kept. */
static bool is_used(const conf *c, int special)
{
    return (special == PS_EOS && c->split == SPLIT_EOS) ||
           (special == PS_BOS && c->split == SPLIT_BOS) ||
           (special == PS_PAD && c->trim);
}

/* What only a header can keep. */
static int check_raw(const conf *c)
{
    const char *lost = NULL;

    if (c->schema.n_channels > 0)
        lost = "--channel";
    if (c->schema.labels != PS_LABELS_UNSTATED)
        lost = "--labels";
    if (c->tokenizer != NULL)
        lost = "--tokenizer";
    for (int i = 0; i < PS_SPECIALS; i++)
        if (c->schema.special[i] != PS_NO_ID && !is_used(c, i))
            lost = special_options[i];
    if (c->schema.framed || lost == NULL)
        return STATUS_OK;
    return message_usage("%s would be lost: --raw writes no header", lost);
}

/* Two options that speak of one key in different ways. */
static int check_keys(const conf *c)
{
    if (conf_ignores(c, c->ids_key))
        return message_usage("--ignore=%s would leave out the token ids",
                             message_name(c->ids_key));
    for (uint32_t i = 0; i < c->schema.n_channels; i++) {
        const char *name = c->schema.channels[i].name;

        if (strcmp(name, c->ids_key) == 0)
            return message_usage("--channel=%s: these are the token ids",
                                 name);
        if (conf_ignores(c, name))
            return message_usage("--channel=%s and --ignore=%s contradict "
                                 "each other", name, name);
    }
    return STATUS_OK;
}

/*
 * The pad id may lie outside the vocabulary, since it never is a token of
 * the text.
 */
static int check_ids(const ps_schema *s)
{
    const uint32_t max = s->token_type == PS_U16 ? UINT16_MAX : UINT32_MAX;

    if (s->token_type == PS_U16 && s->vocab_size > max + 1)
        return message_usage("--vocab=%" PRIu32 " needs --type=u32",
                             s->vocab_size);
    for (int i = 0; i < PS_SPECIALS; i++) {
        const uint32_t id = s->special[i];

        if (id == PS_NO_ID)
            continue;
        if (id > max)
            return message_usage("%s=%" PRIu32 " needs --type=u32",
                                 special_options[i], id);
        if (i != PS_PAD && s->vocab_size != 0 && id >= s->vocab_size)
            return message_usage("%s=%" PRIu32 " is not below the "
                                 "vocabulary size %" PRIu32,
                                 special_options[i], id, s->vocab_size);
    }
    return STATUS_OK;
}

/*
 * The type of the tokens, where it is not given: that of the vocabulary, or
 * of the ids; or the input may say.
 */
static void settle_type(conf *c)
{
    ps_schema *s = &c->schema;

    if (c->type_given)
        return;
    c->type_open = forms_are_typed(c->from) && s->vocab_size == 0;
    if (s->vocab_size > UINT16_MAX + 1)
        s->token_type = PS_U32;
    for (int i = 0; i < PS_SPECIALS && c->type_open; i++)
        if (s->special[i] != PS_NO_ID && s->special[i] > UINT16_MAX)
            s->token_type = PS_U32;
}

int conf_settle(conf *c)
{
    int status = forms_check(c);

    if (c->from == FROM_BYTES && c->schema.vocab_size == 0)
        c->schema.vocab_size = 256;
    settle_type(c);
    if (status == STATUS_OK)
        status = check_raw(c);
    if (status == STATUS_OK)
        status = check_keys(c);
    if (status == STATUS_OK)
        status = check_ids(&c->schema);
    if (status == STATUS_OK && c->tokenizer != NULL)
        status = digest_file(c->tokenizer, c->schema.tokenizer);
    return status;
}
