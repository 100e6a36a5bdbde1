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

typedef void format_convert(input *in, output *out);

/* What --to can be. */
typedef struct format {
    const char *name;
    format_convert *convert;
    input_match *match; /* what several files must share */
    bool packs;         /* made of packs, not of sequences */
    bool binary;        /* not for a terminal */
} format;

/* The format of that name, or NULL. */
const format *format_find(const char *name);

/* Sequences, in either order. */
format_convert convert_records; /* token records, as they were given */
format_convert convert_jsonl;   /* an object per line, channels too */
format_convert convert_ids;     /* a line of decimal token ids */
format_convert convert_bytes;   /* a byte per token */

/* Packs, always in their order. */
format_convert convert_rows; /* the tokens with their padding, nothing else */
format_convert convert_npy;  /* a numpy array of the records */

#endif
