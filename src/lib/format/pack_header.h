/*
 * pack_header.h - the 4096-byte header of a pack stream; packstream(5)
 * "Pack stream header".
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_PACK_HEADER_H
#define LIB_FORMAT_PACK_HEADER_H

#include "packstream.h"

/*
 * True if `n` bytes, at most 8 of which count, are the magic of a pack
 * stream or the start of it.
 */
bool ps_is_pack_magic_prefix(const unsigned char *bytes, size_t n);

/* Whether a frame is a header alone; eight bytes of its content are given. */
bool ps_is_pack_head(const unsigned char *content, uint64_t bytes);

/* Writes the header to `to`, PS_PACK_HEADER_BYTES bytes. */
void ps_pack_header_encode(const ps_pack_info *info, unsigned char *to);

/*
 * Reads one.  PS_OK, PS_ERR_MAGIC, _UNSUPPORTED, _CORRUPT.
 */
ps_result ps_pack_header_decode(const unsigned char *from,
                                ps_pack_info *info, ps_error *err);

/*
 * The same where only `got` bytes are there, which may be too few.
 * PS_ERR_TRUNCATED besides.
 */
ps_result ps_pack_header_read(const unsigned char *from, size_t got,
                              ps_pack_info *info, ps_error *err);

/* A stream's digest before its first pack: the checksum of the header. */
uint64_t ps_pack_digest_begin(const unsigned char *header);

#endif
