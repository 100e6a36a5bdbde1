/*
 * replace.h - a small file that is replaced again and again, so that at any
 * instant there is the old one or the new one, whole.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef CLI_REPLACE_H
#define CLI_REPLACE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct replace {
    const char *name; /* as it was given */
    const char *base; /* in its folder */
    char *fresh;      /* the name of the next one, until it is whole */
    int folder;
} replace;

/*
 * Prepares to replace the file `name`, which need not be there; its folder
 * stays open.  False after a message.
 */
bool replace_open(replace *r, const char *name);

/*
 * Writes a new file beside the old one, has it on the disk, and puts it in
 * its place.  False after a message; then the old one is still there.
 */
bool replace_write(const replace *r, const void *bytes, size_t n);

/*
 * Reads the file whole, to memory that the caller frees; *bytes is NULL if
 * there is none.  False after a message.
 */
bool replace_read(const replace *r, unsigned char **bytes, size_t *n);

void replace_close(replace *r);

#endif
