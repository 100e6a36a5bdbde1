/*
 * jsonl.c - JSON Lines: one object per line, with the token ids under one key.
 * The other keys become channels: lists, of a number or a vector per token; a
 * number or a declared vector per sequence; and declared lists of any length.
 *
 * The first object with tokens determines the channels.  Keys named by --ignore
 * and keys that cannot be channels are left out.  The object is then parsed
 * again, into columns of the right types.  All other objects must have the same
 * channels.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "tokcat/channel.h"
#include "tokcat/json_columns.h"
#include "tokcat/reader.h"

/* Maximum length of a line, in bytes.  The columns take four times as much. */
#define MAX_LINE ((size_t)64 * 1024 * 1024)

/* True for a length that a vector can have. */
static bool is_vector(size_t n)
{
    return n >= 2 && n <= PS_MAX_VECTOR;
}

/* The channel of a column, which must not be of an unknown key. */
static const ps_channel *channel_of(const reader *r, const json_column *c)
{
    return &r->out.schema.channels[c - r->columns.column - 1];
}

/* ---------------------------------------------------------------------
 * Messages
 */

/* Formats a value for messages: "a string", or the number as written. */
#define SHOWN_BYTES 48

static const char *show(const unsigned char *value, char shown[SHOWN_BYTES])
{
    switch (*value) {
    case '"':
        return "a string";
    case '[':
        return "a list";
    case '{':
        return "an object";
    default:
        break;
    }
    (void)snprintf(shown, SHOWN_BYTES, "%.*s",
                   (int)strcspn((const char *)value, ",]} \t\r\n"),
                   (const char *)value);
    return shown;
}

/* Column of a byte, in UTF-8 characters, from 1. */
static uint64_t column_of(const json_columns *t, const unsigned char *at)
{
    uint64_t column = 1;

    for (const unsigned char *p = t->line; p < at; p++)
        column += (*p & 0xc0) != 0x80;
    return column;
}

/* Maximum length of quoted text in messages, in bytes. */
#define NEAR_BYTES 16

/* Reports why a line is not JSON. */
static int bad_json(const reader *r, const input_line *line)
{
    const json_columns *t = &r->columns;
    const unsigned char *nul = memchr(line->bytes, '\0', line->n);
    const size_t left = (size_t)(t->end - t->broken_at);
    const uint64_t column = column_of(t, t->broken_at);
    char near[NEAR_BYTES + 1] = "";

    if (nul != NULL)
        return input_bad_line(&r->in, column_of(t, nul), "a NUL byte (byte %td "
                              "of the line) is not JSON: the file may be "
                              "damaged", nul - line->bytes + 1);
    if (left >= sizeof INPUT_BOM - 1 &&
        memcmp(t->broken_at, INPUT_BOM, sizeof INPUT_BOM - 1) == 0)
        return input_bad_bom(&r->in, column);
    if (left == 0)
        return input_bad_line(&r->in, column, "%s at the end of the line: an "
                              "object must be on one line, as jq -c writes it",
                              t->broken);
    if (*t->broken_at < 0x20 || *t->broken_at >= 0x7f)
        return input_bad_line(&r->in, column, "%s: byte 0x%02x", t->broken,
                              (unsigned)*t->broken_at);
    memcpy(near, t->broken_at, left < NEAR_BYTES ? left : NEAR_BYTES);
    return input_bad_line(&r->in, column, "%s near '%s'%s", t->broken,
                          message_name(near),
                          t->broken_at == t->line && *t->line == '['
                              ? ": write an object on each line, as jq -c "
                                "'.[]' does"
                              : "");
}

/* Maximum number and length of the keys shown in a message. */
#define SHOWN_KEYS 5
#define SHOWN_KEY_BYTES 32

/*
 * Reports an object without token ids, such as a row of text or chat messages.
 */
