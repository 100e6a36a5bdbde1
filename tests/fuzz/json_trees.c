/*
 * json_trees.c - JSON Lines read with jansson, which builds a tree for each
 * line: the reference for tokcat/jsonl.c.
 *
 * The reader of the form is replaced by one that can switch between both.
 *
 * SPDX-License-Identifier: MIT
 */

#define reader_jsonl reader_columns
#include "tokcat/jsonl.c"
#undef reader_jsonl
extern const form_reader reader_jsonl;

#include "json_trees.h"

#include <jansson.h>
#include <stdlib.h>

#include "fuzz.h"

static int refuse(const reader *r)
{
    return reader_bad(r, "refused");
}

/* -------------------------------------------------------- ignored values */

/* The end of the string that begins at `at`, or n. */
static size_t after_string(const char *line, size_t n, size_t at)
{
    for (at++; at < n && line[at] != '"'; at++)
        if (line[at] == '\\')
            at++;
    return at < n ? at + 1 : n;
}

static size_t after_blanks(const char *line, size_t n, size_t at)
{
    while (at < n && strchr(" \t\r", line[at]) != NULL)
        at++;
    return at;
}

/* The end of the value that begins at `at`, or n. */
static size_t after_value(const char *line, size_t n, size_t at)
{
    size_t depth = 0;

    while (at < n) {
        const char c = line[at];

        if (c == '"') {
            at = after_string(line, n, at);
            if (depth == 0)
                return at;
            continue;
        }
        if (depth == 0 && strchr(",}] \t\r", c) != NULL)
            return at;
        at++;
        if (c == '[' || c == '{')
            depth++;
        else if ((c == ']' || c == '}') && --depth == 0)
            return at;
    }
    return n;
}

/* True if the text, a JSON string, is a key that --ignore names. */
static bool names_ignored(reader *r, const char *text, size_t n)
{
    json_t *key =
        json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    const bool found =
        json_is_string(key) &&
        strlen(json_string_value(key)) == json_string_length(key) &&
        reader_ignores(r, json_string_value(key));

    json_decref(key);
    return found;
}

/* Overwrites a string, an object or a list with {} and blanks. */
static void empty_value(char *line, size_t from, size_t to)
{
    memset(line + from, ' ', to - from);
    line[from] = '{';
    line[from + 1] = '}';
}

/*
 * The same for the elements of a list that are no numbers.  In a list of
 * vectors, `nested`, it is for those of the vectors.
 */
static void empty_elements(char *line, size_t at, size_t end, bool nested)
{
    do {
        const size_t from = after_blanks(line, end, at + 1);

        at = after_value(line, end, from);
        if (at < end && at - from >= 2 && nested && line[from] == '[')
            empty_elements(line, from, at, false);
        else if (at < end && at - from >= 2 &&
                 strchr("\"{[", line[from]) != NULL)
            empty_value(line, from, at);
        at = after_blanks(line, end, at);
    } while (at < end && line[at] == ',');
}

/*
 * The same for a value that is not a number, and for such elements of a list:
 * only their ends are checked.
 */
static void empty_values(char *line, size_t n, size_t at, size_t end)
{
    if (end - at < 2 || end == n)
        return;
    if (line[at] == '"' || line[at] == '{')
        empty_value(line, at, end);
    if (line[at] == '[')
        empty_elements(line, at, end,
                       line[after_blanks(line, end, at + 1)] == '[');
}

/* Overwrites ignored values with 0 and blanks. */
static void blank_ignored(reader *r, char *line, size_t n)
{
    size_t at = after_blanks(line, n, 0);

    if (at == n || line[at] != '{')
        return;
    do {
        const size_t key = after_blanks(line, n, at + 1);
        size_t end, value;

        if (key == n || line[key] != '"')
            return;
        end = after_string(line, n, key);
        value = after_blanks(line, n, end);
        if (value == n || line[value] != ':')
            return;
        value = after_blanks(line, n, value + 1);
        at = after_value(line, n, value);
        if (at > value && names_ignored(r, line + key, end - key)) {
            memset(line + value, ' ', at - value);
            line[value] = '0';
        }
        empty_values(line, n, value, at);
        at = after_blanks(line, n, at);
    } while (at < n && line[at] == ',');
}

