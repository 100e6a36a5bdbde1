/*
 * output.h - one output stream, or a set of files.  Files with a name become
 * visible when they are complete, or not at all.
 *
 * An output collects bytes in a buffer, so that writes are large.  Errors are
 * stored, not printed, because an error of the input has to be printed first.
 * After an error every call fails, so only the last of several calls needs a
 * check.  outputs_end prints the error.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKCAT_OUTPUT_H
#define PACKCAT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/file_end.h"
#include "files/file_set.h"
#include "packcat/input.h"
#include "packstream.h"

/* Size of the buffer, and maximum of output_reserve, in bytes. */
#define OUTPUT_BUFFER_BYTES ((size_t)256 * 1024)

typedef struct output {
    int fd;                  /* -1: not open */
    const char *name;        /* for messages; NULL: stdout */
    file_end end;            /* detects truncation by another program */
    char *buffer;            /* OUTPUT_BUFFER_BYTES bytes; owned */
    size_t used;             /* bytes in `buffer` */
    ps_token_writer *writer; /* owned; has its own buffer; NULL: unused */
    ps_pack_writer *packs;   /* owned; has its own buffer; NULL: unused */
    uint32_t predictions;    /* masked tokens per example */
    uint32_t zstd_level;     /* level for packs; 0: uncompressed */
    int status;              /* exit status of a failure, or STATUS_OK */
    ps_error err;            /* failure not yet printed, or PS_OK */
} output;

/*
 * Write `size` bytes, a string without its NUL, or a little-endian integer, and
 * return false after a failure.
 */
bool output_put(output *out, const void *bytes, size_t size);
bool output_text(output *out, const char *text);
bool output_u64(output *out, uint64_t value);

/*
 * Returns space for at least `size` <= OUTPUT_BUFFER_BYTES bytes, or NULL.  The
 * caller fills it and increases out->used.
 */
char *output_reserve(output *out, size_t size);

/* Writes the buffered bytes. */
bool output_flush(output *out);

/*
 * A ps_wait_hook that writes buffered bytes, except those of packs, before the
 * input waits.  A failure is stored like any other failure, and ends the input.
 */
ps_result output_flush_before_wait(void *out, ps_error *err);

/*
 * Offset of the next byte if the output is a file whose bytes can be replaced
 * later, otherwise -1.
 */
off_t output_patchable(const output *out);

/* Replaces `size` bytes at `offset` of a patchable file. */
bool output_patch(output *out, off_t offset, const void *bytes, size_t size);

/* Reads `size` bytes at `offset` of a member of a set of files. */
bool output_read(output *out, off_t offset, void *bytes, size_t size);

/* ---- All outputs of a form ---- */

#define OUTPUTS_MAX 3

/* Names of a set of files: a prefix of the value of -o, plus an ending. */
typedef struct output_names {
    size_t stem;                      /* length of the prefix, in bytes */
    size_t n;                         /* number of files */
    const char *endings[OUTPUTS_MAX]; /* string constants */
} output_names;

/* Names of the files for packs of `info`; `name` is the value of -o. */
typedef output_names output_namer(const char *name,
                                  const ps_pack_info *info);

typedef struct output_options {
    const char *name; /* NULL: stdout */
    bool binary;      /* refuse a terminal */
    /* names of several files, never stdout; NULL: one output */
    output_namer *namer;
    uint32_t predictions; /* see output */
    uint32_t zstd_level;  /* see output */
} output_options;

typedef struct outputs {
    output parts[OUTPUTS_MAX];
    size_t n;     /* number of parts begun so far */
    bool several; /* the output is a set of files */
    file_set set; /* regular files with a name */
} outputs;

/*
 * Returns true if `name` can be the prefix of several files; otherwise prints a
 * message.
 */
bool outputs_can_have_name(const char *name);

/* Opens all outputs for the packs of `in`.  *outs must be {0}. */
bool outputs_begin(outputs *outs, const output_options *options,
                   const input *in);

/*
 * Closes all outputs and prints errors.  If nothing failed and `input_status`
 * is STATUS_OK, files get their names; otherwise they are removed.  Returns the
 * exit status.
 */
int outputs_end(outputs *outs, int input_status);

#endif
