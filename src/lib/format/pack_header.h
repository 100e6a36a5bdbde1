/*
 * pack_header.h - the 4096-byte header of a pack stream; see packstream(5),
 * "Pack stream header".
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_PACK_HEADER_H
#define LIB_FORMAT_PACK_HEADER_H

#include "packstream.h"

/* True if the first min(n, 8) bytes match the magic of a pack stream. */
bool ps_is_pack_magic_prefix(const unsigned char *bytes, size_t n);

/*
 * True if a zstd frame contains only a header.  `content` is the first eight
 * bytes of the frame's content; `bytes` is the size of the content.
 */
bool ps_is_pack_head(const unsigned char *content, uint64_t bytes);

/* Writes the header, PS_PACK_HEADER_BYTES bytes. */
void ps_pack_header_encode(const ps_pack_info *info, unsigned char *to);

/*
 * Decodes and checks a header.
 * PS_OK, PS_ERR_MAGIC, _UNSUPPORTED, _CORRUPT.
 */
ps_result ps_pack_header_decode(const unsigned char *from,
                                ps_pack_info *info, ps_error *err);

/*
 * Like ps_pack_header_decode, but only `got` bytes of the input are available.
 * Also returns PS_ERR_TRUNCATED.
 */
ps_result ps_pack_header_read(const unsigned char *from, size_t got,
                              ps_pack_info *info, ps_error *err);

/* Initial value of a stream's digest: the checksum of its header. */
uint64_t ps_pack_digest_begin(const unsigned char *header);

#endif