/* -------------------------------------------------------------- channels */

/* True for a key other than that of the ids, unless --ignore names it. */
static bool names_channel(reader *r, const char *key)
{
    return strcmp(key, r->conf->ids_key) != 0 && !reader_ignores(r, key);
}

/* A list whose first element is a list. */
static bool is_nested(const json_t *value)
{
    return json_is_array(json_array_get(value, 0));
}

/* Vector length of a channel that is declared with `count`. */
static uint32_t count_of_tree(uint32_t count, const json_t *value)
{
    return is_nested(value) ? (uint32_t)json_array_size(
                                  json_array_get(value, 0))
                            : count;
}

static ps_kind kind_of_tree(uint32_t count, const json_t *value)
{
    return is_nested(value) || (count == 0 && json_is_array(value))
               ? PS_PER_TOKEN
               : PS_PER_SEQUENCE;
}

/* Number of values in a list, the vectors of a list, or a single value. */
static size_t count_values(const json_t *value)
{
    size_t n = 0;

    if (!json_is_array(value))
        return 1;
    for (size_t i = 0; i < json_array_size(value); i++)
        n += count_values(json_array_get(value, i));
    return n;
}

/* The i-th of them, if the vectors have equal lengths. */
static const json_t *value_of(const json_t *value, size_t i)
{
    const size_t n = json_array_size(json_array_get(value, 0));

    if (!json_is_array(value))
        return value;
    return is_nested(value)
               ? json_array_get(json_array_get(value, i / n), i % n)
               : json_array_get(value, i);
}

static bool learn_tree(reader *r, const char *key, const json_t *value)
{
    ps_schema *s = &r->out.schema;
    const size_t n = count_values(value);
    const known_channel *k = known_find(key);
    bool real = false, wide = false, integer = false;
    ps_channel c = {.kind = kind_of_tree(0, value),
                    .count = count_of_tree(0, value)};

    for (size_t i = 0; i < n; i++) {
        const json_t *element = value_of(value, i);

        real = real || json_is_real(element) || json_is_null(element);
        integer = integer || json_is_integer(element);
        wide = wide || json_integer_value(element) < INT32_MIN ||
               json_integer_value(element) > INT32_MAX;
    }
    if (!known_good_name(key) || s->n_channels == PS_MAX_CHANNELS)
        return false;
    c.type = k != NULL ? k->type
             : real    ? PS_F32
             : wide    ? PS_I64
             : integer ? PS_I32
                       : PS_U8;
    memcpy(c.name, key, strlen(key));
    c.fill = known_fill(key, c.type);
    s->channels[s->n_channels++] = c;
    return true;
}

/* A number, true, false or null. */
static bool is_scalar(const json_t *value)
{
    return !json_is_string(value) && !json_is_object(value) &&
           !json_is_array(value);
}

static bool is_vector_tree(const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!is_scalar(json_array_get(value, i)))
            return false;
    return json_is_array(value);
}

/* True unless it is a scalar, a list of scalars, or a list of such lists. */
static bool has_others(const json_t *value)
{
    if (!is_nested(value))
        return !is_scalar(value) && !is_vector_tree(value);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!is_vector_tree(json_array_get(value, i)))
            return true;
    return false;
}

/* A number, true or false, or a list with one of them. */
static bool has_numbers(const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++)
        if (has_numbers(json_array_get(value, i)))
            return true;
    return json_is_number(value) || json_is_boolean(value);
}

/*
 * An unknown key whose value has no numbers, or a single one under a name that
 * no channel can have.
 */
static bool is_left_out(reader *r, const char *key, const json_t *value)
{
    return names_channel(r, key) && reader_find_channel(r, key) == PS_TOKENS &&
           known_find(key) == NULL &&
           (has_others(value) || !has_numbers(value) ||
            (!json_is_array(value) && !known_good_name(key)));
}

