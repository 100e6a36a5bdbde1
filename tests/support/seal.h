/*
 * seal.h - new checksums and digests for modified streams, so that they do not
 * reveal the change.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_SEAL_H
#define TESTS_SEAL_H

#include <stddef.h>
#include <stdint.h>

/* The header of either format; its last eight bytes are its checksum. */
void seal_header(unsigned char *header, size_t size);

/*
 * A stream of packs: header, blocks and END.  Returns its size, or 0 without
 * END; the part before it is sealed even then.
 */
size_t seal_stream(unsigned char *p, size_t size);

/* Consecutive streams; returns the size up to the last END. */
size_t seal_streams(unsigned char *p, size_t size);

/* The digest of framed records after one more of `n` bytes, count and all. */
uint64_t chain_record(uint64_t digest, const unsigned char *record,
                      size_t n);

/*
 * A LENGTHS record of `size` bytes, filled by its entries, which are not
 * changed; `before` is the number of bytes before it in the stream.
 */
void seal_lengths(unsigned char *record, size_t size, uint64_t before);

#endif
