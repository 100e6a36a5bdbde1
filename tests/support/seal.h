/*
 * seal.h - new checksums and digests for streams that were tampered with, so
 * that these do not give it away; for tests and what they need.
 *
 * SPDX-License-Identifier: MIT
 */

#ifndef TESTS_SEAL_H
#define TESTS_SEAL_H

#include <stddef.h>
#include <stdint.h>

/* The header of either format, whose last eight bytes are its checksum. */
void seal_header(unsigned char *header, size_t size);

/*
 * A stream of packs: header, blocks and END.  Gives its size, or 0 if there
 * is no END; what comes before that is sealed even then.
 */
size_t seal_stream(unsigned char *p, size_t size);

/* Streams one behind the other; gives the size of those that have END. */
size_t seal_streams(unsigned char *p, size_t size);

/* The digest of framed records after one more of `n` bytes, count and all. */
uint64_t chain_record(uint64_t digest, const unsigned char *record,
                      size_t n);

/*
 * All of a LENGTHS record of `size` bytes but its entries, which fill it;
 * `before` are the bytes of the stream before it.
 */
void seal_lengths(unsigned char *record, size_t size, uint64_t before);

#endif