static bool learn_trees(reader *r, json_t *object)
{
    ps_schema *s = &r->out.schema;
    const char *key;
    json_t *value;

    for (uint32_t i = 0; i < s->n_channels; i++) {
        value = json_object_get(object, s->channels[i].name);
        if (value == NULL)
            return false;
        s->channels[i].kind = kind_of_tree(s->channels[i].count, value);
        s->channels[i].count = count_of_tree(s->channels[i].count, value);
    }
    json_object_foreach(object, key, value)
        if (is_left_out(r, key, value)
                ? reader_leave_out(r, key, "") != STATUS_OK
                : names_channel(r, key) &&
                      reader_find_channel(r, key) == PS_TOKENS &&
                      !learn_tree(r, key, value))
            return false;
    return s->framed || s->n_channels == 0;
}

/* True if the object's keys are exactly the stream's channels. */
static bool has_channels(reader *r, json_t *object)
{
    const ps_schema *s = &r->out.schema;
    const char *key;
    json_t *value;

    for (uint32_t i = 0; i < s->n_channels; i++) {
        value = json_object_get(object, s->channels[i].name);
        if (value == NULL || kind_of_tree(s->channels[i].count, value) !=
                                 s->channels[i].kind)
            return false;
    }
    json_object_foreach(object, key, value)
        if (is_left_out(r, key, value)
                ? reader_leave_out(r, key, "") != STATUS_OK
                : names_channel(r, key) &&
                      reader_find_channel(r, key) == PS_TOKENS)
            return false;
    return true;
}

/* True if a value has one element per token, or a vector as declared. */
static bool has_length(reader *r, const char *key, const json_t *value,
                       size_t length)
{
    const uint32_t c = reader_find_channel(r, key);
    const size_t n = json_array_size(value);
    size_t count = c != PS_TOKENS ? r->out.schema.channels[c].count : 0;

    if (!is_nested(value)) {
        if (count > 0)
            return json_is_array(value) && (n == count || n + length == 0);
        return !json_is_array(value) || n == length;
    }
    if (count == 0) {
        if (known_find(key) != NULL ||
            (c != PS_TOKENS && r->out.writer != NULL))
            return false;
        count = json_array_size(json_array_get(value, 0));
    }
    for (size_t i = 0; i < n; i++)
        if (json_array_size(json_array_get(value, i)) != count)
            return false;
    return n == length && count >= 2 && count <= PS_MAX_VECTOR;
}

/* Lists are as long as that of the ids; other values are scalars. */
static bool has_scalars(reader *r, json_t *object, size_t length)
{
    unsigned unknown = 0;
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value) {
        if (reader_ignores(r, key))
            continue;
        unknown += names_channel(r, key) &&
                   reader_find_channel(r, key) == PS_TOKENS;
        if (is_left_out(r, key, value))
            continue;
        if (has_others(value) || !has_length(r, key, value, length))
            return false;
    }
    return unknown < JSON_STRAYS;
}

/* ---------------------------------------------------------------- values */

static element_result tree_bits(ps_type type, const json_t *value,
                                uint64_t *bits)
{
    switch (value == NULL ? JSON_OBJECT : json_typeof(value)) {
    case JSON_INTEGER:
        return element_integer(type, json_integer_value(value), bits);
    case JSON_TRUE:
        return element_integer(type, 1, bits);
    case JSON_FALSE:
        *bits = 0;
        return ELEMENT_OK;
    case JSON_REAL:
        return element_real(type, json_real_value(value), bits);
    case JSON_NULL:
        return element_null(type, bits);
    default:
        return ELEMENT_NO_NUMBER;
    }
}

/* Stores elements from `begin` up to `end` of a list, or a single one. */
static bool store_tree(const ps_channel *channel, const json_t *value,
                       size_t begin, size_t end, unsigned char *to)
{
    const size_t width = ps_type_bytes(channel->type);
    const size_t each = channel->count == 0 ? 1 : channel->count;
    const bool is_one = channel->kind == PS_PER_SEQUENCE;
    const size_t n = count_values(value);
    uint64_t bits = 0;

    for (size_t i = 0; i < n; i++) {
        if (tree_bits(channel->type, value_of(value, i), &bits) != ELEMENT_OK)
            return false;
        if (is_one)
            store_low(to + i * width, bits, width);
        else if (i / each >= begin && i / each < end)
            store_low(to + (i - begin * each) * width, bits, width);
    }
    return true;
}

