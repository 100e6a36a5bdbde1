/*
 * trl.c - packs as JSON, an object per line, for TRL and what reads as it.
 *
 * A pack is one long row of its sequences without padding, nor gaps between
 * them, and seq_lengths
 * says where they end.  A channel is a list: per-token ones run through all
 * sequences, per-sequence ones have an element for each.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>

#include "digits.h"
#include "elements.h"
#include "formats.h"

/* The values in a field that sequence `i` of a pack has. */
static elements values_of(const ps_pack_info *info, const ps_field *field,
                          const ps_pack *pack, uint32_t i)
{
    const bool each = field->channel.kind == PS_PER_SEQUENCE;
    const ps_piece piece = ps_pack_piece(info, pack, i);
    const size_t first = each ? i : piece.begin;

    return (elements){.type = field->channel.type,
                      .n = each ? 1 : piece.n_tok,
                      .bytes = pack->record + field->offset +
                               first * ps_type_bytes(field->channel.type)};
}

/* Those of all sequences. */
static bool put_values(output *out, const ps_pack_info *info,
                       const ps_field *field, const ps_pack *pack)
{
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const elements list = values_of(info, field, pack, i);

        if (!output_text(out, i == 0 ? "[" : ",") ||
            !elements_print(out, &list, ','))
            return false;
    }
    return output_text(out, "]");
}

/* Fields stand in another order than channels. */
static const ps_field *field_of(const ps_pack_info *info, uint32_t channel)
{
    return ps_pack_field(info, info->schema.channels[channel].name);
}

static bool put_lengths(output *out, const ps_pack_info *info,
                        const ps_pack *pack)
{
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        char *at = output_room(out, DIGITS_MAX + 1);

        if (at == NULL)
            return false;
        if (i > 0)
            *at++ = ',';
        at = digits_unsigned(at, ps_pack_piece(info, pack, i).n_tok);
        output_took(out, at);
    }
    return true;
}

static bool put_channel(output *out, const ps_pack_info *info,
                        const ps_field *field, const ps_pack *pack)
{
    return output_text(out, ",\"") &&
           output_text(out, field->channel.name) &&
           output_text(out, "\":") && put_values(out, info, field, pack);
}

static bool put_object(output *out, const ps_pack_info *info,
                       const ps_pack *pack)
{
    if (!output_text(out, "{\"input_ids\":") ||
        !put_values(out, info, &info->fields[info->tokens_field], pack) ||
        !output_text(out, ",\"seq_lengths\":[") ||
        !put_lengths(out, info, pack) || !output_text(out, "]"))
        return false;
    for (uint32_t c = 0; c < info->schema.n_channels; c++)
        if (!put_channel(out, info, field_of(info, c), pack))
            return false;
    return output_text(out, "}\n");
}

/* TRL itself shifts labels, and takes a key once. */
static bool check_schema(input *in)
{
    const ps_schema *schema = &in->first.schema;

    if (elements_channel(schema, "seq_lengths") != PS_TOKENS)
        input_blame(in, "channel 'seq_lengths' has a name that --to=trl "
                    "needs itself");
    else if (schema->labels == PS_LABELS_SHIFTED &&
             elements_channel(schema, "labels") != PS_TOKENS)
        input_blame(in, "its labels are shifted already, and TRL would "
                    "shift them again");
    return !in->failed;
}

static bool is_finite(const ps_pack_info *info, const ps_field *field,
                      const ps_pack *pack)
{
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const elements list = values_of(info, field, pack, i);

        if (elements_find_infinity(&list) < list.n)
            return false;
    }
    return true;
}

static bool check_finite(input *in, const ps_pack *pack)
{
    const ps_pack_info *info = input_info(in);

    for (uint32_t c = 0; c < info->schema.n_channels; c++) {
        const ps_field *field = field_of(info, c);

        if (!is_finite(info, field, pack)) {
            input_blame(in, "pack %" PRIu64 ": channel '%s' holds an "
                        "infinity, which JSON cannot say",
                        pack->index, field->channel.name);
            return false;
        }
    }
    return true;
}

void convert_trl(input *in, output *out)
{
    ps_pack pack;

    if (!check_schema(in))
        return;
    while (input_pack(in, &pack) && check_finite(in, &pack))
        if (!put_object(out, input_info(in), &pack))
            return;
    (void)output_flush(out);
}
