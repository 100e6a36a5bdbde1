/*
 * atomic_file.h - a file that takes the place of an older one as soon as it is
 * whole.
 *
 * It is written beside the older one, under the same name with FRESH_SUFFIX
 * behind it.  Nothing that lies there already is written to or followed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef BERT_FRESH_H
#define BERT_FRESH_H

#include <stddef.h>

#include "packstream.h"

#define FRESH_SUFFIX ".new"
#define FRESH_MAGIC 8 /* bytes that tell what kind of file it is */

typedef struct fresh {
    const char *name;
    char *beside; /* its name until it is whole */
    int fd;
} fresh;

/* The name beside, which the caller frees; NULL: no memory. */
char *fresh_name(const char *name);

/*
 * Tries, before there is anything to write, whether a file can be made there.
 * What a killed run left behind is removed: a file with no other name, which
 * no other run has locked, and which is empty or begins with `magic`.
 * PS_OK, PS_ERR_IO, PS_ERR_MEMORY.
 */
PS_MUST_CHECK ps_result fresh_try(const char *name,
                                  const unsigned char magic[FRESH_MAGIC],
                                  ps_error *err);

/* Makes it, to be written to f->fd.  PS_OK, PS_ERR_IO, PS_ERR_MEMORY. */
PS_MUST_CHECK ps_result fresh_open(fresh *f, const char *name,
                                   ps_error *err);

/*
 * Where `r`, which is how writing went, is PS_OK: has it on the disk and puts
 * it in its place.  Else it is removed, and `r` given back.
 */
PS_MUST_CHECK ps_result fresh_close(fresh *f, ps_result r, ps_error *err);

#endif /* BERT_FRESH_H */
