/*
 * counted.h - forms of packs that begin with how many there are.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKCAT_COUNTED_H
#define PACKCAT_COUNTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "input.h"
#include "output.h"

/* The most bytes of a header. */
#define COUNTED_HEADER_MAX 4096

typedef struct counted {
    const char *name; /* the form's */
    size_t header_bytes;
    /*
     * Writes a header for so many packs of `info`; for PS_UNKNOWN one that
     * readers of the form refuse.  Returns NULL, or why there is none.
     */
    const char *(*header)(const ps_pack_info *info, uint64_t n,
                          char *header);
    /* The most packs that the header can tell of. */
    uint64_t (*max)(const ps_pack_info *info);
    /* Adds a pack; false if the output failed. */
    bool (*put)(const input *in, output *out, const ps_pack *pack);
} counted;

/* A format_convert for such a form. */
void counted_convert(const counted *form, input *in, output *out);

#endif
