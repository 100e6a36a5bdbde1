/*
 * channels.c - statistics of channels.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packstat/channels.h"

#include <inttypes.h>
#include <string.h>

#include "cli/report.h"
#include "common/bytes.h"
#include "files/packs.h"

#define SIGN (UINT64_C(1) << 63)

bool channel_has_targets(const ps_channel *channel)
{
    return channel->kind == PS_PER_TOKEN && channel->count == 0;
}

ps_result channel_figures_begin(channel_figures *c, const ps_schema *schema,
                                const char *by, ps_error *err)
{
    *c = (channel_figures){.schema = schema};
    for (uint32_t i = 0; i < schema->n_channels; i++) {
        const ps_channel *channel = &schema->channels[i];

        if (channel_has_targets(channel))
            c->has_targets = true;
        if (by != NULL && strcmp(channel->name, by) == 0 &&
            channel->kind == PS_PER_SEQUENCE && channel->count == 0 &&
            channel->type != PS_F32 && channel->type != PS_F64) {
            c->by = channel;
            c->by_index = i;
        }
    }
    if (by == NULL || c->by != NULL)
        return PS_OK;
    *err = (ps_error){.code = PS_ERR_MAGIC};
    (void)snprintf(err->text, sizeof err->text,
                   "no channel '%.40s' with one integer per sequence", by);
    return PS_ERR_MAGIC;
}

/*
 * Counts the values that a loss does not ignore.  Signed integers are labels,
 * where -100 is ignored; all other types are masks and weights, where 0 is
 * ignored.
 */
static uint32_t count_targets(const unsigned char *p, uint32_t n,
                              ps_type type)
{
    uint32_t count = 0; /* as wide as most values, for vectorized loops */

    switch (type) {
    case PS_U8:
        for (size_t i = 0; i < n; i++)
            count += p[i] != 0;
        break;
    case PS_U16:
        for (size_t i = 0; i < n; i++)
            count += load_u16(p + 2 * i) != 0;
        break;
    case PS_I32:
        for (size_t i = 0; i < n; i++)
            count += load_u32(p + 4 * i) != (uint32_t)PS_NO_LABEL;
        break;
    case PS_I64:
        for (size_t i = 0; i < n; i++)
            count += load_u64(p + 8 * i) != (uint64_t)PS_NO_LABEL;
        break;
    case PS_U32:
        for (size_t i = 0; i < n; i++)
            count += load_u32(p + 4 * i) != 0;
        break;
    case PS_F32: /* -0 is 0, too */
        for (size_t i = 0; i < n; i++)
            count += load_u32(p + 4 * i) << 1 != 0;
        break;
    case PS_U64:
        for (size_t i = 0; i < n; i++)
            count += load_u64(p + 8 * i) != 0;
        break;
    case PS_F64:
        for (size_t i = 0; i < n; i++)
            count += load_u64(p + 8 * i) << 1 != 0;
        break;
    }
    return count;
}

/* Loads an integer as an unsigned number with the same order. */
static uint64_t load_value(const unsigned char *p, ps_type type)
{
    switch (ps_type_bytes(type)) {
    case 1:
        return p[0];
    case 2:
        return load_u16(p);
    case 4:
        return type == PS_I32
                   ? (uint64_t)(int64_t)(int32_t)load_u32(p) ^ SIGN
                   : load_u32(p);
    default:
        return type == PS_I64 ? load_u64(p) ^ SIGN : load_u64(p);
    }
}

/*
 * Adds a sequence of `n_tok` tokens to the counts of its value, which it
 * returns.
 */
static uint64_t count_value(channel_figures *c, const unsigned char *at,
                            uint32_t n_tok)
{
    const uint64_t value = load_value(at, c->by->type);
    value_count *v = c->values;
    uint32_t low = 0;
    uint32_t high = c->n_values;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (v[middle].value < value)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < c->n_values && v[low].value == value) {
        v += low;
    } else if (c->n_values < MAX_VALUES) {
        memmove(v + low + 1, v + low, (c->n_values++ - low) * sizeof *v);
        v += low;
        *v = (value_count){.value = value};
    } else {
        v = &c->others;
    }
    v->sequences++;
    v->tokens += n_tok;
    return value;
}

/* Counts whether sequence `i` of a pack has the value of the first. */
static void count_same(channel_figures *c, uint32_t i, uint64_t value)
{
    if (i == 0) {
        c->first = value;
        return;
    }
    c->n_later++;
    c->n_same += value == c->first;
}

void channel_figures_pack(channel_figures *c, const columns *all,
                          const ps_pack_info *info, const ps_pack *pack)
{
    if (!c->has_targets && c->by == NULL)
        return;
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const ps_piece piece = ps_pack_piece(info, pack, i);

        for (uint32_t k = 0; k < c->schema->n_channels; k++) {
            const ps_field *field = all->column[k + 1].field;
            const ps_type type = field->channel.type;
            const unsigned char *at =
                packs_values(info, pack, field, i, piece.begin);

            if (channel_has_targets(&field->channel))
                c->targets[k] += count_targets(at, piece.n_tok, type);
            else if (c->by != NULL && k == c->by_index)
                count_same(c, i, count_value(c, at, piece.n_tok));
        }
    }
}

void channel_figures_sequence(channel_figures *c, const ps_sequence *s)
{
    for (uint32_t k = 0; k < c->schema->n_channels; k++) {
        const ps_channel *channel = &c->schema->channels[k];
        const unsigned char *at =
            s->payload + ps_payload_offset(c->schema, k, s->n_tok);

        if (channel_has_targets(channel))
            c->targets[k] += count_targets(at, s->n_tok, channel->type);
        else if (c->by != NULL && k == c->by_index)
            (void)count_value(c, at, s->n_tok);
    }
}

const char *channel_figures_value(const ps_channel *channel, uint64_t value,
                                  char text[VALUE_BYTES])
{
    if (channel->type == PS_I32 || channel->type == PS_I64)
        (void)snprintf(text, VALUE_BYTES, "%" PRId64, (int64_t)(value ^ SIGN));
    else
        (void)snprintf(text, VALUE_BYTES, "%" PRIu64, value);
    return text;
}

void channel_figures_json(FILE *out, const channel_figures *c, bool counted)
{
    const char *comma = "";
    char text[VALUE_BYTES];

    fputs(", \"targets\": ", out);
    if (!counted) {
        fputs("null", out);
        return;
    }
    putc('{', out);
    for (uint32_t k = 0; k < c->schema->n_channels; k++)
        if (channel_has_targets(&c->schema->channels[k])) {
            fputs(comma, out);
            report_json_string(out, c->schema->channels[k].name);
            fprintf(out, ": %" PRIu64, c->targets[k]);
            comma = ", ";
        }
    putc('}', out);

    if (c->by == NULL)
        return;
    fputs(", \"by\": {\"channel\": ", out);
    report_json_string(out, c->by->name);
    fputs(", \"values\": [", out);
    for (uint32_t i = 0; i < c->n_values; i++)
        fprintf(out,
                "%s{\"value\": %s, \"sequences\": %" PRIu64
                ", \"tokens\": %" PRIu64 "}",
                i == 0 ? "" : ", ",
                channel_figures_value(c->by, c->values[i].value, text),
                c->values[i].sequences, c->values[i].tokens);
    fprintf(out,
            "], \"others\": {\"sequences\": %" PRIu64 ", \"tokens\": %" PRIu64
            "}",
            c->others.sequences, c->others.tokens);
    report_json_ratio(out, "same", c->n_later > 0,
                      (double)c->n_same / (double)c->n_later);
    putc('}', out);
}
