/*
 * json.c - sequences or packs as JSON, one object per line.
 *
 * Keys are in the order of the channel table.  Names need no escapes, since the
 * format allows only letters, digits and underscores.  JSON cannot represent
 * infinity, and a wrong value would be worse than none, so an infinite value in
 * a channel ends the conversion with an error.
 *
 * SPDX-License-Identifier: MIT
 */

#include <inttypes.h>

#include "common/bytes.h"
#include "packcat/elements.h"
#include "packcat/formats.h"

static void put_key(output *out, const char *name)
{
    output_text(out, ",\"");
    output_text(out, name);
    output_text(out, "\":");
}

/* ---- jsonl: sequences ---- */

void convert_jsonl(input *in, output *out)
{
    const ps_schema *schema = &in->first.schema;
    ps_sequence sequence;
    bool more = true;

    while (more && input_sequence(in, &sequence)) {
        elements list;

        for (uint32_t c = 0; c < schema->n_channels; c++) {
            list = elements_of(schema, &sequence, c);
            if (elements_have_infinity(&list)) {
                input_fail(in, "sequence %" PRIu64 ": channel '%s' has an "
                           "infinity, which JSON cannot represent",
                           sequence.id, schema->channels[c].name);
                return;
            }
        }

        list = elements_of(schema, &sequence, PS_TOKENS);
        output_text(out, "{\"input_ids\":[");
        elements_print(out, &list, ',');
        output_text(out, "]");
        for (uint32_t c = 0; c < schema->n_channels; c++) {
            const bool in_list = schema->channels[c].kind != PS_PER_SEQUENCE;

            list = elements_of(schema, &sequence, c);
            put_key(out, schema->channels[c].name);
            output_text(out, in_list ? "[" : "");
            elements_print(out, &list, ',');
            output_text(out, in_list ? "]" : "");
        }
        more = output_text(out, "}\n");
    }
}

/*
 * ---- trl: packs, for TRL and compatible trainers ----
 *
 * A pack is one row of its sequences, without padding or gaps; seq_lengths
 * lists their lengths.  A per-token channel is a list with one element per
 * token, a per-sequence channel a list with one element per sequence, and a
 * list channel a list of lists, one per sequence.
 */

/* Prints the values of all sequences. */
static void put_field(output *out, const ps_pack_info *info,
                      const ps_field *field, const ps_pack *pack)
{
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const elements list = elements_in_pack(info, pack, field, i);

        output_text(out, i == 0 ? "[" : ",");
        output_text(out, field->channel.kind == PS_LIST ? "[" : "");
        elements_print(out, &list, ',');
        output_text(out, field->channel.kind == PS_LIST ? "]" : "");
    }
    output_text(out, "]");
}

static bool check_finite(input *in, const ps_pack *pack)
{
    const ps_pack_info *info = input_info(in);

    for (uint32_t c = 0; c < info->schema.n_channels; c++) {
        const ps_field *field =
            ps_pack_field(info, info->schema.channels[c].name);

        for (uint32_t i = 0; i < pack->n_seq; i++) {
            const elements list = elements_in_pack(info, pack, field, i);

            if (elements_have_infinity(&list))
                return input_fail(in, "pack %" PRIu64 ": channel '%s' has an "
                                  "infinity, which JSON cannot represent",
                                  pack->index, field->channel.name);
        }
    }
    return true;
}

void convert_trl(input *in, output *out)
{
    const ps_schema *schema = &in->first.schema;
    ps_pack pack;
    bool more = true;

    /* TRL shifts labels itself, and keys must be unique. */
    if (elements_channel(schema, "seq_lengths") != PS_TOKENS)
        input_fail(in, "channel 'seq_lengths': --to=trl uses this name itself");
    else if (schema->labels == PS_LABELS_SHIFTED &&
             elements_channel(schema, "labels") != PS_TOKENS)
        input_fail(in, "its labels are already shifted, and TRL would shift "
                   "them again");

    while (!in->failed && more && input_pack(in, &pack) &&
           check_finite(in, &pack)) {
        const ps_pack_info *info = input_info(in);

        output_text(out, "{\"input_ids\":");
        put_field(out, info, &info->fields[PS_FIELD_TOKENS], &pack);

        put_key(out, "seq_lengths");
        for (uint32_t i = 0; i < pack.n_seq; i++) {
            unsigned char bytes[4];
            const elements length = {PS_U32, 1, 0, bytes};

            store_u32(bytes, ps_pack_piece(info, &pack, i).n_tok);
            output_text(out, i == 0 ? "[" : ",");
            elements_print(out, &length, ',');
        }
        output_text(out, "]");

        /* Fields are not in the order of channels. */
        for (uint32_t c = 0; c < schema->n_channels; c++) {
            const char *name = schema->channels[c].name;

            put_key(out, name);
            put_field(out, info, ps_pack_field(info, name), &pack);
        }
        more = output_text(out, "}\n");
    }
}
