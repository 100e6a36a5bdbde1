/*
 * columns.c - the keys of JSON objects as the channels of a schema.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/columns.h"

#include <stdio.h>
#include <string.h>

#include "cli/message.h"
#include "tokcat/channel_defaults.h"
#include "tokcat/element.h"

const char *columns_show(const json_t *value,
                         char shown[COLUMNS_SHOWN_BYTES])
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
    memset(shown, 0, COLUMNS_SHOWN_BYTES);
    (void)json_dumpb(value, shown, COLUMNS_SHOWN_BYTES - 1,
                     JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    return shown;
}

/* The ids and what the user does not want are no columns. */
static bool is_column(job *j, const char *key)
{
    return strcmp(key, j->conf->ids_key) != 0 && !job_ignores(j, key);
}

static const ps_channel *find(const ps_schema *s, const char *key)
{
    for (uint32_t i = 0; i < s->n_channels; i++)
        if (strcmp(s->channels[i].name, key) == 0)
            return &s->channels[i];
    return NULL;
}

int columns_check_lengths(job *j, json_t *object, size_t n_tok)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
        if (json_is_array(value) && is_column(j, key) &&
            json_array_size(value) != n_tok)
            return text_bad(&j->in, "%s has length %zu, %s has length %zu",
                            message_name(key), json_array_size(value),
                            message_name(j->conf->ids_key), n_tok);
    return STATUS_OK;
}

/* ---------------------------------------------------------------------
 * From the first object
 */

/* What the values of a column are written as. */
typedef struct seen {
    bool real;
    bool integer;
    bool boolean;
} seen;

static void look(seen *s, const json_t *value)
{
    s->real = s->real || json_is_real(value);
    s->integer = s->integer || json_is_integer(value);
    s->boolean = s->boolean || json_is_boolean(value);
}

/* The type that the first values suggest; false if they suggest none. */
static bool guess_type(const json_t *value, ps_type *type)
{
    seen s = {.real = false};

    if (!json_is_array(value))
        look(&s, value);
    for (size_t i = 0; i < json_array_size(value); i++)
        look(&s, json_array_get(value, i));
    if (s.real)
        *type = PS_F32;
    else if (s.integer)
        *type = PS_I32;
    else
        *type = PS_U8;
    return s.real || s.integer || s.boolean;
}

static int no_channel(const job *j, const char *key, const json_t *value)
{
    char shown[COLUMNS_SHOWN_BYTES];

    return text_bad(&j->in, "%s: %s is no channel; leave it out with "
                    "--ignore=%s", message_name(key),
                    columns_show(value, shown), message_name(key));
}

/* A list has a value for each token, a number is for the sequence. */
static int learn_kind(const job *j, const char *key, const json_t *value,
                      ps_kind *kind)
{
    *kind = json_is_array(value) ? PS_PER_TOKEN : PS_PER_SEQUENCE;
    if (json_is_string(value) || json_is_object(value))
        return no_channel(j, key, value);
    return STATUS_OK;
}

static int learn_type(const job *j, const json_t *value, ps_channel *c)
{
    const known_channel *k = known_find(c->name);

    if (k != NULL) {
        c->type = k->type;
    } else if (!guess_type(value, &c->type)) {
        /* Strings in a list are no reason to declare it. */
        if (json_array_size(value) > 0 &&
            !json_is_null(json_array_get(value, 0)))
            return no_channel(j, c->name, value);
        return text_bad(&j->in, "%s: null does not tell the type; declare "
                        "it with --channel=%s:TYPE", c->name, c->name);
    }
    c->fill = known_fill(c->name, c->type);
    return STATUS_OK;
}

static int learn_column(job *j, const char *key, const json_t *value)
{
    ps_schema *s = &j->out.schema;
    ps_channel c = {.kind = PS_PER_TOKEN};
    int status;

    if (!known_good_name(key))
        return text_bad(&j->in, "the key '%s' cannot name a channel; leave "
                        "it out with --ignore=%s", message_name(key),
                        message_name(key));
    memcpy(c.name, key, strlen(key));
    status = learn_kind(j, key, value, &c.kind);
    if (status == STATUS_OK)
        status = learn_type(j, value, &c);
    if (status != STATUS_OK)
        return status;
    if (s->n_channels == PS_MAX_CHANNELS)
        return text_bad(&j->in, "%s: there can be no more than %d channels",
                        c.name, PS_MAX_CHANNELS);
    s->channels[s->n_channels++] = c;
    return STATUS_OK;
}

