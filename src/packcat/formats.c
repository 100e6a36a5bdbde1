/*
 * formats.c - the table of what packcat can make of packs.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packcat/formats.h"

#include <string.h>

static const format formats[] = {
    {"records", convert_records, SAME_SCHEMA, OF_SEQUENCES, true, NULL},
    {"jsonl", convert_jsonl, SAME_SCHEMA, OF_SEQUENCES, false, NULL},
    {"ids", convert_ids, 0, OF_SEQUENCES, false, NULL},
    {"bytes", convert_bytes, 0, OF_SEQUENCES, true, NULL},
    {"datatrove", convert_datatrove, SAME_SCHEMA, OF_SEQUENCES, true,
     datatrove_names},
    {"tfrecord", convert_tfrecord, SAME_CAPACITY | SAME_SCHEMA, OF_SEQUENCES,
     true, NULL},
    {"rows", convert_rows, SAME_CAPACITY | SAME_WIDTH, OF_PACKS, true, NULL},
    {"npy", convert_npy, SAME_FIELDS, OF_PACKS, true, NULL},
    {"llmc", convert_llmc, SAME_CAPACITY | SAME_WIDTH, OF_PACKS, true, NULL},
    {"trl", convert_trl, SAME_SCHEMA, OF_PACKS, false, NULL},
    {"megatron", convert_megatron, SAME_WIDTH, OF_EITHER, true,
     megatron_names},
};

const char *format_set(void *to, const char *name)
{
    const format **form = to;

    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(name, formats[i].name) == 0) {
            *form = &formats[i];
            return NULL;
        }
    return "must be records, jsonl, ids, bytes, datatrove, tfrecord, rows, "
           "npy, llmc, trl or megatron";
}
