/*
 * formats.h - output forms of packcat, one for each word of --to.
 *
 * main.c parses the command line, opens the input and the outputs, and calls
 * the form's conversion function.  The modules:
 *
 *   input.c      pack streams from several files, read as one; ranges
 *   output.c     one output stream, or a set of files
 *   formats.c    the table of forms
 *   elements.c   values of tokens and channels, and printing them
 *   records.c    token records, ids, bytes
 *   json.c       jsonl, trl
 *   arrays.c     rows, llmc, npy
 *   joined.c     packs
 *   datatrove.c, megatron.c, tfrecord.c    the form of that name
 *
 * A conversion function reads `in` to its end or a failure and writes to `out`.
 * It prints nothing: errors are stored in `in` and `out`, and input_end and
 * outputs_end print them.  A single output is flushed first, so that data
 * decoded before a failure is written before the message.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKCAT_FORMATS_H
#define PACKCAT_FORMATS_H

#include <stdbool.h>

#include "cli/options.h"
#include "packcat/input.h"
#include "packcat/output.h"

/* For a form with several files, `out` is the first of an array. */
typedef void format_convert(input *in, output *out);

/* Units that a form converts, and their order. */
typedef enum format_units {
    OF_SEQUENCES, /* in either order */
    OF_PACKS,     /* always in pack order */
    OF_EITHER     /* packs, or sequences in input order */
} format_units;

/* Forms, and the words of --to for them. */
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
    /* properties that input files must share; see input_options */
    unsigned same;
    format_units units;  /* units that the form converts */
    bool binary;         /* refuse a terminal */
    output_namer *namer; /* names of several files; NULL: one output */
} format;

/* Indexed by format_id. */
extern const format formats[];

/* Forms of sequences. */
format_convert convert_records; /* token records, as they were before packing */
format_convert convert_jsonl;     /* one object per line, with channels */
format_convert convert_ids; /* one line of decimal token ids per sequence */
format_convert convert_bytes;     /* one byte per token */
format_convert convert_datatrove; /* tokens, sequence ends, loss mask */
format_convert convert_tfrecord;  /* examples for BERT's trainer */

/* Forms of packs. */
format_convert convert_rows; /* the tokens of rows, including padding */
format_convert convert_npy;  /* rows as a numpy array, with channels */
format_convert convert_llmc; /* tokens of rows after a header */
format_convert convert_trl;  /* one object per line, with seq_lengths */
format_convert convert_packs; /* all pack streams joined */

/* Forms of packs or sequences. */
format_convert convert_megatron; /* tokens and an index */

output_namer datatrove_names;
output_namer megatron_names;

#endif
