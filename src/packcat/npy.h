/*
 * npy.h - the header of numpy's file format, made for a pack stream.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef PACKCAT_NPY_H
#define PACKCAT_NPY_H

#include <stdbool.h>
#include <stdint.h>

#include "packstream.h"

/* The header's size; the records after it keep their alignment in pages. */
#define NPY_HEADER_BYTES 4096

/*
 * Writes a header for `n_records` records of `info`; with PS_UNKNOWN it has
 * blanks where the number stands, which numpy refuses to load.  False if
 * the description is too long, which no stream within the limits reaches.
 */
bool npy_header(const ps_pack_info *info, uint64_t n_records,
                char header[NPY_HEADER_BYTES]);

#endif
