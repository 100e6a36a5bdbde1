/*
 * conf.c - the command line of tokcat: options, defaults, and checks of
 * combinations.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/conf.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "files/files.h"
#include "files/state_file.h"
#include "tokcat/channel.h"
#include "tokcat/forms.h"
#include "tokcat/json_columns.h"
#include "tokcat/tokenizer.h"

/* ---------------------------------------------------------------------
 * Options
 */

const char *conf_set_ignore(void *to, const char *value)
{
    conf *c = to;

    if (c->n_ignored == CONF_IGNORED)
        return "exceeds the limit of 64 ignored keys";
    c->ignored[c->n_ignored++] = value;
    return NULL;
}

/*
 * Parses TYPE or TYPE[N], the first `n` bytes of the text.  Returns NULL, or
 * what is wrong with it.
 */
static const char *set_type(ps_channel *channel, const char *text, size_t n)
{
    const size_t name = strcspn(text, "[:");
    char type[8] = "";
    char *end;
    unsigned long count;

    if (name < sizeof type)
        memcpy(type, text, name);
    if (!ps_type_from_name(type, &channel->type))
        return "the type must be u8, u16, u32, u64, i32, i64, f32 or f64";
    if (n >= name + 2 && strncmp(text + n - 2, "[]", 2) == 0) {
        channel->kind = PS_LIST;
        n -= 2;
    }
    if (name == n)
        return NULL;
    count = strtoul(text + name + 1, &end, 10);
    if (strchr("123456789", text[name + 1]) == NULL || end != text + n - 1 ||
        *end != ']' || count < 2 || count > PS_MAX_VECTOR)
        return "the length of a vector, as in f32[80], must be from 2 to 16384";
    channel->count = (uint32_t)count;
    return NULL;
}

const char *conf_set_channel(void *to, const char *value)
{
    conf *c = to;
    ps_channel channel = {.kind = PS_PER_TOKEN};
    const char *why;
    size_t n = strcspn(value, ":");

    if (value[n] == '\0')
        return "must be KEY:TYPE or KEY:TYPE:FILL";
    if (n < sizeof channel.name)
        memcpy(channel.name, value, n);
    if (!known_good_name(channel.name))
        return "the key is not a valid channel name";
    for (uint32_t i = 0; i < c->schema.n_channels; i++)
        if (strcmp(c->schema.channels[i].name, channel.name) == 0)
            return "the channel is declared twice";
    if (c->schema.n_channels == PS_MAX_CHANNELS)
        return "exceeds the limit of 23 channels";

    value += n + 1;
    n = strcspn(value, ":");
    why = set_type(&channel, value, n);
    if (why != NULL)
        return why;
    if ((channel.count > 0 || channel.kind == PS_LIST) &&
        strcmp(channel.name, "attention_mask") == 0)
        return "an attention mask has one number per token";
    channel.fill = known_fill(channel.name, channel.type);
    if (value[n] != '\0' &&
        !json_element(channel.type, value + n + 1, &channel.fill))
        return "the fill must be a number that the type can hold";
    c->schema.channels[c->schema.n_channels++] = channel;
    return NULL;
}

static const char *set_tokenizer(void *member, const char *value)
{
    if (strcmp(value, "-") == 0)
        return "must be a file; standard input carries the tokens";
    *(const char **)member = value;
    return NULL;
}

static const option_word empties[] = {
    {"skip", EMPTY_SKIP}, {"error", EMPTY_ERROR}, {NULL, 0}};
static const option_word labels[] = {{"aligned", PS_LABELS_ALIGNED},
                                     {"shifted", PS_LABELS_SHIFTED},
                                     {NULL, 0}};

/* PS_NO_ID, the greatest number, means "not defined" in the header. */
#define SPECIAL_ID(which)                                           \
    OPTION_NUMBER(conf, schema.special[which], 0, PS_NO_ID - 1),    \
        .why = "must be a token id from 0 to 4294967294"