static bool is_id(const reader *r, const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           json_integer_value(value) <= reader_max_id(r);
}

/* The range without padding. */
static void find_tokens(const reader *r, const json_t *object,
                        const json_t *ids, size_t *begin, size_t *end)
{
    const ps_schema *s = &r->out.schema;
    const uint32_t c = reader_find_channel(r, "attention_mask");
    const json_t *mask = json_object_get(object, "attention_mask");
    uint64_t bits = 1;

    if (c != PS_TOKENS && json_is_array(mask)) {
        while (*end > 0 &&
               tree_bits(s->channels[c].type, json_array_get(mask, *end - 1),
                         &bits) == ELEMENT_OK && bits == 0)
            --*end;
        while (*begin < *end &&
               tree_bits(s->channels[c].type, json_array_get(mask, *begin),
                         &bits) == ELEMENT_OK && bits == 0)
            ++*begin;
    }
    while (r->conf->trim && *begin < *end &&
           json_integer_value(json_array_get(ids, *end - 1)) ==
               s->special[PS_PAD])
        --*end;
}

static int put_tree(reader *r, json_t *object, const json_t *ids)
{
    const ps_schema *s = &r->out.schema;
    const ps_channel tokens = {.type = s->token_type, .kind = PS_PER_TOKEN};
    size_t begin = 0;
    size_t end = json_array_size(ids);
    uint32_t n_tok;
    bool good = true;
    int status;

    for (size_t i = 0; i < end; i++)
        if (!is_id(r, json_array_get(ids, i)))
            return refuse(r);
    find_tokens(r, object, ids, &begin, &end);
    n_tok = (uint32_t)(end - begin);
    status = records_reserve(&r->out, (size_t)ps_payload_bytes(s, n_tok + 1));
    if (status != STATUS_OK)
        return status;
    good = store_tree(&tokens, ids, begin, end, r->out.payload);
    for (uint32_t i = 0; i < s->n_channels; i++)
        good = store_tree(&s->channels[i],
                          json_object_get(object, s->channels[i].name), begin,
                          end, r->out.payload +
                                   ps_payload_offset(s, i, n_tok)) && good;
    if (!good)
        return refuse(r);
    return n_tok == 0 ? reader_empty(r, 1)
                      : records_put(&r->out, n_tok, r->out.payload);
}

/* ----------------------------------------------------------------- lines */

static int take_object(reader *r, json_t *object)
{
    const json_t *ids = json_object_get(object, r->conf->ids_key);
    int status;

    if (!json_is_array(ids) || is_nested(ids) ||
        !has_scalars(r, object, json_array_size(ids)))
        return refuse(r);
    if (json_array_size(ids) == 0)
        return reader_empty(r, 1);
    if (r->out.writer != NULL)
        return has_channels(r, object) ? put_tree(r, object, ids)
                                       : refuse(r);
    if (!learn_trees(r, object))
        return refuse(r);
    status = records_start(&r->out);
    return status == STATUS_OK ? put_tree(r, object, ids) : status;
}

static int take_tree(reader *r, const input_line *line)
{
    char *copy;
    json_t *object;
    int status;

    if (input_is_blank(line))
        return reader_empty(r, 1);
    /* jansson skips a NUL after a number. */
    if (memchr(line->bytes, '\0', line->n) != NULL)
        return refuse(r);
    copy = malloc(line->n + 1);
    must(copy != NULL);
    memcpy(copy, line->bytes, line->n);
    blank_ignored(r, copy, line->n);
    object = json_loadb(copy, line->n,
                        JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    free(copy);
    status = json_is_object(object) ? take_object(r, object) : refuse(r);
    json_decref(object);
    return status;
}

/* Static because a form's reader has no context of its own. */
static bool use_trees;

void json_use_trees(bool yes)
{
    use_trees = yes;
}

static int take_either(reader *r, const input_line *line)
{
    return (use_trees ? take_tree : reader_columns.line)(r, line);
}

const form_reader reader_jsonl = {
    .unit = "sequence",
    .learns = true,
    .max_line = MAX_LINE,
    .expected = "JSON",
    .skip_bom = true,
    .line = take_either,
};
