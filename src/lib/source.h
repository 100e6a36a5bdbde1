/*
 * source.h - a buffered input that hands out contiguous bytes, decompressed
 * if need be.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_SOURCE_H
#define LIB_SOURCE_H

#include "packstream.h"

typedef struct ps_source ps_source;

/*
 * Nothing is read yet; the first peek sees whether zstd frames have come.
 * PS_ERR_MEMORY.
 */
ps_result ps_source_open(ps_source **source, int fd, ps_error *err);

/*
 * Makes the next `want` bytes available in one piece at *data, or fewer if
 * the input ends before; *got says how many.  The buffer grows only with
 * bytes that have arrived.  The bytes stay valid until the next peek.
 * PS_OK, PS_ERR_MEMORY, _IO; for zstd _CORRUPT, _TRUNCATED, _LIMIT; or what
 * the wait hook gave.
 */
ps_result ps_source_peek(ps_source *source, size_t want,
                         const unsigned char **data, size_t *got,
                         ps_error *err);

/* Passes over `n` bytes of what the last peek gave. */
void ps_source_take(ps_source *source, size_t n);

/* Bytes taken so far. */
uint64_t ps_source_offset(const ps_source *source);

void ps_source_on_wait(ps_source *source, ps_wait_hook *hook, void *context);

/* Reads on a thread of its own from now on.  PS_ERR_IO, PS_ERR_MEMORY. */
ps_result ps_source_read_ahead(ps_source *source, ps_error *err);

/* Can be read when a wait for which the hook is called would end. */
int ps_source_descriptor(const ps_source *source);

void ps_source_free(ps_source *source);

#endif