static int no_ids(const reader *r)
{
    const json_columns *t = &r->columns;
    char keys[SHOWN_KEYS * (SHOWN_KEY_BYTES + sizeof ", ...") + 8] = "none";
    size_t end = 0;
    int n = 0;

    for (uint32_t i = 0; i < t->n + t->n_strays; i++) {
        const json_column *c = &t->column[i];

        if (c->at == NULL)
            continue;
        if (n == SHOWN_KEYS) {
            (void)snprintf(keys + end, sizeof keys - end, ", ...");
            break;
        }
        end += (size_t)snprintf(
            keys + end, sizeof keys - end, "%s%.*s%s", n++ > 0 ? ", " : "",
            SHOWN_KEY_BYTES, c->key,
            c->key_bytes > SHOWN_KEY_BYTES ? "..." : "");
    }
    return reader_bad(r, "no key '%.64s' (keys: %s): tokenize the rows with "
                      "'python -m packstream.tokenize', or name the key of "
                      "token ids with --ids-key",
                      message_name(r->conf->ids_key), message_name(keys));
}

/*
 * Returns why a key is left out, or NULL.  A list of numbers with an invalid
 * name is not left out but refused, since it can be per-token data.  Values
 * that do not fit a declared or well-known channel are refused, too.
 */
static const char *why_left_out(const json_columns *t, const json_column *c,
                                char shown[SHOWN_BYTES])
{
    if (c < t->column + t->n || known_find(c->key) != NULL)
        return NULL;
    if ((c->kinds & KIND_OTHER) != 0)
        return c->is_list ? "not a list of numbers" : show(c->at, shown);
    if ((c->kinds & KIND_NUMBERS) == 0)
        return c->length == 0   ? "an empty list"
               : c->kinds == 0 ? "lists without numbers"
                               : "null (see --channel)";
    if (!c->is_list && !known_good_name(c->key))
        return "not a valid channel name";
    return NULL;
}

static int no_channel(const reader *r, const json_column *c)
{
    const json_columns *t = &r->columns;
    char shown[SHOWN_BYTES];

    return input_bad_line(&r->in, column_of(t, c->at), "%s: %s%s: use "
                          "--ignore=%s", c->key,
                          c->is_list ? "not a list of numbers"
                                     : show(c->at, shown),
                          c->is_list ? "" : " is not a number", c->key);
}

/* Without such a key, tokens that must not be learnt would be targets. */
static bool marks_targets(const char *key)
{
    const size_t n = strlen(key);

    return strcmp(key, "labels") == 0 ||
           (n >= 4 && strcmp(key + n - 4, "mask") == 0);
}

/* Reports a list that does not have one element per token. */
static int bad_length(const reader *r, const json_column *c)
{
    const json_columns *t = &r->columns;
    const json_column *ids = &t->column[0];
    const char *key = message_name(c->key);
    char declare[PS_NAME_BYTES + 120] = "";

    if (c->is_open && !c->is_nested && known_find(c->key) == NULL &&
        known_good_name(c->key))
        (void)snprintf(declare, sizeof declare,
                       is_vector(c->length)
                           ? ", or --channel=%s:TYPE[%zu] for a vector per "
                             "sequence, or TYPE[] for a list of any length"
                           : ", or --channel=%s:TYPE[] for a list of any "
                             "length",
                       c->key, c->length);
    if (marks_targets(c->key))
        return input_bad_line(&r->in, column_of(t, c->at), "%s has length %zu, "
                              "but %s has length %zu: fix or remove the row",
                              key, c->length, message_name(ids->key),
                              ids->length);
    return input_bad_line(&r->in, column_of(t, c->at), "%s has length %zu, but "
                          "%s has length %zu: use --ignore=%s%s",
                          key, c->length, message_name(ids->key), ids->length,
                          key, declare);
}

/*
 * Reports a vector whose length is not that of the channel, or in the first
 * record that of the first vector.
 */
static int bad_vector(const reader *r, const json_column *c)
{
    const json_columns *t = &r->columns;
    const char *key = message_name(c->key);
    char index[24] = "";
    char expected[PS_NAME_BYTES + 64];
    char type[PS_TYPE_TEXT];

    if (c->count > 0) {
        ps_channel_type(channel_of(r, c), type);
        (void)snprintf(expected, sizeof expected, "the channel is %s", type);
    } else {
        (void)snprintf(expected, sizeof expected, "%.64s[0] has length %zu",
                       key, c->vector);
    }
    if (!c->is_list)
        return input_bad_line(&r->in, column_of(t, c->at), "%s: is not a list, "
                              "but %s: use --ignore=%s", key, expected, key);
    if (!c->is_nested)
        return input_bad_line(&r->in, column_of(t, c->at), "%s has length %zu, "
                              "but %s: use --ignore=%s", key, c->length,
                              expected, key);
    (void)snprintf(index, sizeof index, "[%zu]", c->ragged_index);
    return input_bad_line(&r->in, column_of(t, c->ragged_at), "%s%s has length "
                          "%zu, but %s: use --ignore=%s",
                          key, index, c->ragged_length, expected, key);
}

