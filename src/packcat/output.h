/*
 * output.h - the output of packcat, collected into large writes.
 *
 * A failure is kept, not told, because the input's state has to be told
 * first; after it every call fails, and output_end tells it.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKCAT_OUTPUT_H
#define PACKCAT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "packstream.h"

/* The most bytes that output_room can be asked for. */
#define OUTPUT_ROOM ((size_t)256 * 1024)

typedef struct output {
    int fd; /* -1 when not open */
    const char *name;
    char *buffer;
    size_t used;
    ps_token_writer *writer; /* has a buffer of its own; or NULL */
    uint32_t predictions;    /* masked tokens that a form has room for */
    int status;   /* of a failure, else STATUS_OK */
    ps_error err; /* of a failure not yet told, else PS_OK */
} output;

/* Opens `name` (NULL or "-": stdout) as files_open_output does. */
bool output_begin(output *out, const char *name, bool binary, int input_fd);

/*
 * The same for a file of its own, `file`, that messages call `name`; it can
 * be read as well.
 */
bool output_begin_file(output *out, const char *name, const char *file);

/* Adds `size` bytes, or a text without its NUL. */
bool output_put(output *out, const void *bytes, size_t size);
bool output_text(output *out, const char *text);

/*
 * A place for at least `size` <= OUTPUT_ROOM bytes, or NULL; output_took
 * says up to where it was filled.
 */
char *output_room(output *out, size_t size);
void output_took(output *out, const char *end);

/* Writes what has been collected. */
bool output_flush(output *out);

/*
 * A ps_wait_hook: before the input waits, what has been collected goes on
 * its way.  A failure is kept like any other, and ends the input.
 */
ps_result output_pass_on(void *out, ps_error *err);

/*
 * Where the next byte to be written lies, if the output is a file in which
 * bytes can be replaced later; -1 if it is none.
 */
off_t output_patchable(const output *out);

/* Replaces `size` bytes at `offset` of such a file. */
bool output_patch(output *out, off_t offset, const void *bytes, size_t size);

/* Reads `size` bytes at `offset` of a file of output_begin_file. */
bool output_get(output *out, off_t offset, void *bytes, size_t size);

/* Closes without a flush and tells a failure.  Returns the exit status. */
int output_end(output *out);

#endif
