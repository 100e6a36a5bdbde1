/*
 * formats.h - what packcat can make of packs: one function for each --to.
 *
 * Each one reads `in` to its end or a failure, writes what it makes of it
 * to `out`, and flushes that before it comes back, so that what was decoded
 * before a failure arrives before the message.  Failures stay in `in` and
 * `out`, whose _end calls tell them.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKCAT_FORMATS_H
#define PACKCAT_FORMATS_H

#include <stdbool.h>

#include "input.h"
#include "output.h"
#include "outputs.h"

/* Of several files `out` is the first, and the others stand behind it. */
typedef void format_convert(input *in, output *out);

typedef enum format_units {
    OF_SEQUENCES, /* in either order */
    OF_PACKS,     /* always in their order */
    OF_EITHER     /* of packs, or of sequences in the order of the input */
} format_units;

/* What --to can be. */
typedef struct format {
    const char *name;
    format_convert *convert;
    input_match *match; /* what several files must share */
    format_units units; /* what it is made of */
    bool binary;        /* not for a terminal */
    output_namer *namer; /* of several files; or NULL */
} format;

/* The format of that name, or NULL. */
const format *format_find(const char *name);

/* Of sequences. */
format_convert convert_records;   /* token records, as they were given */
format_convert convert_jsonl;     /* an object per line, channels too */
format_convert convert_ids;       /* a line of decimal token ids */
format_convert convert_bytes;     /* a byte per token */
format_convert convert_datatrove; /* tokens, their ends, a loss mask */
format_convert convert_tfrecord;  /* examples, as BERT's trainer wants them */

/* Of packs. */
format_convert convert_rows; /* the tokens with their padding, no more */
format_convert convert_npy;  /* a numpy array of the records */
format_convert convert_llmc; /* the rows behind a header */
format_convert convert_trl;  /* an object per line, with seq_lengths */

/* Of either. */
format_convert convert_megatron; /* tokens and an index */

output_namer datatrove_names;
output_namer megatron_names;

/* Adds the tokens of a pack with their padding; false if that failed. */
bool rows_put(output *out, const ps_pack_info *info, const ps_pack *pack);

#endif
