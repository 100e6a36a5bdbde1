/*
 * schema.c - types, channels and payload sizes.
 *
 * SPDX-License-Identifier: MIT
 */

#include "format/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "bytes.h"

static const struct {
    const char *name;
    const char *numpy;
    size_t bytes;
} types[] = {
    [PS_U8] = {"u8", "|u1", 1},  [PS_U16] = {"u16", "<u2", 2},
    [PS_U32] = {"u32", "<u4", 4}, [PS_U64] = {"u64", "<u8", 8},
    [PS_I32] = {"i32", "<i4", 4}, [PS_I64] = {"i64", "<i8", 8},
    [PS_F32] = {"f32", "<f4", 4}, [PS_F64] = {"f64", "<f8", 8},
};

/* Offsets in a table entry, which starts with the name. */
enum {
    AT_TYPE = 24,
    AT_KIND = 25,
    AT_ELEMENT_BYTES = 26,
    AT_SOURCE = 27,
    AT_OFFSET = 28,
    AT_COUNT = 32,
    AT_ZERO = 36,
    AT_FILL = 40,
    AT_ZEROS = 48
};

#define N_TYPES (sizeof types / sizeof types[0])

/* Channel names that the formats and their exports use themselves. */
static const char *const reserved[] = {
    "checksum",  "index",      "watermark", "sum_len_sq", "first_seq",
    "n_seq",     "n_tok",      "max_seqlen", "seq_id",    "seq_start",
    "seq_tok",   "piece_off",  "full_len",  "cu",         "tokens",
    "input_ids",
};

static bool is_type(ps_type type)
{
    return type >= PS_U8 && (size_t)type < N_TYPES;
}

size_t ps_type_bytes(ps_type type)
{
    return is_type(type) ? types[type].bytes : 0;
}

uint32_t ps_channel_values(const ps_channel *channel)
{
    return channel->count == 0 ? 1 : channel->count;
}

size_t ps_channel_bytes(const ps_channel *channel)
{
    return ps_channel_values(channel) * ps_type_bytes(channel->type);
}

void ps_channel_type(const ps_channel *channel, char text[PS_TYPE_TEXT])
{
    const char *name = ps_type_name(channel->type);
    const char *list = channel->kind == PS_LIST ? "[]" : "";

    if (channel->count == 0)
        (void)snprintf(text, PS_TYPE_TEXT, "%s%s", name, list);
    else
        (void)snprintf(text, PS_TYPE_TEXT, "%s[%" PRIu32 "]%s", name,
                       channel->count, list);
}

ps_result ps_schema_find(const ps_schema *schema, const char *name,
                         const char *use, uint32_t *channel,
                         ps_error *err)
{
    uint32_t i = 0;

    while (i < schema->n_channels &&
           strcmp(schema->channels[i].name, name) != 0)
        i++;
    *channel = i;
    if (i == schema->n_channels)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "the sequences have no channel '%.31s' %s", name, use);
    if (schema->channels[i].kind == PS_PER_TOKEN)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "channel '%s' has a value per token, but one per "
                       "sequence is needed %s",
                       name, use);
    if (!ps_channel_is_number(&schema->channels[i]))
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "channel '%s' has %s, but a single value is needed %s",
                       name,
                       schema->channels[i].kind == PS_LIST ? "lists"
                                                           : "vectors",
                       use);
    return PS_OK;
}

uint32_t ps_channel_fixed_bytes(const ps_channel *channel)
{
    return channel->kind == PS_LIST ? 4 : (uint32_t)ps_channel_bytes(channel);
}

bool ps_channel_is_number(const ps_channel *channel)
{
    return channel->kind == PS_PER_SEQUENCE && channel->count == 0;
}

bool ps_channel_has_budget(const ps_channel *channel)
{
    return channel->kind == PS_LIST ||
           (ps_channel_is_number(channel) && !ps_type_is_float(channel->type));
}

bool ps_type_is_float(ps_type type)
{
    return type == PS_F32 || type == PS_F64;
}

uint64_t ps_integer_load(ps_type type, const unsigned char *from)
{
    const uint64_t value = load_low(from, ps_type_bytes(type));

    return type == PS_I32 ? (uint64_t)(int32_t)(uint32_t)value : value;
}