/* Reports the first value that does not fit its column. */
static int bad_value(const reader *r)
{
    const json_columns *t = &r->columns;
    const json_column *c = t->misfit;
    const uint64_t column = column_of(t, t->misfit_at);
    char where[PS_NAME_BYTES + 48];
    char buffer[SHOWN_BYTES];
    char reason[READER_WHY_BYTES];
    const char *shown = show(t->misfit_at, buffer);
    const char *why = "does not fit";

    if (c->is_ids) {
        why = t->misfit_why == ELEMENT_NO_NUMBER  ? "is not a number"
              : t->misfit_why == ELEMENT_FRACTION ? "is not an integer"
              : *t->misfit_at == '-'              ? "is negative"
                                     : reader_above_max(r, reason);
        return input_bad_line(&r->in, column, "%s[%zu]: %s %s",
                              message_name(c->key), t->misfit_index, shown,
                              why);
    }
    if (c->is_nested && t->misfit_why != ELEMENT_NO_VECTOR)
        (void)snprintf(where, sizeof where, "%s[%zu][%zu]", c->key,
                       t->misfit_vector, t->misfit_index);
    else
        (void)snprintf(where, sizeof where, c->is_list ? "%s[%zu]" : "%s",
                       c->key,
                       c->is_nested ? t->misfit_vector : t->misfit_index);
    if (t->misfit_why == ELEMENT_NO_VECTOR)
        return input_bad_line(&r->in, column, "%s: %s is not a vector: use "
                              "--ignore=%s", where, shown, c->key);
    if (t->misfit_why == ELEMENT_NO_NUMBER)
        return input_bad_line(&r->in, column, "%s: %s is not a number: use "
                              "--ignore=%s", where, shown,
                              c->key);
    if (t->misfit_why == ELEMENT_NULL)
        why = "needs a channel of floats, but the channel is";
    if (t->misfit_why == ELEMENT_FRACTION)
        why = "is not an integer, but the channel is";
    if (t->misfit_why == ELEMENT_INEXACT)
        why = "has no exact";
    return input_bad_line(&r->in, column, "%s: %s %s %s: set its type with "
                          "--channel=%s:TYPE, or use --ignore=%s",
                          where, shown, why,
                          ps_type_name(c->type), c->key, c->key);
}

/* ---------------------------------------------------------------------
 * The channels, from the first object
 */

/* Chooses a type from the kinds of the first values. */
static ps_type guess_type(unsigned kinds)
{
    return (kinds & (KIND_REAL | KIND_NULL)) != 0 ? PS_F32
           : (kinds & KIND_WIDE) != 0             ? PS_I64
           : (kinds & KIND_INTEGER) != 0          ? PS_I32
                                                  : PS_U8;
}

/* A plain list in a channel of vectors is one vector. */
static ps_kind kind_of(const json_column *c)
{
    if (c->is_own)
        return PS_LIST;
    return (c->count > 0 ? c->is_nested : c->is_list) ? PS_PER_TOKEN
                                                      : PS_PER_SEQUENCE;
}

/* The vector length of a channel, 0 for single values. */
static uint32_t count_of(const json_column *c)
{
    return c->is_nested ? (uint32_t)c->vector : c->count;
}

static int learn_channel(reader *r, const json_column *from)
{
    ps_schema *s = &r->out.schema;
    const char *key = from->key;
    const known_channel *k = known_find(key);
    ps_channel c = {.kind = kind_of(from),
                    .count = count_of(from),
                    .type = k != NULL ? k->type : guess_type(from->kinds)};

    if (!known_good_name(key))
        return reader_bad(r, "the key '%s' is not a valid channel name: use "
                          "--ignore=%s", message_name(key),
                          message_name(key));
    memcpy(c.name, key, from->key_bytes);
    c.fill = known_fill(key, c.type);
    if (s->n_channels == PS_MAX_CHANNELS)
        return reader_bad(r, "%s: exceeds the limit of %d channels: use "
                          "--ignore for some", key,
                          PS_MAX_CHANNELS);
    s->channels[s->n_channels++] = c;
    return STATUS_OK;
}

