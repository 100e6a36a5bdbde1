/*
 * npy_header.h - what stands before the numbers of a .npy file.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TOKCAT_NPY_HEADER_H
#define TOKCAT_NPY_HEADER_H

#include <stddef.h>
#include <stdint.h>

#include "tokcat/numbers.h"

/* The magic, two bytes of version, the length of what follows. */
#define NPY_MAGIC_BYTES 6
#define NPY_START_BYTES 12 /* no file of any version has fewer */

/* numpy itself refuses half as much. */
#define NPY_LONGEST ((size_t)20000)

typedef struct npy_header {
    number_type type;
    int dimensions; /* 1 or 2 */
    uint64_t rows;  /* 1 of one dimension */
    uint64_t columns;
} npy_header;

/*
 * The bytes before the dictionary, in *start, and of the dictionary, in *n,
 * of a file that begins with these.  Returns NULL, or what is wrong, with
 * the place in *at.
 */
const char *npy_measure(const unsigned char bytes[NPY_START_BYTES],
                        size_t *start, size_t *n, size_t *at);

/*
 * Reads the dictionary of a file of version `major`: a Python literal with
 * three known keys.  Returns NULL, or what is wrong, with the place in *at.
 */
const char *npy_parse(const unsigned char *dictionary, size_t n,
                      unsigned major, npy_header *header, size_t *at);

#endif