void ps_integer_print(ps_type type, uint64_t value, char *text)
{
    if (type == PS_I32 || type == PS_I64)
        (void)snprintf(text, PS_INTEGER_BYTES, "%" PRId64, (int64_t)value);
    else
        (void)snprintf(text, PS_INTEGER_BYTES, "%" PRIu64, value);
}

const char *ps_type_name(ps_type type)
{
    return is_type(type) ? types[type].name : "?";
}

const char *ps_type_numpy(ps_type type)
{
    return is_type(type) ? types[type].numpy : "?";
}

bool ps_type_from_name(const char *name, ps_type *type)
{
    for (size_t t = PS_U8; t < N_TYPES; t++)
        if (strcmp(name, types[t].name) == 0) {
            *type = (ps_type)t;
            return true;
        }
    return false;
}

bool ps_token_type(unsigned token_bytes, ps_type *type)
{
    *type = token_bytes == 2 ? PS_U16 : PS_U32;
    return token_bytes == 2 || token_bytes == 4;
}

ps_schema ps_schema_raw(ps_type token_type)
{
    ps_schema schema = {.token_type = token_type};

    for (size_t i = 0; i < PS_SPECIALS; i++)
        schema.special[i] = PS_NO_ID;
    return schema;
}

/* Accepts only ASCII letters, independent of the locale. */
static bool is_name(const char *name)
{
    size_t n = strnlen(name, PS_NAME_BYTES);

    if (n == 0 || n == PS_NAME_BYTES)
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool later = c == '_' || (c >= '0' && c <= '9');

        if (!letter && (i == 0 || !later))
            return false;
    }
    return true;
}

static bool is_kind(ps_kind kind)
{
    return kind >= PS_PER_TOKEN && kind <= PS_LIST;
}

static bool is_count(uint32_t count)
{
    return count == 0 || (count >= 2 && count <= PS_MAX_VECTOR);
}

static bool fill_fits(uint64_t fill, ps_type type)
{
    size_t bits = 8 * ps_type_bytes(type);

    return bits >= 64 || fill >> bits == 0;
}

const char *ps_special_name(int special)
{
    static const char *const names[PS_SPECIALS] = {
        [PS_PAD] = "the pad id", [PS_BOS] = "the bos id",
        [PS_EOS] = "the eos id", [PS_CLS] = "the cls id",
        [PS_SEP] = "the sep id", [PS_MASK] = "the mask id",
    };

    return names[special];
}

ps_result ps_schema_check(const ps_schema *s, ps_error *err)
{
    uint32_t n_lists = 0;

    if (s->token_type != PS_U16 && s->token_type != PS_U32)
        return ps_fail(err, PS_ERR_ARGUMENT, "tokens must be u16 or u32");
    if ((unsigned)s->labels > PS_LABELS_SHIFTED)
        return ps_fail(err, PS_ERR_ARGUMENT, "unknown label convention");
    if (s->n_channels > PS_MAX_CHANNELS)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "%u channels exceed the limit of %d",
                       (unsigned)s->n_channels, PS_MAX_CHANNELS);
    if (!s->framed && s->n_channels > 0)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "raw token records cannot have channels");
    for (uint32_t i = 0; i < s->n_channels; i++) {
        const ps_channel *c = &s->channels[i];

        if (!is_name(c->name))
            return ps_fail(err, PS_ERR_ARGUMENT, "channel %u: bad name",
                           (unsigned)i);
        for (size_t j = 0; j < sizeof reserved / sizeof reserved[0]; j++)
            if (strcmp(c->name, reserved[j]) == 0)
                return ps_fail(err, PS_ERR_ARGUMENT,
                               "channel '%s': the name is reserved", c->name);
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(c->name, s->channels[j].name) == 0)
                return ps_fail(err, PS_ERR_ARGUMENT,
                               "channel '%s' is listed twice", c->name);
        if (!is_type(c->type) || !fill_fits(c->fill, c->type))
            return ps_fail(err, PS_ERR_ARGUMENT,
                           "channel '%s': bad type or fill", c->name);
        if (!is_count(c->count))
            return ps_fail(err, PS_ERR_ARGUMENT,
                           "channel '%s': vectors of %" PRIu32 " values, but "
                           "the limits are 2 and %d",
                           c->name, c->count, PS_MAX_VECTOR);
        if (!is_kind(c->kind))
            return ps_fail(err, PS_ERR_ARGUMENT, "channel '%s': bad kind",
                           c->name);
        n_lists += c->kind == PS_LIST;
    }
    if (n_lists > PS_MAX_LISTS)
        return ps_fail(err, PS_ERR_ARGUMENT,
                       "%" PRIu32 " list channels exceed the limit of %d",
                       n_lists, PS_MAX_LISTS);

    /*
     * Special ids must fit the token type.  All except pad must also be below
     * vocab_size.
     */
    for (int i = 0; i < PS_SPECIALS; i++) {
        const uint32_t id = s->special[i];

        if (id == PS_NO_ID)
            continue;
        if (s->token_type == PS_U16 && id > UINT16_MAX)
            return ps_fail(err, PS_ERR_ARGUMENT,
                           "%s, %" PRIu32 ", does not fit u16 tokens",
                           ps_special_name(i), id);
        if (i != PS_PAD && s->vocab_size != 0 && id >= s->vocab_size)
            return ps_fail(err, PS_ERR_ARGUMENT,
                           "%s, %" PRIu32 ", is outside the vocabulary of %"
                           PRIu32,
                           ps_special_name(i), id, s->vocab_size);
    }
    return PS_OK;
}

