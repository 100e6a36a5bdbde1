/*
 * formats.h - the forms that packcat can make of packs, one for each --to.
 *
 * main.c parses the command line, opens the input and the outputs, and calls
 * one function for the form:
 *
 *   input.c      pack streams from several files, read as one; a range
 *   output.c     one output stream, or several files that belong together
 *   formats.c    the table of forms
 *   elements.c   the values of tokens and channels, also as text
 *   records.c    token records, ids, bytes
 *   json.c       jsonl, trl
 *   arrays.c     rows, llmc, npy
 *   joined.c     packs
 *   datatrove.c, megatron.c, tfrecord.c    the form of that name
 *
 * A function reads `in` to its end or a failure and writes what it makes of
 * it to `out`.  It prints nothing: failures stay in `in` and `out`, whose
 * _end calls print them.  A single output is flushed before that, so that
 * what was decoded before a failure arrives before the message.
 *
 * The program sees packstream.h, src/common, src/cli and src/wire.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKCAT_FORMATS_H
#define PACKCAT_FORMATS_H

#include <stdbool.h>

#include "cli/options.h"
#include "packcat/input.h"
#include "packcat/output.h"

/* Of several files `out` is the first, and the others stand behind it. */
typedef void format_convert(input *in, output *out);

typedef enum format_units {
    OF_SEQUENCES, /* in either order */
    OF_PACKS,     /* always in their order */
    OF_EITHER     /* of packs, or of sequences in the order of the input */
} format_units;

/* What --to can be, and the words for it. */
typedef enum format_id {
    FORMAT_RECORDS,
    FORMAT_JSONL,
    FORMAT_IDS,
    FORMAT_BYTES,
    FORMAT_DATATROVE,
    FORMAT_TFRECORD,
    FORMAT_ROWS,
    FORMAT_NPY,
    FORMAT_LLMC,
    FORMAT_TRL,
    FORMAT_MEGATRON,
    FORMAT_PACKS
} format_id;

extern const option_word format_words[];

typedef struct format {
    format_convert *convert;
    unsigned same; /* what several files must share, as in input_options */
    format_units units; /* what it is made of */
    bool binary;        /* not for a terminal */
    output_namer *namer; /* of several files; or NULL */
} format;

/* By their ids. */
extern const format formats[];

/* Of sequences. */
format_convert convert_records;   /* token records, as they were given */
format_convert convert_jsonl;     /* an object per line, channels too */
format_convert convert_ids;       /* a line of decimal token ids */
format_convert convert_bytes;     /* a byte per token */
format_convert convert_datatrove; /* tokens, their ends, a loss mask */
format_convert convert_tfrecord;  /* examples, as BERT's trainer wants them */

/* Of packs. */
format_convert convert_rows; /* the tokens with their padding, no more */
format_convert convert_npy;  /* the rows as a numpy array, channels too */
format_convert convert_llmc; /* the rows behind a header */
format_convert convert_trl;  /* an object per line, with seq_lengths */
format_convert convert_packs; /* all pack streams, as one */

/* Of either. */
format_convert convert_megatron; /* tokens and an index */

output_namer datatrove_names;
output_namer megatron_names;

#endif