static int learn_declared(job *j, json_t *object)
{
    ps_schema *s = &j->out.schema;

    for (uint32_t i = 0; i < s->n_channels; i++) {
        ps_channel *c = &s->channels[i];
        const json_t *value = json_object_get(object, c->name);
        int status;

        if (value == NULL)
            return text_bad(&j->in, "no key '%s', which --channel declares",
                            c->name);
        status = learn_kind(j, c->name, value, &c->kind);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

int columns_learn(job *j, json_t *object)
{
    int status = learn_declared(j, object);
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value) {
        if (status != STATUS_OK)
            break;
        if (is_column(j, key) && find(&j->out.schema, key) == NULL)
            status = learn_column(j, key, value);
    }
    if (status == STATUS_OK && !j->out.schema.framed &&
        j->out.schema.n_channels > 0)
        status = text_bad(&j->in, "%s: --raw cannot keep channels; leave it "
                          "out with --ignore=%s",
                          j->out.schema.channels[0].name,
                          j->out.schema.channels[0].name);
    return status;
}

/* ---------------------------------------------------------------------
 * From every object
 */

static int check_kind(const job *j, const ps_channel *c,
                      const json_t *value)
{
    const bool list = json_is_array(value);

    if (list == (c->kind == PS_PER_TOKEN))
        return STATUS_OK;
    return text_bad(&j->in, list ? "%s: a list here, but not in the first "
                                   "record"
                                 : "%s: no list here, but one in the first "
                                   "record", c->name);
}

int columns_check_keys(job *j, json_t *object)
{
    const ps_schema *s = &j->out.schema;
    const char *key;
    json_t *value;

    for (uint32_t i = 0; i < s->n_channels; i++) {
        const char *name = s->channels[i].name;
        int status;

        value = json_object_get(object, name);
        if (value == NULL)
            return text_bad(&j->in, "no key '%s', which the first record "
                            "has", name);
        status = check_kind(j, &s->channels[i], value);
        if (status != STATUS_OK)
            return status;
    }
    json_object_foreach(object, key, value)
        if (is_column(j, key) && find(s, key) == NULL)
            return text_bad(&j->in, "the key '%s' is not in the first "
                            "record", message_name(key));
    return STATUS_OK;
}

/* `where` is "labels[3]". */
static int bad_value(const job *j, const ps_channel *c, const char *where,
                     const json_t *value, element_result why)
{
    char room[COLUMNS_SHOWN_BYTES];
    const char *shown = columns_show(value, room);
    const char *type = ps_type_name(c->type);

    switch (why) {
    case ELEMENT_NULL:
        return text_bad(&j->in, "%s: null needs a channel of floats, and "
                        "this one is %s (see --channel)", where, type);
    case ELEMENT_FRACTION:
        return text_bad(&j->in, "%s: %s is not an integer, and the channel "
                        "is %s (see --channel)", where, shown, type);
    case ELEMENT_INEXACT:
        return text_bad(&j->in, "%s: %s has no exact %s (see --channel)",
                        where, shown, type);
    case ELEMENT_OUTSIDE:
        return text_bad(&j->in, "%s: %s does not fit %s (see --channel)",
                        where, shown, type);
    default:
        return text_bad(&j->in, "%s: %s is not a number", where, shown);
    }
}

static int store_list(job *j, const ps_channel *c, const json_t *list,
                      unsigned char *to)
{
    const size_t bytes = ps_type_bytes(c->type);
    char where[PS_NAME_BYTES + 24];

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        const element_result r = element_store(c->type, value,
                                               to + i * bytes);

        if (r != ELEMENT_OK) {
            (void)snprintf(where, sizeof where, "%s[%zu]", c->name, i);
            return bad_value(j, c, where, value, r);
        }
    }
    return STATUS_OK;
}

int columns_store(job *j, const json_t *object, uint32_t n_tok)
{
    const ps_schema *s = &j->out.schema;
    int status = STATUS_OK;

    for (uint32_t i = 0; i < s->n_channels && status == STATUS_OK; i++) {
        const ps_channel *c = &s->channels[i];
        const json_t *value = json_object_get(object, c->name);
        unsigned char *to =
            j->out.payload + ps_payload_offset(s, i, n_tok);
        element_result r;

        if (c->kind == PS_PER_TOKEN) {
            status = store_list(j, c, value, to);
        } else {
            r = element_store(c->type, value, to);
            if (r != ELEMENT_OK)
                status = bad_value(j, c, c->name, value, r);
        }
    }
    return status;
}