ps_shape ps_schema_shape(const ps_schema *s)
{
    uint32_t token = (uint32_t)ps_type_bytes(s->token_type);
    ps_shape shape = {.token_bytes = token, .per_token = token};

    for (uint32_t i = 0; i < s->n_channels; i++) {
        const ps_channel *c = &s->channels[i];
        const uint32_t n = ps_channel_fixed_bytes(c);

        if (c->kind == PS_LIST) {
            shape.lists[shape.n_lists].at = shape.fixed;
            shape.lists[shape.n_lists++].bytes = (uint32_t)ps_channel_bytes(c);
        }
        if (c->kind == PS_PER_TOKEN)
            shape.per_token += n;
        else
            shape.fixed += n;
    }
    return shape;
}

uint64_t ps_payload_bytes(const ps_schema *s, uint32_t n_tok)
{
    ps_shape shape = ps_schema_shape(s);

    return ps_shape_bytes(&shape, n_tok);
}

uint64_t ps_payload_offset(const ps_schema *s, uint32_t channel,
                           uint32_t n_tok)
{
    uint64_t offset = 0;
    bool per_token;

    if (channel >= s->n_channels)
        return 0;
    per_token = s->channels[channel].kind == PS_PER_TOKEN;
    if (per_token)
        offset = (uint64_t)ps_type_bytes(s->token_type) * n_tok;
    else
        offset = (uint64_t)ps_schema_shape(s).per_token * n_tok;
    for (uint32_t i = 0; i < channel; i++)
        if ((s->channels[i].kind == PS_PER_TOKEN) == per_token)
            offset += (uint64_t)ps_channel_fixed_bytes(&s->channels[i]) *
                      (per_token ? n_tok : 1);
    return offset;
}

uint64_t ps_payload_lists(const ps_schema *s, uint32_t n_tok,
                          const void *payload)
{
    const ps_shape shape = ps_schema_shape(s);
    const unsigned char *bytes = payload;

    return ps_shape_lists(&shape,
                          bytes + (uint64_t)shape.per_token * n_tok);
}

uint64_t ps_payload_list(const ps_schema *s, uint32_t channel, uint32_t n_tok,
                         const void *payload, uint32_t *n)
{
    const unsigned char *bytes = payload;
    uint64_t offset = ps_payload_bytes(s, n_tok);

    *n = 0;
    for (uint32_t i = 0; i <= channel && i < s->n_channels; i++) {
        const ps_channel *c = &s->channels[i];

        if (c->kind != PS_LIST)
            continue;
        *n = load_u32(bytes + ps_payload_offset(s, i, n_tok));
        if (i < channel)
            offset += (uint64_t)*n * ps_channel_bytes(c);
    }
    return offset;
}

