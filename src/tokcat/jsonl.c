/*
 * jsonl.c - JSON Lines: an object a line, with the token ids under one key;
 * the other keys become channels.
 *
 * The first object tells what channels there are, the user what --ignore
 * leaves out; every other object has the same keys.  The lines after the
 * first are read by json_columns.c where it can; all others by jansson, which
 * tells their faults, too.
 *
 * SPDX-License-Identifier: MIT
 */

#include <float.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "common/bytes.h"
#include "tokcat/channel.h"
#include "tokcat/json_ignore.h"
#include "tokcat/reader.h"

/*
 * An object takes some twenty times the memory of its text, so lines must be
 * shorter than those of other forms.
 */
#define MAX_LINE ((size_t)64 * 1024 * 1024)

/* "a string", or a number as it was written, for messages. */
#define SHOWN_BYTES 48

static const char *show(const json_t *value, char shown[SHOWN_BYTES])
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return "a string";
    case JSON_ARRAY:
        return "a list";
    case JSON_OBJECT:
        return "an object";
    default:
        break;
    }
    memset(shown, 0, SHOWN_BYTES);
    (void)json_dumpb(value, shown, SHOWN_BYTES - 1,
                     JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    return shown;
}

/* True for a key other than that of the ids, unless --ignore names it. */
static bool is_channel(reader *r, const char *key)
{
    return strcmp(key, r->conf->ids_key) != 0 && !reader_ignores(r, key);
}

/* ---------------------------------------------------------------------
 * The channels, from the first object
 */

static int no_channel(const reader *r, const char *key, const json_t *value)
{
    char shown[SHOWN_BYTES];

    return reader_bad(r, "%s: %s is no channel; leave it out with "
                      "--ignore=%s", message_name(key), show(value, shown),
                      message_name(key));
}

/* A list has a value for each token; a number is for the whole sequence. */
static int learn_kind(const reader *r, const char *key, const json_t *value,
                      ps_kind *kind)
{
    *kind = json_is_array(value) ? PS_PER_TOKEN : PS_PER_SEQUENCE;
    if (json_is_string(value) || json_is_object(value))
        return no_channel(r, key, value);
    return STATUS_OK;
}

/* The type that the first values suggest; false if they suggest none. */
static bool guess_type(const json_t *value, ps_type *type)
{
    const bool list = json_is_array(value);
    const size_t n = list ? json_array_size(value) : 1;
    bool real = false;
    bool integer = false;
    bool boolean = false;

    for (size_t i = 0; i < n; i++) {
        const json_t *element = list ? json_array_get(value, i) : value;

        real = real || json_is_real(element);
        integer = integer || json_is_integer(element);
        boolean = boolean || json_is_boolean(element);
    }
    *type = real ? PS_F32 : integer ? PS_I32 : PS_U8;
    return real || integer || boolean;
}

static int learn_channel(reader *r, const char *key, const json_t *value)
{
    ps_schema *s = &r->out.schema;
    ps_channel c = {.kind = PS_PER_TOKEN};
    const known_channel *k;
    int status;

    if (!known_good_name(key))
        return reader_bad(r, "the key '%s' cannot name a channel; leave it "
                          "out with --ignore=%s", message_name(key),
                          message_name(key));
    memcpy(c.name, key, strlen(key));
    status = learn_kind(r, key, value, &c.kind);
    if (status != STATUS_OK)
        return status;

    k = known_find(key);
    if (k != NULL) {
        c.type = k->type;
    } else if (!guess_type(value, &c.type)) {
        /* To declare a list of strings would not help. */
        if (json_array_size(value) > 0 &&
            !json_is_null(json_array_get(value, 0)))
            return no_channel(r, key, value);
        return reader_bad(r, "%s: null does not tell the type; declare it "
                          "with --channel=%s:TYPE", key, key);
    }
    c.fill = known_fill(key, c.type);
    if (s->n_channels == PS_MAX_CHANNELS)
        return reader_bad(r, "%s: there can be no more than %d channels",
                          key, PS_MAX_CHANNELS);
    s->channels[s->n_channels++] = c;
    return STATUS_OK;
}

/*
 * Makes the channels of the stream: those that the user declared, in that
 * order, then the object's other keys as they come.
 */