static const option_entry entries[] = {
    {0, "from", "FORM",
     "read this form: ids (decimal, a sequence per line),\n"
     "bytes (each a token), jsonl, llmc, nanogpt, npy,\n"
     "megatron, datatrove or tfrecord (required)",
     OPTION_WORD(conf, from, forms_from)},
    {'t', "type", "u16|u32",
     "write tokens of this type (default: u16, or u32 if\n"
     "--vocab is above 65536)",
     OPTION_WORD(conf, schema.token_type, option_token_types),
     OPTION_GIVEN(conf, type_given)},
    {0, "raw", NULL, "write raw records, without header and end",
     OPTION_CONSTANT(conf, schema.framed, false)},
    {'o', "output", "FILE", "write to FILE (default: standard output)",
     OPTION_TEXT(conf, output)},
    STATE_FILE_ENTRIES(conf, "FILE", "sequences", "at the end"),
    {0, "empty", "skip|error",
     "treat lines without tokens: skip (default; their\n"
     "number is printed at the end) or error",
     OPTION_WORD(conf, empty, empties), OPTION_GIVEN(conf, empty_given)},
    {0, "split", "WHERE",
     "end sequences here:\n"
     "bytes: line (default) or paragraph\n"
     "megatron: sequence (default) or document\n"
     "llmc, nanogpt, npy: eos (after each --eos-id),\n"
     "bos (before each --bos-id) or N (tokens)",
     OPTION_CALL(forms_set_split), OPTION_GIVEN(conf, split_given),
     .words = forms_splits},
    {0, "trim-pad", NULL, "jsonl, npy: remove --pad-id from the end of rows",
     OPTION_FLAG(conf, trim)},
    {0, "ids-key", "KEY", "jsonl: read token ids from KEY (default: "
                          "input_ids)",
     OPTION_TEXT(conf, ids_key), OPTION_GIVEN(conf, ids_key_given)},
    {0, "channel", "KEY:TYPE[:FILL]",
     "jsonl: set the channel's type (u8 u16 u32 u64 i32 i64\n"
     "f32 f64, a vector such as f32[80], or a list such as\n"
     "u16[]) and fill (default: 0); repeatable",
     OPTION_CALL(conf_set_channel)},
    {0, "ignore", "KEY",
     "jsonl, datatrove, tfrecord: skip the key or channel\n"
     "of this name; repeatable",
     OPTION_CALL(conf_set_ignore)},
    {0, "no-decompress", NULL,
     "ids, bytes, jsonl, nanogpt: read the input as it is,\n"
     "even if it looks compressed",
     OPTION_FLAG(conf, as_it_is)},
    {0, "vocab", "N",
     "declare a vocabulary of N tokens, and refuse ids\n"
     ">= N (default with --from=bytes: 256)",
     OPTION_NUMBER(conf, schema.vocab_size, 1, UINT32_MAX),
     .why = "must be a number from 1 to 4294967295"},
    {0, "pad-id", "N", "declare the padding token", SPECIAL_ID(PS_PAD)},
    {0, "bos-id", "N", "declare the token that begins text",
     SPECIAL_ID(PS_BOS)},
    {0, "eos-id", "N", "declare the token that ends text",
     SPECIAL_ID(PS_EOS)},
    {0, "cls-id", "N", "declare the classification token",
     SPECIAL_ID(PS_CLS)},
    {0, "sep-id", "N", "declare the separator token", SPECIAL_ID(PS_SEP)},
    {0, "mask-id", "N", "declare the mask token", SPECIAL_ID(PS_MASK)},
    {0, "tokenizer", "FILE",
     "record the digest of FILE, the tokenizer used;\n"
     "a tokenizer.json also declares its vocabulary",
     OPTION_CALL_FOR(conf, tokenizer, set_tokenizer)},
    {0, "labels", "aligned|shifted",
     "declare that each of the `labels` is for its own\n"
     "position, or already shifted to the next token",
     OPTION_WORD(conf, schema.labels, labels)},
    {'q', "quiet", NULL, "do not print progress or warnings",
     OPTION_FLAG(conf, quiet)},
    {0},
};

const option_program conf_program = {
    .usage = "--from=FORM [OPTION]... [FILE]...",
    .summary = "Converts tokens from text and from other programs' files to "
               "token\n"
               "records, the input of packstream. Reads each FILE in turn, or "
               "standard\n"
               "input if there is none or it is \"-\".",
    .entries = entries,
};

conf conf_defaults(void)
{
    conf c = {.ids_key = "input_ids", .schema = ps_schema_raw(PS_U16)};

    c.schema.framed = true;
    return c;
}

/* ---------------------------------------------------------------------
 * Combinations of options
 */