/*
 * Defines the channels of the stream: first the channels that the user
 * declared, then the other keys of the object, both in their order of
 * appearance.
 */
static int learn_channels(reader *r)
{
    const json_columns *t = &r->columns;
    ps_schema *s = &r->out.schema;
    char shown[SHOWN_BYTES];
    int status = STATUS_OK;

    for (uint32_t i = 0; i < s->n_channels; i++) {
        const json_column *c = &t->column[1 + i];

        if (c->at == NULL)
            return reader_bad(r, "no key '%s', which --channel declares",
                              c->key);
        s->channels[i].kind = kind_of(c);
        s->channels[i].count = c->is_own ? c->count : count_of(c);
    }
    for (uint32_t i = 0; i < t->n_strays && status == STATUS_OK; i++) {
        const json_column *c = &t->column[t->n + i];
        const char *why = why_left_out(t, c, shown);

        status = why != NULL ? reader_leave_out(r, c->key, why)
                             : learn_channel(r, c);
    }
    if (status == STATUS_OK && !s->framed &&
        reader_find_channel(r, "attention_mask") != PS_TOKENS)
        return reader_bad(r, "attention_mask: --raw stores no channels and "
                          "cannot remove masked padding: write framed records");
    if (status == STATUS_OK && !s->framed && s->n_channels > 0)
        return reader_bad(r, "%s: --raw stores no channels: use --ignore=%s, "
                          "or write framed records", s->channels[0].name,
                          s->channels[0].name);
    return status;
}

/* ---------------------------------------------------------------------
 * The columns of every object
 */

/* Number of columns: one for the ids, one per channel and per ignored key. */
static uint32_t count_columns(const reader *r)
{
    return 1 + r->out.schema.n_channels + r->conf->n_ignored + r->n_left_out;
}

/*
 * Creates the columns.  The columns of channels are open until the first object
 * shows their kind.
 */
static int make_columns(reader *r)
{
    const conf *options = r->conf;
    const ps_schema *s = &r->out.schema;
    json_columns *t = &r->columns;
    json_column *c;

    if (!json_columns_open(t, count_columns(r)))
        return reader_no_memory(r);
    c = t->column;
    *c = json_column_of(options->ids_key, s->token_type);
    c->is_ids = true;
    c->max = reader_max_id(r);
    for (uint32_t i = 0; i < s->n_channels; i++) {
        const bool open = r->out.writer == NULL;

        *++c = json_column_of(s->channels[i].name,
                              open ? PS_F64 : s->channels[i].type);
        c->is_open = open;
        c->count = s->channels[i].count;
        c->is_own = s->channels[i].kind == PS_LIST;
    }
    for (uint32_t i = 0; i < options->n_ignored + r->n_left_out; i++) {
        *++c = json_column_of(i < options->n_ignored
                                  ? options->ignored[i]
                                  : r->left_out[i - options->n_ignored],
                              PS_U8);
        c->is_ignored = true;
    }
    return STATUS_OK;
}

/*
 * Checks a value with vectors, or of a channel of vectors: all have the same
 * length, and a list has one per token.  Channels with well-known names have
 * vectors only if they are declared.
 */
static int check_vectors(const reader *r, const json_column *c)
{
    const json_columns *t = &r->columns;

    if (c->count == 0 && known_find(c->key) != NULL)
        return no_channel(r, c);
    if (!c->is_list)
        return bad_vector(r, c);
    if ((c->is_nested || c->length == 0) &&
        c->length != t->column[0].length)
        return bad_length(r, c);
    if (c->is_nested ? c->ragged_at != NULL
                     : c->length > 0 && c->length != c->count)
        return bad_vector(r, c);
    if (c->count == 0 && !is_vector(c->vector))
        return input_bad_line(&r->in, column_of(t, c->at), "%s: vectors of "
                              "length %zu, but the limits are 2 and %d: use "
                              "--ignore=%s", message_name(c->key), c->vector,
                              PS_MAX_VECTOR, message_name(c->key));
    return STATUS_OK;
}

