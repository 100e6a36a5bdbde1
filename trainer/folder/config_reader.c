/*
 * config_reader.c - the values of config.json, by type.
 *
 * SPDX-License-Identifier: MIT
 */
#include "folder/config_reader.h"

#include <math.h>
#include <stdlib.h>

#include "cli/message.h"
#include "data/error.h"
#include "folder/model_config.h"

/* Longest part of a value in messages. */
#define SHOWN 60

void config_fail(config_reader *r, ps_result code, const char *key,
                 const json_t *value, const char *why)
{
    char *text;

    if (r->result != PS_OK)
        return;
    if (value == NULL)
        value = config_find(r->object, key);
    text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT |
                                 JSON_REAL_PRECISION(15));
    r->result = tr_error(r->err, code, MODEL_CONFIG_NAME ": %s: %.*s %s", key,
                         SHOWN, text == NULL ? "" : message_name(text), why);
    free(text);
}

void config_fail_key(config_reader *r, ps_result code, const char *key,
                     const char *why)
{
    if (r->result == PS_OK)
        r->result = tr_error(r->err, code, MODEL_CONFIG_NAME ": %s: %s", key,
                             why);
}

const json_t *config_find(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_null(value) ? NULL : value;
}

bool config_is_given(const config_reader *r, const char *key)
{
    return json_object_get(r->object, key) != NULL;
}

uint32_t config_size(config_reader *r, const char *key, uint32_t absent)
{
    const json_t *value = config_find(r->object, key);
    const json_int_t n = json_integer_value(value);

    if (value == NULL)
        return absent;
    if (json_is_integer(value) && n >= 1 && n <= INT32_MAX)
        return (uint32_t)n;
    config_fail(r, json_is_integer(value) ? PS_ERR_RANGE : PS_ERR_CORRUPT, key,
                value, "is not a number from 1 to 2147483647");
    return absent;
}

double config_real(config_reader *r, const json_t *object, const char *key,
                   double absent, double low, bool closed)
{
    const json_t *value = config_find(object, key);
    const double x = json_number_value(value);

    if (value == NULL)
        return absent;
    if (json_is_number(value) && isfinite(x) &&
        (x > low || (closed && x >= low)))
        return x;
    config_fail(r, json_is_number(value) ? PS_ERR_RANGE : PS_ERR_CORRUPT, key,
                value, closed ? "is not a number of 0 or more"
                              : "is not a number above 0");
    return absent;
}

bool config_bool(config_reader *r, const char *key, bool absent)
{
    const json_t *value = config_find(r->object, key);

    if (value == NULL)
        return absent;
    if (!json_is_boolean(value))
        config_fail(r, PS_ERR_CORRUPT, key, value, "is not true or false");
    return json_is_true(value);
}

const char *config_text(config_reader *r, const json_t *object, const char *key,
                        const char *absent)
{
    const json_t *value = config_find(object, key);

    if (value == NULL)
        return absent;
    if (json_is_string(value))
        return json_string_value(value);
    config_fail(r, PS_ERR_CORRUPT, key, value, "is not a string");
    return absent;
}
