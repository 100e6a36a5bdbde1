/*
 * jsonl.c - JSON Lines: an object a line, with the token ids and whatever
 * rides along.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>
#include <jansson.h>

#include "cli/files.h"
#include "cli/message.h"
#include "common/bytes.h"
#include "tokcat/columns.h"
#include "tokcat/job.h"
#include "tokcat/memory.h"

/*
 * An object in memory takes some twenty times the room of its text, so the
 * lines are held shorter than those of other sources.
 */
#define LONGEST_LINE ((size_t)64 * 1024 * 1024)

static int bad_json(const job *j, const json_error_t *error)
{
    const uint64_t column = error->column > 0 ? (uint64_t)error->column : 1;

    if (memory_ran_out()) {
        message_error("%s: line %" PRIu64 ": out of memory",
                      files_input_name(j->in.name), j->in.line);
        return STATUS_FAILURE;
    }
    if (json_error_code(error) == json_error_numeric_overflow)
        return text_bad_at(&j->in, column, "a number is too large (integers "
                           "reach to 9223372036854775807)");
    return text_bad_at(&j->in, column, "%s", message_name(error->text));
}

static int bad_id(const job *j, size_t i, const json_t *value)
{
    const ps_schema *s = &j->out.schema;
    const char *key = message_name(j->conf->ids_key);
    char room[COLUMNS_SHOWN_BYTES];
    const char *shown = columns_show(value, room);

    if (json_is_real(value))
        return text_bad(&j->in, "%s[%zu]: %s is not an integer", key, i,
                        shown);
    if (!json_is_integer(value))
        return text_bad(&j->in, "%s[%zu]: %s is not a number", key, i,
                        shown);
    if (json_integer_value(value) < 0)
        return text_bad(&j->in, "%s[%zu]: %s is negative", key, i, shown);
    if (s->vocab_size != 0)
        return text_bad(&j->in, "%s[%zu]: %s is not below the vocabulary "
                        "size %" PRIu32, key, i, shown, s->vocab_size);
    return text_bad(&j->in, "%s[%zu]: %s does not fit %s", key, i, shown,
                    s->token_type == PS_U16 ? "u16 (see --type)" : "u32");
}

static int store_ids(job *j, const json_t *ids)
{
    const ps_schema *s = &j->out.schema;
    const size_t width = ps_type_bytes(s->token_type);
    const uint32_t max = job_max_id(j);

    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *value = json_array_get(ids, i);
        const json_int_t id = json_integer_value(value);

        if (!json_is_integer(value) || id < 0 || id > max)
            return bad_id(j, i, value);
        store_low(j->out.payload + i * width, (uint64_t)id, width);
    }
    return STATUS_OK;
}

/* The stream starts with the first object, which tells its channels. */
static int check_columns(job *j, json_t *object)
{
    int status;

    if (j->out.writer != NULL)
        return columns_check_keys(j, object);
    status = columns_learn(j, object);
    return status == STATUS_OK ? records_start(&j->out) : status;
}

static int put_object(job *j, json_t *object, const json_t *ids)
{
    const ps_schema *s = &j->out.schema;
    const size_t n = json_array_size(ids);
    int status = check_columns(j, object);

    if (status == STATUS_OK && n > job_max_tokens(j))
        status = job_too_large(j);
    if (status == STATUS_OK)
        status = records_room(&j->out,
                              (size_t)ps_payload_bytes(s, (uint32_t)n));
    if (status == STATUS_OK)
        status = store_ids(j, ids);
    if (status == STATUS_OK)
        status = columns_store(j, object, (uint32_t)n);
    if (status == STATUS_OK)
        status = records_put(&j->out, (uint32_t)n);
    return status;
}

static int take_object(job *j, json_t *object)
{
    const char *key = j->conf->ids_key;
    const json_t *ids;
    int status;

    if (!json_is_object(object))
        return text_bad(&j->in, "not an object");
    ids = json_object_get(object, key);
    if (ids == NULL)
        return text_bad(&j->in, "no key '%s'", message_name(key));
    if (!json_is_array(ids))
        return text_bad(&j->in, "%s: not a list", message_name(key));
    status = columns_check_lengths(j, object, json_array_size(ids));
    if (status != STATUS_OK)
        return status;
    if (json_array_size(ids) == 0)
        return job_empty(j);
    return put_object(j, object, ids);
}

static int jsonl_line(job *j, const text_line *line)
{
    json_error_t error;
    json_t *object;
    int status;

    if (text_is_blank(line))
        return job_empty(j);
    object = json_loadb((const char *)line->bytes, line->n,
                        JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (object == NULL)
        return bad_json(j, &error);
    status = take_object(j, object);
    json_decref(object);
    return status;
}

const job_source source_jsonl = {
    .unit = "sequence",
    .longest = LONGEST_LINE,
    .learns = true,
    .line = jsonl_line,
};