/* Checks a list of its own length, of numbers or of vectors. */
static int check_list(const reader *r, const json_column *c)
{
    const char *key = message_name(c->key);

    if (c->is_list && c->length == 0)
        return STATUS_OK;
    if (c->is_list && c->is_nested == (c->count > 0))
        return c->is_nested && c->ragged_at != NULL ? bad_vector(r, c)
                                                    : STATUS_OK;
    return input_bad_line(&r->in, column_of(&r->columns, c->at),
                          "%s: is not a list of %s, as --channel declares%s",
                          key, c->count > 0 ? "vectors" : "numbers",
                          c->is_nested ? ": for vectors of N numbers, use "
                                         "TYPE[N][]"
                                       : "");
}

/*
 * Checks an object, even if it has no tokens: values must be numbers, and lists
 * must have one element per token.
 */
static int check_values(reader *r)
{
    const json_columns *t = &r->columns;
    const json_column *ids = &t->column[0];
    const uint32_t n = t->n + t->n_strays;
    char shown[SHOWN_BYTES];

    for (uint32_t i = 1; i < t->n; i++)
        if (t->column[i].is_ignored && t->column[i].at != NULL)
            (void)reader_ignores(r, t->column[i].key);
    if (ids->at == NULL)
        return no_ids(r);
    if (!ids->is_list)
        return reader_bad(r, "%s: not a list", message_name(ids->key));
    for (uint32_t i = 0; i < n; i++) {
        const json_column *c = &t->column[i];
        int status;

        if (c->at == NULL || c->is_ignored ||
            why_left_out(t, c, shown) != NULL)
            continue;
        if ((c->kinds & KIND_OTHER) != 0)
            return c->is_open ? no_channel(r, c) : bad_value(r);
        if (c->is_own) {
            status = check_list(r, c);
            if (status != STATUS_OK)
                return status;
            continue;
        }
        if (c->count == 0 && !c->is_nested) {
            if (c->is_list && c->length != ids->length)
                return bad_length(r, c);
            continue;
        }
        status = check_vectors(r, c);
        if (status != STATUS_OK)
            return status;
    }
    if (t->n_strays == JSON_STRAYS)
        return reader_bad(r, "at least %d unknown keys: use --ignore for some",
                          JSON_STRAYS);
    return STATUS_OK;
}

/* Reports a value per token in a channel per sequence, or the reverse. */
static int bad_kind(const reader *r, const json_column *c)
{
    static const char *const why[2][2] = {
        {"is not a list, but was in the first record",
         "is a list, but was not in the first record"},
        {"is one vector, but was a list of vectors in the first record",
         "is a list of vectors, but was one vector in the first record"}};

    return input_bad_line(&r->in, column_of(&r->columns, c->at), "%s: %s: use "
                          "--ignore=%s", c->key,
                          why[c->count > 0][kind_of(c) == PS_PER_TOKEN],
                          c->key);
}

