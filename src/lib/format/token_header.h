/*
 * token_header.h - header and control records of framed token records; see
 * packstream(5), "Framed token records".
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef LIB_FORMAT_TOKEN_HEADER_H
#define LIB_FORMAT_TOKEN_HEADER_H

#include "format/schema.h"
#include "packstream.h"

#define PS_TOKEN_FIXED_BYTES 128 /* bytes before the channel table */
#define PS_TOKEN_HEADER_MAX                                            \
    (PS_TOKEN_FIXED_BYTES + PS_MAX_CHANNELS * PS_CHANNEL_ENTRY_BYTES + 8)
#define PS_TOKEN_END_BYTES 32
#define PS_TOKEN_CONTROL_BYTES 8 /* a count of 0, then the kind */
#define PS_TOKEN_END_KIND 1
#define PS_TOKEN_FLUSH_KIND 2 /* has no further contents */
#define PS_TOKEN_LENGTHS_KIND 3 /* see lengths_record.h */

/* True if the first min(n, 8) bytes match the magic of framed token records. */
bool ps_is_token_magic_prefix(const unsigned char *bytes, size_t n);

/*
 * Writes the header to `to`, which has room for PS_TOKEN_HEADER_MAX bytes.
 * Returns its size.
 */
size_t ps_token_header_encode(const ps_schema *schema, unsigned char *to);

/*
 * Returns the size of the header whose first PS_TOKEN_FIXED_BYTES bytes are at
 * `from`.  PS_OK, PS_ERR_UNSUPPORTED, PS_ERR_CORRUPT.
 */
ps_result ps_token_header_size(const unsigned char *from, size_t *size,
                               ps_error *err);

/*
 * Decodes and checks a complete header of `size` bytes.
 * PS_OK, PS_ERR_UNSUPPORTED, PS_ERR_CORRUPT.
 */
ps_result ps_token_header_decode(const unsigned char *from, size_t size,
                                 ps_schema *schema, ps_error *err);

/* Contents of END: totals and digest of the records before it. */
typedef struct ps_token_end {
    uint64_t sequences;
    uint64_t tokens;
    uint64_t digest;
} ps_token_end;

void ps_token_end_encode(const ps_token_end *end, unsigned char *to);
ps_token_end ps_token_end_decode(const unsigned char *from);

#endif
