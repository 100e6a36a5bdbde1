/*
 * formats.c - the table of what packcat can make of packs.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packcat/formats.h"

#include <string.h>

static const char *match_schema(const ps_pack_info *a, const ps_pack_info *b)
{
    if (ps_schema_equal(&a->schema, &b->schema))
        return NULL;
    return "its token records have another schema";
}

static const char *match_rows(const ps_pack_info *a, const ps_pack_info *b)
{
    if (a->capacity != b->capacity)
        return "its rows have another length";
    if (a->schema.token_type != b->schema.token_type)
        return "its tokens have another width";
    return NULL;
}

static const char *match_fields(const ps_pack_info *a, const ps_pack_info *b)
{
    bool equal = a->record_bytes == b->record_bytes &&
                 a->n_fields == b->n_fields;

    for (uint32_t i = 0; equal && i < a->n_fields; i++) {
        const ps_field *f = &a->fields[i];
        const ps_field *g = &b->fields[i];

        equal = strcmp(f->channel.name, g->channel.name) == 0 &&
                f->channel.type == g->channel.type &&
                f->offset == g->offset && f->count == g->count;
    }
    return equal ? NULL : "its records are laid out in another way";
}

static const char *match_width(const ps_pack_info *a, const ps_pack_info *b)
{
    if (a->schema.token_type != b->schema.token_type)
        return "its tokens have another width";
    return NULL;
}

static const char *match_examples(const ps_pack_info *a,
                                  const ps_pack_info *b)
{
    if (a->capacity != b->capacity)
        return "its rows have another length";
    return match_schema(a, b);
}

static const format formats[] = {
    {"records", convert_records, match_schema, OF_SEQUENCES, true, NULL},
    {"jsonl", convert_jsonl, match_schema, OF_SEQUENCES, false, NULL},
    {"ids", convert_ids, NULL, OF_SEQUENCES, false, NULL},
    {"bytes", convert_bytes, NULL, OF_SEQUENCES, true, NULL},
    {"datatrove", convert_datatrove, match_schema, OF_SEQUENCES, true,
     datatrove_names},
    {"tfrecord", convert_tfrecord, match_examples, OF_SEQUENCES, true, NULL},
    {"rows", convert_rows, match_rows, OF_PACKS, true, NULL},
    {"npy", convert_npy, match_fields, OF_PACKS, true, NULL},
    {"llmc", convert_llmc, match_rows, OF_PACKS, true, NULL},
    {"trl", convert_trl, match_schema, OF_PACKS, false, NULL},
    {"megatron", convert_megatron, match_width, OF_EITHER, true,
     megatron_names},
};

const format *format_find(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(name, formats[i].name) == 0)
            return &formats[i];
    return NULL;
}