static int learn_channels(reader *r, json_t *object)
{
    ps_schema *s = &r->out.schema;
    const char *key;
    json_t *value;
    int status;

    for (uint32_t i = 0; i < s->n_channels; i++) {
        ps_channel *c = &s->channels[i];

        value = json_object_get(object, c->name);
        if (value == NULL)
            return reader_bad(r, "no key '%s', which --channel declares",
                              c->name);
        status = learn_kind(r, c->name, value, &c->kind);
        if (status != STATUS_OK)
            return status;
    }
    json_object_foreach(object, key, value)
        if (is_channel(r, key) &&
            reader_find_channel(r, key) == PS_TOKENS) {
            status = learn_channel(r, key, value);
            if (status != STATUS_OK)
                return status;
        }
    if (!s->framed && s->n_channels > 0)
        return reader_bad(r, "%s: --raw cannot keep channels; leave it out "
                          "with --ignore=%s", s->channels[0].name,
                          s->channels[0].name);
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * The channels of every object
 */

/* Checks that an object has just the keys of the stream's channels. */
static int check_keys(reader *r, json_t *object)
{
    const ps_schema *s = &r->out.schema;
    const char *key;
    json_t *value;

    for (uint32_t i = 0; i < s->n_channels; i++) {
        const char *name = s->channels[i].name;
        const bool wants_list = s->channels[i].kind == PS_PER_TOKEN;

        value = json_object_get(object, name);
        if (value == NULL)
            return reader_bad(r, "no key '%s', which the first record has",
                              name);
        if (json_is_array(value) && !wants_list)
            return reader_bad(r, "%s: a list here, but not in the first "
                              "record", name);
        if (!json_is_array(value) && wants_list)
            return reader_bad(r, "%s: no list here, but one in the first "
                              "record", name);
    }
    json_object_foreach(object, key, value)
        if (is_channel(r, key) && reader_find_channel(r, key) == PS_TOKENS)
            return reader_bad(r, "the key '%s' is not in the first record",
                              message_name(key));
    return STATUS_OK;
}

/* `where` is "labels[3]". */
static int bad_value(const reader *r, const ps_channel *c, const char *where,
                     const json_t *value, element_result why)
{
    char buffer[SHOWN_BYTES];
    const char *shown = show(value, buffer);
    const char *type = ps_type_name(c->type);

    switch (why) {
    case ELEMENT_NULL:
        return reader_bad(r, "%s: null needs a channel of floats, and this "
                          "one is %s (see --channel)", where, type);
    case ELEMENT_FRACTION:
        return reader_bad(r, "%s: %s is not an integer, and the channel is "
                          "%s (see --channel)", where, shown, type);
    case ELEMENT_INEXACT:
        return reader_bad(r, "%s: %s has no exact %s (see --channel)", where,
                          shown, type);
    case ELEMENT_OUTSIDE:
        return reader_bad(r, "%s: %s does not fit %s (see --channel)", where,
                          shown, type);
    default:
        return reader_bad(r, "%s: %s is not a number", where, shown);
    }
}

/* Stores the channels of an object whose keys were checked. */
static int store_channels(const reader *r, const json_t *object,
                          uint32_t n_tok)
{
    const ps_schema *s = &r->out.schema;

    for (uint32_t i = 0; i < s->n_channels; i++) {
        const ps_channel *c = &s->channels[i];
        const json_t *value = json_object_get(object, c->name);
        const size_t width = ps_type_bytes(c->type);
        unsigned char *to =
            r->out.payload + ps_payload_offset(s, i, n_tok);
        element_result result;

        if (c->kind == PS_PER_SEQUENCE) {
            result = element_store(c->type, value, to);
            if (result != ELEMENT_OK)
                return bad_value(r, c, c->name, value, result);
            continue;
        }
        for (size_t k = 0; k < json_array_size(value); k++) {
            const json_t *element = json_array_get(value, k);
            char where[PS_NAME_BYTES + 24];

            result = element_store(c->type, element, to + k * width);
            if (result != ELEMENT_OK) {
                (void)snprintf(where, sizeof where, "%s[%zu]", c->name, k);
                return bad_value(r, c, where, element, result);
            }
        }
    }
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Objects
 */

static int store_ids(const reader *r, const json_t *ids)
{
    const size_t width = ps_type_bytes(r->out.schema.token_type);
    const uint32_t max = reader_max_id(r);
    char shown[SHOWN_BYTES];
    char reason[READER_WHY_BYTES];
    const char *why;

    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *value = json_array_get(ids, i);
        const json_int_t id = json_integer_value(value);

        if (json_is_integer(value) && id >= 0 && id <= max) {
            store_low(r->out.payload + i * width, (uint64_t)id, width);
            continue;
        }
        why = reader_above_max(r, reason);
        if (json_is_real(value))
            why = "is not an integer";
        else if (!json_is_integer(value))
            why = "is not a number";
        else if (id < 0)
            why = "is negative";
        return reader_bad(r, "%s[%zu]: %s %s", message_name(r->conf->ids_key),
                          i, show(value, shown), why);
    }
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * Lines of numbers
 */

/*
 * Tells json_columns.c the keys of the stream, whose schema is final.  Leaves
 * r->columns empty where a line can hold more than it reads.
 */
static int make_columns(reader *r)
{
    const conf *options = r->conf;
    const ps_schema *s = &r->out.schema;
    const uint32_t n = 1 + s->n_channels + options->n_ignored;
    json_column *column = calloc(n, sizeof *column);
    bool good = true;

    if (column == NULL) {
        message_errno("%s", input_name(&r->in));
        return STATUS_FAILURE;
    }
    column[0] = (json_column){.key = options->ids_key,
                              .width = ps_type_bytes(s->token_type),
                              .max = reader_max_id(r)};
    for (uint32_t i = 0; i < s->n_channels; i++) {
        const ps_channel *from = &s->channels[i];
        json_column *c = &column[1 + i];

        c->key = from->name;
        c->shape =
            from->kind == PS_PER_TOKEN ? COLUMN_LIST : COLUMN_NUMBER;
        c->width = ps_type_bytes(from->type);
        c->is_float = !element_range(from->type, &c->min, &c->max);
        if (c->is_float) {
            /* Up to here a float has all integers. */
            c->max = INT64_C(1) << (c->width == 8 ? DBL_MANT_DIG
                                                  : FLT_MANT_DIG);
            c->min = -c->max;
        }
    }
    for (uint32_t i = 0; i < options->n_ignored; i++)
        column[1 + s->n_channels + i] = (json_column){
            .key = options->ignored[i], .shape = COLUMN_LEFT_OUT};
    for (uint32_t i = 0; i < n; i++) {
        column[i].key_bytes = strlen(column[i].key);
        good = good && json_is_plain_key(column[i].key);
    }
    good = good && !options->json_trees;
    r->columns = (json_columns){.column = column, .n = good ? n : 0};
    return STATUS_OK;
}

/* Writes the columns of a line as a record of `n_tok` tokens. */
static int put_columns(reader *r, uint32_t n_tok)
{
    const ps_schema *s = &r->out.schema;
    const json_column *column = r->columns.column;
    int status;

    for (uint32_t i = 1 + s->n_channels; i < r->columns.n; i++)
        if (column[i].seen)
            (void)reader_ignores(r, column[i].key);
    if (s->n_channels == 0)
        return records_put(&r->out, n_tok, column[0].values);

    status = records_reserve(&r->out, (size_t)ps_payload_bytes(s, n_tok));
    if (status != STATUS_OK)
        return status;
    memcpy(r->out.payload, column[0].values, n_tok * column[0].width);
    for (uint32_t i = 0; i < s->n_channels; i++) {
        const json_column *c = &column[1 + i];
        const size_t n = c->shape == COLUMN_LIST ? n_tok : 1;

        memcpy(r->out.payload + ps_payload_offset(s, i, n_tok), c->values,
               n * c->width);
    }
    return records_put(&r->out, n_tok, r->out.payload);
}

/* ---------------------------------------------------------------------
 * Lines
 */

/* Limits on the keys that a message shows. */
#define SHOWN_KEYS 5
#define SHOWN_KEY_BYTES 32

/* An object without token ids, such as a row of text or of chat messages. */
static int no_ids(const reader *r, json_t *object)
{
    char keys[SHOWN_KEYS * (SHOWN_KEY_BYTES + sizeof ", ...") + 8] = "none";
    size_t end = 0;
    int n = 0;

    for (void *i = json_object_iter(object); i != NULL;
         i = json_object_iter_next(object, i)) {
        const char *key = json_object_iter_key(i);
        const bool cut = strlen(key) > SHOWN_KEY_BYTES;

        if (n == SHOWN_KEYS) {
            (void)snprintf(keys + end, sizeof keys - end, ", ...");
            break;
        }
        end += (size_t)snprintf(keys + end, sizeof keys - end, "%s%.*s%s",
                                n++ > 0 ? ", " : "", SHOWN_KEY_BYTES, key,
                                cut ? "..." : "");
    }
    return reader_bad(r, "no key '%.64s' (keys: %s): tokenize the text first, "
                      "or name the key of token ids with --ids-key",
                      message_name(r->conf->ids_key), message_name(keys));
}

static int take_object(reader *r, json_t *object)
{
    const ps_schema *s = &r->out.schema;
    const char *ids_key = r->conf->ids_key;
    const char *key;
    const json_t *ids;
    json_t *value;
    size_t n;
    int status;

    if (!json_is_object(object))
        return reader_bad(r, "not an object");
    ids = json_object_get(object, ids_key);
    if (ids == NULL)
        return no_ids(r, object);
    if (!json_is_array(ids))
        return reader_bad(r, "%s: not a list", message_name(ids_key));

    /* Every list that is not ignored has an element for each token. */
    n = json_array_size(ids);
    json_object_foreach(object, key, value)
        if (json_is_array(value) && is_channel(r, key) &&
            json_array_size(value) != n)
            return reader_bad(r, "%s has length %zu, %s has length %zu",
                              message_name(key), json_array_size(value),
                              message_name(ids_key), n);
    if (n == 0)
        return reader_empty(r, 1);

    if (r->out.writer != NULL) {
        status = check_keys(r, object);
    } else {
        status = learn_channels(r, object);
        if (status == STATUS_OK)
            status = records_start(&r->out);
        if (status == STATUS_OK)
            status = make_columns(r);
    }
    if (status == STATUS_OK && n > reader_max_tokens(r))
        status = reader_too_large(r);
    if (status == STATUS_OK)
        status = records_reserve(&r->out,
                                 (size_t)ps_payload_bytes(s, (uint32_t)n));
    if (status == STATUS_OK)
        status = store_ids(r, ids);
    if (status == STATUS_OK)
        status = store_channels(r, object, (uint32_t)n);
    if (status == STATUS_OK)
        status = records_put(&r->out, (uint32_t)n, r->out.payload);
    return status;
}

/*
 * Reads a line with the library, but for the values of keys to ignore; NULL
 * with the library's error, or for want of memory.
 */
static json_t *load_line(const reader *r, const input_line *line,
                         json_error_t *error)
{
    const conf *c = r->conf;
    const char *bytes = (const char *)line->bytes;
    char *copy = NULL;
    json_t *object;

    if (c->n_ignored > 0) {
        copy = memory_alloc(line->n);
        if (copy == NULL)
            return NULL;
        memcpy(copy, bytes, line->n);
        if (json_blank_ignored((unsigned char *)copy, line->n, c->ignored,
                               c->n_ignored))
            bytes = copy;
    }
    object = json_loadb(bytes, line->n,
                        JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, error);
    free(copy);
    return object;
}

/* jansson skips a NUL after a number or a literal, so refuse it first. */
static int bad_nul(const reader *r, const input_line *line,
                   const unsigned char *nul)
{
    uint64_t column = 1;

    for (const unsigned char *p = line->bytes; p < nul; p++)
        column += (*p & 0xc0) != 0x80; /* a character of UTF-8 */
    return input_bad_line(&r->in, column, "a NUL byte (byte %td of the line) "
                          "is not JSON; the file may be damaged",
                          nul - line->bytes + 1);
}

/* Reports what the library found wrong with a line. */
static int bad_json(const reader *r, const json_error_t *error)
{
    const uint64_t column = error->column > 0 ? (uint64_t)error->column : 1;

    if (json_error_code(error) == json_error_numeric_overflow)
        return input_bad_line(&r->in, column, "a number is too large "
                              "(integers reach to 9223372036854775807)");
    if (strstr(error->text, "near '" INPUT_BOM) != NULL)
        return input_bad_bom(&r->in, column);
    return input_bad_line(&r->in, column, "%s", message_name(error->text));
}

static int take_line(reader *r, const input_line *line)
{
    const unsigned char *nul;
    json_error_t error;
    json_t *object;
    size_t n;
    int status;

    if (input_is_blank(line))
        return reader_empty(r, 1);
    n = json_columns_read(&r->columns, line->bytes, line->n);
    if (n > 0 && n <= reader_max_tokens(r))
        return put_columns(r, (uint32_t)n);
    nul = memchr(line->bytes, '\0', line->n);
    if (nul != NULL)
        return bad_nul(r, line, nul);
    object = load_line(r, line, &error);
    if (object != NULL) {
        status = take_object(r, object);
        json_decref(object);
        return status;
    }
    if (memory_ran_out()) {
        message_error("%s: line %" PRIu64 ": out of memory",
                      input_name(&r->in), r->in.line);
        return STATUS_FAILURE;
    }
    return bad_json(r, &error);
}

const form_reader reader_jsonl = {
    .unit = "sequence",
    .learns = true,
    .max_line = MAX_LINE,
    .expected = "JSON",
    .skip_bom = true,
    .line = take_line,
};