/* True if --ignore names `key`. */
static bool ignores(const conf *c, const char *key)
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

/* Refuses information that only a header can store. */
static int check_raw(const conf *c)
{
    const char *lost = NULL;

    if (c->schema.n_channels > 0)
        lost = "--channel";
    if (c->schema.labels != PS_LABELS_UNSTATED)
        lost = "--labels";
    if (c->tokenizer != NULL)
        lost = "--tokenizer";
    for (int i = 0; i < PS_SPECIALS; i++) {
        /* An id that is needed to read the input need not be stored. */
        const bool used = (i == PS_EOS && c->split == SPLIT_EOS) ||
                          (i == PS_BOS && c->split == SPLIT_BOS) ||
                          (i == PS_PAD && c->trim);

        if (c->schema.special[i] != PS_NO_ID && !used)
            lost = special_options[i];
    }
    if (c->schema.framed || lost == NULL)
        return STATUS_OK;
    return message_usage("%s cannot be used with --raw, which writes no "
                         "header to store it in", lost);
}

/* Refuses options that contradict each other about a key. */
static int check_keys(const conf *c)
{
    if (ignores(c, c->ids_key))
        return message_usage("--ignore=%s: this is the key of the token ids "
                             "(see --ids-key)",
                             message_name(c->ids_key));
    for (uint32_t i = 0; i < c->schema.n_channels; i++) {
        const char *name = c->schema.channels[i].name;

        if (strcmp(name, c->ids_key) == 0)
            return message_usage("--channel=%s: this is the key of the token "
                                 "ids (see --ids-key)",
                                 name);
        if (ignores(c, name))
            return message_usage("--channel=%s and --ignore=%s cannot be "
                                 "combined", name, name);
    }
    return STATUS_OK;
}

/*
 * Checks the special ids.  The pad id may be outside the vocabulary, since
 * padding never occurs in the text.
 */
static int check_ids(const ps_schema *s)
{
    const uint32_t max = s->token_type == PS_U16 ? UINT16_MAX : UINT32_MAX;

    if (s->token_type == PS_U16 && s->vocab_size > max + 1)
        return message_usage("a vocabulary of %" PRIu32 " does not fit u16 "
                             "tokens: use --type=u32",
                             s->vocab_size);
    for (int i = 0; i < PS_SPECIALS; i++) {
        const uint32_t id = s->special[i];

        if (id == PS_NO_ID)
            continue;
        if (id > max)
            return message_usage("%s=%" PRIu32 " does not fit u16 tokens: use "
                                 "--type=u32",
                                 special_options[i], id);
        if (i != PS_PAD && s->vocab_size != 0 && id >= s->vocab_size)
            return message_usage("%s=%" PRIu32 " is not below the "
                                 "vocabulary size %" PRIu32,
                                 special_options[i], id, s->vocab_size);
    }
    return STATUS_OK;
}

int conf_settle(conf *c)
{
    ps_schema *s = &c->schema;
    int status = forms_check(c);

    if (status == STATUS_OK && c->tokenizer != NULL && s->vocab_size == 0)
        status = tokenizer_vocabulary(c->tokenizer, &s->vocab_size);
    if (c->from == FROM_BYTES && s->vocab_size == 0)
        s->vocab_size = 256;

    /*
     * The default token type depends on the vocabulary size, or on the special
     * ids if it is not given.  The input may widen it.
     */
    if (!c->type_given) {
        c->type_open = forms_are_typed(c->from) && s->vocab_size == 0;
        if (s->vocab_size > UINT16_MAX + 1)
            s->token_type = PS_U32;
        for (int i = 0; i < PS_SPECIALS && c->type_open; i++)
            if (s->special[i] != PS_NO_ID && s->special[i] > UINT16_MAX)
                s->token_type = PS_U32;
    }

    if (status == STATUS_OK)
        status = state_file_check_options(c->state, c->resume, c->state_every,
                                   &c->output, 1);
    if (status == STATUS_OK)
        status = check_raw(c);
    if (status == STATUS_OK)
        status = check_keys(c);
    if (status == STATUS_OK)
        status = check_ids(s);
    if (status == STATUS_OK && c->tokenizer != NULL)
        status = tokenizer_digest(c->tokenizer, s->tokenizer);
    return status;
}
