/*
 * reader.c - functions shared by the readers of all forms.
 *
 * SPDX-License-Identifier: MIT
 */

#include "tokcat/reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/message.h"
#include "tokcat/channel.h"

int reader_each_line(reader *r,
                     int (*take)(reader *r, const input_line *line))
{
    const uint64_t before = r->out.figures.bytes;
    input_line line;
    int status;

    while ((status = input_next_line(&r->in, &line)) == STATUS_OK &&
           line.bytes != NULL) {
        status = take(r, &line);
        r->out.figures.bytes = before + r->in.next;
        if (status != STATUS_OK)
            break;
    }
    return status;
}

int reader_start(reader *r, size_t number_width)
{
    if (r->out.writer != NULL)
        return STATUS_OK;
    if (r->conf->type_open && number_width > 2)
        r->out.schema.token_type = PS_U32;
    return state_start(&r->state, &r->out);
}

uint32_t reader_find_channel(const reader *r, const char *name)
{
    const ps_schema *s = &r->out.schema;

    for (uint32_t i = 0; i < s->n_channels; i++)
        if (strcmp(s->channels[i].name, name) == 0)
            return i;
    return PS_TOKENS;
}

int reader_add_channel(reader *r, const char *name, ps_kind kind)
{
    const known_channel *k = known_find(name);
    ps_schema *s = &r->out.schema;
    ps_channel *c = &s->channels[s->n_channels];

    if (!s->framed)
        return reader_bad(r, "%s: --raw stores no channels: use --ignore=%s, "
                          "or write framed records", name, name);
    *c = (ps_channel){.type = k->type, .kind = kind,
                      .fill = known_fill(name, k->type)};
    memcpy(c->name, name, strlen(name));
    s->n_channels++;
    return STATUS_OK;
}

int reader_empty(reader *r, uint64_t n)
{
    if (r->conf->empty == EMPTY_ERROR)
        return reader_bad(r, "no tokens");
    /* A header of a few bytes can declare any number of sequences. */
    r->n_empty = n > UINT64_MAX - r->n_empty ? UINT64_MAX : r->n_empty + n;
    return STATUS_OK;
}

int reader_no_memory(const reader *r)
{
    message_error("%s: line %" PRIu64 ": out of memory", input_name(&r->in),
                  r->in.line);
    return STATUS_FAILURE;
}

bool reader_ignores(reader *r, const char *key)
{
    const conf *c = r->conf;
    uint64_t found = 0;

    _Static_assert(CONF_IGNORED <= 64, "a bit for each");
    for (uint32_t i = 0; i < c->n_ignored; i++)
        if (strcmp(c->ignored[i], key) == 0)
            found |= UINT64_C(1) << i;
    r->ignored |= found;
    for (uint32_t i = 0; i < r->n_left_out && found == 0; i++)
        found = strcmp(r->left_out[i], key) == 0;
    return found != 0;
}

int reader_leave_out(reader *r, const char *key, const char *why)
{
    char *copy;

    if (r->n_left_out == CONF_IGNORED)
        return reader_bad(r, "%s: more than %d keys are not channels: remove "
                          "them from the rows", message_name(key),
                          CONF_IGNORED);
    copy = strdup(key);
    if (copy == NULL)
        return reader_no_memory(r);
    r->left_out[r->n_left_out++] = copy;
    message_warning("%s: ignoring '%s': %s", input_name(&r->in),
                    message_name(key), why);
    return STATUS_OK;
}

int reader_bad(const reader *r, const char *format, ...)
{
    char why[512];
    char hint[INPUT_HINT_BYTES] = "";
    va_list args;

    va_start(args, format);
    (void)vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (r->place.unit == NULL)
        return input_bad_line(&r->in, 0, "%s", why);
    if (r->place.offset == 0)
        (void)input_hint(&r->in, hint);
    message_error("%s: %s %" PRIu64 " at byte %" PRIu64 ": %s%s",
                  input_name(&r->in), r->place.unit, r->place.number,
                  r->place.offset, why, hint);
    return STATUS_DATA;
}

uint32_t reader_max_id(const reader *r)
{
    const ps_schema *s = &r->out.schema;

    if (s->vocab_size != 0)
        return s->vocab_size - 1;
    return s->token_type == PS_U16 ? UINT16_MAX : UINT32_MAX;
}

const char *reader_above_max(const reader *r, char why[READER_WHY_BYTES])
{
    const ps_schema *s = &r->out.schema;

    if (s->vocab_size == 0)
        return s->token_type == PS_U16 ? "does not fit u16: use --type=u32"
                                       : "does not fit u32";
    (void)snprintf(why, READER_WHY_BYTES,
                   "is not below the vocabulary size %" PRIu32,
                   s->vocab_size);
    return why;
}

uint32_t reader_max_tokens(const reader *r)
{
    const uint64_t fixed = ps_payload_bytes(&r->out.schema, 0);
    const uint64_t each = ps_payload_bytes(&r->out.schema, 1) - fixed;

    return (uint32_t)((PS_MAX_SEQUENCE_BYTES - fixed) / each);
}

int reader_too_large(const reader *r)
{
    return reader_bad(r, "the sequence exceeds %" PRIu32 " tokens, the most a "
                      "record can hold", reader_max_tokens(r));
}

int reader_reserve(reader *r, size_t n)
{
    const size_t width = ps_type_bytes(r->out.schema.token_type);

    if (n > reader_max_tokens(r) - r->n_tok)
        return reader_too_large(r);
    return records_reserve(&r->out, (r->n_tok + n) * width);
}

int reader_put(reader *r)
{
    const uint32_t n_tok = (uint32_t)r->n_tok;

    r->n_tok = 0;
    return state_put(&r->state, &r->out, n_tok, r->out.payload);
}
