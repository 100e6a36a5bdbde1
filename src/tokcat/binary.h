/*
 * binary.h - input files that are no text: bytes in order, a block at a
 * time, in bounded memory.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_BINARY_H
#define TOKCAT_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/message.h"
#include "tokcat/text.h"

/* So many bytes are read at once, and can always be had in one piece. */
#define BINARY_BLOCK ((size_t)256 * 1024)

typedef struct binary {
    /* Set by who makes it; all else starts as 0. */
    text_wait_hook *on_wait;
    void *context;

    bool open;
    bool borrowed; /* the descriptor is another's */
    bool regular;  /* read by place; `bytes` is its size */
    int fd;
    const char *name; /* as the user gave it... */
    char *own_name;   /* ...or as we made it */
    uint64_t bytes;
    uint64_t next; /* where the next read begins */
    unsigned char *buffer;
    size_t size;
    size_t begin; /* what is read and not yet taken lies in between */
    size_t end;
    bool ended;
} binary;

/*
 * Each returns an exit status, after a message if it is not STATUS_OK.
 */

/* Opens any file; NULL or "-" is stdin. */
int binary_open(binary *b, const char *name);

/* Opens a regular file whose name is `stem`, but for `cut` bytes at its end,
   and `ending`. */
int binary_open_beside(binary *b, const char *stem, size_t cut,
                       const char *ending);

/* The same file once more, from another place on; closed before it. */
void binary_share(binary *b, const binary *other, uint64_t offset);

void binary_close(binary *b);
void binary_free(binary *b);

/*
 * Reads until `n` bytes are ready or the file ends; *ready says how many
 * there are.  More than BINARY_BLOCK take memory as they come.
 */
int binary_need(binary *b, size_t n, size_t *ready);

/* What is ready lies here until the next call of binary_need. */
const unsigned char *binary_at(const binary *b);
void binary_take(binary *b, size_t n);

/* Where in the file that is. */
uint64_t binary_offset(const binary *b);

/* Goes to another place of a regular file. */
void binary_seek(binary *b, uint64_t offset);

/* The name for messages. */
const char *binary_name(const binary *b);

/* "prog: FILE: byte OFFSET: why"; returns STATUS_DATA. */
int binary_bad(const binary *b, uint64_t offset, const char *format, ...)
    MESSAGE_PRINTF(3, 4);

/* The file ends too early: here, at a place that is no end. */
int binary_cut(const binary *b, const char *within);

/* The name that binary_open_beside makes, to be freed; NULL without memory. */
char *binary_name_beside(const char *stem, size_t cut, const char *ending);

#endif