/* Checks that an object has exactly the keys of the stream's channels. */
static int check_keys(reader *r)
{
    const json_columns *t = &r->columns;
    const ps_schema *s = &r->out.schema;
    char shown[SHOWN_BYTES];

    for (uint32_t i = 0; i < s->n_channels; i++) {
        const json_column *c = &t->column[1 + i];

        if (c->at == NULL)
            return marks_targets(c->key)
                       ? reader_bad(r, "no key '%s', which the first record "
                                    "has: add it, or remove the row", c->key)
                       : reader_bad(r, "no key '%s', which the first record "
                                    "has: use --ignore=%s", c->key, c->key);
        if (kind_of(c) != s->channels[i].kind)
            return bad_kind(r, c);
    }
    for (uint32_t i = 0; i < t->n_strays; i++) {
        const json_column *c = &t->column[t->n + i];
        const char *why = why_left_out(t, c, shown);
        int status;

        if (why == NULL)
            return input_bad_line(&r->in, column_of(t, c->at), "the key '%s' "
                                  "is not in the first record: use --ignore=%s",
                                  message_name(c->key),
                                  message_name(c->key));
        status = reader_leave_out(r, c->key, why);
        if (status != STATUS_OK)
            return status;
    }
    return t->misfit_at != NULL ? bad_value(r) : STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Records
 */

/*
 * Removes padding: tokens at either end that have an attention_mask of 0, and
 * with --trim-pad also pad ids at the end.
 */
static void trim(reader *r, size_t *begin, size_t *end)
{
    const ps_schema *s = &r->out.schema;
    const json_column *ids = &r->columns.column[0];
    const uint32_t i = reader_find_channel(r, "attention_mask");

    if (i != PS_TOKENS && s->channels[i].kind == PS_PER_TOKEN) {
        const json_column *mask = &r->columns.column[1 + i];
        const size_t n = *end;

        while (*end > 0 && all_zero(mask->values + (*end - 1) * mask->width,
                                    mask->width))
            --*end;
        while (*begin < *end && all_zero(mask->values + *begin * mask->width,
                                         mask->width))
            ++*begin;
        r->n_padding += n - (*end - *begin);
    }
    while (r->conf->trim && *end > *begin &&
           (ids->width == 2 ? load_u16(ids->values + 2 * (*end - 1))
                            : load_u32(ids->values + 4 * (*end - 1))) ==
               s->special[PS_PAD])
        --*end;
}

static size_t element_bytes(const json_column *c)
{
    return c->count > 0 ? c->count * c->width : c->width;
}

/* Bytes of the elements of all lists of their own length. */
static size_t list_bytes(const reader *r)
{
    size_t bytes = 0;

    for (uint32_t i = 1; i <= r->out.schema.n_channels; i++)
        if (r->columns.column[i].is_own)
            bytes += r->columns.column[i].length *
                     element_bytes(&r->columns.column[i]);
    return bytes;
}

/* Writes the columns as a record. */
static int put_columns(reader *r)
{
    const ps_schema *s = &r->out.schema;
    const json_column *column = r->columns.column;
    size_t begin = 0;
    size_t end = column[0].length;
    size_t lists; /* offset of the next list in the payload */
    uint32_t n_tok;
    int status;

    trim(r, &begin, &end);
    if (begin == end)
        return reader_empty(r, 1);
    if (end - begin > reader_max_tokens(r))
        return reader_too_large(r);
    n_tok = (uint32_t)(end - begin);
    if (s->n_channels == 0)
        return state_put(&r->state, &r->out, n_tok,
                         column[0].values + begin * column[0].width);

    lists = (size_t)ps_payload_bytes(s, n_tok);
    status = records_reserve(&r->out, lists + list_bytes(r));
    if (status != STATUS_OK)
        return status;
    memcpy(r->out.payload, column[0].values + begin * column[0].width,
           n_tok * column[0].width);
    for (uint32_t i = 0; i < s->n_channels; i++) {
        const json_column *c = &column[1 + i];
        unsigned char *to = r->out.payload + ps_payload_offset(s, i, n_tok);
        const size_t bytes = element_bytes(c);

        if (kind_of(c) == PS_PER_TOKEN) {
            memcpy(to, c->values + begin * bytes, n_tok * bytes);
        } else if (c->is_own) {
            store_u32(to, (uint32_t)c->length);
            memcpy(r->out.payload + lists, c->values, c->length * bytes);
            lists += c->length * bytes;
        } else {
            memcpy(to, c->values, bytes);
        }
    }
    return state_put(&r->state, &r->out, n_tok, r->out.payload);
}

static int take_line(reader *r, const input_line *line)
{
    json_columns *t = &r->columns;
    int status = STATUS_OK;

    if (input_is_blank(line))
        return reader_empty(r, 1);
    if (t->n != count_columns(r))
        status = make_columns(r);
    if (status != STATUS_OK)
        return status;
    if (!json_columns_read(t, line->bytes, line->n))
        return t->broken != NULL ? bad_json(r, line) : reader_no_memory(r);
    status = check_values(r);
    if (status != STATUS_OK)
        return status;
    if (t->column[0].length == 0)
        return reader_empty(r, 1);
    if (r->out.writer != NULL) {
        status = check_keys(r);
        return status == STATUS_OK ? put_columns(r) : status;
    }
    status = learn_channels(r);
    if (status == STATUS_OK)
        status = state_start(&r->state, &r->out);
    if (status == STATUS_OK)
        status = make_columns(r);
    return status == STATUS_OK ? take_line(r, line) : status;
}

const form_reader reader_jsonl = {
    .unit = "sequence",
    .learns = true,
    .max_line = MAX_LINE,
    .expected = "JSON",
    .skip_bom = true,
    .line = take_line,
};
