/*
 * version.h - the versioning rules that both formats share; packstream(5)
 * "Versions".
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_VERSION_H
#define LIB_FORMAT_VERSION_H

#include "packstream.h"

/* The major versions of the two formats, and the minor version of both. */
#define PS_TOKEN_MAJOR 1
#define PS_PACK_MAJOR 2
#define PS_FORMAT_MINOR 0

/* The 8 bytes after a magic: endian probe, major, minor. */
void ps_version_encode(unsigned char *to, uint16_t major);

/*
 * Checks them; `major` and `minor` may be NULL.  A major version above the
 * `newest` that is known is PS_ERR_UNSUPPORTED, nonsense is PS_ERR_CORRUPT.
 */
ps_result ps_version_decode(const unsigned char *from, uint16_t newest,
                            uint16_t *major, uint16_t *minor, ps_error *err);

/*
 * True if we know the meaning of every byte of the stream.  In a stream of a
 * later minor version, bytes that are zero in ours may have one.
 */
bool ps_is_version_known(const ps_pack_info *info);

/* The same, of the 8 bytes after a magic. */
bool ps_is_minor_known(const unsigned char *from);

/* Refuses any incompat bit but those that are known.  PS_ERR_UNSUPPORTED. */
ps_result ps_incompat_check(uint64_t incompat, uint64_t known,
                            ps_error *err);

#endif
