/*
 * version.h - versioning rules of both formats; see packstream(5), "Versions".
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_VERSION_H
#define LIB_FORMAT_VERSION_H

#include "packstream.h"

/* Major versions of the two formats, and their common minor version. */
#define PS_TOKEN_MAJOR 1
#define PS_PACK_MAJOR 2
#define PS_FORMAT_MINOR 0

/* Writes the 8 bytes after a magic: endian probe, major, minor. */
void ps_version_encode(unsigned char *to, uint16_t major);

/*
 * Decodes and checks the 8 bytes after a magic.  `major` and `minor` may be
 * NULL.  Returns PS_OK, PS_ERR_UNSUPPORTED if the major version is greater than
 * `newest`, or PS_ERR_CORRUPT.
 */
ps_result ps_version_decode(const unsigned char *from, uint16_t newest,
                            uint16_t *major, uint16_t *minor, ps_error *err);

/*
 * True if the stream's minor version is not newer than this library's.  In a
 * newer version, bytes that are reserved here can have a meaning.
 */
bool ps_is_version_known(const ps_pack_info *info);

/* Like ps_is_version_known, given the 8 bytes after a magic. */
bool ps_is_minor_known(const unsigned char *from);

/* Rejects unknown incompat bits.  PS_OK, PS_ERR_UNSUPPORTED. */
ps_result ps_incompat_check(uint64_t incompat, uint64_t known,
                            ps_error *err);

#endif
