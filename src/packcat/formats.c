/*
 * formats.c - table of output forms.
 *
 * SPDX-License-Identifier: MIT
 */

#include "packcat/formats.h"

const option_word format_words[] = {
    {"records", FORMAT_RECORDS},     {"jsonl", FORMAT_JSONL},
    {"ids", FORMAT_IDS},             {"bytes", FORMAT_BYTES},
    {"datatrove", FORMAT_DATATROVE}, {"tfrecord", FORMAT_TFRECORD},
    {"rows", FORMAT_ROWS},           {"npy", FORMAT_NPY},
    {"llmc", FORMAT_LLMC},           {"trl", FORMAT_TRL},
    {"megatron", FORMAT_MEGATRON},   {"packs", FORMAT_PACKS},
    {NULL, 0}};

const format formats[] = {
    [FORMAT_RECORDS] = {convert_records, SAME_SCHEMA, OF_SEQUENCES, true, NULL},
    [FORMAT_JSONL] = {convert_jsonl, SAME_SCHEMA, OF_SEQUENCES, false, NULL},
    [FORMAT_IDS] = {convert_ids, 0, OF_SEQUENCES, false, NULL},
    [FORMAT_BYTES] = {convert_bytes, 0, OF_SEQUENCES, true, NULL},
    [FORMAT_DATATROVE] = {convert_datatrove, SAME_SCHEMA, OF_SEQUENCES, true,
                          datatrove_names},
    [FORMAT_TFRECORD] = {convert_tfrecord, SAME_CAPACITY | SAME_SCHEMA,
                         OF_SEQUENCES, true, NULL},
    [FORMAT_ROWS] = {convert_rows, SAME_CAPACITY | SAME_WIDTH, OF_PACKS, true,
                     NULL},
    [FORMAT_NPY] = {convert_npy, SAME_FIELDS, OF_PACKS, true, NULL},
    [FORMAT_LLMC] = {convert_llmc, SAME_CAPACITY | SAME_WIDTH, OF_PACKS, true,
                     NULL},
    [FORMAT_TRL] = {convert_trl, SAME_SCHEMA, OF_PACKS, false, NULL},
    [FORMAT_MEGATRON] = {convert_megatron, SAME_WIDTH, OF_EITHER, true,
                         megatron_names},
    [FORMAT_PACKS] = {convert_packs, SAME_STREAM, OF_PACKS, true, NULL},
};
