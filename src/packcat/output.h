/*
 * output.h - what packcat writes: one stream, or several files that appear
 * together.  Files with a name appear when they are whole, or not at all.
 *
 * An output collects bytes into large writes.  It keeps a failure instead of
 * printing it, because the failure of the input has to be printed first.
 * After a failure every call fails, so it is enough to look at the result of
 * the last of several calls; outputs_end prints the failure.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKCAT_OUTPUT_H
#define PACKCAT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/file_set.h"
#include "common/file_end.h"
#include "packcat/input.h"
#include "packstream.h"

/* The most bytes that output_reserve can be asked for. */
#define OUTPUT_BUFFER_BYTES ((size_t)256 * 1024)

typedef struct output {
    int fd; /* -1 when not open */
    const char *name;
    file_end end;
    char *buffer;
    size_t used;
    ps_token_writer *writer; /* has a buffer of its own; or NULL */
    ps_pack_writer *packs;   /* the same */
    uint32_t predictions;    /* masked tokens that an example can hold */
    uint32_t zstd_level;     /* of packs; 0: plain */
    int status;   /* of a failure, else STATUS_OK */
    ps_error err; /* of a failure not yet printed, else PS_OK */
} output;

/* Adds `size` bytes, a text without its NUL, or a little-endian integer. */
bool output_put(output *out, const void *bytes, size_t size);
bool output_text(output *out, const char *text);
bool output_u64(output *out, uint64_t value);

/*
 * A place for at least `size` <= OUTPUT_BUFFER_BYTES bytes, or NULL.  The
 * caller adds to out->used the bytes that it fills.
 */
char *output_reserve(output *out, size_t size);

/* Writes what has been collected. */
bool output_flush(output *out);

/*
 * A ps_wait_hook: before the input waits, writes what has been collected,
 * unless it is packs.  A failure is kept like any other, and ends the input.
 */
ps_result output_flush_before_wait(void *out, ps_error *err);

/*
 * The offset of the next byte to be written, if the output is a file in
 * which bytes can be replaced later; else -1.
 */
off_t output_patchable(const output *out);

/* Replaces `size` bytes at `offset` of such a file. */
bool output_patch(output *out, off_t offset, const void *bytes, size_t size);

/* Reads `size` bytes at `offset` of one of several files. */
bool output_read(output *out, off_t offset, void *bytes, size_t size);

/* ---- All outputs of a form ---- */

#define OUTPUTS_MAX 3

/* The names of several files: the first bytes of -o's value, and endings. */
typedef struct output_names {
    size_t stem; /* bytes of it */
    size_t n;
    const char *endings[OUTPUTS_MAX]; /* static */
} output_names;

/* What -o `name` stands for, for packs of `info`. */
typedef output_names output_namer(const char *name,
                                  const ps_pack_info *info);

typedef struct output_options {
    const char *name;     /* NULL: stdout */
    bool binary;          /* not for a terminal */
    output_namer *namer;  /* of several files, never stdout; or NULL */
    uint32_t predictions; /* as in output */
    uint32_t zstd_level;
} output_options;

typedef struct outputs {
    output parts[OUTPUTS_MAX];
    size_t n; /* parts that were begun */
    bool several;
    file_set set; /* of regular files with a name */
} outputs;

/* Whether several files can be called after `name`; a message if not. */
bool outputs_can_have_name(const char *name);

/* Opens all that `options` ask for, for the packs of `in`; *outs is {0}. */
bool outputs_begin(outputs *outs, const output_options *options,
                   const input *in);

/*
 * Closes all and prints failures.  If there is none, and `input_status` is
 * STATUS_OK, files get their names; else they are removed.  Returns the exit
 * status.
 */
int outputs_end(outputs *outs, int input_status);

#endif
