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
#include <stdio.h>
#include <string.h>

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
 * token, a per-sequence channel a list with one element per sequence.  The
 * lists of a list channel follow each other; NAME_lengths lists their lengths.
 */

#define LENGTHS "_lengths"

/* Prints the values of all sequences. */
static void put_field(output *out, const ps_pack_info *info,
                      const ps_field *field, const ps_pack *pack)
{
    const char *separator = "[";

    for (uint32_t i = 0; i < pack->n_seq; i++) {
        const elements list = elements_in_pack(info, pack, field, i);

        if (list.n == 0)
            continue;
        output_text(out, separator);
        elements_print(out, &list, ',');
        separator = ",";
    }
    output_text(out, *separator == '[' ? "[]" : "]");
}

/* Prints the lengths of all sequences, or of their lists of a channel. */
static void put_lengths(output *out, const ps_pack_info *info,
                        const ps_pack *pack, uint32_t channel)
{
    for (uint32_t i = 0; i < pack->n_seq; i++) {
        unsigned char bytes[4];
        const elements length = {PS_U32, 1, 0, bytes};

        store_u32(bytes, channel == PS_TOKENS
                             ? ps_pack_piece(info, pack, i).n_tok
                             : ps_pack_list(info, pack, channel, i).n);
        output_text(out, i == 0 ? "[" : ",");
        elements_print(out, &length, ',');
    }
    output_text(out, "]");
}

static void put_channel(output *out, const ps_pack_info *info,
                        const ps_pack *pack, uint32_t channel)
{
    const ps_channel *c = &info->schema.channels[channel];
    char key[PS_NAME_BYTES + sizeof LENGTHS];

    put_key(out, c->name);
    put_field(out, info, ps_pack_field(info, c->name), pack);
    if (c->kind != PS_LIST)
        return;
    (void)snprintf(key, sizeof key, "%s" LENGTHS, c->name);
    put_key(out, key);
    put_lengths(out, info, pack, channel);
}

/* TRL shifts labels itself, and keys must be unique. */
static void check_channels(input *in, const ps_schema *schema)
{
    if (schema->labels == PS_LABELS_SHIFTED &&
        elements_channel(schema, "labels") != PS_TOKENS)
        input_fail(in, "its labels are already shifted, and TRL would shift "
                   "them again");
    for (uint32_t c = 0; c < schema->n_channels && !in->failed; c++) {
        const char *name = schema->channels[c].name;
        const char *end = strstr(name, LENGTHS);
        char of[PS_NAME_BYTES];
        uint32_t list;

        if (end == NULL || end[sizeof LENGTHS - 1] != '\0')
            continue;
        (void)snprintf(of, sizeof of, "%.*s", (int)(end - name), name);
        list = elements_channel(schema, of);
        if (strcmp(of, "seq") == 0 ||
            (list != PS_TOKENS && schema->channels[list].kind == PS_LIST))
            input_fail(in, "channel '%s': --to=trl uses this name itself",
                       name);
    }
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

    check_channels(in, schema);
    while (!in->failed && more && input_pack(in, &pack) &&
           check_finite(in, &pack)) {
        const ps_pack_info *info = input_info(in);

        output_text(out, "{\"input_ids\":");
        put_field(out, info, &info->fields[PS_FIELD_TOKENS], &pack);

        put_key(out, "seq_lengths");
        put_lengths(out, info, &pack, PS_TOKENS);
        /* Fields are not in the order of channels. */
        for (uint32_t c = 0; c < schema->n_channels; c++)
            put_channel(out, info, &pack, c);
        more = output_text(out, "}\n");
    }
}
