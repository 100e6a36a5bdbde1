/*
 * input.h - pack streams from several files, read as one; where sequences are
 * wanted and not packs, a file of framed token records will do as well.
 *
 * The input keeps a failure instead of printing it, so that what was decoded
 * before can be written first; input_end prints it.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKCAT_INPUT_H
#define PACKCAT_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/message.h"
#include "cli/packs.h"
#include "cli/progress.h"
#include "cli/range.h"
#include "packstream.h"

/* What several files must have in common, in bits. */
enum {
    SAME_CAPACITY = 1, /* and thus the length of rows */
    SAME_WIDTH = 2,    /* of tokens */
    SAME_SCHEMA = 4,
    SAME_FIELDS = 8, /* the layout of rows */
    SAME_STREAM = 16 /* so that packs may follow in one stream */
};

typedef struct input_options {
    const char *const *names; /* "-" is stdin */
    int n_names;              /* at least 1 */
    ps_order order;           /* of sequences; of a range PS_ORDER_PACK */
    uint64_t max_bytes;       /* held to restore the order; 0: as by default */
    const range *range; /* packs to read, of all files; NULL: all of them */
    bool tokens_do;     /* token records will do */
    unsigned same;      /* what later files must share with the first */
    bool progress;
    ps_wait_hook *on_wait; /* called with `context` before a wait; if it
                              fails, which it reports itself, the input
                              ends */
    void *context;
} input_options;

typedef struct input {
    input_options options;
    int next;    /* index of the next name */
    int fd;      /* of the file that is open, or -1 */
    off_t start; /* where stdin stood at first, or -1 */
    packs packs;           /* of the open file, */
    ps_token_reader *tokens;  /* or its sequences */
    ps_pack_info tokens_info; /* of which the schema alone means something */
    ps_unpacker *unpacker; /* made for the first sequence; not of a range */
    range range;           /* with bounds from the beginning */
    uint64_t passed;       /* packs skipped or returned, of all files */
    ps_pack pack;          /* of a range: the one sequences are taken from */
    uint32_t next_piece;   /* of it */
    unsigned char *piece;  /* payload of the last one */
    size_t piece_capacity;
    ps_pack_info first;    /* of the first file */
    bool failed;           /* a failure ended the input: */
    bool hook_failed;      /* that of the hook, */
    int status;            /* or one printed already, if not STATUS_OK, */
    ps_error err;          /* or this one */
    progress progress;
    progress_figures figures;
    uint64_t bytes_before; /* in the files that have ended */
    ps_totals totals_before; /* of them; the input, and what was cut off */
} input;

/* Opens the first file; false after a failure. */
bool input_begin(input *in, const input_options *options);

/* The next sequence or pack of all files; false at the end or a failure. */
bool input_sequence(input *in, ps_sequence *sequence);
bool input_pack(input *in, ps_pack *pack);

/* The header of the file that is open. */
const ps_pack_info *input_info(const input *in);

/*
 * Sums over the streams that have ended: of the input, and of what was truncated
 * of it, nothing else; UINT64_MAX if a sum is larger.  They are complete after
 * the last stream, and not for a range.
 */
ps_totals input_totals(const input *in);

/*
 * Ends the input because what the open file holds cannot be converted.
 * Returns false.
 */
bool input_fail(input *in, const char *format, ...) MESSAGE_PRINTF(2, 3);

/*
 * How many packs there are to read, if the ends of all files say so; what
 * lies before their ends is not looked at.
 */
bool input_count(const input *in, uint64_t *count);

/* True if all files can be read twice; input_rewind starts them again. */
bool input_rereadable(const input *in);
bool input_rewind(input *in);

/* Prints a failure and releases everything.  Returns the exit status. */
int input_end(input *in);

#endif