void ps_channel_encode(const ps_channel *channel, uint32_t offset,
                       uint32_t one, unsigned char *entry)
{
    memset(entry, 0, PS_CHANNEL_ENTRY_BYTES);
    memcpy(entry, channel->name, strnlen(channel->name, PS_NAME_BYTES));
    entry[AT_TYPE] = (unsigned char)channel->type;
    entry[AT_KIND] = (unsigned char)channel->kind;
    entry[AT_ELEMENT_BYTES] = (unsigned char)ps_type_bytes(channel->type);
    store_u32(entry + AT_OFFSET, offset);
    store_u32(entry + AT_COUNT, channel->count == 0 ? one : channel->count);
    store_u64(entry + AT_FILL, channel->fill);
}

ps_result ps_channel_decode(const unsigned char *entry, ps_channel *channel,
                            uint32_t *offset, uint32_t one, ps_error *err)
{
    const size_t name = strnlen((const char *)entry, PS_NAME_BYTES);
    const uint32_t count = load_u32(entry + AT_COUNT);

    *channel = (ps_channel){.type = (ps_type)entry[AT_TYPE],
                            .kind = (ps_kind)entry[AT_KIND],
                            .fill = load_u64(entry + AT_FILL)};
    memcpy(channel->name, entry, PS_NAME_BYTES);
    *offset = load_u32(entry + AT_OFFSET);
    if (count != one)
        channel->count = count;
    if (name == PS_NAME_BYTES || !is_name(channel->name) ||
        !all_zero(entry + name, PS_NAME_BYTES - name))
        return ps_fail(err, PS_ERR_CORRUPT, "bad channel name");
    if (!is_type(channel->type) ||
        entry[AT_ELEMENT_BYTES] != ps_type_bytes(channel->type) ||
        !fill_fits(channel->fill, channel->type))
        return ps_fail(err, PS_ERR_CORRUPT, "channel '%s': bad type or fill",
                       channel->name);
    if (count != one && (count == 0 || !is_count(count)))
        return ps_fail(err, PS_ERR_CORRUPT, "channel '%s': bad vector length",
                       channel->name);
    if (!is_kind(channel->kind))
        return ps_fail(err, PS_ERR_CORRUPT, "channel '%s': bad kind",
                       channel->name);
    return PS_OK;
}

bool ps_channel_unused_is_zero(const unsigned char *entry, bool is_field)
{
    const bool is_placed = !all_zero(entry + AT_SOURCE, AT_COUNT - AT_SOURCE);

    return (is_field || !is_placed) &&
           all_zero(entry + AT_ZERO, AT_FILL - AT_ZERO) &&
           all_zero(entry + AT_ZEROS, PS_CHANNEL_ENTRY_BYTES - AT_ZEROS);
}

void ps_specials_encode(const ps_schema *schema, unsigned char *to)
{
    for (size_t i = 0; i < PS_SPECIALS; i++)
        store_u32(to + 4 * i, schema->special[i]);
}

void ps_specials_decode(const unsigned char *from, ps_schema *schema)
{
    for (size_t i = 0; i < PS_SPECIALS; i++)
        schema->special[i] = load_u32(from + 4 * i);
}

uint32_t ps_token_at(const unsigned char *tokens, uint32_t i, ps_type type)
{
    return type == PS_U16 ? load_u16(tokens + 2 * (size_t)i)
                          : load_u32(tokens + 4 * (size_t)i);
}

uint32_t ps_tokens_check(const unsigned char *tokens, uint32_t n_tok,
                         ps_type type, uint32_t vocab_size)
{
    uint16_t max16 = 0;
    uint32_t max32 = 0;
    uint32_t i = 0;

    /*
     * Compute the maximum first: a loop without early exit can be vectorized.
     */
    if (type == PS_U16)
        for (size_t k = 0; k < n_tok; k++) {
            uint16_t v = load_u16(tokens + 2 * k);

            max16 = v > max16 ? v : max16;
        }
    else
        for (size_t k = 0; k < n_tok; k++) {
            uint32_t v = load_u32(tokens + 4 * k);

            max32 = v > max32 ? v : max32;
        }
    if (max16 < vocab_size && max32 < vocab_size)
        return n_tok;
    while (i < n_tok && ps_token_at(tokens, i, type) < vocab_size)
        i++;
    return i;
}
