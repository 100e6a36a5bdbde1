/*
 * input.h - pack streams from several files, read as one.  Forms of sequences
 * also accept framed token records.
 *
 * Errors are stored, not printed, so that data decoded earlier can be written
 * first; input_end prints them.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKCAT_INPUT_H
#define PACKCAT_INPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/message.h"
#include "cli/progress.h"
#include "cli/range.h"
#include "files/packs.h"
#include "packstream.h"

/* Properties that several files must share, as a bit mask. */
enum {
    SAME_CAPACITY = 1, /* tokens per row */
    SAME_WIDTH = 2,    /* token width */
    SAME_SCHEMA = 4,
    SAME_FIELDS = 8, /* layout of rows */
    SAME_STREAM = 16 /* everything needed to join packs into one stream */
};

typedef struct input_options {
    const char *const *names; /* "-" is stdin */
    int n_names;              /* at least 1 */
    ps_order order;           /* sequence order; PS_ORDER_PACK with a range */
    /* maximum memory to restore the order, in bytes; 0: default */
    uint64_t max_bytes;
    const range *range; /* packs to read, numbered over all files; NULL: all */
    bool tokens_do;     /* token records are accepted as well */
    /* properties that later files must share with the first; SAME_* */
    unsigned same;
    bool progress; /* show progress */
    /*
     * Called with `context` before a wait.  If it fails, the input ends, and
     * the hook must have stored the error.
     */
    ps_wait_hook *on_wait;
    void *context;
} input_options;

typedef struct input {
    input_options options;
    int next; /* index of the next name */
    int fd;   /* descriptor of the current file; -1: none */
    /* initial offset of stdin, in bytes; -1: not seekable */
    off_t start;
    packs packs;              /* packs of the current file */
    ps_token_reader *tokens;  /* reader of token records; NULL: packs; owned */
    ps_pack_info tokens_info; /* only the schema is set */
    /* created for the first sequence; unused for a range */
    ps_unpacker *unpacker;
    range range;     /* bounds resolved to numbers from the start */
    uint64_t passed; /* packs skipped or returned, in all files */
    /* for a range: pack whose sequences are being read */
    ps_pack pack;
    uint32_t next_piece;   /* index of the next sequence of `pack` */
    unsigned char *piece;  /* payload of the last sequence; owned */
    size_t piece_capacity; /* allocated size of `piece`, in bytes */
    ps_pack_info first;    /* header of the first file */
    bool failed;           /* an error ended the input; details follow */
    bool hook_failed;      /* the hook failed */
    int status;            /* not STATUS_OK: the error has been printed */
    ps_error err;          /* the error, if it has not been printed */
    progress progress;
    progress_figures figures;
    uint64_t bytes_before;   /* bytes read from previous files */
    ps_totals totals_before; /* input and truncation totals of previous files */
} input;

/* Opens the first file.  Returns false after a failure. */
bool input_begin(input *in, const input_options *options);

/*
 * Read the next sequence or pack of all files.  Return false at the end or
 * after a failure.
 */
bool input_sequence(input *in, ps_sequence *sequence);
bool input_pack(input *in, ps_pack *pack);

/* Header of the current file. */
const ps_pack_info *input_info(const input *in);

/*
 * Totals of the streams read to their end; only the counts of the input and of
 * truncation are set.  Sums that overflow are UINT64_MAX.  The totals are
 * complete after the last stream, but not for a range.
 */
ps_totals input_totals(const input *in);

/*
 * Ends the input with an error, because the current file cannot be converted.
 * Returns false.
 */
bool input_fail(input *in, const char *format, ...) MESSAGE_PRINTF(2, 3);

/*
 * Reads the number of packs from the ends of the files, without checking
 * anything else.  Returns false if a file does not have the number.
 */
bool input_count(const input *in, uint64_t *count);

/*
 * input_rereadable returns true if all files can be read twice.  input_rewind
 * starts again with the first file.
 */
bool input_rereadable(const input *in);
bool input_rewind(input *in);

/* Prints the error, if any, and frees everything.  Returns the exit status. */
int input_end(input *in);

#endif
